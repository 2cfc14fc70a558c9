//! The reference against the expectations written by hand into the corpus of text traces, as far
//! as its rules reach: so that the engine is not held to a mistaken reference.

use super::{Order, Reported, maximal_pairs};
use std::collections::BTreeSet;
use streamsan_model::{OpSeq, Severity};
use streamsan_testing::corpus::traces;

#[test]
fn the_reference_meets_the_expectations_of_the_text_traces() {
    let mut held = 0;
    let mut differences = Vec::new();
    for directory in ["pass", "fail"] {
        for path in traces(directory) {
            let text = std::fs::read_to_string(&path).expect("readable");
            let trace = streamsan_text::parse(&text).expect("the corpus has no syntax error");
            if trace.strict_host_threads() {
                continue; // The reference has one host.
            }
            let Some(order) = Order::of(&trace.items) else { continue };
            held += 1;
            let short =
                |first: OpSeq, second: OpSeq, kind, severity| (first, second, kind, severity);
            let found: BTreeSet<_> = maximal_pairs(&order)
                .into_iter()
                .map(|Reported { pair, kind, severity, .. }| {
                    short(pair.first, pair.second, kind, severity)
                })
                .collect();
            let expected: BTreeSet<_> = trace
                .expectations
                .iter()
                .filter(|expectation| expectation.severity != Severity::Lint)
                .map(|e| {
                    let (first, kind) = (e.first.expect("a pair"), e.kind.expect("a conflict"));
                    short(first, e.line, kind, e.severity)
                })
                .collect();
            if found != expected {
                differences
                    .push(format!("{}: found {found:?}, expected {expected:?}", path.display()));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(held >= 100, "only {held} traces lie within the rules of the reference");
}
