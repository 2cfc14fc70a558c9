//! From items to every form of report, as `check` goes.

use chrono::NaiveDate;
use std::collections::HashMap;
use streamsan_analysis::{Engine, HostModel, Options, Sink};
use streamsan_model::{
    Edge, Entities, Finding, IncompleteReason, Lint, OpSeq, Operation, Threshold, TraceItem,
    Verdict, doubt_after_losses,
};
use streamsan_report::{
    Baseline, Coverage, Folded, Gate, Input, KnownUpstream, Report, Suppressions, TextOptions,
};

#[derive(Default)]
struct Folding(Folded);

impl Sink for Folding {
    fn edge(&mut self, _: &Edge) {}

    fn finding(&mut self, finding: Finding) {
        self.0.add(finding);
    }

    fn lint(&mut self, lint: Lint) {
        self.0.add_lint(lint);
    }
}

/// The findings in items.
pub(crate) struct Analysed {
    findings: Folded,
    pub(crate) entities: Entities,
}

/// Analyses items, the last of which may be an error.
pub(crate) fn analyse<E>(
    strict: bool,
    items: impl IntoIterator<Item = Result<TraceItem, E>>,
) -> Result<Analysed, E> {
    let host_model = if strict { HostModel::Strict } else { HostModel::default() };
    let mut engine = Engine::new(Options { host_model, ..Options::default() });
    let mut sink = Folding::default();
    for item in items {
        engine.feed(&item?, &mut sink);
    }
    engine.finish(&mut sink);
    Ok(Analysed { findings: sink.0, entities: engine.entities().clone() })
}

/// The gate that a report is held against.
pub(crate) fn gate(suppressions: Option<Suppressions>, baseline: Option<Baseline>) -> Gate {
    Gate { suppressions, baseline, today: NaiveDate::MIN }
}

/// Reports in every form; answers the verdict.
pub(crate) fn report(
    analysed: &Analysed,
    (mut reasons, coverage): (Vec<IncompleteReason>, Option<Coverage>),
    gate: &Gate,
    operation: impl FnMut(OpSeq) -> Option<Operation>,
) -> Verdict {
    let mut findings = analysed.findings.clone();
    reasons.sort();
    doubt_after_losses(findings.iter_mut(), &reasons);
    let input = Input {
        findings,
        entities: &analysed.entities,
        threshold: Threshold::default(),
        reasons,
        coverage,
        upstream: Some(KnownUpstream::shipped()),
        trace: None,
    };
    let mut report = Report::new(input, operation);
    report.hold_against(gate);
    report.render_text(&TextOptions { color: true, ..TextOptions::default() });
    report.render_json();
    report.render_sarif("0");
    report.render_junit();
    report.render_github();
    for group in report.groups().iter().take(8) {
        report.suppression_of(group);
    }
    Baseline::of(&report).render();
    report.verdict().clone()
}

/// The operations of items, by their indices.
pub(crate) fn operations(items: &[TraceItem]) -> HashMap<OpSeq, Operation> {
    let operations = items.iter().filter_map(|item| match item {
        TraceItem::Operation(operation) => Some((operation.g, operation.clone())),
        _ => None,
    });
    operations.collect()
}
