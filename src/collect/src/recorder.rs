//! Where items end up: in the trace and in the engine.
//!
//! A trace that cannot be written any further does not stop the analysis. Where the analysis has
//! to wait for the end of the run (the simulated driver tells late what a kernel touched), items
//! that are not in the trace are kept in memory for it.
//!
//! The trace holds the first occurrences of each mistake only: a program that makes one in a loop has
//! hundreds of thousands, which cost more to store than all else and tell nothing new. All of them
//! are counted in the report, and `check` finds them again.

use super::launch::Known;
use crate::listener::{Listener, Work};
use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use streamsan_analysis::{Engine, HostModel, Options, Sink, Statistics};
use streamsan_model::{
    Access, Action, Edge, Entities, Entity, Finding, Fingerprint, GridControl, IncompleteReason,
    Lint, MemoryKind, OpSeq, Severity, TraceItem, doubt_after_losses,
};
use streamsan_report::Folded;
use streamsan_store::{Coverage, Reader, Writer};

/// Key of a trace's fact: how many occurrences of mistakes were counted and not stored.
pub const FINDINGS_LEFT_OUT: &str = "findings_left_out";

/// Operations between two signs of how far an analysis has come.
const STRIDE: u64 = 4096;

/// Occurrences of one mistake that are stored.
const MOST_STORED: u32 = 4096;

/// Items, and what became known of launches late, that are kept until they are committed.
const MOST_KEPT: usize = if cfg!(test) { 1 << 10 } else { 1 << 17 };

/// How many occurrences of each mistake are stored.
#[derive(Debug, Default)]
struct Stored {
    occurrences: HashMap<(Fingerprint, Severity), u32>,
    /// Occurrences that are only counted.
    left_out: u64,
}

impl Stored {
    fn takes(&mut self, finding: &Finding) -> bool {
        let stored = self.occurrences.entry((finding.fingerprint, finding.severity)).or_default();
        let takes = *stored < MOST_STORED;
        *stored += u32::from(takes);
        self.left_out += u64::from(!takes);
        takes
    }
}

#[derive(Debug, Default)]
struct Results {
    /// Not yet in the trace.
    edges: Vec<Edge>,
    /// Not yet in the trace.
    findings: Vec<Finding>,
    /// Not yet in the trace.
    lints: Vec<Lint>,
    folded: Folded,
    stored: Stored,
}

impl Sink for Results {
    fn edge(&mut self, edge: &Edge) {
        self.edges.push(*edge);
    }

    fn finding(&mut self, finding: Finding) {
        if self.stored.takes(&finding) {
            self.findings.push(finding.clone());
        }
        self.folded.add(finding);
    }

    fn lint(&mut self, lint: Lint) {
        self.folded.add_lint(lint.clone());
        self.lints.push(lint);
    }
}

/// Writes an analysis of the whole trace as it goes on: there are as many edges as synchronisations.
struct Again<'a>(&'a mut Recorder);

impl Sink for Again<'_> {
    fn edge(&mut self, edge: &Edge) {
        self.0.results.edge(edge);
        self.0.flush_results();
    }

    fn finding(&mut self, finding: Finding) {
        self.0.results.finding(finding);
        self.0.flush_results();
    }

    fn lint(&mut self, lint: Lint) {
        self.0.results.lint(lint);
        self.0.flush_results();
    }
}

/// What became known of launches after they were taken: what they touched, and what their kernels do
/// about the kernels before and behind them.
#[derive(Default)]
struct Late {
    accesses: HashMap<OpSeq, Vec<Access>>,
    controls: HashMap<OpSeq, GridControl>,
    /// How many of the accesses may come before the kernel's wait.
    early: HashMap<OpSeq, u32>,
}

impl Late {
    fn len(&self) -> usize {
        self.accesses.len() + self.controls.len() + self.early.len()
    }

    fn extend(&mut self, later: Late) {
        self.accesses.extend(later.accesses);
        self.controls.extend(later.controls);
        self.early.extend(later.early);
    }
}

