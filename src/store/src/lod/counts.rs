//! Counts that do not depend on the order of operations: rows, calls, lives, ends of the axes.

use super::scan::{Scanned, slot};
use rusqlite::{Connection, params};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Codes of the actions that begin and end an allocation's life.
const ALLOCATE: i64 = 17;
const FREE: i64 = 18;

/// Takes what [`life`] answers.
pub(super) const LIFETIME: &str = "INSERT INTO lod_lifetime VALUES (?, ?, ?) \
     ON CONFLICT (allocation) DO UPDATE SET allocated = coalesce(allocated, excluded.allocated), \
     freed = coalesce(excluded.freed, freed)";

/// An allocation that an operation makes or frees, when it makes it, when it frees it.
pub(super) type Life = (i64, Option<i64>, Option<i64>);

pub(super) fn life(op: &Scanned) -> Option<Life> {
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

/// First position and one past the last one.
pub(super) type Ends = Option<(u64, u64)>;

pub(super) fn widen(ends: &mut Ends, at: u64) {
    let (first, end) = ends.unwrap_or((at, at.saturating_add(1)));
    *ends = Some((first.min(at), end.max(at.saturating_add(1))));
}

#[derive(Debug, Default)]
pub(super) struct LevelCounts {
    lanes: Vec<LaneCount>,
    calls: FxHashMap<i64, CallTotals>,
    lifes: BTreeMap<i64, (Option<i64>, Option<i64>)>,
    pub(super) issue: Ends,
    pub(super) time: Ends,
}

impl LevelCounts {
    /// Counts an operation; operations come by their index.
    pub(super) fn add(&mut self, op: &Scanned) {
        let lane = slot(&mut self.lanes, op.slot);
        if lane.operations == 0 {
            (lane.code, lane.process, lane.first) = (op.lane, op.process, op.g);
        }
        lane.operations += 1;
        lane.last = op.g;
        let call = self.calls.entry(op.api).or_default();
        call.calls += 1;
        call.driver_ns = call.driver_ns.saturating_add(op.duration_ns);
        call.failures += u64::from(op.failed);
        widen(&mut self.issue, op.g);
        if let Some(start) = op.start_ns {
            widen(&mut self.time, start);
        }
    }

    /// Takes in a life, in any order.
    pub(super) fn add_life(&mut self, (allocation, allocated, freed): Life) {
        let life = self.lifes.entry(allocation).or_default();
        life.0 = life.0.into_iter().chain(allocated).min();
        life.1 = life.1.max(freed);
    }

    /// A call of an entry point that was counted was found to have failed, or not to have.
    pub(super) fn correct(&mut self, api: i64, failed: bool) {
        let failures = &mut self.calls.entry(api).or_default().failures;
        *failures = if failed { *failures + 1 } else { failures.saturating_sub(1) };
    }

    pub(super) fn insert(mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut insert = connection.prepare("INSERT INTO lod_lane VALUES (?, ?, ?, ?, ?)")?;
        self.lanes.sort_unstable_by_key(|lane| lane.code);
        for lane in self.lanes.iter().filter(|lane| lane.operations > 0) {
            insert.execute(params![
                lane.code,
                lane.process,
                lane.operations as i64,
                lane.first as i64,
                lane.last as i64
            ])?;
        }
        let mut calls: Vec<_> = self.calls.iter().collect();
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
        let mut insert = connection.prepare("INSERT INTO lod_lifetime VALUES (?, ?, ?)")?;
        for (allocation, (allocated, freed)) in self.lifes {
            insert.execute(params![allocation, allocated, freed])?;
        }
        Ok(())
    }
}
