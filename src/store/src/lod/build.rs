//! Building the level-of-detail tables from the raw ones, in two passes.

use super::pyramid::{Levels, LodRow, Pyramid};
use super::scan::scan;
use rusqlite::{Connection, params};
use std::collections::{BTreeMap, HashMap};
use streamsan_model::Axis;

/// Rows that are sorted before they are inserted: in the order of their key they go in fast.
const RUN: usize = 1 << 17;

/// Codes of the actions that begin and end an allocation's life.
const ALLOCATE: i64 = 17;
const FREE: i64 = 18;

#[derive(Debug, Default)]
struct LaneCount {
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

fn widen(ends: &mut Option<(u64, u64)>, at: u64) {
    let (first, end) = ends.unwrap_or((at, at.saturating_add(1)));
    *ends = Some((first.min(at), end.max(at.saturating_add(1))));
}

/// Fills the tables anew. Runs in the caller's transaction.
pub(crate) fn build(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "DELETE FROM lod_axis; DELETE FROM lod_lane; DELETE FROM lod; DELETE FROM lod_finding; \
         DELETE FROM lod_lifetime; DELETE FROM lod_call",
    )?;
    let mut lanes: BTreeMap<i64, LaneCount> = BTreeMap::new();
    let mut calls: HashMap<i64, CallTotals> = HashMap::new();
    let mut ends = Ends::default();
    let mut lifetime = connection.prepare(
        "INSERT INTO lod_lifetime VALUES (?, ?, ?) ON CONFLICT (allocation) DO UPDATE SET \
         allocated = coalesce(allocated, excluded.allocated), \
         freed = coalesce(excluded.freed, freed)",
    )?;
    scan(connection, |op| {
        let lane = lanes.entry(op.lane).or_insert_with(|| LaneCount {
            process: op.process,
            first: op.g,
            ..Default::default()
        });
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
        if let (ALLOCATE | FREE, Some(allocation), false) = (op.action, op.allocation, op.failed) {
            let g = Some(op.g as i64);
            let (allocated, freed) = if op.action == ALLOCATE { (g, None) } else { (None, g) };
            lifetime.execute(params![allocation, allocated, freed])?;
        }
        Ok(())
    })?;
    drop(lifetime);
    put_counts(connection, &lanes, &calls)?;
    let Some(issue) = ends.issue else { return Ok(()) };
    let mut axes = vec![(Axis::Issue, issue)];
    axes.extend(ends.time.map(|time| (Axis::Time, time)));
    axes.push((Axis::Logical, (1, ends.depth + 1)));
    fill(connection, &lanes, &axes)
}

fn put_counts(
    connection: &Connection,
    lanes: &BTreeMap<i64, LaneCount>,
    calls: &HashMap<i64, CallTotals>,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO lod_lane VALUES (?, ?, ?, ?, ?)")?;
    for (code, lane) in lanes {
        insert.execute(params![
            code,
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

/// The second pass: buckets.
fn fill(
    connection: &Connection,
    lanes: &BTreeMap<i64, LaneCount>,
    axes: &[(Axis, (u64, u64))],
) -> rusqlite::Result<()> {
    let sides = sides_of_findings(connection)?;
    let mut axis_row = connection.prepare("INSERT INTO lod_axis VALUES (?, ?, ?, ?, ?, ?)")?;
    let mut pyramids = Vec::new();
    for &(axis, (first, end)) in axes {
        let levels = Levels::choose(axis, end, lanes.values().map(|lane| lane.operations));
        axis_row.execute(params![
            axis as i64,
            levels.base,
            levels.top,
            levels.overall,
            first as i64,
            end as i64
        ])?;
        pyramids.push((axis, Pyramid::new(levels)));
    }
    let mut finding = connection.prepare("INSERT INTO lod_finding VALUES (?, ?, ?, ?, ?)")?;
    let mut rows = Vec::new();
    scan(connection, |op| {
        let sides = sides.get(&op.g).copied();
        let findings = sides.unwrap_or(0);
        if sides.is_some() {
            finding.execute(params![
                op.g as i64,
                findings as i64,
                op.lane,
                op.start_ns.map(|t| t as i64),
                op.depth as i64
            ])?;
        }
        for (axis, pyramid) in &mut pyramids {
            let at = match axis {
                Axis::Issue => op.g,
                // An axis of times has one for each operation but the first few.
                Axis::Time => op.start_ns.unwrap_or(0),
                Axis::Logical => op.depth,
            };
            pyramid.add(op.lane, at, op.g, op.group, findings, &mut rows);
        }
        if rows.len() >= RUN { insert(connection, &mut rows) } else { Ok(()) }
    })?;
    for (_, pyramid) in pyramids {
        pyramid.finish(&mut rows);
    }
    insert(connection, &mut rows)
}

/// How many sides of findings each operation is; 0 for others that findings speak of.
fn sides_of_findings(connection: &Connection) -> rusqlite::Result<HashMap<u64, u64>> {
    let mut statement = connection.prepare(
        "SELECT op, sum(side) FROM (SELECT op, 1 AS side FROM finding_access \
         UNION ALL SELECT knows, 0 FROM finding UNION ALL SELECT nearest, 0 FROM finding \
         UNION ALL SELECT masked_by, 0 FROM finding) WHERE op IS NOT NULL GROUP BY op",
    )?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))?;
    rows.collect()
}

fn insert(connection: &Connection, rows: &mut Vec<LodRow>) -> rusqlite::Result<()> {
    rows.sort_unstable();
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
