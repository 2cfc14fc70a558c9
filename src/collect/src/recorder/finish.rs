//! The end of a recording: the analysis is concluded, and the trace closed.

use super::results::Results;
use super::{Recorder, options, reason};
use crate::listener::Work;
use std::time::Duration;
use streamsan_analysis::{Engine, Sink, Statistics};
use streamsan_model::{
    Action, Edge, Entities, Finding, HostAccesses, IncompleteReason, Lint, TraceItem,
    doubt_after_losses,
};
use streamsan_report::Folded;
use streamsan_store::{Coverage, Reader, Writer};

/// Key of a trace's fact: how many occurrences of mistakes were counted and not stored.
pub const FINDINGS_LEFT_OUT: &str = "findings_left_out";

/// Operations between two signs of how far an analysis has come.
const STRIDE: u64 = 4096;

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

impl Recorder {
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
    pub(super) fn analyse_again(&mut self) -> Option<(Statistics, Entities)> {
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
pub(crate) fn leave<T>(goes_on: bool, large: T) {
    if !goes_on {
        std::mem::forget(large);
    }
}

/// Notes items that the engine itself could not take in.
fn note_statistics(
    statistics: &Statistics,
    coverage: &mut Coverage,
    reasons: &mut Vec<IncompleteReason>,
) {
    coverage.ambiguous = statistics.ambiguous;
    if statistics.host_memory_in_flight && !statistics.shows_host_accesses {
        coverage.host_accesses.get_or_insert_with(HostAccesses::off);
    }
    if statistics.antichain_overflows > 0 {
        reasons.push(IncompleteReason::NotUnderstood {
            api: "(accesses beyond the limit of unordered ones)".to_owned(),
            calls: statistics.antichain_overflows,
        });
    }
}
