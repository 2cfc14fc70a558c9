//! Answers of the tools, from the same reports as the commands.

use super::super::diff::Comparison;
use super::super::explain::stories;
use super::super::source_lines::SourceLines;
use super::super::suppress::no_such_finding;
use super::super::trace::Concluded;
use super::super::verify::Verifier;
use super::roots::Roots;
use crate::error::Error;
use crate::options::{DiffOptions, ExplainOptions, ThresholdOption};
use serde_json::{Value, json};
use std::path::PathBuf;
use streamsan_model::{CallStack, Finding, StackId, Threshold};
use streamsan_names::{printable, printable_text};
use streamsan_report::{Group, Report, TextOptions, reason_in_words};

/// Lines of source on each side of a call.
pub(super) const LINES: u32 = 5;
/// More lines are not told at once.
const MOST_LINES: u32 = 100;

/// A question about one finding.
pub(super) struct Asked<'a> {
    pub(super) roots: &'a Roots,
    pub(super) trace: &'a str,
    pub(super) id: &'a str,
}

fn open(roots: &Roots, trace: &str) -> Result<Concluded, Error> {
    Concluded::open(&roots.file(trace)?, false)
}

/// The verdict and the findings of a trace.
///
/// # Errors
///
/// A trace that cannot be read.
pub(super) fn list(roots: &Roots, trace: &str, fail_on: Threshold) -> Result<Value, Error> {
    let concluded = open(roots, trace)?;
    let report = concluded.report(fail_on);
    let findings = report.groups().iter().map(|group| {
        let finding = &group.finding;
        json!({
            "id": finding.fingerprint.to_string(),
            "class": finding.class.description(),
            "severity": finding.severity.description(),
            "confidence": finding.confidence.description(),
            "fails": group.fails,
            "count": group.count,
            "title": report.headline(group),
            "accesses": report.accesses_in_words(group),
        })
    });
    Ok(json!({
        "verdict": report.verdict().description(),
        "incomplete": report.reasons().iter().map(reason_in_words).collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    }))
}

/// The text that `streamsan explain` prints of a finding.
///
/// # Errors
///
/// A trace that cannot be read, an id that no finding has.
pub(super) fn explain(asked: &Asked<'_>) -> Result<String, Error> {
    let options = ExplainOptions {
        file: asked.roots.file(asked.trace)?,
        id: Some(asked.id.to_owned()),
        source_root: asked.roots.directories().to_vec(),
        threshold: ThresholdOption { fail_on: Threshold::default() },
        strict_host_threads: false,
    };
    Ok(stories(&options, &TextOptions::default())?.join("\n"))
}

/// The sources around the calls of a finding: of both accesses and of the allocation.
///
/// # Errors
///
/// As [`explain`].
pub(super) fn source(asked: &Asked<'_>, lines: u32) -> Result<Value, Error> {
    let concluded = open(asked.roots, asked.trace)?;
    let report = concluded.report(Threshold::default());
    let group = named(&report, &concluded, asked.id)?;
    let finding = &group.finding;
    let mut sources = SourceLines::below(asked.roots.directories())?;
    let allocation = concluded.entities().allocation(finding.allocation);
    let places = [
        ("first access", finding.first.stack),
        ("second access", finding.second.stack),
        ("allocation", allocation.and_then(|allocation| allocation.stack)),
    ];
    let places = places.into_iter().filter_map(|(what, stack)| {
        place(&concluded, stack, &mut sources, lines.min(MOST_LINES)).map(|mut place| {
            place["call"] = json!(what);
            place
        })
    });
    Ok(json!({ "id": finding.fingerprint.to_string(), "places": places.collect::<Vec<_>>() }))
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

/// Whether the edge that is proposed for a finding would suffice: the trace is analysed again with
/// it.
///
/// # Errors
///
/// As [`explain`].
pub(super) fn verify(asked: &Asked<'_>) -> Result<Value, Error> {
    let concluded = open(asked.roots, asked.trace)?;
    let report = concluded.report(Threshold::default());
    let group = named(&report, &concluded, asked.id)?;
    let effect = Verifier::new(&concluded.trace, concluded.strict)?.effect(&group.finding)?;
    Ok(json!({
        "id": group.finding.fingerprint.to_string(),
        "proposed": group.finding.proposed_edge.is_some(),
        "verified": effect.map(|effect| effect.is_verified()),
        "occurrences": effect.map(|effect| effect.occurrences),
        "removes": effect.map(|effect| effect.removes),
        "removes_others": effect.map(|effect| effect.removes_others),
        "adds": effect.map(|effect| effect.adds),
        "in_words": effect.map_or_else(|| no_effect(&group.finding), |effect| effect.description()),
    }))
}

fn no_effect(finding: &Finding) -> String {
    match finding.proposed_edge {
        None => "no edge is proposed for this finding".to_owned(),
        Some(_) => "there are too many occurrences to compare".to_owned(),
    }
}

/// The document that `streamsan diff --json` prints.
///
/// # Errors
///
/// A trace that cannot be read.
pub(super) fn compare(roots: &Roots, before: &str, after: &str) -> Result<Value, Error> {
    let [before, after]: [PathBuf; 2] = [roots.file(before)?, roots.file(after)?];
    let threshold = ThresholdOption { fail_on: Threshold::default() };
    let options = DiffOptions { before, after, threshold, suppressions: None, json: true };
    Ok(Comparison::of(&options)?.as_json())
}

/// The finding of an id; of a race and a latent race with one id, the race.
fn named<'a>(report: &'a Report<'_>, concluded: &Concluded, id: &str) -> Result<&'a Group, Error> {
    let first = report.groups_named(id).into_iter().next();
    first.ok_or_else(|| no_such_finding(id, &concluded.file))
}
