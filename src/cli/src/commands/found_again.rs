//! Whether the analysis of a trace finds what the recording found.
//!
//! A trace holds what its run came to, and the verdict over it is worked out anew from its operations.
//! Where that misses something, one of the two is wrong: the operations are not all there any more (a
//! trace of an early schema cannot prove that they are), or this version judges otherwise than the one
//! that recorded, which a user must not learn from silence either. So it is a reason not to be called
//! clean, whatever version wrote the trace: that a file is damaged is said where its own proof says so.
//!
//! Recordings that were cut off hold what was found on the way, with less known than at the end; they
//! are incomplete as it is.

use super::Folding;
use super::analysis::is_strict;
use super::trace::Trace;
use crate::error::Error;
use std::collections::HashSet;
use streamsan_analysis::Sink;
use streamsan_model::{AllocationId, Edge, Finding, IncompleteReason, Lint, OpSeq, Severity};
use streamsan_store::{Reader, TraceState};

/// The operations, memory and severity that a finding is about.
type Key = (OpSeq, OpSeq, AllocationId, Severity);

fn key(finding: &Finding) -> Key {
    (finding.first.op, finding.second.op, finding.allocation, finding.severity)
}

/// Folds findings, and keeps which of the stored ones were not among them.
pub(super) struct FoundAgain {
    pub(super) folding: Folding,
    missing: HashSet<Key>,
}

impl FoundAgain {
    /// Takes what a complete trace holds of findings, if it is analysed as it was recorded.
    ///
    /// # Errors
    ///
    /// A trace that cannot be read.
    pub(super) fn new(trace: &Trace, strict: bool) -> Result<Self, Error> {
        let mut missing = HashSet::new();
        if let Trace::Stored(reader) = trace
            && reader.state() == TraceState::Complete
            && (!strict || is_strict(&reader.meta()?))
        {
            missing.extend(reader.findings()?.iter().map(key));
        }
        Ok(Self { folding: Folding::default(), missing })
    }

    /// That some were not found again.
    ///
    /// # Errors
    ///
    /// A trace that cannot be read.
    pub(super) fn missing(&self, reader: &Reader) -> Result<Option<IncompleteReason>, Error> {
        let findings = self.missing.len() as u64;
        let version = reader.meta()?.tool_version;
        Ok((findings > 0).then_some(IncompleteReason::FindingsNotFoundAgain { findings, version }))
    }
}

impl Sink for FoundAgain {
    fn edge(&mut self, edge: &Edge) {
        self.folding.edge(edge);
    }

    fn finding(&mut self, finding: Finding) {
        if !self.missing.is_empty() {
            self.missing.remove(&key(&finding));
        }
        self.folding.finding(finding);
    }

    fn lint(&mut self, lint: Lint) {
        self.folding.lint(lint);
    }
}
