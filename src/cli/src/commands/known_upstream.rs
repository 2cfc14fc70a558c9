//! `streamsan known-upstream`: the shipped list of races known in libraries.

use super::output::print;
use crate::error::Error;
use streamsan_model::ExitCode;
use streamsan_report::KnownUpstream;

/// `streamsan known-upstream`.
///
/// # Errors
///
/// None; all commands have the same type.
pub(crate) fn known_upstream() -> Result<ExitCode, Error> {
    print(KnownUpstream::shipped_text());
    Ok(ExitCode::SUCCESS)
}