/// A finished recording.
#[derive(Debug)]
pub struct Recording {
    pub findings: Folded,
    pub entities: Entities,
    pub coverage: Coverage,
    /// Why a run without findings cannot be called clean, in a fixed order.
    pub reasons: Vec<IncompleteReason>,
    /// How long the program's threads waited for the recording, all together.
    pub waited: Duration,
    /// Whether the program allocated any memory in stream order.
    pub stream_ordered: bool,
}

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
    /// What became known late and is not safely in the trace.
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
    pub fn item(&mut self, item: TraceItem) {
        if !self.deferred || self.meanwhile {
            self.engine.feed(&item, &mut self.results);
        }
        let limit_reached = self.unstored > 0 && matches!(item, TraceItem::Operation(_));
        if limit_reached {
            self.unstored += 1;
        } else {
            self.write(|writer| writer.item(&item));
        }
        self.dirty = true;
        if let TraceItem::Entity(Entity::Allocation(allocation)) = &item {
            let kinds = [MemoryKind::StreamOrdered, MemoryKind::GraphOrdered];
            self.stream_ordered |= kinds.contains(&allocation.kind);
        }
        self.operations += u64::from(matches!(item, TraceItem::Operation(_)));
        self.flush_results();
        if self.deferred {
            match (self.not_written.is_some(), limit_reached) {
                (false, false) => self.uncommitted.push(item),
                _ => self.tail.push(item),
            }
        }
    }

    /// What operation `g` touched has become known after it was taken.
    pub fn replace_accesses(&mut self, g: OpSeq, accesses: &[Access]) {
        self.write(|writer| writer.replace_accesses(g, accesses));
        self.late.accesses.insert(g, accesses.to_vec());
        self.dirty = true;
    }

    /// The same of a launch, the first `early` of whose accesses come before its kernel's wait.
    pub fn replace_exact_accesses(&mut self, g: OpSeq, (accesses, early): (&[Access], u32)) {
        self.replace_accesses(g, accesses);
        if early > 0 {
            self.write(|writer| writer.replace_early(g, early));
            self.late.early.insert(g, early);
        }
    }

    /// More has become known of a launch after it was taken.
    pub(crate) fn learn(&mut self, learnt: Known) {
        if let Some(control) = learnt.control {
            self.write(|writer| writer.replace_control(learnt.g, control));
            self.late.controls.insert(learnt.g, control);
            self.late.early.remove(&learnt.g);
            self.dirty = true;
        }
        if let Some(accesses) = learnt.accesses {
            self.replace_accesses(learnt.g, &accesses);
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

    /// What a commit has made safe need not be kept.
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

    /// The run has ended: concludes the analysis and closes the trace. `again`: the live analysis
    /// rests on something that turned out wrong. `coverage` is completed with the reasons.
    pub fn finish(
        mut self,
        again: bool,
        mut coverage: Coverage,
        mut reasons: Vec<IncompleteReason>,
    ) -> Recording {
        self.commit();
        let again = again && self.is_storing();
        let analysis = if self.deferred || again { self.analyse_again() } else { None };
        let (statistics, entities) = match analysis {
            Some((statistics, entities)) => (statistics, entities),
            None => {
                self.engine.finish(&mut self.results);
                self.flush_results();
                (self.engine.statistics(), self.engine.entities().clone())
            }
        };
        let mut findings = std::mem::take(&mut self.results.folded);
        let stream_ordered = self.stream_ordered;
        if self.unstored > 1 {
            reasons.push(IncompleteReason::TraceLimit(self.unstored - 1));
        }
        note_statistics(&statistics, &mut coverage, &mut reasons);
        let left_out = self.results.stored.left_out;
        if left_out > 0 {
            self.write(|writer| writer.set_meta(FINDINGS_LEFT_OUT, &left_out.to_string()));
        }
        // The trace keeps what the engine said; `check` comes to the same doubt by the reasons.
        self.close(&mut coverage, &mut reasons);
        doubt_after_losses(findings.iter_mut(), &reasons);
        leave(self.meanwhile, (self.engine, self.results));
        Recording { findings, entities, coverage, reasons, waited: Duration::ZERO, stream_ordered }
    }

    /// Closes the trace, in the order that keeps it from saying more than this run: why the verdict
    /// cannot be clean goes in first, that the trace is whole comes last. `reasons` are all of them
    /// then.
    fn close(&mut self, coverage: &mut Coverage, reasons: &mut Vec<IncompleteReason>) {
        reasons.extend(self.not_written.take().map(IncompleteReason::TraceNotWritten));
        reasons.sort();
        coverage.reasons.clone_from(reasons);
        let Some(mut writer) = self.writer.take() else { return };
        // A writer that failed stores nothing more, but the failure may be the reader's: the reasons
        // make the trace a truncated one. Also after a failure: what was committed becomes a readable
        // file.
        let told = if writer.is_stopped() { Ok(()) } else { writer.set_coverage(coverage) };
        let progress = self.listener.begin(Work::FinishingTrace, Some(self.operations));
        let finalized = writer.finalize();
        drop(progress);
        let is_told =
            reasons.iter().any(|reason| matches!(reason, IncompleteReason::TraceNotWritten(_)));
        if let Some(error) = told.and(finalized).err().filter(|_| !is_told) {
            reasons.push(IncompleteReason::TraceNotWritten(reason(error)));
            reasons.sort();
            coverage.reasons.clone_from(reasons);
        }
    }

    /// Analyses the trace from its beginning, as `check` does, and what is not in it.
    fn analyse_again(&mut self) -> Option<(Statistics, Entities)> {
        let stored = match Reader::open(&self.path) {
            Ok(reader) => Some(reader),
            Err(error) => {
                self.not_written.get_or_insert(reason(error));
                None
            }
        };
        let mut failure = None;
        let operations = stored.as_ref().and_then(|reader| Some(reader.counts().ok()?.operations));
        let stored = stored.as_ref().map(Reader::items).into_iter().flatten();
        let stored = stored.map_while(|item| item.map_err(|e| failure = Some(e)).ok());
        let tail = std::mem::take(&mut self.tail);
        let mut late = std::mem::take(&mut self.late_committing);
        late.extend(std::mem::take(&mut self.late));
        let items = stored.chain(tail).map(|mut item| {
            if let TraceItem::Operation(operation) = &mut item {
                if let Some(accesses) = late.accesses.remove(&operation.g) {
                    operation.accesses = accesses;
                }
                if let Action::Launch { control, .. } = &mut operation.action {
                    *control = late.controls.remove(&operation.g).unwrap_or(*control);
                    control.early = late.early.remove(&operation.g).unwrap_or(control.early);
                }
            }
            item
        });
        self.results = Results::default();
        self.write(Writer::clear_analysis);
        let mut progress = self.listener.begin(Work::Analysing, Some(operations.unwrap_or(0)));
        let mut engine = Engine::new(options(self.host_model));
        let mut again = Again(self);
        let mut done = 0;
        for item in items {
            done += u64::from(matches!(item, TraceItem::Operation(_)));
            engine.feed(&item, &mut again);
            if done % STRIDE == 0 {
                progress.position(done);
            }
        }
        engine.finish(&mut again);
        drop(progress);
        let known = (engine.statistics(), engine.entities().clone());
        if let Some(error) = failure {
            self.not_written.get_or_insert(reason(error));
        }
        self.write(Writer::commit);
        Some(known)
    }
}

/// Done with something large at the end of a run: the verdict would wait for its freeing, which the
/// end of the process does at once. `goes_on`: the process does not end soon.
pub(super) fn leave<T>(goes_on: bool, large: T) {
    if !goes_on {
        std::mem::forget(large);
    }
}

fn options(host_model: HostModel) -> Options {
    Options { host_model, forgets: true, ..Options::default() }
}

/// A failure in the few words of a verdict.
fn reason(error: streamsan_store::Error) -> String {
    match error {
        streamsan_store::Error::Full { detail, .. } => detail,
        other => other.to_string(),
    }
}

/// What the engine itself could not take in.
fn note_statistics(
    statistics: &Statistics,
    coverage: &mut Coverage,
    reasons: &mut Vec<IncompleteReason>,
) {
    coverage.ambiguous = statistics.ambiguous;
    if statistics.antichain_overflows > 0 {
        reasons.push(IncompleteReason::NotUnderstood {
            api: "(accesses beyond the limit of unordered ones)".to_owned(),
            calls: statistics.antichain_overflows,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Silent;
    use streamsan_model::{Operation, ProcessId, Status, ThreadId};

    const OPERATIONS: u64 = 50_000;

    fn meta() -> streamsan_store::Meta {
        streamsan_store::Meta {
            tool_version: String::new(),
            started_at: chrono::DateTime::UNIX_EPOCH,
            command: Vec::new(),
            host: String::new(),
            driver: String::new(),
            extra: Default::default(),
        }
    }

    #[test]
    fn commit_waits_for_one_that_was_begun() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.db");
        let writer = Writer::create(&path, &meta()).expect("the trace is made");
        let mut recorder =
            Recorder::new(&path, writer, true, None, HostModel::default(), Arc::new(Silent));
        for g in 1..=OPERATIONS {
            recorder.item(TraceItem::Operation(Operation {
                g: OpSeq(g),
                exit: None,
                process: ProcessId(0),
                thread: ThreadId(0),
                api: "cuCtxSynchronize".into(),
                time: None,
                status: Status::SUCCESS,
                action: Action::Other,
                accesses: Vec::new(),
                stack: None,
            }));
        }
        recorder.begin_commit();
        recorder.commit();
        let counts =
            Reader::open(&path).and_then(|reader| reader.counts()).expect("it is readable");
        assert_eq!(counts.operations, OPERATIONS);
    }

    /// What a failure would take out of the trace again is bounded, however far the disk is behind.
    #[test]
    fn what_is_not_committed_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.db");
        let writer = Writer::create(&path, &meta()).expect("the trace is made");
        let mut recorder =
            Recorder::new(&path, writer, true, None, HostModel::default(), Arc::new(Silent));
        let trace = streamsan_text::parse(&"launch s1 k w:A\n".repeat(2 * MOST_KEPT));
        for item in trace.expect("the text is a trace").items {
            recorder.item(item);
        }
        assert!(recorder.is_behind());
        recorder.commit();
        assert!(!recorder.is_behind());
    }

    /// There are as many edges as synchronisations: an analysis at the end keeps none of them.
    #[test]
    fn edges_are_written_as_they_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.db");
        let writer = Writer::create(&path, &meta()).expect("the trace is made");
        let mut recorder =
            Recorder::new(&path, writer, true, None, HostModel::default(), Arc::new(Silent));
        let waits = 2000;
        let text = "launch s1 k w:A\nrecord e s1\nwait s2 e\nlaunch s2 k r:A\nsync_ctx\n";
        let trace = streamsan_text::parse(&text.repeat(waits)).expect("the text is a trace");
        trace.items.into_iter().for_each(|item| recorder.item(item));
        recorder.commit();
        recorder.analyse_again().expect("the trace is analysed");
        assert!(recorder.results.edges.capacity() < 16, "{}", recorder.results.edges.capacity());
        let counts = Reader::open(&path).and_then(|reader| reader.counts()).expect("readable");
        assert_eq!(counts.edges, 2 * waits as u64);
    }

    /// A mistake in a loop: the trace keeps its first occurrences, the report counts all of them.
    #[test]
    fn a_mistake_is_stored_so_many_times_and_counted_always() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.db");
        let writer = Writer::create(&path, &meta()).expect("the trace is made");
        let mut recorder =
            Recorder::new(&path, writer, false, None, HostModel::default(), Arc::new(Silent));
        let loops = u64::from(MOST_STORED) + 100;
        let one = "launch s1 produce w:A\nlaunch s2 consume r:A\nsync_ctx\n";
        let text = one.repeat(loops as usize);
        let trace = streamsan_text::parse(&text).expect("the text is a trace");
        trace.items.into_iter().for_each(|item| recorder.item(item));
        let recording = recorder.finish(false, Coverage::default(), Vec::new());
        let occurrences = recording.findings.clone().iter_mut().count();
        assert_eq!(occurrences, 1, "one mistake");
        let reader = Reader::open(&path).expect("the trace is readable");
        assert_eq!(reader.findings().expect("findings").len() as u64, u64::from(MOST_STORED));
        let left_out = reader.meta().expect("facts").extra.get(FINDINGS_LEFT_OUT).cloned();
        assert_eq!(left_out.as_deref(), Some("100"));
    }
}
