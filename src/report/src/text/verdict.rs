//! The end of the text form: the reasons of an incomplete run, and the verdict line.

use super::style::{Color, Style};
use crate::marked::Failing;
use crate::names::{number, plural};
use crate::{Disposition, Report};
use std::fmt::Write;
use streamsan_model::{Confidence, IncompleteReason, Severity, Verdict};
use streamsan_names::printable;

/// Racy tests that are listed, and findings of each; the JUnit and JSON forms have all.
const TESTS: usize = 50;
const PER_TEST: usize = 4;

pub(super) fn render(report: &Report<'_>, style: Style, text: &mut String) {
    for (_, reason) in report.told_reasons() {
        let _ = writeln!(text, "{}: {reason}", style.paint(Color::Warning, "incomplete"));
    }
    if let Some(coverage) = &report.input.coverage {
        for (api, calls) in &coverage.not_understood {
            let told = report.input.reasons.iter().any(
                |r| matches!(r, IncompleteReason::NotUnderstood { api: named, .. } if named == api),
            );
            if !told {
                let calls = plural(*calls, "call", "calls");
                let _ = writeln!(text, "not understood: {}, {calls}", printable(api));
            }
        }
    }
    if let Some(unread) = report.input.coverage.as_ref().and_then(|c| c.unread.as_ref()) {
        let _ = writeln!(
            text,
            "note: {} machine code without PTX, so what they touch is only assumed; nvdisasm \
             (Python package {}, or the CUDA Toolkit) makes it known",
            match unread.kernels {
                1 => "1 kernel is".to_owned(),
                n => format!("{} kernels are", number(n)),
            },
            unread.package
        );
    }
    if let Some(host) = report.host_accesses_in_words() {
        let _ = writeln!(text, "{host}");
    }
    if let Some(measured) = report.input.coverage.as_ref().and_then(|c| c.measured.as_ref()) {
        for line in measured.in_words() {
            let _ = writeln!(text, "measured: {line}");
        }
    }
    if let Some(settled) = &report.settled {
        let _ = writeln!(text, "settled: {}", settled.in_words());
    }
    tests(report, style, text);
    if let Some(trace) = &report.input.trace {
        let _ = writeln!(text, "trace: {}", printable(trace));
    }
    if let Some(traces) = report.traces_in_words() {
        let _ = writeln!(text, "traces: {traces}");
    }
    let color = match report.verdict {
        Verdict::Racy => Color::Error,
        Verdict::Incomplete(_) | Verdict::NoCuda => Color::Warning,
        Verdict::Clean => Color::Good,
    };
    let word = style.paint(color, report.verdict.description());
    let mut parts = vec![findings(report)];
    if let Some(coverage) = &report.input.coverage
        && report.verdict != Verdict::NoCuda
    {
        parts.push(format!("{} seen", plural(coverage.calls, "driver call", "driver calls")));
        parts.push(format!("{} dropped", number(coverage.dropped)));
        let unknown = coverage.not_understood.len() as u64;
        parts.push(format!("{} not understood", plural(unknown, "entry point", "entry points")));
        parts.extend(
            coverage.host_accesses.as_ref().map(|host| format!("host accesses {}", host.word())),
        );
    }
    let _ = writeln!(text, "verdict: {word} - {}", parts.join(", "));
}

/// What fails in each test, where the program marked its tests.
fn tests(report: &Report<'_>, style: Style, text: &mut String) {
    let tests = report.failing_tests();
    let mut racy = tests.iter().filter(|(_, failing)| !failing.is_empty());
    for (name, failing) in racy.by_ref().take(TESTS) {
        let what: Vec<String> = failing.iter().take(PER_TEST).map(Failing::line).collect();
        let more = match failing.len().saturating_sub(PER_TEST) {
            0 => String::new(),
            more => format!("; {}", plural(more as u64, "more finding", "more findings")),
        };
        let word = style.paint(Color::Error, "racy test");
        let _ = writeln!(text, "{word}: {} - {}{more}", printable(name), what.join("; "));
    }
    let more = racy.count() as u64;
    if more > 0 {
        let _ = writeln!(text, "... and {}", plural(more, "more racy test", "more racy tests"));
    }
    if !tests.is_empty() {
        let racy = tests.iter().filter(|(_, failing)| !failing.is_empty()).count() as u64;
        let all = plural(tests.len() as u64, "test", "tests");
        let _ = writeln!(text, "tests: {all}, {} racy", number(racy));
    }
}

/// `3 races (2 certain, 1 likely), 1 latent, 2 below the threshold`.
fn findings(report: &Report<'_>) -> String {
    let failing = |severity: Severity| {
        report.groups.iter().filter(move |g| g.fails && g.finding.severity == severity)
    };
    let races = failing(Severity::Race).count() as u64;
    let mut text = match (&report.verdict, races) {
        (Verdict::Incomplete(_), 0) => "no races found, but not everything was seen".to_owned(),
        (Verdict::NoCuda, _) => Verdict::NO_CUDA_MEANS.to_owned(),
        (_, 0) => "no races".to_owned(),
        _ => plural(races, "race", "races"),
    };
    if races > 0 {
        let parts: Vec<String> = Confidence::ALL
            .iter()
            .rev()
            .map(|&c| (c, failing(Severity::Race).filter(|g| g.finding.confidence == c).count()))
            .filter(|(_, count)| *count > 0)
            .map(|(c, count)| format!("{} {}", number(count as u64), c.description()))
            .collect();
        let _ = write!(text, " ({})", parts.join(", "));
    }
    for severity in [Severity::Latent, Severity::Lint] {
        let count = failing(severity).count() as u64;
        if count > 0 {
            let _ = write!(text, ", {} {}", number(count), severity.description());
        }
    }
    let is_open = |disposition: &Disposition| *disposition == Disposition::Open;
    let lints = |inside: bool| {
        let open = report.lints.iter().filter(|group| is_open(&group.disposition));
        open.filter(|group| group.library.is_some() == inside).count() as u64
    };
    if lints(false) > 0 {
        let _ = write!(text, ", {}", plural(lints(false), "lint", "lints"));
    }
    if lints(true) > 0 {
        let _ = write!(text, ", {} inside libraries", plural(lints(true), "lint", "lints"));
    }
    let open = report.groups.iter().filter(|group| is_open(&group.disposition));
    let below = open.filter(|group| !group.fails).count() as u64;
    let settled = |of: fn(&Disposition) -> bool| {
        let findings = report.groups.iter().filter(move |g| of(&g.disposition)).count();
        (findings + report.lints.iter().filter(|g| of(&g.disposition)).count()) as u64
    };
    for (count, what) in [
        (below, "below the threshold"),
        (settled(Disposition::is_suppressed), "suppressed"),
        (settled(|d| *d == Disposition::Known), "known"),
        (settled(|d| d.upstream().is_some()), "known upstream"),
        (settled(|d| *d == Disposition::Allowed), "allowed by tests"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {} {what}", number(count));
        }
    }
    text
}
