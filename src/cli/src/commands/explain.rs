//! `streamsan explain`: why two accesses are not ordered, and what would order them; or what a class
//! of findings means.

mod class;

use super::output::{color, columns, print, warn};
use super::source_lines::SourceLines;
use super::suppress::{no_such_finding, nothing_fails};
use super::trace::Concluded;
use super::verify::Verifier;
use crate::error::Error;
use crate::options::ExplainOptions;
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
        class::print_page(class);
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

/// The stories of the findings that are asked for, or of those that fail.
///
/// # Errors
///
/// As [`explain`].
pub(super) fn stories(options: &ExplainOptions, text: &TextOptions) -> Result<Vec<String>, Error> {
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
    let mut sources =
        SourceLines::below(&options.source_root)?.with_demo(concluded.trace.is_demo());
    let mut source_line = |path: &str, line: u32| sources.line(path, line);
    Ok(stories.iter().map(|story| story.render(text, &mut source_line)).collect())
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
