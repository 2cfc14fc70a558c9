//! From level-of-detail data to the cells of a screen.

use super::{ALL_LANES, STEP, TEMPORARY, build, detail, lane_code, lane_of};
use crate::action::group;
use crate::reader::stacks;
use rusqlite::{Connection, OptionalExtension, params};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use streamsan_model::{
    Axis, CallStack, Cell, Grid, LaneId, OpGroup, OpSeq, Place, Span, StreamId, Strip, ThreadId,
};

/// Columns that a name needs behind its operation.
const ROOM: u32 = 4;

/// Operations around a time in which a call of another thread may lie that entered a moment earlier
/// or later than its issue index says.
const INVERSION: u64 = 256;

/// The levels of an axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisLevels {
    pub(crate) axis: Axis,
    pub(crate) base: u8,
    top: u8,
    overall: u8,
    pub(crate) span: Span,
}

/// The part of a trace's level-of-detail data that is kept in memory.
#[derive(Debug)]
pub(crate) struct Lod {
    pub(crate) axes: Vec<AxisLevels>,
    /// Sides of findings, by operation.
    sides: HashMap<u64, u64>,
    /// Texts that were asked for.
    names: RefCell<HashMap<i64, Arc<str>>>,
    /// Names of calls that were asked for, by entry point and stack.
    called: RefCell<HashMap<Call, Arc<str>>>,
}

/// The entry point of a call, and its stack.
type Call = (Arc<str>, Option<u32>);

/// Cells of one row in the making.
type Columns = BTreeMap<u32, Cell>;

fn add(columns: &mut Columns, cell: Cell) {
    match columns.get_mut(&cell.column) {
        None => {
            columns.insert(cell.column, cell);
        }
        Some(found) => {
            found.operations += cell.operations;
            found.first = found.first.min(cell.first);
            found.group = found.group.max(cell.group);
            found.findings += cell.findings;
        }
    }
}

/// A position on the axis of times: what began before the clock's base lies at its begin.
pub(crate) fn time_of(start_ns: i64) -> u64 {
    start_ns.max(0) as u64
}

/// The strongest group of a set.
fn strongest(groups: i64) -> OpGroup {
    let bit = 63 - (groups.max(1) as u64).leading_zeros() as usize;
    OpGroup::ALL.get(bit).copied().unwrap_or(OpGroup::Other)
}

