//! The engine's results, on their way into the trace and the report.
//!
//! The trace holds the first occurrences of each mistake only: a program that makes one in a loop has
//! hundreds of thousands, which cost more to store than all else and tell nothing new. All of them
//! are counted in the report, and `check` finds them again.

use std::collections::HashMap;
use streamsan_analysis::Sink;
use streamsan_model::{Edge, Finding, Fingerprint, Lint, Severity};
use streamsan_report::Folded;

/// Occurrences of one mistake that are stored.
pub(super) const MOST_STORED: u32 = 4096;

/// How many occurrences of each mistake are stored.
#[derive(Debug, Default)]
pub(super) struct Stored {
    occurrences: HashMap<(Fingerprint, Severity), u32>,
    /// Occurrences that are only counted.
    pub(super) left_out: u64,
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
pub(super) struct Results {
    /// Not yet in the trace.
    pub(super) edges: Vec<Edge>,
    /// Not yet in the trace.
    pub(super) findings: Vec<Finding>,
    /// Not yet in the trace.
    pub(super) lints: Vec<Lint>,
    pub(super) folded: Folded,
    pub(super) stored: Stored,
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
