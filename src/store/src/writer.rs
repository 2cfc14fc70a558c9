//! Writing a trace.
//!
//! The caller's thread turns items into plain numbers and gathers them into batches. A thread of
//! the writer inserts the batches ([`worker`]), and another one makes the level of detail of the
//! inserted batches ([`derived`]). After the first failure nothing more is written; the caller can
//! go on with its analysis.

mod batch;
mod delta_rows;
mod derived;
mod entities;
mod findings;
mod finish;
mod graphs;
mod lifecycle;
mod operations;
mod ranges;
mod stacks;
mod sums;
mod worker;

use crate::row::{OpRow, Shape};
use crate::schema::COVERAGE_KINDS;
use crate::{Coverage, Error, Treatment};
use batch::Batch;
use findings::EdgeNumbers;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use streamsan_model::{
    Access, Edge, Finding, GridControl, IncompleteReason, KernelGap, Lint, OpSeq, TraceItem,
};
use worker::{Gone, Worker};

/// Writes one trace file. Nothing is durable before [`Writer::commit`].
///
/// Inserting runs on a thread of its own, so an error may come with a later call than the one that
/// caused it, at the latest with the next commit. After any error the writer is stopped: the open
/// transaction is undone, what was committed stays readable, and every further call answers
/// [`Error::Stopped`] without touching the disk.
#[derive(Debug)]
pub struct Writer {
    worker: Worker,
    path: PathBuf,
    page_size: u64,
    strings: HashMap<Arc<str>, i64>,
    /// The last id of a text.
    last_string: i64,
    /// Names of ranges among the texts.
    range_names: usize,
    patterns: HashMap<Shape, i64>,
    /// Operations that go with the batch. Until then their return changes them.
    operations: Vec<OpRow>,
    batch: Box<Batch>,
    clock_base: Option<u64>,
    findings: i64,
    edge_numbers: EdgeNumbers,
    commits_begun: u64,
    truncated: bool,
    stopped: bool,
}

impl Writer {
    /// Stores the next item. Items come in the order in which the engine takes them; a later
    /// declaration of an entity replaces the earlier one.
    ///
    /// # Errors
    ///
    /// [`Error::Unstorable`] for an operation that does not fit into the schema; else as
    /// [`Writer::commit`].
    pub fn item(&mut self, item: &TraceItem) -> Result<(), Error> {
        self.check()?;
        match item {
            TraceItem::Entity(entity) => self.put_entity(entity),
            TraceItem::Operation(operation) => self.put_operation(operation)?,
            TraceItem::Returned { g, exit, status } => self.put_return(*g, *exit, *status)?,
            TraceItem::Range(range) => self.put_range(range),
        }
        self.flush_if_full()
    }

    /// Replaces the accesses of operation `g` by accesses that became known late.
    ///
    /// # Errors
    ///
    /// As [`Writer::item`].
    pub fn replace_accesses(&mut self, g: OpSeq, accesses: &[Access]) -> Result<(), Error> {
        self.check()?;
        self.put_late_accesses(g, accesses)?;
        self.flush_if_full()
    }

    /// Replaces how the kernel of operation `g` waits for earlier kernels and triggers later ones:
    /// that became known late.
    ///
    /// # Errors
    ///
    /// As [`Writer::item`].
    pub fn replace_control(&mut self, g: OpSeq, control: GridControl) -> Result<(), Error> {
        self.check()?;
        self.put_late_control(g, control)?;
        self.flush_if_full()
    }

    /// Replaces the number of accesses of operation `g` that may come before its kernel's wait;
    /// they are its first accesses.
    ///
    /// # Errors
    ///
    /// As [`Writer::item`].
    pub fn replace_early(&mut self, g: OpSeq, early: u32) -> Result<(), Error> {
        self.check()?;
        self.put_late_early(g, early)?;
        self.flush_if_full()
    }

    /// Stores a synchronisation edge.
    ///
    /// # Errors
    ///
    /// As [`Writer::item`].
    pub fn edge(&mut self, edge: &Edge) -> Result<(), Error> {
        self.check()?;
        self.put_edge(edge)?;
        self.flush_if_full()
    }