impl Lod {
    /// Reads what the file holds; makes the tables in the connection's temporary database where it
    /// holds none.
    pub(crate) fn open(connection: &Connection) -> rusqlite::Result<Self> {
        let there = "SELECT EXISTS (SELECT 1 FROM lod_lane) OR NOT EXISTS (SELECT 1 FROM op)";
        let there = connection.query_row(there, [], |row| row.get(0));
        // Earlier schemas do not have the table.
        if !matches!(there, Ok(true)) {
            connection.execute_batch(&format!("BEGIN;{TEMPORARY}"))?;
            let built = build::build(connection);
            connection.execute_batch(if built.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
            built?;
        }
        Self::read(connection)
    }

    /// Reads what the tables hold.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut lod = Self {
            axes: Vec::new(),
            sides: HashMap::new(),
            names: RefCell::default(),
            called: RefCell::default(),
        };
        lod.update(connection, true)?;
        Ok(lod)
    }

    /// Reads again what the tables hold; `findings`: also which operations findings speak of.
    pub(crate) fn update(
        &mut self,
        connection: &Connection,
        findings: bool,
    ) -> rusqlite::Result<()> {
        let mut statement = connection
            .prepare("SELECT axis, shift, top, overall, first, end FROM lod_axis ORDER BY axis")?;
        let axes = statement.query_map([], |row| {
            Ok(AxisLevels {
                axis: crate::reader::decode::code(row, 0, &Axis::ALL)?,
                base: row.get(1)?,
                top: row.get(2)?,
                overall: row.get(3)?,
                span: Span {
                    start: row.get::<_, i64>(4)? as u64,
                    end: row.get::<_, i64>(5)? as u64,
                },
            })
        })?;
        self.axes = axes.collect::<rusqlite::Result<_>>()?;
        if findings {
            let mut statement = connection.prepare("SELECT op, sides FROM lod_finding")?;
            let sides = statement.query_map([], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
            })?;
            self.sides = sides.collect::<rusqlite::Result<_>>()?;
        }
        Ok(())
    }

    pub(crate) fn axis(&self, axis: Axis) -> Option<&AxisLevels> {
        self.axes.iter().find(|levels| levels.axis == axis)
    }

    /// See [`streamsan_model::TraceQuery::strips`].
    pub(crate) fn strips(
        &self,
        connection: &Connection,
        grid: Grid,
        lanes: &[LaneId],
    ) -> rusqlite::Result<Vec<Strip>> {
        let mut rows: HashMap<i64, Columns> =
            lanes.iter().map(|&lane| (lane_code(lane), Columns::new())).collect();
        if let Some(levels) = self.axis(grid.axis) {
            if grid.scale >= 0 && grid.scale.unsigned_abs() >= levels.base {
                for (&lane, columns) in &mut rows {
                    add_level(connection, levels, grid, lane, columns)?;
                }
            } else if grid.axis == Axis::Logical {
                for (&lane, columns) in &mut rows {
                    self.add_detail(connection, levels, grid, lane, columns)?;
                }
            } else {
                self.add_operations(connection, levels, grid, &mut rows)?;
            }
        }
        let mut strips: Vec<Strip> = Vec::new();
        for &lane in lanes {
            let cells = match rows.remove(&lane_code(lane)) {
                Some(columns) => {
                    let mut cells: Vec<Cell> = columns.into_values().collect();
                    self.put_names(connection, grid, &mut cells)?;
                    cells
                }
                // It was asked for twice.
                None => {
                    let built = strips.iter().find(|strip| strip.lane == lane);
                    built.map_or_else(Vec::new, |strip| strip.cells.clone())
                }
            };
            strips.push(Strip { lane, cells, ranges: Vec::new() });
        }
        Ok(strips)
    }

    /// See [`streamsan_model::TraceQuery::minimap`].
    pub(crate) fn minimap(
        &self,
        connection: &Connection,
        axis: Axis,
        columns: u32,
    ) -> rusqlite::Result<Vec<Cell>> {
        let Some(levels) = self.axis(axis).filter(|_| columns > 0) else { return Ok(Vec::new()) };
        let mut cells = Columns::new();
        let mut statement = connection.prepare_cached(
            "SELECT bucket, operations, first, groups, findings FROM lod \
             WHERE axis = ? AND shift = ? AND lane = ? ORDER BY bucket",
        )?;
        let mut rows = statement.query(params![axis as i64, levels.overall, ALL_LANES])?;
        while let Some(row) = rows.next()? {
            let at = (row.get::<_, i64>(0)? as u64) << levels.overall;
            let offset = u128::from(at.saturating_sub(levels.span.start));
            let column = offset * u128::from(columns) / u128::from(levels.span.len().max(1));
            add(
                &mut cells,
                Cell {
                    column: u32::try_from(column).unwrap_or(u32::MAX).min(columns - 1),
                    operations: row.get::<_, i64>(1)? as u64,
                    first: OpSeq(row.get::<_, i64>(2)? as u64),
                    group: strongest(row.get(3)?),
                    findings: row.get::<_, i64>(4)? as u64,
                    name: None,
                },
            );
        }
        Ok(cells.into_values().collect())
    }

    fn add_detail(
        &self,
        connection: &Connection,
        levels: &AxisLevels,
        grid: Grid,
        lane: i64,
        columns: &mut Columns,
    ) -> rusqlite::Result<()> {
        let span = grid.span();
        let mut statement = connection.prepare_cached(
            "SELECT bucket, first, detail FROM lod \
             WHERE axis = ? AND shift = ? AND lane = ? AND bucket BETWEEN ? AND ?",
        )?;
        let mut rows = statement.query(params![
            grid.axis as i64,
            levels.base,
            lane,
            (span.start >> levels.base) as i64,
            (span.end.saturating_sub(1) >> levels.base) as i64
        ])?;
        while let Some(row) = rows.next()? {
            let begin = (row.get::<_, i64>(0)? as u64) << levels.base;
            let bytes = row.get_ref(2)?.as_blob()?;
            for op in detail::unpack(begin, row.get::<_, i64>(1)? as u64, bytes) {
                if let Some(column) = grid.column(op.at) {
                    add(columns, self.one(column, op.g, op.group));
                }
            }
        }
        Ok(())
    }

    fn one(&self, column: u32, g: u64, group: OpGroup) -> Cell {
        let findings = self.sides.get(&g).copied().unwrap_or(0);
        Cell { column, operations: 1, first: OpSeq(g), group, findings, name: None }
    }

    fn add_operations(
        &self,
        connection: &Connection,
        levels: &AxisLevels,
        grid: Grid,
        rows: &mut HashMap<i64, Columns>,
    ) -> rusqlite::Result<()> {
        let span = grid.span();
        let time = grid.axis == Axis::Time;
        let (from, to) = if time {
            let issue = self.axis(Axis::Issue).map_or(levels.span, |issue| issue.span);
            let first = at_time(connection, issue, span.start.max(levels.span.start))?;
            let last = at_time(connection, issue, span.end)?;
            (first.saturating_sub(INVERSION), last.saturating_add(INVERSION))
        } else {
            (span.start, span.end)
        };
        let mut statement = connection.prepare_cached(
            "SELECT g, stream, thread, action, source, destination, start_ns FROM op \
             WHERE g >= ? AND g < ? ORDER BY g",
        )?;
        let clip = |g: u64| i64::try_from(g).unwrap_or(i64::MAX);
        let mut found = statement.query([clip(from), clip(to)])?;
        let mut last_time = None;
        while let Some(row) = found.next()? {
            let g = row.get::<_, i64>(0)? as u64;
            // A call without a time lies where the one before it does.
            last_time = row.get::<_, Option<i64>>(6)?.map(time_of).or(last_time);
            let at = if time { last_time } else { Some(g) };
            let Some(column) = at.and_then(|at| grid.column(at)) else { continue };
            let stream = row.get::<_, Option<u32>>(1)?.map(|id| LaneId::Stream(StreamId(id)));
            let lane = match stream {
                Some(lane) => lane,
                None => LaneId::Host(ThreadId(row.get(2)?)),
            };
            if let Some(columns) = rows.get_mut(&lane_code(lane)) {
                let action = row.get(3)?;
                let group = group(action, row.get(4)?, row.get(5)?)
                    .ok_or(rusqlite::Error::IntegralValueOutOfRange(3, action))?;
                add(columns, self.one(column, g, group));
            }
        }
        Ok(())
    }

    /// Names lone operations that have room behind them.
    fn put_names(
        &self,
        connection: &Connection,
        grid: Grid,
        cells: &mut [Cell],
    ) -> rusqlite::Result<()> {
        for place in 0..cells.len() {
            let end = cells.get(place + 1).map_or(grid.columns, |next| next.column);
            let cell = &mut cells[place];
            if cell.operations == 1 && end - cell.column > ROOM {
                cell.name = self.name(connection, cell.first)?;
            }
        }
        Ok(())
    }

    /// The label of an operation.
    pub(crate) fn name(
        &self,
        connection: &Connection,
        g: OpSeq,
    ) -> rusqlite::Result<Option<Arc<str>>> {
        let mut statement = connection.prepare_cached(
            "SELECT (SELECT name FROM kernel WHERE id = op.kernel), api, stack FROM op WHERE g = ?",
        )?;
        let found = statement.query_row([g.0 as i64], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?, row.get(2)?))
        });
        match found.optional()? {
            None => Ok(None),
            Some((Some(kernel), ..)) => self.text(connection, kernel).map(Some),
            Some((None, api, stack)) => {
                let api = self.text(connection, api)?;
                self.called(connection, &api, stack).map(Some)
            }
        }
    }

    /// A call by the name that the program's language has for it, kept for the next time.
    pub(crate) fn called(
        &self,
        connection: &Connection,
        api: &Arc<str>,
        stack: Option<u32>,
    ) -> rusqlite::Result<Arc<str>> {
        let key = (api.clone(), stack);
        if let Some(name) = self.called.borrow().get(&key) {
            return Ok(name.clone());
        }
        let frames = stack.map(|id| stacks::frames(connection, id)).transpose()?;
        let name = CallStack::of_frames(frames.iter().flatten(), false).called(api).into();
        Ok(self.called.borrow_mut().entry(key).or_insert(name).clone())
    }

    /// A text, kept for the next time.
    pub(crate) fn text(&self, connection: &Connection, id: i64) -> rusqlite::Result<Arc<str>> {
        if let Some(name) = self.names.borrow().get(&id) {
            return Ok(name.clone());
        }
        let mut statement = connection.prepare_cached("SELECT value FROM string WHERE id = ?")?;
        let name: Arc<str> = statement.query_row([id], |row| row.get(0))?;
        self.names.borrow_mut().insert(id, name.clone());
        Ok(name)
    }

    /// Where an operation is drawn.
    pub(crate) fn place(
        &self,
        connection: &Connection,
        g: OpSeq,
    ) -> rusqlite::Result<Option<Place>> {
        let mut statement =
            connection.prepare_cached("SELECT stream, thread, start_ns FROM op WHERE g = ?")?;
        let found = statement.query_row([g.0 as i64], |row| {
            let lane = match row.get::<_, Option<u32>>(0)? {
                Some(stream) => LaneId::Stream(StreamId(stream)),
                None => LaneId::Host(ThreadId(row.get(1)?)),
            };
            Ok((lane, row.get::<_, Option<i64>>(2)?.map(time_of)))
        });
        let Some((lane, time)) = found.optional()? else { return Ok(None) };
        let depth = self.depth(connection, lane, g)?;
        Ok(Some(Place { lane, at: [Some(g.0), time, depth] }))
    }

    /// The places of the sides of all findings.
    pub(crate) fn finding_places(
        &self,
        connection: &Connection,
    ) -> rusqlite::Result<Vec<(OpSeq, Place)>> {
        let mut statement =
            connection.prepare("SELECT op, lane, start_ns, depth FROM lod_finding ORDER BY op")?;
        let rows = statement.query_map([], |row| {
            let g = row.get::<_, i64>(0)? as u64;
            let lane = lane_of(row.get(1)?).ok_or(rusqlite::Error::InvalidQuery)?;
            let time = row.get::<_, Option<i64>>(2)?.map(|t| t as u64);
            let depth = row.get::<_, Option<i64>>(3)?.map(|depth| depth as u64);
            Ok((OpSeq(g), Place { lane, at: [Some(g), time, depth] }))
        })?;
        rows.collect()
    }
}

