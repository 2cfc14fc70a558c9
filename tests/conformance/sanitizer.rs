//! The answers of PyTorch's CUDA sanitizer, as `traces/csan.tsv` has them.

use crate::corpus::{Case, root};
use std::collections::BTreeMap;
use std::fs;

/// An answer, derived by reading the sanitizer's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It reports something.
    Flagged,
    /// It sees the operations and reports nothing.
    Silent,
    /// It has no hook for what the case is about.
    NotVisible,
}

/// The answers by the path of the case, for these cases.
pub(crate) fn read(cases: &[Case]) -> Result<BTreeMap<String, Answer>, String> {
    let path = root().join("csan.tsv");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut answers = BTreeMap::new();
    let rows = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')).skip(1);
    for (index, line) in rows {
        let wrong = |what: &str| format!("{}:{}: {what}", path.display(), index + 1);
        let cells: Vec<&str> = line.split('\t').collect();
        let [trace, truth, answer, reason] = cells[..] else {
            return Err(wrong("expected four cells"));
        };
        let answer = match answer {
            "flagged" => Answer::Flagged,
            "silent" => Answer::Silent,
            "not-visible" => Answer::NotVisible,
            _ => return Err(wrong("expected `flagged`, `silent` or `not-visible`")),
        };
        let expected_truth = if trace.starts_with("fail/") { "racy" } else { "clean" };
        if truth != expected_truth || reason.is_empty() {
            return Err(wrong(
                "the truth does not follow from the directory, or a reason is missing",
            ));
        }
        if !cases.iter().any(|case| case.path == trace) {
            return Err(wrong("there is no such trace"));
        }
        if answers.insert(trace.to_owned(), answer).is_some() {
            return Err(wrong("a second row of this trace"));
        }
    }
    Ok(answers)
}
