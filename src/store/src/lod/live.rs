//! Level-of-detail data that keeps up with a recording.
//!
//! The tables are the temporary ones ([`super::TEMPORARY`]), in the connection of the reader. A
//! step takes in the operations committed since the last step, up to [`Live::MOST`]; its cost
//! follows that number and not the length of the trace. Parts of a bucket add up.
//!
//! Deliberately absent: the logical axis, whose depths need all edges; it comes with the finished
//! trace.

use super::build::{self, SAMPLE};
use super::counts::{LIFETIME, life, widen};
use super::pyramid::{Levels, LodRow, Overall, Pyramid};
use super::scan::{COLUMNS, Scanned, Slots, scanned};
use super::{EDGES, TEMPORARY};
use crate::row::edge_ids;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, HashMap};
use streamsan_model::{Axis, OpSeq};

/// The axes of a recording that goes on.
const AXES: [Axis; 2] = [Axis::Issue, Axis::Time];
/// Where the axes are taken to end when their levels are chosen: about 10^11 calls, a day.
const ENDS: [u64; 2] = [1 << 36, 1 << 46];
/// A level that nothing reaches: every window is read from the operations themselves.
const NO_LEVEL: u8 = 62;
/// Number of calls without a return that are checked again.
const RUNNING: usize = 256;

/// The findings of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LiveStep {
    /// Operations, edges or findings have come.
    pub(crate) changed: bool,
    /// Findings have come.
    pub(crate) findings: bool,
    /// There is more than one step takes.
    pub(crate) more: bool,
}

/// How far the tables have come. A step that fails leaves it and the tables as they were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    is_made: bool,
    /// First index that was not taken in.
    next: u64,
    operations: u64,
    edge: i64,
    finding: i64,
    last_time: Option<u64>,
    ends: [Option<(u64, u64)>; 2],
    /// Chosen once there are operations to choose by.
    levels: Option<[Levels; 2]>,
    overall: [Overall; 2],
    /// Calls that had not returned.
    running: Vec<u64>,
    /// Calls that had returned at the last step and at the one before it: their edges may come behind
    /// those of later calls.
    returned: [Vec<u64>; 2],
    /// SQLite's version of the file's data at the last step.
    version: Option<i64>,
    more: bool,
}

fn at(axis: Axis, op: &Scanned) -> Option<u64> {
    if axis == Axis::Issue { Some(op.g) } else { op.start_ns }
}

impl Live {
    /// Operations of one step.
    pub(crate) const MOST: usize = 20_000;

    /// Takes in what has come since the last step.
    pub(crate) fn step(&mut self, connection: &Connection) -> rusqlite::Result<LiveStep> {
        let version = connection.query_row("PRAGMA data_version", [], |row| row.get(0))?;
        if self.version == Some(version) && !self.more {
            return Ok(LiveStep::default());
        }
        let mut next = Self { version: Some(version), ..self.clone() };
        let transaction = connection.unchecked_transaction()?;
        if !self.is_made {
            connection.execute_batch(TEMPORARY)?;
            connection.execute_batch(EDGES)?;
            next.is_made = true;
        }
        let step = next.take(connection)?;
        transaction.commit()?;
        *self = next;
        Ok(step)
    }

    /// Gives way to the tables of the finished trace.
    pub(crate) fn end(&self, connection: &Connection) -> rusqlite::Result<()> {
        if !self.is_made {
            return Ok(());
        }
        let transaction = connection.unchecked_transaction()?;
        connection.execute_batch(
            "DROP TABLE temp.lod_axis; DROP TABLE temp.lod_lane; DROP TABLE temp.lod; \
             DROP TABLE temp.lod_finding; DROP TABLE temp.lod_lifetime; DROP TABLE temp.lod_call; \
             DROP TABLE temp.lod_use; DROP TABLE temp.lod_edge; DROP TABLE temp.edge",
        )?;
        transaction.commit()
    }

    fn take(&mut self, connection: &Connection) -> rusqlite::Result<LiveStep> {
        let mut rows = Vec::new();
        let operations = self.take_operations(connection, &mut rows)?;
        self.take_returns(connection)?;
        if self.levels.is_none() && self.operations >= SAMPLE as u64 {
            self.choose(connection, &mut rows)?;
        }
        let edges = self.take_edges(connection)?;
        let findings = self.take_findings(connection, &mut rows)?;
        build::insert(connection, &mut rows)?;
        self.put_axes(connection)?;
        self.more = operations == Self::MOST || edges == 4 * Self::MOST;
        Ok(LiveStep { changed: operations > 0 || edges > 0 || findings, findings, more: self.more })
    }

