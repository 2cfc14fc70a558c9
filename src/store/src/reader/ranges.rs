//! Stored ranges and marks.

use super::decode::{Strings, code, small};
use super::items::clock_base;
use super::{Reader, proven};
use crate::Error;
use rusqlite::Row;
use std::sync::Arc;
use streamsan_model::{HostTime, NvtxKind, NvtxRange, OpSeq, ProcessId, ThreadId};

pub(crate) const RANGE_COLUMNS: &str =
    "g, exit_after, process, thread, kind, domain, name, depth, start_ns, duration_ns";

/// Greatest depth that is looked at: deeper ranges are not recorded.
const DEEPEST: i64 = 4096;

impl Reader {
    /// The pushed ranges that were open on the thread of operation `g` at its call, outermost first.
    /// Ranges that the process started are those of no thread, and not among them.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn ranges_of(&self, g: OpSeq) -> Result<Vec<NvtxRange>, Error> {
        self.verify(proven::RANGES)?;
        let Ok(key) = i64::try_from(g.0) else { return Ok(Vec::new()) };
        let thread = "SELECT thread FROM op WHERE g = ?";
        let thread = self.rows(thread, [key], |row| row.get::<_, i64>(0))?;
        let Some(&thread) = thread.first() else { return Ok(Vec::new()) };
        let (mut strings, base) = (Strings::new(&self.connection), clock_base(self)?);
        let sql = format!(
            "SELECT {RANGE_COLUMNS} FROM nvtx_range WHERE kind = 0 AND thread = ? AND depth = ? AND g < ? \
             ORDER BY g DESC LIMIT 1"
        );
        let mut open = Vec::new();
        for depth in 0..=self.deepest(thread)? {
            let found =
                self.rows(&sql, [thread, depth, key], |row| range(&mut strings, base, row))?;
            open.extend(found.into_iter().filter(|range| range.holds(g)));
        }
        open.sort_by_key(|range| range.begin);
        Ok(open)
    }

    /// The greatest depth of a thread's ranges, -1 where it has none. A damaged one is no reason to look
    /// at billions.
    pub(crate) fn deepest(&self, thread: i64) -> Result<i64, Error> {
        let sql = "SELECT max(depth) FROM nvtx_range WHERE kind = 0 AND thread = ?";
        let deepest = self.rows(sql, [thread], |row| row.get::<_, Option<i64>>(0))?;
        Ok(deepest.first().copied().flatten().unwrap_or(-1).min(DEEPEST))
    }

    /// Whether the stored ranges are those that were written.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn prove_ranges(&self) -> Result<(), Error> {
        self.verify(proven::RANGES)
    }

    /// All ranges and marks, by their begin.
    ///
    /// # Errors
    ///
    /// The trace cannot be read, or its tables do not hold what was written.
    pub fn each_range(&self, mut take: impl FnMut(NvtxRange)) -> Result<(), Error> {
        self.verify(proven::RANGES)?;
        let (mut strings, base) = (Strings::new(&self.connection), clock_base(self)?);
        self.each_row(&format!("SELECT {RANGE_COLUMNS} FROM nvtx_range ORDER BY g"), [], |row| {
            range(&mut strings, base, row).map(&mut take)
        })
    }
}

/// A row of [`RANGE_COLUMNS`].
fn range(strings: &mut Strings<'_>, base: u64, row: &Row<'_>) -> rusqlite::Result<NvtxRange> {
    let g: i64 = row.get(0)?;
    let start_ns = base.wrapping_add(row.get::<_, i64>(8)? as u64);
    let mut text = |id: i64| -> rusqlite::Result<Arc<str>> { strings.get(id) };
    Ok(NvtxRange {
        begin: OpSeq(g as u64),
        end: row.get::<_, Option<i64>>(1)?.map(|after| OpSeq(g.wrapping_add(after) as u64)),
        process: ProcessId(small(row.get(2)?)?),
        thread: ThreadId(small(row.get(3)?)?),
        kind: code(row, 4, &NvtxKind::ALL)?,
        domain: row.get::<_, Option<i64>>(5)?.map(&mut text).transpose()?,
        name: text(row.get(6)?)?,
        depth: small(row.get(7)?)?,
        time: HostTime { start_ns, end_ns: start_ns.wrapping_add(row.get::<_, i64>(9)? as u64) },
    })
}