    /// Stores a finding.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`].
    pub fn finding(&mut self, finding: &Finding) -> Result<(), Error> {
        self.check()?;
        self.put_finding(finding);
        self.flush_if_full()
    }

    /// Stores a lint.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`].
    pub fn lint(&mut self, lint: &Lint) -> Result<(), Error> {
        self.check()?;
        self.put_lint(lint);
        self.flush_if_full()
    }

    /// Removes all stored edges, findings and lints.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`].
    pub fn clear_analysis(&mut self) -> Result<(), Error> {
        self.check()?;
        self.findings = 0;
        self.edge_numbers = EdgeNumbers::default();
        self.batch.edges.clear();
        self.batch.sides.clear();
        self.batch.cleared = true;
        for sql in [
            "DELETE FROM edge",
            "DELETE FROM finding",
            "DELETE FROM finding_access",
            "DELETE FROM lint",
        ] {
            self.batch.statements.push((sql, vec![]));
        }
        Ok(())
    }

    /// Replaces the stored analysis by another one.
    ///
    /// # Errors
    ///
    /// As [`Writer::item`].
    pub fn replace_analysis<'a>(
        &mut self,
        edges: impl IntoIterator<Item = &'a Edge>,
        findings: impl IntoIterator<Item = &'a Finding>,
    ) -> Result<(), Error> {
        self.clear_analysis()?;
        edges.into_iter().try_for_each(|edge| self.edge(edge))?;
        findings.into_iter().try_for_each(|finding| self.finding(finding))
    }

    /// Replaces the stored coverage.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`].
    pub fn set_coverage(&mut self, coverage: &Coverage) -> Result<(), Error> {
        self.check()?;
        self.put_coverage(coverage);
        self.flush_if_full()
    }

    /// Sets one fact about the recording.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`].
    pub fn set_meta(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.check()?;
        self.batch.meta.push((key.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Commits everything so far: it survives the death of this process and is visible to readers.
    ///
    /// # Errors
    ///
    /// The first failure of the writer's thread, such as [`Error::Full`], is returned once. Every
    /// later call returns [`Error::Stopped`].
    pub fn commit(&mut self) -> Result<(), Error> {
        self.flush()?;
        let committed = self.worker.commit();
        self.commits_begun += 1;
        self.alive(committed)?;
        self.check()
    }

    /// Begins a commit without waiting for its end; [`Writer::commits_done`] tells when it is done.
    ///
    /// # Errors
    ///
    /// As [`Writer::commit`].
    pub fn begin_commit(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.commits_begun += 1;
        let sent = self.worker.begin_commit();
        self.alive(sent)
    }

    /// Number of commits that were begun.
    pub fn commits_begun(&self) -> u64 {
        self.commits_begun
    }

    /// Number of commits that have succeeded, in their order; after a failure too.
    pub fn commits_done(&self) -> u64 {
        self.worker.commits()
    }

    /// Size of the trace in bytes, for `--max-trace`; the size of batches that are not inserted yet
    /// is estimated. Finishing adds the indexes, less than a quarter more.
    pub fn size_bytes(&self) -> u64 {
        let gathered = Batch::estimated_bytes_of(self.operations.len());
        self.worker.size_bytes(self.page_size) + self.batch.estimated_bytes() + gathered
    }

    /// About how many bytes were handed over and are not inserted yet: how far the disk is behind.
    pub fn waiting_bytes(&self) -> u64 {
        self.worker.waiting_bytes()
    }

    /// Whether that is as much as may wait: storing more waits for the disk.
    pub fn is_behind(&self) -> bool {
        self.worker.is_behind()
    }

    /// Whether an earlier failure ended the storing.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether writing can go on; tells of a failure once.
    fn check(&mut self) -> Result<(), Error> {
        if self.stopped {
            return Err(Error::Stopped);
        }
        match self.worker.failure() {
            None => Ok(()),
            Some(failure) => {
                self.stop();
                Err(Error::writing(&self.path, failure))
            }
        }
    }

    fn alive(&mut self, answer: Result<(), Gone>) -> Result<(), Error> {
        answer.map_err(|Gone| {
            self.stop();
            Error::Stopped
        })
    }

    #[cold]
    fn stop(&mut self) {
        self.stopped = true;
        *self.batch = Batch::default();
        self.operations.clear();
    }

    fn flush_if_full(&mut self) -> Result<(), Error> {
        let is_full = self.operations.len() >= Batch::FULL || self.batch.is_full();
        if is_full { self.flush() } else { Ok(()) }
    }

    /// Hands the gathered rows over.
    fn flush(&mut self) -> Result<(), Error> {
        self.check()?;
        let rows = &mut self.batch.operations;
        self.operations.drain(..).for_each(|row| rows.push(&row.numbers()));
        if self.batch.is_empty() {
            return Ok(());
        }
        let sent = self.worker.insert(std::mem::take(&mut self.batch));
        let handed_over = sent.map(|empty| self.batch = empty);
        self.alive(handed_over)
    }

    /// The id of a text.
    fn intern(&mut self, text: &str) -> i64 {
        if let Some(&id) = self.strings.get(text) {
            return id;
        }
        let text: Arc<str> = text.into();
        let id = self.put_text(Arc::clone(&text));
        self.strings.insert(text, id);
        id
    }

    /// Stores a text, whether or not it is there already. Answers its id.
    fn put_text(&mut self, text: Arc<str>) -> i64 {
        self.last_string += 1;
        self.batch.strings.push((self.last_string, text));
        self.last_string
    }

    fn intern_option(&mut self, text: Option<&str>) -> Option<i64> {
        text.map(|text| self.intern(text))
    }

    /// A row of a table that is neither `op` nor `access`, or another statement of numbers.
    fn put(&mut self, sql: &'static str, values: &[Option<i64>]) {
        self.batch.statements.push((sql, values.to_vec()));
    }

    /// A change of an operation that is there, whose `g` is the last value.
    fn change(&mut self, sql: &'static str, values: &[Option<i64>]) {
        self.batch.updates.push((sql, values.to_vec()));
    }

    fn put_coverage(&mut self, coverage: &Coverage) {
        use IncompleteReason as R;
        self.put("DELETE FROM coverage", &[]);
        let mut rows: Vec<(usize, Option<&str>, u64)> = coverage
            .entry_points
            .iter()
            .map(|entry| (entry.treatment as usize, Some(entry.name.as_str()), entry.calls))
            .collect();
        let counters = Treatment::ALL.len();
        rows.push((counters, None, coverage.dropped));
        rows.push((counters + 1, None, coverage.ambiguous));
        rows.extend(coverage.reasons.iter().filter_map(|reason| {
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
                R::PointersInMemory { kernel, launches } => (7, Some(kernel.as_str()), *launches),
                // A reader's observations of a trace are no part of it.
                R::FindingsNotFoundAgain { .. } | R::TraceNotRead(_) => return None,
            };
            Some((counters + 2 + position, name, count))
        }));
        rows.extend(coverage.kernels.iter().map(|kernel| {
            (counters + 10 + kernel.gap as usize, Some(kernel.name.as_str()), kernel.count)
        }));
        if let Some(host) = &coverage.host_accesses {
            let first = counters + 10 + KernelGap::ALL.len();
            let counts = [host.operations, host.fenced, host.in_part];
            rows.extend((first..).zip(counts).map(|(kind, count)| (kind, None, count)));
            for (kind, reasons) in [(first + 3, &host.not_fenced), (first + 4, &host.left_alone)] {
                rows.extend(reasons.iter().map(|(reason, n)| (kind, Some(reason.as_str()), *n)));
            }
            rows.extend(host.unwatched.map(|reason| (first + 5, Some(reason.id()), 0)));
        }
        rows.extend(coverage.measured.iter().map(|measured| {
            (counters + 21 + measured.kind as usize, Some(measured.name.as_str()), measured.count)
        }));
        self.truncated = coverage.reasons.iter().any(|reason| {
            matches!(reason, R::TruncatedTrace | R::TraceLimit(_) | R::TraceNotWritten(_))
        });
        for (kind, name, count) in rows {
            debug_assert!(kind < COVERAGE_KINDS.len());
            let name = self.intern_option(name);
            self.put(
                "INSERT INTO coverage (kind, name, count) VALUES (?, ?, ?)",
                &[Some(kind as i64), name, Some(count as i64)],
            );
        }
    }
}
