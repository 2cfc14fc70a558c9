//! One pass over the operations of a trace, with the depth of each.

use super::cells::time_of;
use super::depth::{Depths, Sources};
use super::lane_code;
use super::pyramid::Point;
use crate::action::group;
use rusqlite::{Connection, Row};
use rustc_hash::FxHashMap;
use streamsan_model::{LaneId, OpGroup, StreamId, ThreadId};

/// The data of an operation that level-of-detail data needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanned {
    pub(super) g: u64,
    pub(super) lane: i64,
    /// The places of its row, and of its thread's row, among all rows.
    pub(super) slot: usize,
    pub(super) host: usize,
    pub(super) process: i64,
    pub(super) action: i64,
    pub(super) group: OpGroup,
    pub(super) allocation: Option<i64>,
    pub(super) api: i64,
    /// Host time from the clock's base, ns.
    pub(super) start_ns: Option<u64>,
    pub(super) duration_ns: u64,
    pub(super) failed: bool,
    /// The graph that it launches.
    pub(super) graph: Option<i64>,
    /// Happens-before depth, from 1.
    pub(super) depth: u64,
}

impl Scanned {
    pub(super) fn point(&self, at: u64) -> Point {
        Point { lane: self.lane, slot: self.slot, g: self.g, group: self.group, at }
    }
}

/// Rows by order of appearance, so that their data lies in lists.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: FxHashMap<i64, usize>,
    /// Most calls follow one of the same thread.
    last: Option<(i64, usize)>,
}

impl Slots {
    fn of(&mut self, lane: i64) -> usize {
        let next = self.places.len();
        *self.places.entry(lane).or_insert(next)
    }

    /// The row of a call, the place of this and that of its thread's row.
    pub(super) fn of_call(&mut self, stream: Option<u32>, thread: u32) -> (i64, usize, usize) {
        let thread = lane_code(LaneId::Host(ThreadId(thread)));
        let lane = stream.map_or(thread, |stream| lane_code(LaneId::Stream(StreamId(stream))));
        let host = self.of_host(thread);
        let slot = if lane == thread { host } else { self.of(lane) };
        (lane, slot, host)
    }

    fn of_host(&mut self, lane: i64) -> usize {
        match self.last {
            Some((last, slot)) if last == lane => slot,
            _ => {
                let slot = self.of(lane);
                self.last = Some((lane, slot));
                slot
            }
        }
    }
}

/// The data of a row; empty before the row's first operation.
pub(super) fn slot<T: Default>(list: &mut Vec<T>, slot: usize) -> &mut T {
    if list.len() <= slot {
        list.resize_with(slot + 1, T::default);
    }
    &mut list[slot]
}

/// Calls `each` for every operation, by `g`.
pub(super) fn scan(
    connection: &Connection,
    mut each: impl FnMut(Scanned) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut depths = Depths::default();
    let mut sources = Sources::new(connection)?;
    // The ids of earlier schemas say nothing.
    let order = if edges_are_by_id(connection)? { "id" } else { "to_op" };
    let mut edges = connection.prepare(&format!(
        "SELECT to_op, from_op, kind FROM edge WHERE tier = 0 ORDER BY {order}"
    ))?;
    let mut edges = edges.query([])?;
    let edge = |edges: &mut rusqlite::Rows<'_>| -> rusqlite::Result<Option<(u64, u64, i64)>> {
        edges
            .next()?
            .map(|row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64, row.get(2)?))
            })
            .transpose()
    };
    let mut next = edge(&mut edges)?;
    let mut statement = connection.prepare(&format!("SELECT {COLUMNS} FROM op ORDER BY g"))?;
    let mut rows = statement.query([])?;
    let (mut last_time, mut slots) = (None, Slots::default());
    while let Some(row) = rows.next()? {
        let mut op = scanned(row, &mut last_time, &mut slots)?;
        depths.begin(op.slot, op.host);
        while let Some((to, from, kind)) = next.filter(|&(to, ..)| to <= op.g) {
            if to == op.g {
                depths.edge(kind, sources.depth(from).filter(|_| from < op.g));
            }
            next = edge(&mut edges)?;
        }
        op.depth = depths.end();
        sources.set(op.g, op.depth);
        each(op)?;
    }
    Ok(())
}

/// Whether the ids of edges say where they end.
pub(crate) fn edges_are_by_id(connection: &Connection) -> rusqlite::Result<bool> {
    let schema: i32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(schema >= 6)
}

/// The columns that [`scanned`] takes, in this order.
pub(super) const COLUMNS: &str = "g, stream, thread, process, action, source, destination, \
                                  allocation, api, start_ns, duration_ns, result, graph";

/// Codes of actions.
pub(super) const LAUNCH_GRAPH: i64 = 33;

/// A row of `op`, without its depth. `last_time`: that of the operation before it, from which a call
/// without a time takes its own.
pub(super) fn scanned(
    row: &Row<'_>,
    last_time: &mut Option<u64>,
    slots: &mut Slots,
) -> rusqlite::Result<Scanned> {
    let (lane, slot, host) = slots.of_call(row.get(1)?, row.get(2)?);
    *last_time = row.get::<_, Option<i64>>(9)?.map(time_of).or(*last_time);
    let action: i64 = row.get(4)?;
    Ok(Scanned {
        g: row.get::<_, i64>(0)? as u64,
        lane,
        slot,
        host,
        process: row.get(3)?,
        action,
        group: group(action, row.get(5)?, row.get(6)?)
            .ok_or(rusqlite::Error::IntegralValueOutOfRange(4, action))?,
        allocation: row.get(7)?,
        api: row.get(8)?,
        start_ns: *last_time,
        duration_ns: row.get::<_, Option<i64>>(10)?.unwrap_or(0).max(0) as u64,
        failed: row.get::<_, i64>(11)? != 0,
        graph: if action == LAUNCH_GRAPH { row.get(12)? } else { None },
        depth: 0,
    })
}
