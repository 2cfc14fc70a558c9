//! Where items end up: in the trace and in the engine.
//!
//! A trace that cannot be written any further does not stop the analysis. Where the analysis has
//! to wait for the end of the run (the simulated driver tells late what a kernel touched), items
//! that are not in the trace are kept in memory for it.

mod finish;
mod late;
mod results;
#[cfg(test)]
mod tests;

use super::launch::KnownLaunch;
use crate::listener::Listener;
use late::Late;
use results::Results;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use streamsan_analysis::{Engine, HostModel, Options};
use streamsan_model::{Access, Entity, MemoryKind, OpSeq, TraceItem};
use streamsan_store::Writer;

pub(super) use finish::leave;
pub use finish::{FINDINGS_LEFT_OUT, Recording};

/// Items, and what became known of launches late, that are kept until they are committed.
const MOST_KEPT: usize = if cfg!(test) { 1 << 10 } else { 1 << 17 };

/// Writes the trace and feeds the engine.
pub struct Recorder {
    listener: Arc<dyn Listener>,
    path: PathBuf,
    writer: Option<Writer>,
    engine: Engine,
    results: Results,
    /// Whether the analysis waits for the end.
    deferred: bool,
    /// Whether it is done on the way too, so that somebody who looks sees what comes near it.
    meanwhile: bool,
    limit: Option<u64>,
    host_model: HostModel,
    /// Items since the last commit began; a failure takes them back out of the trace.
    uncommitted: Vec<TraceItem>,
    /// Items of the commit of that number, which was begun and may not be done.
    committing: Vec<TraceItem>,
    commit: u64,
    /// Items that are not in the trace (only where the analysis is deferred).
    tail: Vec<TraceItem>,
    /// Accesses that became known late and are not safely in the trace.
    late: Late,
    /// As `late`, of the commit that was begun.
    late_committing: Late,
    dirty: bool,
    stream_ordered: bool,
    operations: u64,
    unstored: u64,
    not_written: Option<String>,
}

