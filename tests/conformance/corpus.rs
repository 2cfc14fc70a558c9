//! The text traces, analysed and held against their expectations.

use crate::score::Score;
use std::fs;
use std::path::{Path, PathBuf};
use streamsan_analysis::{HostModel, Options, analyse_with};
use streamsan_model::Severity;
use streamsan_testing::corpus::traces;
use streamsan_text::{compare, parse};

/// The groups of cases: those after PyTorch's sanitizer, patterns from the wild, and one pair a row
/// of CUDA's rules.
pub(crate) const GROUPS: [&str; 3] = ["rows", "csan", "wild"];

/// The directory of the corpus.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces")
}

/// The documentation's answer for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Racy,
    Clean,
}

impl Truth {
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Racy => "racy",
            Self::Clean => "clean",
        }
    }
}

/// A trace and what the analysis says of it.
pub(crate) struct Case {
    /// `fail/NAME` or `pass/NAME`: a case keeps its name when it moves to another chapter.
    pub(crate) path: String,
    pub(crate) group: &'static str,
    pub(crate) truth: Truth,
    pub(crate) findings: Score,
    /// Whether anything is reported: races, latent pairs, and lints where the trace is about them.
    pub(crate) is_flagged: bool,
}

/// All cases, in the order of their paths.
pub(crate) fn read() -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for (directory, truth) in [("fail", Truth::Racy), ("pass", Truth::Clean)] {
        for path in traces(directory) {
            cases.push(case(&path, directory, truth)?);
        }
    }
    cases.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(cases)
}

fn case(file: &Path, directory: &str, truth: Truth) -> Result<Case, String> {
    let name = file.file_stem().and_then(|name| name.to_str()).ok_or("a name that is not UTF-8")?;
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let trace = parse(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let host_model =
        if trace.strict_host_threads() { HostModel::Strict } else { HostModel::default() };
    let analysis = analyse_with(Options { host_model, ..Options::default() }, &trace.items);

    let mismatches = compare(&trace, &analysis.findings, &analysis.lints);
    let missed = mismatches.iter().filter(|mismatch| mismatch.expected.is_some()).count();
    let wrong = mismatches.iter().filter(|mismatch| mismatch.found.is_some()).count();
    let about_lints = trace.expectations.iter().any(|e| e.severity == Severity::Lint);
    let counts = |severity: Severity| about_lints || severity != Severity::Lint;
    let is_flagged = analysis.findings.iter().any(|finding| counts(finding.severity))
        || (about_lints && !analysis.lints.is_empty());
    Ok(Case {
        path: format!("{directory}/{name}"),
        group: GROUPS
            .into_iter()
            .find(|group| name.starts_with(&format!("{group}_")))
            .unwrap_or("rows"),
        truth,
        findings: Score {
            true_positives: trace.expectations.len() - missed,
            false_positives: wrong,
            false_negatives: missed,
            true_negatives: 0,
        },
        is_flagged,
    })
}
