//! GitHub Actions: annotations as workflow commands, and the summary of a step as Markdown.
//!
//! GitHub shows ten annotations of a kind for a step and drops the rest without a word; it does not
//! show a summary of more than one mebibyte. The output therefore counts what does not fit.

use super::place::Place;
use crate::names::plural;
use crate::{Disposition, LintGroup, Report};
use std::fmt::Write;
use streamsan_model::Verdict;

/// Annotations of one kind that GitHub shows for a step.
const ANNOTATIONS: usize = 10;
/// The largest summary of a step, in bytes, with room for the line that says what was left out.
const SUMMARY: usize = (1 << 20) - 4096;

/// A workflow command: `::error file=F,line=N,title=T::message`.
struct Annotation {
    level: &'static str,
    title: String,
    message: String,
    place: Option<Place>,
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

pub(crate) fn annotations(report: &Report<'_>) -> String {
    let mut text = String::new();
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for group in report.groups.iter().filter(|g| g.disposition == Disposition::Open) {
        let finding = &group.finding;
        let rule = report.rule(finding.class, finding.severity);
        let annotation = Annotation {
            level: if group.fails { "error" } else { "warning" },
            title: format!("{rule}: {} ({})", report.title(group), finding.fingerprint),
            message: report.in_full(group).join("\n"),
            place: report.part_of(group).place(finding.second.op, finding.second.stack),
        };
        if group.fails { &mut errors } else { &mut warnings }.push(annotation);
    }
    let is_told = |g: &&LintGroup| g.disposition == Disposition::Open && !g.is_only_counted();
    for group in report.lints.iter().filter(is_told) {
        let lint = &group.lint;
        let annotation = Annotation {
            level: if group.fails { "error" } else { "warning" },
            title: format!("{} ({})", lint.class.description(), lint.fingerprint),
            message: report.lint_in_words(group),
            place: report.part_of_lint(group).place(lint.op, lint.stack),
        };
        if group.fails { &mut errors } else { &mut warnings }.push(annotation);
    }
    // A run that was not seen completely is no success, whatever else it is.
    for (_, message) in report.told_reasons() {
        let level = match report.verdict {
            Verdict::Incomplete(_) => "error",
            Verdict::Racy | Verdict::NoCuda | Verdict::Clean => "warning",
        };
        let title = "streamsan did not see everything".to_owned();
        let annotation = Annotation { level, title, message, place: None };
        if level == "error" { &mut errors } else { &mut warnings }.push(annotation);
    }
    if report.verdict == Verdict::NoCuda {
        warnings.push(Annotation {
            level: "warning",
            title: "streamsan saw no CUDA".to_owned(),
            message: Verdict::NO_CUDA_MEANS.to_owned(),
            place: None,
        });
    }
    for annotations in [errors, warnings] {
        // The last of the ten says how many more there are.
        let shown = if annotations.len() > ANNOTATIONS { ANNOTATIONS - 1 } else { ANNOTATIONS };
        for annotation in annotations.iter().take(shown) {
            command(annotation, &mut text);
        }
        if let Some(first) = annotations.first().filter(|_| annotations.len() > shown) {
            let rest = (annotations.len() - shown) as u64;
            let message = format!(
                "{}; the summary of the step lists all of them",
                plural(rest, "more finding", "more findings")
            );
            let title = "streamsan".to_owned();
            let more = Annotation { level: first.level, title, message, place: None };
            command(&more, &mut text);
        }
    }
    let upstream = report.upstream_in_words().map(|words| format!("known upstream: {words}"));
    let notices = report.library_lints_in_words().into_iter().chain(upstream);
    for notice in notices.chain([report.verdict_in_words()]) {
        let _ = writeln!(text, "::notice title=streamsan::{}", data(&notice));
    }
    text
}

fn command(annotation: &Annotation, text: &mut String) {
    let mut properties = Vec::new();
    // Only a file of the repository can be annotated: a stored trace is none.
    if let Some(place) = &annotation.place
        && let Some(line) = place.line
    {
        properties.push(format!("file={},line={line}", property(&place.file)));
    }
    properties.push(format!("title={}", property(&annotation.title)));
    let (level, properties) = (annotation.level, properties.join(","));
    let _ = writeln!(text, "::{level} {properties}::{}", data(&annotation.message));
}

/// Text between the pipes of a table.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace(['\r', '\n'], " ")
}

pub(crate) fn summary(report: &Report<'_>) -> String {
    let mut text = format!("### streamsan: {}\n\n", report.verdict.description());
    let _ = writeln!(text, "{}\n", cell(&report.verdict_in_words()));
    let counted = report.library_lints_in_words();
    for (_, reason) in report.told_reasons() {
        let _ = writeln!(text, "- incomplete: {}", cell(&reason));
    }
    let host = report.host_accesses_in_words();
    let notes = || host.iter().chain(&counted);
    for note in notes() {
        let _ = writeln!(text, "- {}", cell(note));
    }
    if !report.input.reasons.is_empty() || notes().next().is_some() {
        text.push('\n');
    }
    if report.groups.is_empty() && report.lints.iter().all(LintGroup::is_only_counted) {
        return text;
    }
    text += "| | class | finding | (1) | (2) | seen | id |\n|---|---|---|---|---|---|---|\n";
    let state = |fails: bool, disposition: &Disposition| match disposition {
        Disposition::Open if fails => "**fails**",
        Disposition::Open => "below the threshold",
        other => other.description(),
    };
    let findings = report.groups.iter().map(|group| {
        let finding = &group.finding;
        format!(
            "| {} | {} | {} | {} | {} | {} | `{}` |\n",
            state(group.fails, &group.disposition),
            report.rule(finding.class, finding.severity),
            cell(&report.title(group)),
            cell(&report.part_of(group).access_in_words(&finding.first)),
            cell(&report.part_of(group).access_in_words(&finding.second)),
            group.count,
            finding.fingerprint
        )
    });
    let lints = report.lints.iter().filter(|group| !group.is_only_counted()).map(|group| {
        format!(
            "| {} | {} | {} | | | {} | `{}` |\n",
            state(group.fails, &group.disposition),
            report.rule(group.lint.class, streamsan_model::Severity::Lint),
            cell(&report.lint_in_words(group)),
            group.count,
            group.lint.fingerprint
        )
    });
    let rows: Vec<String> = findings.chain(lints).collect();
    for (written, row) in rows.iter().enumerate() {
        if text.len() + row.len() > SUMMARY {
            let rest = plural((rows.len() - written) as u64, "more finding", "more findings");
            let _ = writeln!(text, "\n{rest}; the JSON form lists all of them");
            return text;
        }
        text += row;
    }
    for group in report.groups.iter().filter(|group| group.fails) {
        let mut details = format!(
            "\n<details><summary>{}: {}</summary>\n\n```text\n",
            group.finding.fingerprint,
            cell(&report.title(group))
        );
        for line in report.in_full(group) {
            // A fence within the text would end the block.
            let _ = writeln!(details, "{}", line.replace("```", "'''"));
        }
        details += "```\n\n</details>\n";
        if text.len() + details.len() > SUMMARY {
            text += "\nThe details of the other findings do not fit; the JSON form has them.\n";
            return text;
        }
        text += &details;
    }
    text
}
