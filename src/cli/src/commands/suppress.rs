//! `streamsan suppress`: the suppression of a finding, ready to be put into a file.

use super::output::{print, warn};
use super::trace::Concluded;
use crate::error::Error;
use crate::options::SuppressOptions;
use std::path::Path;
use streamsan_model::{ExitCode, Threshold};
use streamsan_names::printable_path;
use streamsan_report::Report;

/// `streamsan suppress`.
///
/// # Errors
///
/// A trace that cannot be read, and an id that no finding has.
pub(crate) fn suppress(options: &SuppressOptions) -> Result<ExitCode, Error> {
    let concluded = Concluded::open(&options.file, false)?;
    let report = concluded.report(Threshold::default());
    if options.ids.is_empty() {
        let failing: Vec<_> = report.groups().iter().filter(|group| group.fails).collect();
        failing.iter().for_each(|group| print(&report.suppression_of(group)));
        if failing.is_empty() {
            warn(&nothing_fails(&report, &concluded.file));
        }
        return Ok(ExitCode::SUCCESS);
    }
    for id in &options.ids {
        let groups = report.groups_named(id).into_iter();
        let lints = report.lints().iter().filter(|g| g.lint.fingerprint.to_string() == *id);
        let blocks: Vec<String> = groups
            .map(|group| report.suppression_of(group))
            .chain(lints.map(|group| report.suppression_of_lint(group)))
            .collect();
        if blocks.is_empty() {
            return Err(no_such_finding(id, &concluded.file));
        }
        blocks.iter().for_each(|block| print(block));
    }
    Ok(ExitCode::SUCCESS)
}

/// The message where no finding is named and none fails.
pub(super) fn nothing_fails(report: &Report<'_>, file: &Path) -> String {
    let file = printable_path(file);
    match report.groups().len() + report.lints().len() {
        0 => format!("{file} has no findings"),
        _ => format!(
            "{file} has no finding that reaches the threshold; name one of those that \
             `streamsan check {file}` lists"
        ),
    }
}

/// The error for an id that no finding has.
pub(super) fn no_such_finding(id: &str, file: &Path) -> Error {
    let file = printable_path(file);
    Error::Usage(format!("{file} has no finding {id}; `streamsan check {file}` lists them"))
}
