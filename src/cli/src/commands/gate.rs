//! Suppressions and baselines from their files.

use crate::error::Error;
use crate::options::GateOptions;
use std::fs;
use std::io;
use std::path::Path;
use streamsan_report::{Baseline, Gate, GateError, KnownUpstream, Report, Suppressions, Unused};

/// Reads what the report is held against. A mistake in a file is told before anything runs.
///
/// # Errors
///
/// A file that cannot be read or has a mistake in it.
pub(super) fn read_gate(options: &GateOptions) -> Result<Gate, Error> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
    };
    let mistake =
        |path: &Path, error: GateError| Error::Usage(format!("{}:{error}", path.display()));
    let suppressions = match &options.suppressions {
        Some(path) => {
            Some(Suppressions::parse(&read(path)?).map_err(|error| mistake(path, error))?)
        }
        None => None,
    };
    let baseline = match &options.baseline {
        // The first update makes the file.
        Some(path) if options.update_baseline && !path.exists() => None,
        Some(path) => Some(Baseline::parse(&read(path)?).map_err(|error| mistake(path, error))?),
        None => None,
    };
    Ok(Gate { suppressions, baseline, today: chrono::Local::now().date_naive() })
}

/// The shipped list of races known in libraries, unless it is switched off.
pub(super) fn known_upstream(options: &GateOptions) -> Option<&'static KnownUpstream> {
    (!options.no_known_upstream).then(KnownUpstream::shipped)
}

/// Writes the baseline anew where that is asked for.
///
/// # Errors
///
/// A file that cannot be written; the error names it.
pub(super) fn update_baseline(options: &GateOptions, report: &Report<'_>) -> io::Result<()> {
    match &options.baseline {
        Some(path) if options.update_baseline => {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            };
            fs::write(path, Baseline::of(report).render()).map_err(named)
        }
        _ => Ok(()),
    }
}

/// Whether suppressions that do nothing make the command fail. What the baseline holds and is not
/// found any more is good news.
pub(super) fn fails_by_unused(options: &GateOptions, report: &Report<'_>) -> bool {
    let is_suppression = |unused: &Unused| !matches!(unused, Unused::Gone { .. });
    options.strict_suppressions && report.unused().iter().any(is_suppression)
}
