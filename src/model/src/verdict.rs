//! The verdict over a run. Invariant: no run is silently clean.

use crate::{Confidence, Finding, Lint, Threshold};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// A finding reaches the threshold.
    Racy,
    /// No finding does, but the run was not seen completely.
    Incomplete(Vec<IncompleteReason>),
    /// No driver call was seen, so that there was nothing to find.
    NoCuda,
    /// No finding does, and the run was seen completely.
    Clean,
}

/// Why a run without findings cannot be called clean.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IncompleteReason {
    /// The runtime never reported its start.
    NotAttached,
    /// Records were lost because a ring stayed full, or could not be made.
    DroppedRecords(u64),
    /// An entry point was called that may order or touch memory and that is not understood.
    NotUnderstood { api: String, calls: u64 },
    /// A kernel was launched whose parameters could not be read, so that its accesses are unknown.
    UnknownKernelParameters { kernel: String, launches: u64 },
    /// A kernel was launched that uses pointers which it loads from memory; their targets are not
    /// known.
    PointersInMemory { kernel: String, launches: u64 },
    /// The trace ends in the middle (recording was cut off).
    TruncatedTrace,
    /// Operations past `--max-trace` were analysed but not stored.
    TraceLimit(u64),
    /// The trace could not be written to its end.
    TraceNotWritten(String),
    /// The trace holds findings, stored by that version, that the analysis of its operations does
    /// not give (any more).
    FindingsNotFoundAgain { findings: u64, version: String },
    /// One of several traces cannot be read, or is no trace. The text is a paragraph for the user, and
    /// names the file.
    TraceNotRead(String),
}

impl fmt::Display for IncompleteReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAttached => f.write_str(
                "not attached: a program of the run never loaded streamsan's runtime (a static or \
                 setuid program, or one started with a cleaned environment)",
            ),
            Self::DroppedRecords(n) => write!(f, "{n} records dropped"),
            Self::NotUnderstood { api, calls } => {
                write!(f, "{api} called {calls} times and not understood")
            }
            Self::UnknownKernelParameters { kernel, launches } => {
                write!(f, "parameters of kernel {kernel} unknown in {launches} launches")
            }
            Self::PointersInMemory { kernel, launches } => {
                write!(
                    f,
                    "kernel {kernel} follows pointers that it loads from memory, in {launches} \
                     launches"
                )
            }
            Self::TruncatedTrace => f.write_str("the trace was cut off"),
            Self::TraceLimit(n) => {
                write!(f, "{n} operations past the trace limit were analysed but not stored")
            }
            Self::TraceNotWritten(why) => write!(f, "the trace could not be written: {why}"),
            Self::FindingsNotFoundAgain { findings, version } => write!(
                f,
                "{findings} findings that version {version} stored with the trace are not found \
                 again in it; record it again"
            ),
            Self::TraceNotRead(why) => f.write_str(why),
        }
    }
}

/// Lowers the confidence of all findings of a run with losses: a dropped record may have been the
/// very wait that orders a pair.
pub fn doubt_after_losses<'a>(
    findings: impl IntoIterator<Item = &'a mut Finding>,
    reasons: &[IncompleteReason],
) {
    if reasons.iter().any(|reason| matches!(reason, IncompleteReason::DroppedRecords(_))) {
        for finding in findings {
            finding.confidence = Confidence::Possible;
        }
    }
}

impl Verdict {
    /// The meaning of [`Verdict::NoCuda`], in a sentence without its end.
    pub const NO_CUDA_MEANS: &'static str =
        "no driver call was seen, so there was nothing to check";

    /// Decides by findings and lints, then by what the recording missed, then by the number of
    /// driver calls (`None`: not counted).
    pub fn decide<'a>(
        findings: impl IntoIterator<Item = &'a Finding>,
        lints: impl IntoIterator<Item = &'a Lint>,
        threshold: Threshold,
        reasons: Vec<IncompleteReason>,
        calls: Option<u64>,
    ) -> Self {
        let lints = threshold == Threshold::Lint && lints.into_iter().next().is_some();
        let fails = lints || findings.into_iter().any(|f| threshold.is_reached_by(f));
        Self::of(fails, reasons, calls)
    }

    /// Decides where it is known whether anything fails the build.
    pub fn of(fails: bool, reasons: Vec<IncompleteReason>, calls: Option<u64>) -> Self {
        if fails {
            Self::Racy
        } else if !reasons.is_empty() {
            Self::Incomplete(reasons)
        } else if calls == Some(0) {
            Self::NoCuda
        } else {
            Self::Clean
        }
    }

    /// The word of reports.
    pub const fn description(&self) -> &'static str {
        match self {
            Self::Racy => "RACY",
            Self::Incomplete(_) => "INCOMPLETE",
            Self::NoCuda => "NO CUDA",
            Self::Clean => "CLEAN",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::finding;

    #[test]
    fn a_lost_record_leaves_nothing_certain() {
        let mut findings = [finding()];
        doubt_after_losses(&mut findings, &[IncompleteReason::NotAttached]);
        assert_eq!(findings[0].confidence, Confidence::Certain);
        doubt_after_losses(&mut findings, &[IncompleteReason::DroppedRecords(1)]);
        assert_eq!(findings[0].confidence, Confidence::Possible);
        let reasons = vec![IncompleteReason::DroppedRecords(1)];
        let verdict = Verdict::decide(&findings, &[], Threshold::Likely, reasons.clone(), None);
        assert_eq!(verdict, Verdict::Incomplete(reasons));
    }

    #[test]
    fn nothing_seen_is_not_clean() {
        let reasons = || vec![IncompleteReason::NotAttached];
        for (fails, reasons, calls, word) in [
            (false, vec![], Some(0), "NO CUDA"),
            (false, vec![], Some(1), "CLEAN"),
            (false, vec![], None, "CLEAN"),
            // The calls that were not seen may use the device.
            (false, reasons(), Some(0), "INCOMPLETE"),
            (true, vec![], Some(0), "RACY"),
            (true, reasons(), Some(9), "RACY"),
        ] {
            assert_eq!(Verdict::of(fails, reasons, calls).description(), word, "{calls:?}");
        }
    }
}