    fn take_operations(
        &mut self,
        connection: &Connection,
        rows: &mut Vec<LodRow>,
    ) -> rusqlite::Result<usize> {
        let mut lanes: BTreeMap<i64, (i64, u64, u64, u64)> = BTreeMap::new();
        let mut calls: HashMap<i64, (u64, u64, u64)> = HashMap::new();
        let mut lifetime = connection.prepare_cached(LIFETIME)?;
        let mut pyramids = self.levels.map(|levels| levels.map(Pyramid::new));
        let mut statement = connection.prepare_cached(&format!(
            "SELECT {COLUMNS}, exit_after FROM op WHERE g >= ? ORDER BY g LIMIT {}",
            Self::MOST
        ))?;
        let mut found = statement.query([self.next as i64])?;
        let (mut count, mut slots) = (0, Slots::default());
        while let Some(row) = found.next()? {
            let op = scanned(row, &mut self.last_time, &mut slots)?;
            count += 1;
            self.next = op.g + 1;
            let lane = lanes.entry(op.lane).or_insert((op.process, 0, op.g, op.g));
            (lane.1, lane.3) = (lane.1 + 1, op.g);
            let call = calls.entry(op.api).or_default();
            *call =
                (call.0 + 1, call.1.saturating_add(op.duration_ns), call.2 + u64::from(op.failed));
            if row.get::<_, Option<i64>>(13)?.is_none() {
                self.running.push(op.g);
            }
            if let Some((allocation, allocated, freed)) = life(&op) {
                lifetime.execute(params![allocation, allocated, freed])?;
            }
            for (place, axis) in AXES.into_iter().enumerate() {
                let Some(at) = at(axis, &op) else { continue };
                widen(&mut self.ends[place], at);
                self.overall[place].add(at, op.g, op.group, 0);
                if let Some(pyramids) = &mut pyramids {
                    pyramids[place].add(op.point(at), 0, rows);
                }
            }
        }
        pyramids.into_iter().flatten().for_each(|pyramid| pyramid.finish(rows));
        self.operations += count as u64;
        let mut put = connection.prepare_cached(
            "INSERT INTO lod_lane VALUES (?, ?, ?, ?, ?) ON CONFLICT (lane) DO UPDATE SET \
             operations = operations + excluded.operations, last = excluded.last",
        )?;
        for (lane, (process, operations, first, last)) in lanes {
            put.execute(params![lane, process, operations as i64, first as i64, last as i64])?;
        }
        for (api, totals) in calls {
            put_call(connection, api, totals)?;
        }
        Ok(count)
    }

    /// Calls that have returned since they were taken in: their time in the driver, their result.
    fn take_returns(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let surplus = self.running.len().saturating_sub(RUNNING);
        self.running.drain(..surplus);
        let mut statement = connection.prepare_cached(
            "SELECT api, duration_ns, result FROM op WHERE g = ? AND exit_after IS NOT NULL",
        )?;
        let (mut running, mut ended) = (Vec::new(), Vec::new());
        for g in std::mem::take(&mut self.running) {
            let returned = statement.query_row([g as i64], |row| {
                let duration = row.get::<_, Option<i64>>(1)?.unwrap_or(0).max(0) as u64;
                Ok((row.get(0)?, duration, row.get::<_, i64>(2)? != 0))
            });
            match returned.optional()? {
                None => running.push(g),
                Some((api, duration, failed)) => {
                    put_call(connection, api, (0, duration, u64::from(failed)))?;
                    ended.push(g);
                }
            }
        }
        self.running = running;
        self.returned.swap(0, 1);
        self.returned[1] = ended;
        Ok(())
    }

    /// Chooses the levels, and fills them with what was taken in so far.
    fn choose(&mut self, connection: &Connection, rows: &mut Vec<LodRow>) -> rusqlite::Result<()> {
        let mut statement =
            connection.prepare(&format!("SELECT {COLUMNS} FROM op WHERE g < ? ORDER BY g"))?;
        let mut found = statement.query([self.next as i64])?;
        let (mut operations, mut last_time) = (Vec::new(), None);
        let mut slots = Slots::default();
        while let Some(row) = found.next()? {
            operations.push(scanned(row, &mut last_time, &mut slots)?);
        }
        let levels = [0, 1].map(|place: usize| {
            let of = |op: &Scanned| Some((op.lane, at(AXES[place], op)?));
            let sample: Vec<_> = operations.iter().filter_map(of).collect();
            Levels::choose(AXES[place], ENDS[place], &sample)
        });
        for levels in levels {
            let mut pyramid = Pyramid::new(levels);
            for op in &operations {
                if let Some(at) = at(levels.axis, op) {
                    pyramid.add(op.point(at), 0, rows);
                }
            }
            pyramid.finish(rows);
        }
        self.levels = Some(levels);
        // Findings of these operations are put into their buckets again.
        (self.finding, self.overall) = (0, self.overall.clone().map(Overall::without_findings));
        connection.execute_batch("DELETE FROM lod_finding")
    }