/// Cells from the level that fits the grid.
fn add_level(
    connection: &Connection,
    levels: &AxisLevels,
    grid: Grid,
    lane: i64,
    columns: &mut Columns,
) -> rusqlite::Result<()> {
    let scale = grid.scale.unsigned_abs();
    let shift = (levels.base + (scale - levels.base) / STEP * STEP).min(levels.top);
    let span = grid.span();
    let mut statement = connection.prepare_cached(
        "SELECT bucket, operations, first, groups, findings FROM lod \
         WHERE axis = ? AND shift = ? AND lane = ? AND bucket BETWEEN ? AND ?",
    )?;
    let mut rows = statement.query(params![
        grid.axis as i64,
        shift,
        lane,
        (span.start >> shift) as i64,
        (span.end.saturating_sub(1) >> shift) as i64
    ])?;
    while let Some(row) = rows.next()? {
        let at = (row.get::<_, i64>(0)? as u64) << shift;
        let Some(column) = grid.column(at) else { continue };
        add(
            columns,
            Cell {
                column,
                operations: row.get::<_, i64>(1)? as u64,
                first: OpSeq(row.get::<_, i64>(2)? as u64),
                group: strongest(row.get(3)?),
                findings: row.get::<_, i64>(4)? as u64,
                name: None,
            },
        );
    }
    Ok(())
}

/// About the first operation at or behind a time: times follow issue order but for calls of
/// different threads within a moment.
pub(crate) fn at_time(connection: &Connection, issue: Span, time: u64) -> rusqlite::Result<u64> {
    let (mut low, mut high) = (issue.start, issue.end);
    let mut statement = connection.prepare_cached(
        "SELECT g, start_ns FROM op WHERE g >= ? AND start_ns IS NOT NULL ORDER BY g LIMIT 1",
    )?;
    while low < high {
        let middle = low + (high - low) / 2;
        let found = statement.query_row([middle as i64], |row| {
            Ok((row.get::<_, i64>(0)? as u64, time_of(row.get(1)?)))
        });
        match found.optional()? {
            Some((g, start)) if start < time => low = g + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}
