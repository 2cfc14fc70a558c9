//! Writing a trace.
//!
//! Operations and accesses are gathered as plain numbers and inserted in batches, so that the
//! statements are looked up once a batch. Entities, edges and findings are few and go straight in.
//! After the first error nothing more is written: the caller can go on with its analysis.

mod entities;
mod findings;
mod lifecycle;
mod operations;
mod strings;

use crate::row::{AccessRow, OpRow, Shape};
use crate::schema::COVERAGE_KINDS;
use crate::{Coverage, Error, Treatment};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::path::PathBuf;
use streamsan_model::{Access, Edge, Finding, IncompleteReason, OpSeq, TraceItem};
use strings::Strings;

/// Writes one trace file. Nothing is durable before [`Writer::commit`].
///
/// After any error the writer is stopped: the open transaction is undone, what was committed stays
/// readable, and every further call answers [`Error::Stopped`] without touching the disk.
#[derive(Debug)]
pub struct Writer {
    connection: Connection,
    path: PathBuf,
    page_size: u64,
    strings: Strings,
    patterns: HashMap<Shape, i64>,
    operations: Vec<OpRow>,
    accesses: Vec<AccessRow>,
    clock_base: Option<u64>,
    findings: i64,
    truncated: bool,
    stopped: bool,
}

impl Writer {
    /// Stores the next item. Items come in the order in which the engine takes them; a later
    /// declaration of an entity replaces the earlier one.
    pub fn item(&mut self, item: &TraceItem) -> Result<(), Error> {
        match item {
            TraceItem::Entity(entity) => self.attempt(|w| w.put_entity(entity)),
            TraceItem::Operation(operation) => self.put_operation(operation),
            TraceItem::Returned { g, exit, status } => {
                self.attempt(|w| w.put_return(*g, *exit, *status))
            }
        }
    }

    /// Puts the accesses of operation `g` in place of those it has: they arrived late.
    pub fn replace_accesses(&mut self, g: OpSeq, accesses: &[Access]) -> Result<(), Error> {
        self.put_late_accesses(g, accesses)
    }

    /// Stores a synchronisation edge.
    pub fn edge(&mut self, edge: &Edge) -> Result<(), Error> {
        self.attempt(|w| w.put_edge(edge))
    }

    /// Stores a finding.
    pub fn finding(&mut self, finding: &Finding) -> Result<(), Error> {
        self.attempt(|w| w.put_finding(finding))
    }

    /// Forgets all edges and findings.
    pub fn clear_analysis(&mut self) -> Result<(), Error> {
        self.attempt(|w| {
            w.begin()?;
            w.findings = 0;
            w.connection
                .execute_batch("DELETE FROM edge; DELETE FROM finding; DELETE FROM finding_access;")
        })
    }

