//! Whether a driver with a device is there.
//!
//! Asked in a process of its own: loading NVIDIA's driver takes long, may crash, and cannot be
//! undone.

use crate::error::Error;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use streamsan_model::ExitCode;

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// Programs can run on it.
    Working { description: String },
    /// They cannot, and why.
    Missing { reason: String },
}

/// Runs the probe with these variables set.
pub(super) fn probe(this: &Path, environment: &[(&str, &OsStr)]) -> Driver {
    let output = Command::new(this)
        .arg("__probe-driver")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() {
                Driver::Working { description: text }
            } else if text.is_empty() {
                Driver::Missing { reason: format!("the driver failed ({})", output.status) }
            } else {
                Driver::Missing { reason: text }
            }
        }
        Err(error) => Driver::Missing { reason: format!("cannot start a process: {error}") },
    }
}

/// The probe itself: prints what it finds, and exits with 0 when programs can run.
///
/// # Errors
///
/// None; all commands have the same type.
pub(crate) fn probe_driver() -> Result<ExitCode, Error> {
    Ok(match streamsan_demo::probe() {
        Ok(driver) => {
            super::output::print(&format!("{driver}\n"));
            ExitCode::SUCCESS
        }
        Err(reason) => {
            super::output::print(&format!("{reason}\n"));
            ExitCode::FINDINGS
        }
    })
}
