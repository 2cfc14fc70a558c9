//! `explain --json`: the same for programs, and the parts of it that answer questions over MCP.

use super::super::source_lines::SourceLines;
use super::super::trace::Concluded;
use serde_json::{Value, json};
use streamsan_model::{CallStack, Finding, RaceClass, StackId};
use streamsan_names::{printable, printable_text};
use streamsan_report::{Effect, Group, Page, Report};

/// Lines of source on each side of a call.
pub(crate) const LINES: u32 = 5;
/// More lines are not told at once.
const MOST_LINES: u32 = 100;

/// Findings with their stories.
pub(super) fn findings(
    concluded: &Concluded,
    report: &Report<'_>,
    told: &[(&Group, String)],
    sources: &mut SourceLines,
) -> Value {
    let told = told.iter().map(|(group, story)| {
        let finding = &group.finding;
        json!({
            "id": finding.fingerprint.to_string(),
            "class": finding.class.description(),
            "severity": finding.severity.description(),
            "fails": group.fails,
            "title": report.headline(group),
            "text": story,
            "places": places(concluded, finding, sources, LINES),
            "edge": edge(finding, report.effect(finding)),
        })
    });
    json!({ "schema": 1, "findings": told.collect::<Vec<_>>() })
}

/// The page on a class of findings.
pub(super) fn page(class: RaceClass) -> Value {
    json!({ "schema": 1, "class": class.description(), "page": Page::of(class).markdown() })
}

/// The sources around the calls of a finding: of both accesses and of the allocation, where they are
/// known.
pub(crate) fn places(
    concluded: &Concluded,
    finding: &Finding,
    sources: &mut SourceLines,
    lines: u32,
) -> Vec<Value> {
    let allocation = concluded.entities().allocation(finding.allocation);
    let places = [
        ("first access", finding.first.stack),
        ("second access", finding.second.stack),
        ("allocation", allocation.and_then(|allocation| allocation.stack)),
    ];
    let places = places.into_iter().filter_map(|(what, stack)| {
        place(concluded, stack, sources, lines.min(MOST_LINES)).map(|mut place| {
            place["call"] = json!(what);
            place
        })
    });
    places.collect()
}

/// The innermost frame of the program's own and the lines around it.
fn place(
    concluded: &Concluded,
    stack: Option<StackId>,
    sources: &mut SourceLines,
    distance: u32,
) -> Option<Value> {
    let stack = CallStack::of(concluded.entities(), stack)?;
    let frame = stack.place()?;
    let source = frame.source?;
    let (file, line) = (source.file.as_deref()?, source.line?);
    let lines = sources.around(file, line, distance).map(|lines| {
        let lines =
            lines.into_iter().map(|(number, text)| json!({ "line": number, "text": shown(&text) }));
        lines.collect::<Vec<_>>()
    });
    let function = source.function.as_deref().map(printable);
    let file = printable(file);
    Some(json!({ "file": file, "line": line, "function": function, "source": lines }))
}

/// A line of a source, with its tabs and without anything that nobody sees.
fn shown(line: &str) -> String {
    line.split('\t').map(printable_text).collect::<Vec<_>>().join("\t")
}

/// What the edge that is proposed for a finding does, where it was tried.
pub(crate) fn edge(finding: &Finding, effect: Option<Effect>) -> Value {
    json!({
        "proposed": finding.proposed_edge.is_some(),
        "verified": effect.map(|effect| effect.is_verified()),
        "occurrences": effect.map(|effect| effect.occurrences),
        "removes": effect.map(|effect| effect.removes),
        "removes_others": effect.map(|effect| effect.removes_others),
        "adds": effect.map(|effect| effect.adds),
        "in_words": effect.map_or_else(|| no_effect(finding), |effect| effect.description()),
    })
}

fn no_effect(finding: &Finding) -> String {
    match finding.proposed_edge {
        None => "no edge is proposed for this finding".to_owned(),
        Some(_) => "there are too many occurrences to compare".to_owned(),
    }
}
