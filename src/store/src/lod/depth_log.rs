//! The depths of all operations, in two bytes each or a little more: an edge may begin at any of them.
//! Most begin at one of the newest, which are kept in memory.

use super::detail::{read, straight, turned, write};
use super::spool;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::VecDeque;

/// Operations that are searched one by one.
const CHUNK: usize = 64;

/// Operations of a run, and runs in memory: the newest, and those of the others that were asked for
/// last.
const RUN: usize = 4096;
const NEWEST: usize = if cfg!(test) { 4 } else { 64 };
const RECALLED: usize = 8;

/// Successive operations.
#[derive(Debug, Default)]
struct Run {
    /// The first operation of each chunk, its depth, and where the bytes behind it begin.
    chunks: Vec<(u64, u64, usize)>,
    /// For each operation but the first its distance from the one before and that of its depth.
    bytes: Vec<u8>,
    length: usize,
    last: (u64, u64),
}

impl Run {
    fn push(&mut self, g: u64, depth: u64) {
        if self.length > 0 {
            write(&mut self.bytes, g - self.last.0);
            write(&mut self.bytes, turned(depth.wrapping_sub(self.last.1)));
        }
        if self.length.is_multiple_of(CHUNK) {
            self.chunks.push((g, depth, self.bytes.len()));
        }
        self.length += 1;
        self.last = (g, depth);
    }

    fn begins_by(&self, wanted: u64) -> bool {
        self.chunks.first().is_some_and(|&(first, ..)| first <= wanted)
    }

    fn depth(&self, wanted: u64) -> Option<u64> {
        if wanted == self.last.0 && self.length > 0 {
            return Some(self.last.1);
        }
        let chunk = self.chunks.partition_point(|&(first, ..)| first <= wanted).checked_sub(1)?;
        let (mut g, mut depth, begin) = self.chunks[chunk];
        let mut bytes = &self.bytes[begin..];
        while g < wanted {
            let (step, change) = read(&mut bytes).zip(read(&mut bytes))?;
            g += step;
            depth = depth.wrapping_add(straight(change));
        }
        (g == wanted).then_some(depth)
    }

    fn read_back(g: u64, depth: u64, mut bytes: &[u8]) -> Self {
        let mut run = Self::default();
        let (mut g, mut depth) = (g, depth);
        run.push(g, depth);
        while let Some((step, change)) = read(&mut bytes).zip(read(&mut bytes)) {
            g += step;
            depth = depth.wrapping_add(straight(change));
            run.push(g, depth);
        }
        run
    }
}

#[derive(Debug, Default)]
pub(super) struct DepthLog {
    newest: VecDeque<Run>,
    /// All others.
    older: Option<Connection>,
    recalled: VecDeque<Run>,
}

impl DepthLog {
    /// Adds an operation behind all others.
    pub(super) fn push(&mut self, g: u64, depth: u64) -> rusqlite::Result<()> {
        if self.newest.back().is_none_or(|run| run.length == RUN) {
            let mut next = Run::default();
            if self.newest.len() == NEWEST
                && let Some(oldest) = self.newest.pop_front()
            {
                next = self.put_away(oldest)?;
            }
            self.newest.push_back(next);
        }
        self.newest.back_mut().into_iter().for_each(|run| run.push(g, depth));
        Ok(())
    }

    /// Answers an empty run with the room of this one.
    fn put_away(&mut self, mut run: Run) -> rusqlite::Result<Run> {
        let older = match self.older.take() {
            Some(older) => older,
            None => spool::open(
                "CREATE TABLE run (first INTEGER PRIMARY KEY, depth INTEGER, bytes BLOB)",
            )?,
        };
        if let Some(&(first, depth, _)) = run.chunks.first() {
            older.prepare_cached("INSERT INTO run VALUES (?, ?, ?)")?.execute(params![
                first as i64,
                depth as i64,
                run.bytes
            ])?;
        }
        self.older = Some(older);
        run.chunks.clear();
        run.bytes.clear();
        run.length = 0;
        Ok(run)
    }

    /// The depth of an operation, `None` where it was not added.
    pub(super) fn depth(&mut self, wanted: u64) -> rusqlite::Result<Option<u64>> {
        if let Some(at) = self.newest.partition_point(|run| run.begins_by(wanted)).checked_sub(1) {
            return Ok(self.newest[at].depth(wanted));
        }
        let Some(older) = &self.older else { return Ok(None) };
        let is_in = |run: &&Run| run.begins_by(wanted) && wanted <= run.last.0;
        if let Some(run) = self.recalled.iter().find(is_in) {
            return Ok(run.depth(wanted));
        }
        let mut find = older.prepare_cached(
            "SELECT first, depth, bytes FROM run WHERE first <= ? ORDER BY first DESC LIMIT 1",
        )?;
        let found = find.query_row([wanted as i64], |row| {
            let [first, depth] = [row.get::<_, i64>(0)?, row.get::<_, i64>(1)?];
            Ok(Run::read_back(first as u64, depth as u64, row.get_ref(2)?.as_blob()?))
        });
        let Some(run) = found.optional()? else { return Ok(None) };
        let depth = run.depth(wanted);
        if self.recalled.len() == RECALLED {
            self.recalled.pop_front();
        }
        self.recalled.push_back(run);
        Ok(depth)
    }

    /// Bytes in memory, those of what is read back not counted.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.newest.iter().map(|run| run.bytes.len() + 24 * run.chunks.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{DepthLog, NEWEST, RUN};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn log_knows_each_operation_and_no_other(
            steps in prop::collection::vec((1u64..300, 0u64..1 << 40), 1..300),
        ) {
            let (mut log, mut g, mut all) = (DepthLog::default(), 0, Vec::new());
            for (step, depth) in steps {
                g += step;
                log.push(g, depth).unwrap();
                all.push((g, depth));
            }
            for &(g, depth) in &all {
                prop_assert_eq!(log.depth(g).unwrap(), Some(depth));
                let is_there = all.iter().any(|&(other, _)| other == g + 1);
                prop_assert_eq!(log.depth(g + 1).unwrap().is_some(), is_there);
            }
            prop_assert_eq!(log.depth(0).unwrap(), None);
        }
    }

    /// The log knows its entries that are no longer in memory, too.
    #[test]
    fn log_knows_what_it_has_put_away() {
        let (mut log, count) = (DepthLog::default(), (3 * NEWEST * RUN) as u64);
        let depth = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        (1..=count).for_each(|n| log.push(3 * n, depth(n)).unwrap());
        for n in (1..=count).step_by(97).chain([1, count]).chain((1..count).rev().step_by(50_021)) {
            assert_eq!(log.depth(3 * n).unwrap(), Some(depth(n)), "{n}");
            assert_eq!(log.depth(3 * n + 1).unwrap(), None, "{n}");
        }
        assert_eq!(log.depth(2).unwrap(), None);
    }

    #[test]
    fn memory_does_not_grow_with_the_operations() {
        let held = |runs: usize| {
            let mut log = DepthLog::default();
            (1..=(runs * RUN) as u64).for_each(|g| log.push(g, g / 2).unwrap());
            log.held()
        };
        assert_eq!(held(2 * NEWEST), held(8 * NEWEST));
    }
}