    fn take_edges(&mut self, connection: &Connection) -> rusqlite::Result<usize> {
        let mut copy = connection.prepare_cached(&format!(
            "INSERT OR REPLACE INTO temp.edge SELECT id, from_op, to_op, kind, tier \
             FROM main.edge WHERE id > ? ORDER BY id LIMIT {}",
            4 * Self::MOST
        ))?;
        let count = copy.execute([self.edge])?;
        if count > 0 {
            let newest = "SELECT max(id) FROM temp.edge";
            self.edge = connection.query_row(newest, [], |row| row.get(0))?;
        }
        let mut late = connection.prepare_cached(
            "INSERT OR IGNORE INTO temp.edge SELECT id, from_op, to_op, kind, tier \
             FROM main.edge WHERE id >= ?1 AND id < ?2 AND id <= ?3",
        )?;
        let mut behind = 0;
        for &g in self.returned.iter().flatten() {
            if let Some(ids) = edge_ids(OpSeq(g)) {
                behind += late.execute(params![ids.start, ids.end, self.edge])?;
            }
        }
        Ok(count.max(behind.min(1)))
    }

    /// Answers whether there were any.
    fn take_findings(
        &mut self,
        connection: &Connection,
        rows: &mut Vec<LodRow>,
    ) -> rusqlite::Result<bool> {
        let mut statement = connection.prepare_cached(
            "SELECT id, first.op, second.op, knows, nearest, masked_by FROM finding \
             JOIN finding_access first ON first.finding = id AND first.side = 1 \
             JOIN finding_access second ON second.finding = id AND second.side = 2 \
             WHERE id > ? ORDER BY id LIMIT ?",
        )?;
        let mut found = statement.query([self.finding, Self::MOST as i64])?;
        let mut any = false;
        while let Some(row) = found.next()? {
            // It has to wait for its operations.
            if row.get::<_, i64>(2)? >= self.next as i64 {
                break;
            }
            any = true;
            self.finding = row.get(0)?;
            for column in 1..=5 {
                if let Some(op) = row.get::<_, Option<i64>>(column)? {
                    self.put_side(connection, op, u64::from(column <= 2), rows)?;
                }
            }
        }
        Ok(any)
    }

    /// An operation that a finding speaks of: as one of its two sides, or (0) otherwise.
    fn put_side(
        &mut self,
        connection: &Connection,
        g: i64,
        sides: u64,
        rows: &mut Vec<LodRow>,
    ) -> rusqlite::Result<()> {
        let mut statement =
            connection.prepare_cached(&format!("SELECT {COLUMNS} FROM op WHERE g = ?"))?;
        let op = statement
            .query_row([g], |row| scanned(row, &mut None, &mut Slots::default()))
            .optional()?;
        let Some(op) = op else { return Ok(()) };
        let mut put = connection.prepare_cached(
            "INSERT INTO lod_finding VALUES (?, ?, ?, ?, NULL) ON CONFLICT (op) DO UPDATE SET \
             sides = sides + excluded.sides",
        )?;
        put.execute(params![g, sides as i64, op.lane, op.start_ns.map(|time| time as i64)])?;
        if sides == 0 {
            return Ok(());
        }
        for (place, axis) in AXES.into_iter().enumerate() {
            let Some(at) = at(axis, &op) else { continue };
            self.overall[place].add_findings(at, op.g, sides);
            let Some(levels) = self.levels.map(|levels| levels[place]) else { continue };
            rows.extend(levels.findings(vec![(op.point(at), sides)]));
        }
        Ok(())
    }

    fn put_axes(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for (place, axis) in AXES.into_iter().enumerate() {
            let Some((first, end)) = self.ends[place] else { continue };
            let none = Levels { axis, base: NO_LEVEL, top: NO_LEVEL };
            let levels = self.levels.map_or(none, |levels| levels[place]);
            let overall = &mut self.overall[place];
            if overall.is_coarser() {
                connection.execute(
                    "DELETE FROM lod WHERE axis = ? AND lane = ?",
                    params![axis as i64, super::ALL_LANES],
                )?;
            }
            let mut put = connection.prepare_cached(
                "INSERT OR REPLACE INTO lod VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            )?;
            for row in overall.changed(levels) {
                put.execute(params![
                    row.axis,
                    row.shift,
                    row.lane,
                    row.bucket as i64,
                    row.operations as i64,
                    row.first as i64,
                    row.groups,
                    row.findings as i64
                ])?;
            }
            let mut put = connection
                .prepare_cached("INSERT OR REPLACE INTO lod_axis VALUES (?, ?, ?, ?, ?, ?)")?;
            put.execute(params![
                axis as i64,
                levels.base,
                levels.top,
                overall.shift,
                first as i64,
                end as i64
            ])?;
        }
        Ok(())
    }
}

fn put_call(
    connection: &Connection,
    api: i64,
    (calls, driver_ns, failures): (u64, u64, u64),
) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached(
        "INSERT INTO lod_call VALUES (?, ?, ?, ?) ON CONFLICT (api) DO UPDATE SET \
         calls = calls + excluded.calls, driver_ns = driver_ns + excluded.driver_ns, \
         failures = failures + excluded.failures",
    )?;
    let driver_ns = i64::try_from(driver_ns).unwrap_or(i64::MAX);
    put.execute(params![api, calls as i64, driver_ns, failures as i64])?;
    Ok(())
}