impl Debug for Recorder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Feeds the engine and `writer`, which writes the trace at `path`. `deferred`: the analysis
    /// waits for the end of the run. `limit`: the size of the trace in bytes from which on nothing
    /// more is stored.
    pub fn new(
        path: &Path,
        writer: Writer,
        deferred: bool,
        limit: Option<u64>,
        host_model: HostModel,
        listener: Arc<dyn Listener>,
    ) -> Self {
        Self {
            listener,
            path: path.to_owned(),
            writer: Some(writer),
            engine: Engine::new(options(host_model)),
            host_model,
            results: Results::default(),
            deferred,
            meanwhile: false,
            limit,
            uncommitted: Vec::new(),
            committing: Vec::new(),
            commit: 0,
            tail: Vec::new(),
            late: Late::default(),
            late_committing: Late::default(),
            dirty: false,
            stream_ordered: false,
            operations: 0,
            unstored: 0,
            not_written: None,
        }
    }

    /// Whether somebody looks at the trace.
    pub(super) fn is_watched(&self) -> bool {
        self.meanwhile
    }

    fn is_storing(&self) -> bool {
        self.not_written.is_none() && self.unstored == 0
    }

    /// Somebody looks at the trace meanwhile: what can be found before the end is stored as it is
    /// found. The end stores what is right.
    pub fn analyse_meanwhile(&mut self) {
        self.meanwhile = true;
    }

    /// Runs a step of writing; the first failure ends the storing.
    fn write(&mut self, step: impl FnOnce(&mut Writer) -> Result<(), streamsan_store::Error>) {
        if self.not_written.is_some() {
            return;
        }
        let Some(writer) = &mut self.writer else { return };
        if let Err(error) = step(writer) {
            let message = format!("{error}. The program runs on and is analysed to its end");
            self.listener.warn(&message);
            if writer.commits_done() < self.commit {
                self.tail.append(&mut self.committing);
            }
            self.not_written = Some(reason(error));
            self.tail.append(&mut self.uncommitted);
        }
    }

    /// Takes the next item.
    pub fn item(&mut self, item: &TraceItem) {
        if !self.deferred || self.meanwhile {
            self.engine.feed(item, &mut self.results);
        }
        let limit_reached =
            self.unstored > 0 && matches!(item, TraceItem::Operation(_) | TraceItem::Range(_));
        if limit_reached {
            self.unstored += u64::from(matches!(item, TraceItem::Operation(_)));
        } else {
            self.write(|writer| writer.item(item));
        }
        self.dirty = true;
        if let TraceItem::Entity(Entity::Allocation(allocation)) = item {
            let kinds = [MemoryKind::StreamOrdered, MemoryKind::GraphOrdered];
            self.stream_ordered |= kinds.contains(&allocation.kind);
        }
        self.operations += u64::from(matches!(item, TraceItem::Operation(_)));
        self.flush_results();
        if self.deferred {
            match (self.not_written.is_some(), limit_reached) {
                (false, false) => self.uncommitted.push(item.clone()),
                _ => self.tail.push(item.clone()),
            }
        }
    }

    /// Replaces the accesses of operation `g`, which became known after the operation was taken.
    pub fn replace_accesses(&mut self, g: OpSeq, accesses: &[Access]) {
        self.write(|writer| writer.replace_accesses(g, accesses));
        self.late.accesses.insert(g, accesses.to_vec());
        self.dirty = true;
    }

    /// The same of a launch, the first `early` of whose accesses come before its kernel's wait; `None`
    /// where that was said before.
    pub fn replace_exact_accesses(
        &mut self,
        g: OpSeq,
        (accesses, early): (&[Access], Option<u32>),
    ) {
        self.replace_accesses(g, accesses);
        if let Some(early) = early {
            self.write(|writer| writer.replace_early(g, early));
            self.late.early.insert(g, early);
        }
    }

    /// More has become known of a launch after it was taken.
    pub(crate) fn learn(&mut self, learnt: &KnownLaunch) {
        if let Some(control) = learnt.control {
            self.write(|writer| writer.replace_control(learnt.g, control));
            self.late.controls.insert(learnt.g, control);
            self.late.early.remove(&learnt.g);
            self.dirty = true;
        }
        if let Some(accesses) = &learnt.accesses {
            self.replace_accesses(learnt.g, accesses);
        }
    }

    /// Keeps a fact about the recording in the trace.
    pub fn note(&mut self, fact: &str, value: &str) {
        self.write(|writer| writer.set_meta(fact, value));
        self.dirty = true;
    }

    fn flush_results(&mut self) {
        let results = &self.results;
        if results.edges.is_empty() && results.findings.is_empty() && results.lints.is_empty() {
            return;
        }
        let edges = std::mem::take(&mut self.results.edges);
        let findings = std::mem::take(&mut self.results.findings);
        let lints = std::mem::take(&mut self.results.lints);
        self.write(|writer| {
            edges.iter().try_for_each(|edge| writer.edge(edge))?;
            findings.iter().try_for_each(|finding| writer.finding(finding))?;
            lints.iter().try_for_each(|lint| writer.lint(lint))
        });
    }

    /// Makes what was taken so far safe, and looks at the size of the trace.
    pub fn commit(&mut self) {
        // One that was begun may still be under way, and nothing new have come since.
        self.dirty |= !self.is_committed();
        self.commit_by(Writer::commit);
        self.settle();
    }

    /// As [`Recorder::commit`], without waiting for the disk. Begins nothing while the last one is
    /// not done.
    pub fn begin_commit(&mut self) {
        self.settle();
        if self.is_committed() {
            self.commit_by(Writer::begin_commit);
        }
    }

    /// About how many bytes the writing is behind.
    pub fn bytes_behind(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::waiting_bytes)
    }

    /// Whether so much waits for the disk that taking more has to wait.
    pub fn is_behind(&self) -> bool {
        let late = self.late.len() + self.late_committing.len();
        let kept = self.uncommitted.len() + self.committing.len() + late;
        self.writer.as_ref().is_some_and(Writer::is_behind)
            || (self.is_storing() && kept > MOST_KEPT)
    }

    /// Drops late accesses that a commit has made safe.
    fn settle(&mut self) {
        if self.not_written.is_none() && self.is_committed() {
            self.committing.clear();
            if self.unstored == 0 {
                self.late_committing = Late::default();
            }
        }
    }

    fn is_committed(&self) -> bool {
        self.writer.as_ref().is_none_or(|writer| writer.commits_done() >= self.commit)
    }

    fn commit_by(&mut self, step: impl FnOnce(&mut Writer) -> Result<(), streamsan_store::Error>) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        self.write(step);
        if self.not_written.is_none() {
            self.committing.append(&mut self.uncommitted);
            self.late_committing.extend(std::mem::take(&mut self.late));
            self.commit = self.writer.as_ref().map_or(0, Writer::commits_begun);
        }
        if let (Some(limit), Some(writer)) = (self.limit, &self.writer)
            && self.is_storing()
            && writer.size_bytes() >= limit
        {
            // Counts from the next operation on.
            self.unstored = 1;
        }
    }
}

/// A failure in the few words of a verdict.
fn reason(error: streamsan_store::Error) -> String {
    match error {
        streamsan_store::Error::Full { detail, .. } => detail,
        other => other.to_string(),
    }
}

fn options(host_model: HostModel) -> Options {
    Options { host_model, forgets: true, ..Options::default() }
}
