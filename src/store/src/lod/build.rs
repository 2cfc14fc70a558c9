//! Building the level-of-detail tables from the raw ones, in one pass. The first operations are held
//! back: they show how fine the finest levels can be.

use super::edges::Edges;
use super::pyramid::{Levels, LodRow, Overall, Pyramid};
use super::scan::{Scanned, scan, slot};
use super::uses::{Kind, Uses};
use rusqlite::{Connection, OptionalExtension, Statement, params};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use streamsan_model::Axis;

/// Rows that are sorted before they are inserted: in the order of their key they go in fast.
const RUN: usize = 1 << 17;

/// Operations that are held back.
pub(super) const SAMPLE: usize = 1 << 16;

/// Codes of the actions that begin and end an allocation's life.
const ALLOCATE: i64 = 17;
const FREE: i64 = 18;

/// Takes what [`life`] answers.
pub(super) const LIFETIME: &str = "INSERT INTO lod_lifetime VALUES (?, ?, ?) \
     ON CONFLICT (allocation) DO UPDATE SET allocated = coalesce(allocated, excluded.allocated), \
     freed = coalesce(excluded.freed, freed)";

/// The allocation that an operation makes or frees, when it makes it, when it frees it.
pub(super) fn life(op: &Scanned) -> Option<(i64, Option<i64>, Option<i64>)> {
    let allocation = op.allocation.filter(|_| !op.failed)?;
    match op.action {
        ALLOCATE => Some((allocation, Some(op.g as i64), None)),
        FREE => Some((allocation, None, Some(op.g as i64))),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct LaneCount {
    code: i64,
    process: i64,
    operations: u64,
    first: u64,
    last: u64,
}

#[derive(Debug, Default)]
struct CallTotals {
    calls: u64,
    driver_ns: u64,
    failures: u64,
}

/// Ends of the axes.
#[derive(Debug, Default)]
struct Ends {
    issue: Option<(u64, u64)>,
    time: Option<(u64, u64)>,
    depth: u64,
}

pub(super) fn widen(ends: &mut Option<(u64, u64)>, at: u64) {
    let (first, end) = ends.unwrap_or((at, at.saturating_add(1)));
    *ends = Some((first.min(at), end.max(at.saturating_add(1))));
}

/// Fills the tables anew. Runs in the caller's transaction.
pub(crate) fn build(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "DELETE FROM lod_axis; DELETE FROM lod_lane; DELETE FROM lod; DELETE FROM lod_finding; \
         DELETE FROM lod_lifetime; DELETE FROM lod_call; DELETE FROM lod_use; DELETE FROM lod_edge",
    )?;
    let mut lanes: Vec<LaneCount> = Vec::new();
    let mut calls: FxHashMap<i64, CallTotals> = FxHashMap::default();
    let mut lifes: BTreeMap<i64, (Option<i64>, Option<i64>)> = BTreeMap::new();
    let mut uses = Uses::default();
    let mut ends = Ends::default();
    let bounds = Bounds::new(connection)?;
    let mut filler = Filler::new(connection)?;
    let mut sample: Vec<Scanned> = Vec::new();
    scan(connection, |op| {
        let lane = slot(&mut lanes, op.slot);
        if lane.operations == 0 {
            (lane.code, lane.process, lane.first) = (op.lane, op.process, op.g);
        }
        lane.operations += 1;
        lane.last = op.g;
        let call = calls.entry(op.api).or_default();
        call.calls += 1;
        call.driver_ns = call.driver_ns.saturating_add(op.duration_ns);
        call.failures += u64::from(op.failed);
        widen(&mut ends.issue, op.g);
        if let Some(start) = op.start_ns {
            widen(&mut ends.time, start);
        }
        ends.depth = ends.depth.max(op.depth);
        if let Some((allocation, allocated, freed)) = life(&op) {
            let life = lifes.entry(allocation).or_default();
            (life.0, life.1) = (life.0.or(allocated), freed.or(life.1));
        }
        if let Some(graph) = op.graph {
            uses.push(Kind::LaunchesOfGraph, graph, op.g);
        }
        if !filler.pyramids.is_empty() {
            return filler.add(&op);
        }
        sample.push(op);
        if sample.len() < SAMPLE {
            return Ok(());
        }
        filler.begin(&bounds, &sample);
        sample.drain(..).try_for_each(|op| filler.add(&op))
    })?;
    if filler.pyramids.is_empty() {
        filler.begin(&bounds, &sample);
        sample.iter().try_for_each(|op| filler.add(op))?;
    }
    put_counts(connection, &mut lanes, &calls)?;
    let mut lifetime = connection.prepare(LIFETIME)?;
    for (allocation, (allocated, freed)) in lifes {
        lifetime.execute(params![allocation, allocated, freed])?;
    }
    uses.build(connection)?;
    Edges::read(connection)?.insert(connection)?;
    filler.finish(&ends)
}

/// Ends of the axes as they are known before.
#[derive(Debug)]
struct Bounds {
    issue: u64,
    /// `None` where there are no times.
    time: Option<u64>,
}

impl Bounds {
    fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let one = |sql: &str| -> rusqlite::Result<Option<i64>> {
            connection.query_row(sql, [], |row| row.get(0)).optional().map(Option::flatten)
        };
        let issue = one("SELECT max(g) FROM op")?.unwrap_or(0) as u64;
        let time = "SELECT start_ns FROM op WHERE start_ns IS NOT NULL ORDER BY g DESC LIMIT 1";
        Ok(Self { issue, time: one(time)?.map(|time| time.max(0) as u64) })
    }

    fn end(&self, axis: Axis) -> Option<u64> {
        match axis {
            // A chain has no more links than there are operations.
            Axis::Issue | Axis::Logical => Some(self.issue),
            Axis::Time => self.time,
        }
    }
}

