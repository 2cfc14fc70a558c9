//! Findings against expectations.
//!
//! Expectations and findings are matched one to one. Several expectations of one line may differ in
//! how much they check, so the matching is a maximum one and not first come, first served.

use crate::{Expectation, TextTrace};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use streamsan_model::{AllocationId, Entity, Finding, Lint, OpSeq, Severity, TraceItem};

/// Something expected and not found, found and not expected, or found otherwise than expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The line of the later operation.
    pub line: OpSeq,
    /// The expected finding; `None` when none was expected.
    pub expected: Option<String>,
    /// The finding; `None` when there was none.
    pub found: Option<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: expected {}, found {}",
            self.line,
            self.expected.as_deref().unwrap_or("nothing"),
            self.found.as_deref().unwrap_or("nothing")
        )
    }
}

/// The differences between what `trace` expects and what was found, by line; none when they agree.
///
/// Lints, and findings of that severity, count only when the trace expects at least one.
pub fn compare(trace: &TextTrace, findings: &[Finding], lints: &[Lint]) -> Vec<Mismatch> {
    let with_lints = trace.expectations.iter().any(|e| e.severity == Severity::Lint);
    let names = buffer_names(trace);
    let found: Vec<Found> = findings
        .iter()
        .filter(|finding| with_lints || finding.severity != Severity::Lint)
        .map(|finding| Found::new(&names, finding))
        .chain(lints.iter().filter(|_| with_lints).map(Found::of_lint))
        .collect();
    let partners = match_up(&trace.expectations, &found);

    let mut is_matched = vec![false; found.len()];
    partners.iter().flatten().for_each(|&index| is_matched[index] = true);
    let mut mismatches = Vec::new();
    for (expectation, _) in trace.expectations.iter().zip(&partners).filter(|(_, p)| p.is_none()) {
        // A finding of the same pair, then one of the same line, is most likely the one meant.
        let free = |index: &usize| !is_matched[*index] && found[*index].line == expectation.line;
        let same_pair = |index: &usize| free(index) && found[*index].first == expectation.first;
        let nearest = (0..found.len()).find(same_pair).or_else(|| (0..found.len()).find(free));
        if let Some(index) = nearest {
            is_matched[index] = true;
        }
        mismatches.push(Mismatch {
            line: expectation.line,
            expected: Some(expectation.to_string()),
            found: nearest.map(|index| found[index].as_expectation().to_string()),
        });
    }
    for (found, _) in found.iter().zip(&is_matched).filter(|(_, matched)| !**matched) {
        let found_text = found.as_expectation().to_string();
        mismatches.push(Mismatch { line: found.line, expected: None, found: Some(found_text) });
    }
    mismatches.sort_by_key(|mismatch| mismatch.line);
    mismatches
}

/// Whether a trace lies in the wrong directory: files below `fail` expect something, files below
/// `pass` expect nothing, in whatever chapter. The answer is what to do about it.
pub fn wrong_directory(path: &Path, trace: &TextTrace) -> Option<&'static str> {
    let above = path.parent()?.iter().rev().filter_map(|part| part.to_str());
    let directory = above.into_iter().find(|part| ["fail", "pass"].contains(part))?;
    match (directory, trace.expectations.is_empty()) {
        ("fail", true) => Some("a trace in `fail` needs at least one expectation (`#~ race ...`)"),
        ("pass", false) => Some("a trace in `pass` has no expectations; move it to `fail`"),
        _ => None,
    }
}

/// A finding in the words of expectations.
struct Found {
    line: OpSeq,
    first: Option<OpSeq>,
    full: Expectation,
}

impl Found {
    fn new(names: &HashMap<AllocationId, &str>, finding: &Finding) -> Self {
        let lint = finding.severity == Severity::Lint;
        let first = Some(finding.first.op);
        let full = Expectation {
            line: finding.second.op,
            severity: finding.severity,
            kind: (!lint).then_some(finding.kind),
            first,
            class: Some(finding.class),
            confidence: Some(finding.confidence),
            buffer: names.get(&finding.allocation).map(|&name| name.to_owned()),
        };
        Self { line: finding.second.op, first, full }
    }

    fn of_lint(lint: &Lint) -> Self {
        let full = Expectation {
            line: lint.op,
            severity: Severity::Lint,
            kind: None,
            first: lint.related,
            class: Some(lint.class),
            confidence: None,
            buffer: None,
        };
        Self { line: lint.op, first: lint.related, full }
    }

    fn meets(&self, e: &Expectation) -> bool {
        let full = &self.full;
        let checked = |wanted: bool, equal: bool| !wanted || equal;
        (e.line, e.severity) == (full.line, full.severity)
            && e.kind == full.kind
            && checked(e.severity != Severity::Lint || e.first.is_some(), e.first == full.first)
            && checked(e.class.is_some(), e.class == full.class)
            && checked(e.confidence.is_some(), e.confidence == full.confidence)
            && checked(e.buffer.is_some(), e.buffer == full.buffer)
    }

    fn as_expectation(&self) -> Expectation {
        let confidence = match self.full.severity {
            Severity::Lint => None,
            _ => self.full.confidence,
        };
        let buffer = match self.full.severity {
            Severity::Lint => None,
            _ => self.full.buffer.clone(),
        };
        Expectation { confidence, buffer, ..self.full.clone() }
    }
}

fn buffer_names(trace: &TextTrace) -> HashMap<AllocationId, &str> {
    let names = trace.items.iter().filter_map(|item| match item {
        TraceItem::Entity(Entity::Allocation(a)) => Some((a.id, a.name.as_deref()?)),
        _ => None,
    });
    names.collect()
}

/// For each expectation the finding that meets it, in a matching of the largest size.
fn match_up(expectations: &[Expectation], found: &[Found]) -> Vec<Option<usize>> {
    let mut owner: Vec<Option<usize>> = vec![None; found.len()];
    for index in 0..expectations.len() {
        let mut seen = vec![false; found.len()];
        augment(index, expectations, found, &mut owner, &mut seen);
    }
    let mut partners = vec![None; expectations.len()];
    for (finding, expectation) in owner.iter().enumerate() {
        if let Some(expectation) = *expectation {
            partners[expectation] = Some(finding);
        }
    }
    partners
}

/// Finds a finding for `expectation`, moving others to findings that meet them as well.
fn augment(
    expectation: usize,
    expectations: &[Expectation],
    found: &[Found],
    owner: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for index in 0..found.len() {
        if seen[index] || !found[index].meets(&expectations[expectation]) {
            continue;
        }
        seen[index] = true;
        let is_free = match owner[index] {
            None => true,
            Some(other) => augment(other, expectations, found, owner, seen),
        };
        if is_free {
            owner[index] = Some(expectation);
            return true;
        }
    }
    false
}
