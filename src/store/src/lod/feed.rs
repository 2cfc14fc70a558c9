//! Level-of-detail data made from the batches on their way into the trace, so that the end of a run
//! need not read the trace back.
//!
//! The tables come out as [`super::build`] makes them. Late changes of rows are followed: replaced
//! accesses, calls that return after they were stored, findings. Some changes go back further than
//! the kept data: a repeated analysis, a call that blocks through very many operations, edges that
//! come late without such a call. The end then reads back the affected part ([`Made`]).
//!
//! Invariant: the tables equal those of [`super::build`].
//!
//! Memory does not grow with the operations: what is done with goes out into the tables on the way
//! ([`Pieces`]), and what an edge may still ask for, or come late for, into a file ([`super::spool`]).

use super::build::{self, FINDING, Spans, put_axis};
use super::cells::time_of;
use super::counts::{LevelCounts, Life, life};
use super::edges::{self, Edges, PlainEdge};
use super::feed_axes::{FedAxis, FedDepths, Unclear};
use super::pyramid::{LodRow, Point};
use super::scan::{LAUNCH_GRAPH, Scanned, Slots};
use super::uses::{self, Kind, Uses};
use super::{ALL_LANES, lane_code};
use crate::action::group;
use crate::row::{AccessRow, EdgeRow, OpRow};
use crate::schema::ACCESS_BITS;
use rusqlite::{Connection, OptionalExtension, params};
use rustc_hash::FxHashMap;
use streamsan_model::{Axis, LaneId, OpGroup, StreamId, ThreadId};

/// Rows that are given out at once.
const RUN: usize = if cfg!(test) { 1 << 11 } else { 1 << 14 };

/// The pieces that can be inserted before the end, in the order in which they are given out.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The edges that were given out are forgotten.
    cleared: bool,
    rows: Vec<LodRow>,
    uses: Vec<uses::UseRow>,
    edges: Vec<edges::EdgeRow>,
}

impl Pieces {
    fn is_empty(&self) -> bool {
        let lists = self.rows.is_empty() && self.uses.is_empty();
        lists && self.edges.is_empty() && !self.cleared
    }

    /// Inserts them; the room of the lists stays.
    pub(crate) fn insert(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.cleared {
            connection.execute("DELETE FROM lod_edge", [])?;
        }
        build::insert(connection, &mut self.rows)?;
        uses::insert(connection, &mut self.uses)?;
        edges::insert(connection, &self.edges)
    }
}

/// The parts that were made from passing batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    All,
    /// All but the logical axis and the places of findings.
    AllButDepths,
    Nothing,
}

/// A call that was stored while it ran.
#[derive(Debug)]
struct Running {
    api: i64,
    failed: bool,
    life: Option<Life>,
}