fn position(axis: Axis, op: &Scanned) -> u64 {
    match axis {
        Axis::Issue => op.g,
        // An axis of times has one for each operation but the first few.
        Axis::Time => op.start_ns.unwrap_or(0),
        Axis::Logical => op.depth,
    }
}

/// Fills the buckets of all axes.
struct Filler<'a> {
    connection: &'a Connection,
    sides: FxHashMap<u64, u64>,
    finding: Statement<'a>,
    pyramids: Vec<(Pyramid, Overall)>,
    rows: Vec<LodRow>,
}

impl<'a> Filler<'a> {
    fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            sides: sides_of_findings(connection)?,
            finding: connection.prepare("INSERT INTO lod_finding VALUES (?, ?, ?, ?, ?)")?,
            pyramids: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// Chooses the levels.
    fn begin(&mut self, bounds: &Bounds, sample: &[Scanned]) {
        for axis in Axis::ALL {
            let Some(end) = bounds.end(axis).filter(|_| !sample.is_empty()) else { continue };
            let sample: Vec<_> = sample.iter().map(|op| (op.lane, position(axis, op))).collect();
            let pyramid = Pyramid::new(Levels::choose(axis, end, &sample));
            self.pyramids.push((pyramid, Overall::default()));
        }
    }

    fn add(&mut self, op: &Scanned) -> rusqlite::Result<()> {
        let sides = self.sides.get(&op.g).copied();
        if let Some(sides) = sides {
            self.finding.execute(params![
                op.g as i64,
                sides as i64,
                op.lane,
                op.start_ns.map(|t| t as i64),
                op.depth as i64
            ])?;
        }
        let sides = sides.unwrap_or(0);
        for (pyramid, overall) in &mut self.pyramids {
            let at = position(pyramid.levels().axis, op);
            pyramid.add(op, at, sides, &mut self.rows);
            overall.add(at, op.g, op.group, sides);
        }
        if self.rows.len() >= RUN { insert(self.connection, &mut self.rows) } else { Ok(()) }
    }

    fn finish(mut self, ends: &Ends) -> rusqlite::Result<()> {
        let mut axis_row =
            self.connection.prepare("INSERT INTO lod_axis VALUES (?, ?, ?, ?, ?, ?)")?;
        for (pyramid, overall) in self.pyramids {
            let levels = pyramid.levels();
            pyramid.finish(&mut self.rows);
            self.rows.extend(overall.rows(levels));
            let span = match levels.axis {
                Axis::Issue => ends.issue,
                Axis::Time => ends.time,
                Axis::Logical => Some((1, ends.depth + 1)),
            };
            let Some((first, end)) = span else { continue };
            axis_row.execute(params![
                levels.axis as i64,
                levels.base,
                levels.top,
                overall.shift,
                first as i64,
                end as i64
            ])?;
        }
        insert(self.connection, &mut self.rows)
    }
}

fn put_counts(
    connection: &Connection,
    lanes: &mut [LaneCount],
    calls: &FxHashMap<i64, CallTotals>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO lod_lane VALUES (?, ?, ?, ?, ?)")?;
    lanes.sort_unstable_by_key(|lane| lane.code);
    for lane in lanes.iter().filter(|lane| lane.operations > 0) {
        insert.execute(params![
            lane.code,
            lane.process,
            lane.operations as i64,
            lane.first as i64,
            lane.last as i64
        ])?;
    }
    let mut calls: Vec<_> = calls.iter().collect();
    calls.sort_by_key(|&(api, _)| api);
    let mut insert = connection.prepare("INSERT INTO lod_call VALUES (?, ?, ?, ?)")?;
    for (api, call) in calls {
        insert.execute(params![
            api,
            call.calls as i64,
            i64::try_from(call.driver_ns).unwrap_or(i64::MAX),
            call.failures as i64
        ])?;
    }
    Ok(())
}

/// How many sides of findings each operation is; 0 for others that findings speak of.
fn sides_of_findings(connection: &Connection) -> rusqlite::Result<FxHashMap<u64, u64>> {
    let mut statement = connection.prepare(
        "SELECT op, sum(side) FROM (SELECT op, 1 AS side FROM finding_access \
         UNION ALL SELECT knows, 0 FROM finding UNION ALL SELECT nearest, 0 FROM finding \
         UNION ALL SELECT masked_by, 0 FROM finding) WHERE op IS NOT NULL GROUP BY op",
    )?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))?;
    rows.collect()
}

pub(super) fn insert(connection: &Connection, rows: &mut Vec<LodRow>) -> rusqlite::Result<()> {
    rows.sort_unstable_by_key(|row| (row.axis, row.shift, row.lane, row.bucket));
    let mut insert = connection.prepare_cached(
        "INSERT INTO lod VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (axis, shift, lane, bucket) DO UPDATE SET \
         operations = operations + excluded.operations, first = min(first, excluded.first), \
         groups = groups | excluded.groups, findings = findings + excluded.findings",
    )?;
    for row in rows.drain(..) {
        insert.execute(params![
            row.axis,
            row.shift,
            row.lane,
            row.bucket as i64,
            row.operations as i64,
            row.first as i64,
            row.groups,
            row.findings as i64,
            row.detail
        ])?;
    }
    Ok(())
}
