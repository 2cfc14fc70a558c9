//! GitLab's code quality: a list of issues, which a merge request shows beside its lines.
//!
//! The fields are those that GitLab reads of Code Climate's format
//! (<https://docs.gitlab.com/ci/testing/code_quality/>). An issue needs a file and a line: without
//! source lines it stands at the trace, as in SARIF. What the baseline knows, and what is accepted, is
//! left out: GitLab compares the list with that of the target branch.

use super::place::Place;
use crate::{Disposition, LintGroup, Report};
use serde_json::{Value, json};
use streamsan_model::{Confidence, Severity};

pub(crate) fn render(report: &Report<'_>) -> String {
    let findings = report.groups.iter().filter(|group| group.disposition == Disposition::Open);
    let findings = findings.map(|group| {
        let finding = &group.finding;
        let [first, second] = report.accesses_in_words(group);
        issue(
            report.rule(finding.class, finding.severity),
            format!("{}: {first}; {second}", report.title(group)),
            &finding.fingerprint.to_string(),
            severity(group.fails, finding.severity, finding.confidence),
            report.part_of(group).place(finding.second.op, finding.second.stack),
        )
    });
    let is_told = |g: &&LintGroup| g.disposition == Disposition::Open && !g.is_only_counted();
    let lints = report.lints.iter().filter(is_told).map(|group| {
        let lint = &group.lint;
        issue(
            report.rule(lint.class, Severity::Lint),
            report.lint_in_words(group),
            &lint.fingerprint.to_string(),
            severity(group.fails, Severity::Lint, Confidence::Certain),
            report.part_of_lint(group).place(lint.op, lint.stack),
        )
    });
    let issues = Value::Array(findings.chain(lints).collect());
    format!("{issues:#}\n")
}

fn issue(rule: String, text: String, id: &str, severity: &str, place: Option<Place>) -> Value {
    let (file, line) =
        place.map_or(("streamsan".to_owned(), None), |place| (place.file, place.line));
    json!({
        "check_name": rule,
        "description": text,
        // One mistake may be a race and, elsewhere, a latent one.
        "fingerprint": format!("streamsan-{rule}-{id}"),
        "severity": severity,
        "location": { "path": file, "lines": { "begin": line.unwrap_or(1) } },
    })
}

/// GitLab's word for how bad it is.
fn severity(fails: bool, severity: Severity, confidence: Confidence) -> &'static str {
    match (severity, confidence) {
        (Severity::Race, Confidence::Certain) if fails => "critical",
        _ if fails => "major",
        (Severity::Race | Severity::Latent, _) => "minor",
        (Severity::Lint, _) => "info",
    }
}
