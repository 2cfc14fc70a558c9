//! The top of the page: the verdict, the run, and what was and what was not watched.

use super::HtmlInput;
use crate::Report;
use crate::names::{number, plural};
use maud::{Markup, html};
use std::collections::BTreeSet;
use streamsan_model::{IncompleteReason, Verdict};
use streamsan_names::{printable, printable_line};

pub(super) fn header(report: &Report<'_>, input: &HtmlInput<'_>) -> Markup {
    let class = match report.verdict {
        Verdict::Racy => "bad",
        Verdict::Incomplete(_) | Verdict::NoCuda => "open",
        Verdict::Clean => "good",
    };
    let whole = report.verdict_in_words();
    let line = whole.strip_prefix("verdict: ").unwrap_or(&whole);
    let (word, rest) = line.split_once(" - ").unwrap_or((line, ""));
    let first = first_part(rest);
    html! {
        header.top {
            p.product { "streamsan report" }
            h1 { span.verdict.(class) { (word) } " " (first) }
            @if let Some(rest) = rest[first.len()..].strip_prefix(", ") {
                p.counts { (rest.strip_prefix("but ").unwrap_or(rest)) }
            }
            dl.facts {
                @for (name, value) in facts(report, input) {
                    div { dt { (name) } dd { (value) } }
                }
            }
            (watched(report))
        }
    }
}

/// `3 races (2 certain, 1 likely)`: up to the first comma outside of brackets and numbers.
fn first_part(words: &str) -> &str {
    let mut depth = 0;
    let end = words.char_indices().find(|&(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && words[at..].starts_with(", ")
    });
    end.map_or(words, |(at, _)| &words[..at])
}

/// How the program was run.
fn facts(report: &Report<'_>, input: &HtmlInput<'_>) -> Vec<(&'static str, String)> {
    let entities = &*report.input.entities;
    let mut facts = Vec::new();
    if !input.command.is_empty() {
        let words = input.command.iter().map(|word| shell_word(word));
        facts.push(("Program", words.collect::<Vec<_>>().join(" ")));
    }
    if let Some(trace) = &report.input.trace {
        facts.push(("Trace", printable(trace).into_owned()));
    }
    let contexts = entities.streams().filter_map(|stream| entities.context(stream.context));
    let devices: BTreeSet<u32> = contexts.map(|context| context.device.0).collect();
    if !devices.is_empty() {
        let all: Vec<String> = devices.iter().map(u32::to_string).collect();
        let name = if devices.len() == 1 { "Device" } else { "Devices" };
        facts.push((name, all.join(", ")));
    }
    if !input.driver.is_empty() {
        facts.push(("Driver", printable(&input.driver).into_owned()));
    }
    facts.push(("Fails on", report.input.threshold.description().to_owned()));
    facts.push(("Made by", format!("streamsan {}", printable(input.version))));
    facts
}

/// A word of a command line, in quotation marks where a shell would take it apart.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let shown = printable(word);
    if !word.is_empty() && word.chars().all(is_plain) {
        shown.into_owned()
    } else {
        format!("'{shown}'")
    }
}

/// The extent of the recording, and why not everything was seen.
fn watched(report: &Report<'_>) -> Markup {
    let reasons: Vec<String> = report.told_reasons().map(|(_, reason)| reason).collect();
    let mut scope = Vec::new();
    if let Some(coverage) = &report.input.coverage {
        scope.push(format!("{} seen", plural(coverage.calls, "driver call", "driver calls")));
        scope.push(format!("{} dropped", plural(coverage.dropped, "record", "records")));
        for (api, calls) in &coverage.not_understood {
            let told = report.input.reasons.iter().any(
                |r| matches!(r, IncompleteReason::NotUnderstood { api: named, .. } if named == api),
            );
            if !told {
                let calls = plural(*calls, "call", "calls");
                scope.push(format!("not understood: {}, {calls}", printable(api)));
            }
        }
        if let Some(unread) = &coverage.unread {
            scope.push(format!(
                "machine code without PTX, which nothing could read: {}; the Python package {} makes \
                 what they touch known",
                plural(unread.kernels, "kernel", "kernels"),
                printable(&unread.package)
            ));
        }
        scope.extend(report.host_accesses_in_words());
        let measured = coverage.measured.iter().flat_map(|measured| measured.in_words());
        scope.extend(measured.map(|line| format!("measured: {}", printable_line(&line))));
    } else {
        scope.push("a text trace: calls are what stands in it, without times".to_owned());
    }
    scope.extend(report.settled.as_ref().map(|settled| format!("settled: {}", settled.in_words())));
    scope.extend(report.upstream_in_words().map(|words| format!("known upstream: {words}")));
    html! {
        @if !reasons.is_empty() {
            div.incomplete role="note" {
                h2 { "Not everything was seen: " (number(reasons.len() as u64)) " "
                    @if reasons.len() == 1 { "reason" } @else { "reasons" } }
                ul { @for reason in &reasons { li { (reason) } } }
            }
        }
        details.scope {
            summary { "What was watched" }
            ul { @for line in &scope { li { (line) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::first_part;

    #[test]
    fn the_first_part_is_whole() {
        for (words, first) in [
            (
                "3 races (2 certain, 1 likely), 40 driver calls seen",
                "3 races (2 certain, 1 likely)",
            ),
            ("1,000 races (1,000 certain), 1 lint", "1,000 races (1,000 certain)"),
            ("no races", "no races"),
            ("", ""),
        ] {
            assert_eq!(first_part(words), first);
        }
    }
}