#[derive(Debug)]
pub(crate) struct Feed {
    slots: Slots,
    newest: Option<u64>,
    last_time: Option<u64>,
    counts: LevelCounts,
    running: FxHashMap<u64, Running>,
    uses: Uses,
    edges: Edges,
    /// Number of findings of which each operation is a side; 0 for other operations that findings
    /// name.
    sides: FxHashMap<u64, u64>,
    issue: FedAxis,
    time: FedAxis,
    /// `None` when they cannot be told.
    depths: Option<FedDepths>,
    /// Something came that is not followed.
    lost: bool,
    rows: Vec<LodRow>,
    /// Room for rows that are given out, used again: large blocks that come and go leave holes, and the
    /// memory of a long run would grow by these.
    spare: Vec<LodRow>,
    /// Number of entries that were left over the last time.
    kept: usize,
    /// The edges were forgotten since then.
    cleared: bool,
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            slots: Slots::default(),
            newest: None,
            last_time: None,
            counts: LevelCounts::default(),
            running: FxHashMap::default(),
            uses: Uses::default(),
            edges: Edges::default(),
            sides: FxHashMap::default(),
            issue: FedAxis::new(Axis::Issue),
            time: FedAxis::new(Axis::Time),
            depths: Some(FedDepths::new()),
            lost: false,
            rows: Vec::new(),
            spare: Vec::new(),
            kept: 0,
            cleared: false,
        }
    }

    /// Goes on by reading back at the end.
    pub(crate) fn lose(&mut self) {
        *self = Self { lost: true, depths: None, ..Self::new() };
    }

    fn with_depths(&mut self, step: impl FnOnce(&mut FedDepths) -> Result<(), Unclear>) {
        if self.depths.as_mut().is_some_and(|depths| step(depths).is_err()) {
            self.lose_depths();
        }
    }

    fn lose_depths(&mut self) {
        if self.depths.take().is_some() {
            self.rows.retain(|row| row.axis != Axis::Logical as i64);
        }
    }

    /// The analysis is forgotten.
    pub(crate) fn clear(&mut self) {
        self.sides.clear();
        self.edges = Edges::default();
        self.cleared = true;
        self.lose_depths();
    }

    /// A call that was stored has returned.
    pub(crate) fn returned(&mut self, g: i64, result: i64) {
        if self.lost {
            return;
        }
        let Some(running) = self.running.remove(&(g as u64)) else { return self.lose() };
        let failed = result != 0;
        if running.failed != failed {
            self.counts.correct(running.api, failed);
        }
        running.life.filter(|_| !failed).into_iter().for_each(|life| self.counts.add_life(life));
        self.with_depths(|depths| depths.returned(g as u64));
    }

    pub(crate) fn operation(&mut self, row: &OpRow) {
        let g = row.g as u64;
        if self.lost {
            return;
        }
        let action = &row.action;
        let stream = action.stream.map(u32::try_from).transpose();
        let group = group(action.action, action.source, action.destination);
        let (Ok(stream), Ok(thread), Some(group), true) =
            (stream, u32::try_from(row.thread), group, self.newest.is_none_or(|newest| newest < g))
        else {
            return self.lose();
        };
        self.newest = Some(g);
        self.last_time = row.start_ns.map(time_of).or(self.last_time);
        let (lane, slot, host) = self.slots.of_call(stream, thread);
        let op = Scanned {
            g,
            lane,
            slot,
            host,
            process: row.process,
            action: action.action,
            group,
            allocation: action.allocation,
            api: row.api,
            start_ns: self.last_time,
            duration_ns: row.duration_ns.unwrap_or(0).max(0) as u64,
            failed: row.result != 0,
            graph: action.graph.filter(|_| action.action == LAUNCH_GRAPH),
            depth: 0,
        };
        self.counts.add(&op);
        let runs = row.exit_after.is_none();
        if runs {
            let life = life(&Scanned { failed: false, ..op });
            self.running.insert(g, Running { api: op.api, failed: op.failed, life });
        } else if let Some(life) = life(&op) {
            self.counts.add_life(life);
        }
        if let Some(graph) = op.graph {
            self.uses.push(Kind::LaunchesOfGraph, graph, g);
        }
        self.issue.add(op.point(g), &mut self.rows);
        self.time.add(op.point(op.start_ns.unwrap_or(0)), &mut self.rows);
        self.with_depths(|depths| depths.add(op.point(0), host, runs));
    }

    /// An access of the newest operations.
    pub(crate) fn access(&mut self, row: &AccessRow) {
        if !self.lost {
            self.uses.push_access((row.id >> ACCESS_BITS) as u64, row.columns.allocation);
        }
    }

    /// Other accesses take the place of those of an operation: of these allocations.
    pub(crate) fn replace_accesses(&mut self, g: u64, allocations: &[i64]) {
        if !self.lost {
            self.uses.replace_accesses(g, allocations);
        }
    }

    pub(crate) fn edge(&mut self, row: &EdgeRow) {
        if self.lost {
            return;
        }
        let (to, from) = ((row.id >> ACCESS_BITS) as u64, row.from as u64);
        self.edges.push(PlainEdge { from, to, kind: row.kind, tier: row.tier });
        if row.tier == 0 {
            let newest = self.newest;
            self.with_depths(|depths| depths.edge(newest, to, from, row.kind));
        }
    }

    /// A finding has an operation as one of its sides, or (0) speaks of it.
    pub(crate) fn side(&mut self, g: i64, sides: u64) {
        *self.sides.entry(g as u64).or_default() += sides;
    }

    /// Pieces that were inserted come back.
    pub(crate) fn take_back(&mut self, pieces: Pieces) {
        let mut rows = pieces.rows;
        if rows.capacity() > self.spare.capacity() {
            rows.clear();
            self.spare = rows;
        }
    }

    /// A batch has ended. Answers what can be inserted.
    pub(crate) fn end_batch(&mut self) -> Option<Pieces> {
        if self.lost {
            return None;
        }
        let mut rows = std::mem::take(&mut self.rows);
        self.with_depths(|depths| depths.end_batch(&mut rows));
        if self.depths.is_none() {
            rows.retain(|row| row.axis != Axis::Logical as i64);
        }
        self.rows = rows;
        let Ok(edges) = self.edges.take_older() else {
            self.lose();
            return None;
        };
        let cleared = std::mem::take(&mut self.cleared);
        let rows = self.give_rows().unwrap_or_default();
        let pieces = Pieces { cleared, rows, uses: self.uses.take_full(), edges };
        (!pieces.is_empty()).then_some(pieces)
    }

    fn give_rows(&mut self) -> Option<Vec<LodRow>> {
        if self.rows.len() < self.kept + RUN {
            return None;
        }
        let (issue, time) = (self.newest?, self.last_time);
        let mut given = std::mem::take(&mut self.spare);
        let Self { rows, issue: issues, time: times, depths, .. } = self;
        given.extend(rows.extract_if(.., |row| match row.axis {
            axis if axis == Axis::Issue as i64 => issues.gives(row, issue),
            axis if axis == Axis::Time as i64 => time.is_some_and(|t| times.gives(row, t)),
            _ => depths.as_mut().is_some_and(|depths| depths.axis.gives(row, issue)),
        }));
        self.kept = self.rows.len();
        build::sort(&mut given);
        Some(given)
    }

    /// The sizes in memory that could grow with a recording: bytes, edges, pieces and rows.
    #[cfg(test)]
    pub(crate) fn held(&self) -> [usize; 4] {
        let depths = self.depths.as_ref().map_or(0, FedDepths::held);
        [depths, self.edges.held(), self.uses.held(), self.rows.len()]
    }

    /// Fills the tables, where nothing but the rows given out stands yet. Runs in the caller's
    /// transaction.
    pub(crate) fn finish(mut self, connection: &Connection) -> rusqlite::Result<Made> {
        if self.lost {
            build::build(connection)?;
            return Ok(Made::Nothing);
        }
        for (_, running) in self.running.drain().filter(|(_, running)| !running.failed) {
            running.life.into_iter().for_each(|life| self.counts.add_life(life));
        }
        if self.cleared {
            Pieces { cleared: true, ..Pieces::default() }.insert(connection)?;
        }
        let mut rows = std::mem::take(&mut self.rows);
        self.with_depths(|depths| depths.end(&mut rows));
        self.rows = rows;
        let places = self.places(connection)?;
        let spans = Spans {
            issue: self.counts.issue,
            time: self.counts.time,
            depth: self.depths.as_ref().map_or(0, |depths| depths.deepest),
        };
        std::mem::take(&mut self.counts).insert(connection)?;
        std::mem::take(&mut self.uses).insert(connection)?;
        std::mem::take(&mut self.edges).insert(connection)?;
        let made = if self.depths.is_some() { Made::All } else { Made::AllButDepths };
        if self.depths.is_some() {
            let mut insert = connection.prepare(FINDING)?;
            for place in &places {
                let (g, time) = (place.g as i64, place.time.map(|time| time as i64));
                let depth = place.depth.map(|depth| depth as i64);
                insert.execute(params![g, place.sides as i64, place.lane, time, depth])?;
            }
        }
        let mut rows = std::mem::take(&mut self.rows);
        let issue = self.newest;
        for (axis, end) in
            [(Axis::Issue, issue), (Axis::Time, self.last_time), (Axis::Logical, issue)]
        {
            let fed = match axis {
                Axis::Issue => &mut self.issue,
                Axis::Time => &mut self.time,
                Axis::Logical => match &mut self.depths {
                    Some(depths) => &mut depths.axis,
                    None => continue,
                },
            };
            let finished = end.and_then(|end| fed.finish(end, &mut rows));
            let Some((levels, is_shorter)) = finished else {
                rows.retain(|row| row.axis != axis as i64);
                continue;
            };
            if is_shorter {
                connection.execute(
                    "DELETE FROM lod WHERE axis = ? AND shift > ?",
                    params![axis as i64, levels.top],
                )?;
            }
            let mut points = Vec::with_capacity(places.len());
            for place in places.iter().filter(|place| place.sides > 0) {
                let Some(at) = place.at(axis) else { continue };
                fed.overall().add_findings(at, place.g, place.sides);
                points.push((place.point(at), place.sides));
            }
            rows.extend(levels.findings(points));
            rows.extend(fed.overall().rows(levels));
            put_axis(connection, levels, fed.overall(), spans.of(axis))?;
        }
        build::insert(connection, &mut rows)?;
        if made == Made::AllButDepths {
            connection.execute("DELETE FROM lod WHERE axis = ?", [Axis::Logical as i64])?;
            build::build_logical(connection)?;
        }
        Ok(made)
    }

    /// The places of the operations that findings speak of.
    fn places(&mut self, connection: &Connection) -> rusqlite::Result<Vec<FindingPlace>> {
        let mut find = connection.prepare("SELECT stream, thread, start_ns FROM op WHERE g = ?")?;
        // A call without a time lies where the one before it does.
        let mut before = connection.prepare(
            "SELECT start_ns FROM op WHERE g BETWEEN ? AND ? AND start_ns IS NOT NULL \
             ORDER BY g DESC LIMIT 1",
        )?;
        // The newest time before `since`, so that no call is looked at twice: where none has a time,
        // each search would go back to the first one.
        let (mut newest, mut since) = (None, 0);
        let mut places = Vec::new();
        let mut sides: Vec<_> = self.sides.drain().collect();
        // The depths of neighbours are found together.
        sides.sort_unstable();
        for (g, sides) in sides {
            let found = find.query_row([g as i64], |row| {
                let lane = match row.get::<_, Option<u32>>(0)? {
                    Some(stream) => LaneId::Stream(StreamId(stream)),
                    None => LaneId::Host(ThreadId(row.get(1)?)),
                };
                Ok((lane_code(lane), row.get::<_, Option<i64>>(2)?))
            });
            let Some((lane, mut time)) = found.optional()? else { continue };
            if time.is_none() {
                let nearer = before.query_row([since, g as i64], |row| row.get(0)).optional()?;
                time = nearer.or(newest);
            }
            (newest, since) = (time, g as i64);
            let mut depth = None;
            self.with_depths(|depths| {
                depth = depths.depth(g)?;
                Ok(())
            });
            places.push(FindingPlace { g, sides, lane, time: time.map(time_of), depth });
        }
        Ok(places)
    }
}

/// Where an operation lies that findings speak of.
#[derive(Clone, Copy, Debug)]
struct FindingPlace {
    g: u64,
    sides: u64,
    lane: i64,
    time: Option<u64>,
    depth: Option<u64>,
}

impl FindingPlace {
    fn at(&self, axis: Axis) -> Option<u64> {
        match axis {
            Axis::Issue => Some(self.g),
            Axis::Time => Some(self.time.unwrap_or(0)),
            Axis::Logical => self.depth,
        }
    }

    fn point(&self, at: u64) -> Point {
        debug_assert!(self.lane != ALL_LANES);
        // The group is in the bucket by now, and no place among the rows is needed.
        Point { lane: self.lane, slot: 0, g: self.g, group: OpGroup::Other, at }
    }
}
