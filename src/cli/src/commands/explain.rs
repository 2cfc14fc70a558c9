//! `streamsan explain`: why two accesses are not ordered, and what would order them; or what a class
//! of findings means.

mod class;
mod document;

use super::output::{color, columns, print, print_json, warn};
use super::source_lines::SourceLines;
use super::suppress::{no_such_finding, nothing_fails};
use super::trace::Concluded;
use super::verify::Verifier;
use crate::error::Error;
use crate::options::ExplainOptions;
pub(super) use document::{LINES, edge, places};
use serde_json::Value;
use std::io;
use streamsan_model::{ExitCode, TraceItem};
use streamsan_report::{Group, Report, Story, TextOptions};

/// `streamsan explain`.
///
/// # Errors
///
/// A trace that cannot be read, an id that no finding has, and a directory of sources that cannot
/// be opened.
pub(crate) fn explain(options: &ExplainOptions) -> Result<ExitCode, Error> {
    if let Some(class) = class::asked(&options.file, options.id.as_deref())? {
        match options.json {
            true => print_json(&document::page(class)),
            false => class::print_page(class),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if options.json {
        print_json(&as_json(options)?);
        return Ok(ExitCode::SUCCESS);
    }
    let text = TextOptions {
        color: color(&io::stdout()),
        columns: columns(&io::stdout()),
        ..TextOptions::default()
    };
    for (index, story) in stories(options, &text)?.iter().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        print(&format!("{gap}{story}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The document of the findings that are asked for, or of those that fail.
///
/// # Errors
///
/// As [`explain`].
pub(super) fn as_json(options: &ExplainOptions) -> Result<Value, Error> {
    told(options, &TextOptions::default(), document::findings)
}

/// The stories of the findings that are asked for, or of those that fail.
///
/// # Errors
///
/// As [`explain`].
pub(super) fn stories(options: &ExplainOptions, text: &TextOptions) -> Result<Vec<String>, Error> {
    told(options, text, |_, _, told, _| told.iter().map(|(_, story)| story.clone()).collect())
}

/// Hands on the findings that are asked for, or those that fail, each with its story.
fn told<T>(
    options: &ExplainOptions,
    text: &TextOptions,
    take: impl FnOnce(&Concluded, &Report<'_>, &[(&Group, String)], &mut SourceLines) -> T,
) -> Result<T, Error> {
    let concluded = Concluded::open(&options.file, options.strict_host_threads)?;
    let mut report = concluded.report(options.threshold.fail_on);
    let asked: Vec<Group> = match &options.id {
        Some(id) => report.groups_named(id).into_iter().cloned().collect(),
        None => report.groups().iter().filter(|group| group.fails).cloned().collect(),
    };
    if let (Some(id), true) = (&options.id, asked.is_empty()) {
        return Err(no_such_finding(id, &concluded.file));
    }
    if asked.is_empty() {
        warn(&nothing_fails(&report, &concluded.file));
    }
    verify(&concluded, &mut report, &asked)?;
    let mut stories: Vec<Story<'_>> =
        asked.iter().map(|group| Story::new(&report, group)).collect();
    concluded.trace.items(|item| {
        if let TraceItem::Operation(operation) = &item {
            stories.iter_mut().for_each(|story| story.operation(operation));
        }
    })?;
    let sources = SourceLines::below(&options.source_root)?;
    let mut sources = sources.with_demo(concluded.trace.is_demo());
    let mut source_line = |path: &str, line: u32| sources.line(path, line);
    let stories = stories.iter().map(|story| story.render(text, &mut source_line));
    let told: Vec<(&Group, String)> = asked.iter().zip(stories).collect();
    Ok(take(&concluded, &report, &told, &mut sources))
}

/// Finds out what the proposed edges of findings do.
///
/// # Errors
///
/// A trace that cannot be read.
pub(super) fn verify(
    concluded: &Concluded,
    report: &mut Report<'_>,
    groups: &[Group],
) -> Result<(), Error> {
    if groups.iter().all(|group| group.finding.proposed_edge.is_none()) {
        return Ok(());
    }
    let verifier = Verifier::new(&concluded.trace, concluded.strict)?;
    for group in groups {
        let finding = &group.finding;
        if let Some(effect) = verifier.effect(finding)? {
            report.note_effect((finding.fingerprint, finding.severity), effect);
        }
    }
    Ok(())
}
