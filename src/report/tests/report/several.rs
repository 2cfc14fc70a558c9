//! Reports over several traces that come one after the other, without their traces.

use crate::formats::{Case, assert_valid, cases, json, published_schema};
use streamsan_model::Threshold;
use streamsan_report::{Detail, Gate, Report, Several, Suppressions, TextOptions};

const DAMAGED: &str = "the trace ranks/3.db is damaged (page 7); record it again";

/// The report in all forms that show findings.
fn forms(report: &Report<'_>) -> Vec<String> {
    let text = |detail| {
        let all = TextOptions {
            detail,
            list_library_lints: true,
            list_known_upstream: true,
            ..TextOptions::default()
        };
        report.render_text(&all)
    };
    let mut forms = vec![
        text(Detail::Full),
        text(Detail::Concise),
        text(Detail::Counted),
        report.render_json(),
        report.render_sarif("1.2.3"),
        report.render_junit(),
        report.render_github(),
        report.render_github_summary(),
    ];
    let full = report.groups().iter().map(|g| report.render_in_full(g, &TextOptions::default()));
    forms.extend(full);
    forms
}

/// What a detached report holds is all that any form asks for.
#[test]
fn a_detached_report_says_the_same() {
    for (name, case) in cases() {
        case.look(|report| {
            let detached = report.clone().detached();
            assert_eq!(forms(&detached), forms(report), "{name}");
        });
    }
}

/// One report over these cases and those before, detached where `detach` says so. Borrowed reports are
/// there at the same time only one inside the other.
fn over(cases: &[(&str, Case)], detach: bool, before: Vec<Report<'_>>) -> Vec<String> {
    let Some(((_, case), rest)) = cases.split_first() else {
        return forms(&Report::over(before).unwrap());
    };
    case.look(|report| {
        let mut reports = before.clone();
        reports.push(if detach { report.clone().detached() } else { report.clone() });
        over(rest, detach, reports)
    })
}

#[test]
fn what_is_forgotten_of_a_trace_is_not_asked_for() {
    assert_eq!(over(&cases(), true, Vec::new()), over(&cases(), false, Vec::new()));
}

/// A trace that cannot be read is a reason of its own, in a paragraph of its own.
#[test]
fn traces_that_cannot_be_read_are_told() {
    let schema = published_schema();
    for (name, verdict) in [("clean", "INCOMPLETE"), ("mixed", "RACY"), ("no cuda", "INCOMPLETE")] {
        let mut several = Several::default();
        let (_, case) = cases().into_iter().find(|(case, _)| *case == name).unwrap();
        case.look(|report| several.add(report.clone().detached()));
        let unread = |file: &str| {
            let (file, why) = (format!("ranks/{file}.db"), DAMAGED.replace('3', file));
            Report::of_unread(file, why, Threshold::Likely)
        };
        several.add(unread("3"));
        several.add(unread("4"));
        let report = several.finish().unwrap();
        assert_eq!((report.verdict().description(), report.unread()), (verdict, 2));
        let text = report.render_text(&TextOptions::default());
        for file in ["3", "4"] {
            let line = format!("incomplete: {}\n", DAMAGED.replace('3', file));
            assert_eq!(text.matches(&line).count(), 1, "{text}");
        }
        assert!(text.contains("traces: 3 traces, "), "{text}");
        assert!(text.contains("2 not read\n") && !text.contains("2 incomplete"), "{text}");
        let document = json(&report.render_json());
        assert_valid(&schema, name, &document);
        let unread = &document["traces"][1];
        assert_eq!((&unread["trace"], &unread["calls"]), (&"ranks/3.db".into(), &().into()));
        assert_eq!(unread["verdict"], "INCOMPLETE");
        let reason = serde_json::json!({ "kind": "trace-not-read", "text": DAMAGED });
        assert_eq!(unread["reasons"], serde_json::json!([reason]));
        let sarif = report.render_sarif("1.2.3");
        assert!(sarif.contains(DAMAGED) && sarif.contains("\"executionSuccessful\": false"));
        assert!(report.render_junit().contains(DAMAGED));
    }
}

/// Nobody knows what a trace that cannot be read would have used.
#[test]
fn entries_of_the_gate_are_not_unused_where_a_trace_is_missing() {
    let (_, case) = cases().into_iter().find(|(name, _)| *name == "clean").unwrap();
    let unused = |missing: bool| {
        let mut several = Several::default();
        case.look(|report| {
            let mut unmatched = report.clone();
            unmatched.hold_against(&Gate {
                suppressions: Some(
                    Suppressions::parse("race[stale-wait]: * & * reason=z\n").unwrap(),
                ),
                ..Gate::default()
            });
            several.add(unmatched.detached());
        });
        if missing {
            several.add(Report::of_unread("3.db".into(), DAMAGED.into(), Threshold::Likely));
        }
        several.finish().unwrap().unused().len()
    };
    assert_eq!((unused(false), unused(true)), (1, 0));
}
