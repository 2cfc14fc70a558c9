//! No rule is idle: with the edges of any one rule left out, some trace of the corpus no longer
//! agrees with its expectations.

use crate::{SIDES, check};
use libtest_mimic::Trial;
use std::fs;
use streamsan_analysis::{HostModel, Options, Rule, analyse_with};
use streamsan_model::{Action, OpSeq, TraceItem};
use streamsan_testing::corpus;
use streamsan_text::{TextTrace, compare, parse};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(check(
        "mutation::the_absence_of_each_rule_is_noticed",
        the_absence_of_each_rule_is_noticed,
    ));
}

fn corpus() -> Vec<(String, TextTrace)> {
    let mut traces = Vec::new();
    for path in SIDES.into_iter().flat_map(corpus::traces) {
        let text = fs::read_to_string(&path).expect("a readable trace");
        let trace = parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        traces.push((format!("{}", path.display()), trace));
    }
    traces.push(("a host function that runs on".to_owned(), running_host_function()));
    traces
}

/// A launch issued while a host function runs. Calls of text traces take no time, so that the
/// function's end is put behind the launch here.
fn running_host_function() -> TextTrace {
    let text = "launch s1 produce w:A\nhost_fn s1\nrun_host_fn 2\nlaunch s2 consume r:A\n";
    let mut trace = parse(text).expect("a text trace");
    for item in &mut trace.items {
        if let TraceItem::Operation(operation) = item
            && matches!(operation.action, Action::HostFunctionRun { .. })
        {
            operation.exit = Some(OpSeq(5));
        }
    }
    trace
}

/// Whether the trace's expectations are met with the edges of `without` left out.
fn agrees(trace: &TextTrace, without: Option<Rule>) -> bool {
    let host_model =
        if trace.strict_host_threads() { HostModel::Strict } else { HostModel::default() };
    let options = Options { host_model, without, ..Options::default() };
    let analysis = analyse_with(options, &trace.items);
    compare(trace, &analysis.findings, &analysis.lints).is_empty()
}

fn the_absence_of_each_rule_is_noticed() {
    let corpus = corpus();
    let broken: Vec<&String> =
        corpus.iter().filter(|(_, trace)| !agrees(trace, None)).map(|(path, _)| path).collect();
    assert!(broken.is_empty(), "with all rules these traces do not agree: {broken:#?}");

    let edges = Rule::ALL.iter().copied().filter(|rule| rule.tier().is_some());
    let unnoticed: Vec<&str> = edges
        .filter(|&rule| corpus.iter().all(|(_, trace)| agrees(trace, Some(rule))))
        .map(Rule::id)
        .collect();
    assert!(unnoticed.is_empty(), "no trace notices the absence of: {unnoticed:#?}");
}