    /// Puts another analysis in place of the stored one.
    pub fn replace_analysis<'a>(
        &mut self,
        edges: impl IntoIterator<Item = &'a Edge>,
        findings: impl IntoIterator<Item = &'a Finding>,
    ) -> Result<(), Error> {
        self.clear_analysis()?;
        edges.into_iter().try_for_each(|edge| self.edge(edge))?;
        findings.into_iter().try_for_each(|finding| self.finding(finding))
    }

    /// Puts this coverage in place of the one stored so far.
    pub fn set_coverage(&mut self, coverage: &Coverage) -> Result<(), Error> {
        self.attempt(|w| w.put_coverage(coverage))
    }

    /// Sets one fact about the recording.
    pub fn set_meta(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.attempt(|w| w.put_meta(key, value))
    }

    /// Makes everything so far survive the death of this process, and visible to readers.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.attempt(|w| {
            w.flush()?;
            if w.connection.is_autocommit() {
                return Ok(());
            }
            w.connection.execute_batch("COMMIT")
        })
    }

    /// Size of the trace in bytes, for `--max-trace`. Finishing adds the indexes, less than a quarter more.
    pub fn size_bytes(&self) -> u64 {
        let pages = self
            .connection
            .prepare_cached("PRAGMA page_count")
            .and_then(|mut s| s.query_row([], |row| row.get::<_, i64>(0)));
        // A connection that cannot even say this has failed before, or fails with the next write.
        pages.unwrap_or(0) as u64 * self.page_size
    }

    /// Whether an earlier failure ended the storing.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        if self.stopped {
            return Err(Error::Stopped);
        }
        work(self).map_err(|source| {
            let error = Error::writing(&self.path, source);
            self.stop();
            error
        })
    }

    #[cold]
    fn stop(&mut self) {
        self.stopped = true;
        self.operations = Vec::new();
        self.accesses = Vec::new();
        if !self.connection.is_autocommit() {
            // SQLite undoes what is left of the transaction when the file is opened next, should
            // this fail too.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        if self.connection.is_autocommit() {
            self.connection.execute_batch("BEGIN")
        } else {
            Ok(())
        }
    }

    fn put_meta(&mut self, key: &str, value: &str) -> rusqlite::Result<()> {
        self.begin()?;
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)")?
            .execute(params![key, value])
            .map(drop)
    }

    fn intern(&mut self, text: &str) -> rusqlite::Result<i64> {
        self.strings.id(&self.connection, text)
    }

    fn intern_option(&mut self, text: Option<&str>) -> rusqlite::Result<Option<i64>> {
        text.map(|text| self.intern(text)).transpose()
    }

    fn put_coverage(&mut self, coverage: &Coverage) -> rusqlite::Result<()> {
        use IncompleteReason as R;
        self.begin()?;
        self.connection.execute_batch("DELETE FROM coverage")?;
        let mut rows: Vec<(usize, Option<&str>, u64)> = coverage
            .entry_points
            .iter()
            .map(|entry| (entry.treatment as usize, Some(entry.name.as_str()), entry.calls))
            .collect();
        let counters = Treatment::ALL.len();
        rows.push((counters, None, coverage.dropped));
        rows.push((counters + 1, None, coverage.ambiguous));
        rows.extend(coverage.reasons.iter().map(|reason| {
            let (position, name, count) = match reason {
                R::NotAttached => (0, None, 0),
                R::DroppedRecords(n) => (1, None, *n),
                R::NotUnderstood { api, calls } => (2, Some(api.as_str()), *calls),
                R::UnknownKernelParameters { kernel, launches } => {
                    (3, Some(kernel.as_str()), *launches)
                }
                R::TruncatedTrace => (4, None, 0),
                R::TraceLimit(n) => (5, None, *n),
                R::TraceNotWritten(why) => (6, Some(why.as_str()), 0),
            };
            (counters + 2 + position, name, count)
        }));
        self.truncated = coverage.reasons.iter().any(|reason| {
            matches!(reason, R::TruncatedTrace | R::TraceLimit(_) | R::TraceNotWritten(_))
        });
        for (kind, name, count) in rows {
            debug_assert!(kind < COVERAGE_KINDS.len());
            let name = self.intern_option(name)?;
            self.connection
                .prepare_cached("INSERT INTO coverage (kind, name, count) VALUES (?, ?, ?)")?
                .execute(params![kind as i64, name, count as i64])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Meta, Reader, TraceState};
    use chrono::DateTime;
    use streamsan_model::{Action, Operation, ProcessId, Status, ThreadId};

    fn operation(g: u64) -> TraceItem {
        TraceItem::Operation(Operation {
            g: OpSeq(g),
            exit: Some(OpSeq(g)),
            process: ProcessId(0),
            thread: ThreadId(0),
            api: "cuCtxSynchronize".into(),
            time: None,
            status: Status::SUCCESS,
            action: Action::Other,
            accesses: vec![],
        })
    }

    fn writer(path: &std::path::Path) -> Writer {
        let meta = Meta {
            tool_version: String::new(),
            started_at: DateTime::UNIX_EPOCH,
            command: vec![],
            host: String::new(),
            driver: String::new(),
            extra: Default::default(),
        };
        Writer::create(path, &meta).unwrap()
    }

    /// SQLite answers a file that may not grow as it answers a full disk.
    #[test]
    fn full_disk_stops_the_writer_and_keeps_what_was_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let mut writer = writer(&path);
        for g in 0..100 {
            writer.item(&operation(g)).unwrap();
        }
        writer.commit().unwrap();
        let pages = writer.size_bytes() / writer.page_size;
        writer
            .connection
            .pragma_update_and_check(None, "max_page_count", pages as i64 + 4, |_| Ok(()))
            .unwrap();
        let error = (100..100_000)
            .find_map(|g| writer.item(&operation(g)).err())
            .expect("a hundred thousand operations need more than four pages");
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert!(!error.to_string().contains('\n'));

        // The caller goes on; nothing more is stored.
        assert!(writer.is_stopped());
        assert!(matches!(writer.item(&operation(200_000)), Err(Error::Stopped)));
        assert!(matches!(writer.replace_accesses(OpSeq(1), &[]), Err(Error::Stopped)));
        assert!(matches!(writer.commit(), Err(Error::Stopped)));
        writer.finalize().unwrap();

        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.state(), TraceState::Truncated);
        assert_eq!(reader.incomplete_reasons().unwrap(), [IncompleteReason::TruncatedTrace]);
        let stored: Vec<TraceItem> = reader.items().map(Result::unwrap).collect();
        assert_eq!(stored, (0..100).map(operation).collect::<Vec<_>>());
    }

    #[test]
    fn operation_that_does_not_fit_the_schema_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder.path().join("trace.db"));
        let TraceItem::Operation(mut large) = operation(1 << 40) else { unreachable!() };
        writer.item(&TraceItem::Operation(large.clone())).unwrap();
        large.accesses.push(Access {
            allocation: streamsan_model::AllocationId(0),
            extent: streamsan_model::Extent::Range(streamsan_model::ByteRange::new(0, 1)),
            mode: streamsan_model::Mode::Read,
            basis: streamsan_model::Basis::Exact,
        });
        let error = writer.item(&TraceItem::Operation(large)).unwrap_err();
        assert!(matches!(error, Error::Unstorable { op, .. } if op == 1 << 40), "{error}");
    }
}
