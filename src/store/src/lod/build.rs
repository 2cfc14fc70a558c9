//! Building the level-of-detail tables from the raw ones, in one pass. The first operations are held
//! back: they show how fine the finest levels can be.

use super::counts::{Ends, LevelCounts, life};
use super::edges::Edges;
use super::pyramid::{Levels, LodRow, Overall, Pyramid};
use super::scan::{Scanned, scan};
use super::uses::{Kind, Uses};
use rusqlite::{Connection, OptionalExtension, Statement, params};
use rustc_hash::FxHashMap;
use streamsan_model::Axis;

/// Rows that are sorted before they are inserted: in the order of their key they go in fast.
const RUN: usize = 1 << 17;

/// Operations that are held back.
pub(super) const SAMPLE: usize = 1 << 16;

/// Fills the tables anew. Runs in the caller's transaction.
pub(crate) fn build(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "DELETE FROM lod_axis; DELETE FROM lod_lane; DELETE FROM lod; DELETE FROM lod_finding; \
         DELETE FROM lod_lifetime; DELETE FROM lod_call; DELETE FROM lod_use; \
         DELETE FROM lod_edge",
    )?;
    let (mut counts, mut uses) = (LevelCounts::default(), Uses::default());
    fill(connection, &Axis::ALL, |op| {
        counts.add(op);
        life(op).into_iter().for_each(|life| counts.add_life(life));
        if let Some(graph) = op.graph {
            uses.push(Kind::LaunchesOfGraph, graph, op.g);
        }
    })?;
    counts.insert(connection)?;
    uses.read_accesses(connection)?;
    uses.insert(connection)?;
    Edges::read(connection)?.insert(connection)
}

/// Fills the tables of the logical axis and of findings, which are empty. Runs in the caller's
/// transaction.
pub(super) fn build_logical(connection: &Connection) -> rusqlite::Result<()> {
    fill(connection, &[Axis::Logical], |_| {})
}

/// Fills the buckets of these axes, and the places of findings.
fn fill(
    connection: &Connection,
    axes: &[Axis],
    mut each: impl FnMut(&Scanned),
) -> rusqlite::Result<()> {
    let bounds = Bounds::new(connection)?;
    let mut filler = Filler::new(connection)?;
    let mut spans = Spans::default();
    let mut sample: Vec<Scanned> = Vec::new();
    scan(connection, |op| {
        each(&op);
        spans.add(&op);
        if !filler.pyramids.is_empty() {
            return filler.add(&op);
        }
        sample.push(op);
        if sample.len() < SAMPLE {
            return Ok(());
        }
        filler.begin(axes, &bounds, &sample);
        sample.drain(..).try_for_each(|op| filler.add(&op))
    })?;
    if filler.pyramids.is_empty() {
        filler.begin(axes, &bounds, &sample);
        sample.iter().try_for_each(|op| filler.add(op))?;
    }
    filler.finish(&spans)
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

/// Ends of the axes.
#[derive(Debug, Default)]
pub(super) struct Spans {
    pub(super) issue: Ends,
    pub(super) time: Ends,
    pub(super) depth: u64,
}

impl Spans {
    fn add(&mut self, op: &Scanned) {
        super::counts::widen(&mut self.issue, op.g);
        if let Some(start) = op.start_ns {
            super::counts::widen(&mut self.time, start);
        }
        self.depth = self.depth.max(op.depth);
    }

    pub(super) fn of(&self, axis: Axis) -> Ends {
        match axis {
            Axis::Issue => self.issue,
            Axis::Time => self.time,
            Axis::Logical => Some((1, self.depth + 1)),
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

pub(super) const FINDING: &str = "INSERT INTO lod_finding VALUES (?, ?, ?, ?, ?)";

impl<'a> Filler<'a> {
    fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            sides: sides_of_findings(connection)?,
            finding: connection.prepare(FINDING)?,
            pyramids: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// Chooses the levels.
    fn begin(&mut self, axes: &[Axis], bounds: &Bounds, sample: &[Scanned]) {
        for &axis in axes {
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
            pyramid.add(op.point(at), sides, &mut self.rows);
            overall.add(at, op.g, op.group, sides);
        }
        if self.rows.len() >= RUN {
            insert(self.connection, &mut self.rows)?;
            self.rows.clear();
        }
        Ok(())
    }

    fn finish(mut self, spans: &Spans) -> rusqlite::Result<()> {
        for (pyramid, overall) in self.pyramids {
            let levels = pyramid.levels();
            pyramid.finish(&mut self.rows);
            self.rows.extend(overall.rows(levels));
            put_axis(self.connection, levels, &overall, spans.of(levels.axis))?;
        }
        insert(self.connection, &mut self.rows)
    }
}

/// The row of an axis that has any position.
pub(super) fn put_axis(
    connection: &Connection,
    levels: Levels,
    overall: &Overall,
    span: Ends,
) -> rusqlite::Result<()> {
    let Some((first, end)) = span else { return Ok(()) };
    let mut put = connection.prepare_cached("INSERT INTO lod_axis VALUES (?, ?, ?, ?, ?, ?)")?;
    put.execute(params![
        levels.axis as i64,
        levels.base,
        levels.top,
        overall.shift,
        first as i64,
        end as i64
    ])?;
    Ok(())
}

/// Number of sides of findings in each operation; 0 for other operations that findings name.
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

/// In the order of their key rows go in fast.
pub(super) fn sort(rows: &mut [LodRow]) {
    rows.sort_unstable_by_key(|row| (row.axis, row.shift, row.lane, row.bucket));
}

/// Inserts rows, of which those for one bucket become one. They stay, for their room to be freed by
/// the thread that made it.
pub(crate) fn insert(connection: &Connection, rows: &mut Vec<LodRow>) -> rusqlite::Result<()> {
    sort(rows);
    rows.dedup_by(|row, kept| kept.takes(row));
    let mut insert = connection.prepare_cached(
        "INSERT INTO lod VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (axis, shift, lane, bucket) DO UPDATE SET \
         operations = operations + excluded.operations, first = min(first, excluded.first), \
         groups = groups | excluded.groups, findings = findings + excluded.findings",
    )?;
    for row in rows.iter() {
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
