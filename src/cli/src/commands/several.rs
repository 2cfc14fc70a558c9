//! The common report of several traces, which are analysed at the same time.
//!
//! Invariant: of a trace that has been judged only its report is held, with what its findings name
//! ([`streamsan_report::Several`]). Memory is that of as many traces as there are threads, and of the
//! findings.

use super::gate::known_upstream;
use super::jobs::{in_order, jobs};
use super::output::warn;
use super::trace::Concluded;
use super::{explain::verify, warn_of_large_images};
use crate::error::Error;
use crate::options::CheckOptions;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use streamsan_report::{Gate, Report, Several};

/// A trace that has been judged.
struct Judged {
    report: Report<'static>,
    too_large: Vec<PathBuf>,
}

/// The report of a trace as `check` is asked for it.
///
/// # Errors
///
/// A trace that cannot be read.
pub(super) fn judge<'a>(
    concluded: &'a Concluded,
    options: &CheckOptions,
    gate: &Gate,
) -> Result<Report<'a>, Error> {
    let mut report =
        concluded.report_with(options.threshold.fail_on, known_upstream(&options.gate));
    report.hold_against(gate);
    if options.verify {
        let groups = report.groups().to_vec();
        verify(concluded, &mut report, &groups)?;
    }
    Ok(report)
}

/// One report over several traces. Those that cannot be read are named in it, as reasons why not
/// everything was seen. `None` where none can be read, which has been told of each.
pub(super) fn judge_all(
    files: &[PathBuf],
    options: &CheckOptions,
    gate: &Gate,
) -> Option<Report<'static>> {
    let mut several = Several::default();
    let mut too_large = BTreeSet::new();
    let mut unread = Vec::new();
    let mut at = 0;
    let work = |at: usize| judge_one(&files[at], options, gate);
    in_order(files.len(), jobs(options.jobs), work, |judged| {
        match judged {
            Ok(judged) => {
                too_large.extend(judged.too_large);
                several.add(judged.report);
            }
            Err(error) => {
                let name = files[at].display().to_string();
                several.add(Report::of_unread(name, error.to_string(), options.threshold.fail_on));
                unread.push(error);
            }
        }
        at += 1;
    });
    warn_of_large_images(&too_large.into_iter().collect::<Vec<_>>());
    if unread.len() == files.len() {
        unread.iter().for_each(warn);
        return None;
    }
    several.finish()
}

fn judge_one(file: &Path, options: &CheckOptions, gate: &Gate) -> Result<Judged, Error> {
    let (concluded, too_large) = Concluded::open_quietly(file, options.strict_host_threads)?;
    let report = judge(&concluded, options, gate)?.detached();
    Ok(Judged { report, too_large })
}
