//! Every proposed edge of the corpus, put in: it removes its finding and adds none, and the calls that
//! make it are legal.

use crate::check;
use libtest_mimic::Trial;
use std::collections::BTreeSet;
use std::fs;
use streamsan_analysis::{Analysis, HostModel, Options, WhatIf, analyse_with};
use streamsan_model::{Action, AllocationId, Finding, OpSeq, TraceItem};
use streamsan_testing::corpus;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(check(
        "proposals::every_proposed_edge_removes_its_finding_and_adds_none",
        every_proposed_edge_removes_its_finding_and_adds_none,
    ));
}

/// The parts that make a finding the same one in the other trace.
type Pair = (OpSeq, OpSeq, AllocationId);

fn pair(finding: &Finding) -> Pair {
    (finding.first.op, finding.second.op, finding.allocation)
}

/// The findings with edges put in.
fn with(
    items: &[TraceItem],
    options: &Options,
    analysis: &Analysis,
    finding: &Finding,
) -> BTreeSet<Pair> {
    let mut what_if = WhatIf::new(&analysis.entities, finding.proposed_edge);
    let mut stretched = Vec::new();
    items.iter().for_each(|item| what_if.feed(item, |item| stretched.push(item.clone())));
    let after = analyse_with(options.clone(), &stretched);
    let original = |(a, b, allocation)| (what_if.original(a), what_if.original(b), allocation);
    after.findings.iter().map(|finding| original(pair(finding))).collect()
}

/// Why a program may not make the calls of a proposed edge, if so.
///
/// Driver API, `cuLaunchHostFunc`: "The host function must not make any CUDA API calls".
fn illegal(items: &[TraceItem], finding: &Finding) -> Option<&'static str> {
    let edge = finding.proposed_edge?;
    let runs = |g: OpSeq| {
        items.iter().any(|item| match item {
            TraceItem::Operation(op) => {
                op.g == g && matches!(op.action, Action::HostFunctionRun { .. })
            }
            _ => false,
        })
    };
    if runs(edge.wait_before_op) {
        Some("a host function waits")
    } else if runs(edge.record_after_op) && edge.on_stream.is_some() {
        Some("a host function records an event")
    } else if edge.record_after_op >= edge.wait_before_op {
        Some("the wait comes before its record")
    } else {
        None
    }
}

fn every_proposed_edge_removes_its_finding_and_adds_none() {
    let (mut proposed, mut wrong) = (0, Vec::new());
    for path in corpus::traces("fail") {
        let text = fs::read_to_string(&path).expect("a readable trace");
        let trace = streamsan_text::parse(&text).expect("a text trace");
        let host_model = match trace.strict_host_threads() {
            true => HostModel::Strict,
            false => HostModel::default(),
        };
        let options = Options { host_model, ..Options::default() };
        let analysis = analyse_with(options.clone(), &trace.items);
        let before: BTreeSet<Pair> = analysis.findings.iter().map(pair).collect();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Room for edges alone changes nothing.
        let mut nothing = analysis.findings.first().cloned().into_iter();
        if let Some(mut finding) = nothing.next() {
            finding.proposed_edge = None;
            assert_eq!(with(&trace.items, &options, &analysis, &finding), before, "{name}");
        }
        for finding in analysis.findings.iter().filter(|f| f.proposed_edge.is_some()) {
            proposed += 1;
            if let Some(why) = illegal(&trace.items, finding) {
                wrong.push(format!("{name}: {why}, {:?}", finding.proposed_edge));
            }
            let after = with(&trace.items, &options, &analysis, finding);
            let adds: Vec<&Pair> = after.difference(&before).collect();
            if after.contains(&pair(finding)) || !adds.is_empty() {
                let (class, edge) = (finding.class, finding.proposed_edge);
                wrong
                    .push(format!("{name}: {class:?} {:?} adds {adds:?}, {edge:?}", pair(finding)));
            }
        }
    }
    assert!(proposed > 300, "{proposed} proposals");
    assert!(wrong.is_empty(), "{} of {proposed}:\n{}", wrong.len(), wrong.join("\n"));
}
