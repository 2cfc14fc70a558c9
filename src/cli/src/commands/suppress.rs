//! `streamsan suppress`: the suppression of a finding, ready to be put into a file.

use super::output::print;
use super::trace::Concluded;
use crate::error::Error;
use crate::options::SuppressOptions;
use streamsan_model::{ExitCode, Threshold};

pub(crate) fn suppress(options: &SuppressOptions) -> Result<ExitCode, Error> {
    let concluded = Concluded::open(&options.file, false)?;
    let report = concluded.report(Threshold::default());
    if options.ids.is_empty() {
        let failing = report.groups().iter().filter(|group| group.fails);
        failing.for_each(|group| print(&report.suppression_of(group)));
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

/// The error for an id that no finding has.
pub(super) fn no_such_finding(id: &str, file: &std::path::Path) -> Error {
    let file = file.display();
    Error::Usage(format!("{file} has no finding {id}; `streamsan check {file}` lists them"))
}
