//! Answers of the tools, from the same reports as the commands.

use super::super::diff::Comparison;
use super::super::explain::{edge, places, stories};
use super::super::source_lines::SourceLines;
use super::super::suppress::no_such_finding;
use super::super::trace::Concluded;
use super::super::verify::Verifier;
use super::roots::Roots;
use crate::error::Error;
use crate::options::{DiffOptions, ExplainOptions, ThresholdOption};
use serde_json::{Value, json};
use std::path::PathBuf;
use streamsan_model::Threshold;
use streamsan_report::{Group, Report, TextOptions, reason_in_words};

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
        json: false,
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
    let mut sources = SourceLines::below(asked.roots.directories())?;
    let places = places(&concluded, &group.finding, &mut sources, lines);
    Ok(json!({ "id": group.finding.fingerprint.to_string(), "places": places }))
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
    let mut answer = edge(&group.finding, effect);
    answer["id"] = json!(group.finding.fingerprint.to_string());
    Ok(answer)
}

/// The document that `streamsan diff --json` prints.
///
/// # Errors
///
/// A trace that cannot be read.
pub(super) fn compare(roots: &Roots, before: &str, after: &str) -> Result<Value, Error> {
    let [before, after]: [PathBuf; 2] = [roots.file(before)?, roots.file(after)?];
    let threshold = ThresholdOption { fail_on: Threshold::default() };
    let options =
        DiffOptions { before, after, threshold, suppressions: None, json: true, view: false };
    Ok(Comparison::of(&options)?.as_json())
}

/// The finding of an id; of a race and a latent race with one id, the race.
fn named<'a>(report: &'a Report<'_>, concluded: &Concluded, id: &str) -> Result<&'a Group, Error> {
    let first = report.groups_named(id).into_iter().next();
    first.ok_or_else(|| no_such_finding(id, &concluded.file))
}
