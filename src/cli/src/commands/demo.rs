//! `streamsan demo`: a program with a known mistake, run and reported like any other.

use super::output::warn;
use super::probe::{Driver, probe};
use crate::error::Error;
use crate::options::{DemoOptions, RunOptions, SimPolicy, ThresholdOption};
use std::ffi::OsString;
use streamsan_model::{ExitCode, Threshold};

pub(crate) fn demo(options: &DemoOptions) -> Result<ExitCode, Error> {
    let this = std::env::current_exe()
        .map_err(Error::run("cannot find the file of this command, which holds the demo"))?;
    let sim = match probe(&this, &[]) {
        Driver::Working { description } => {
            warn(&format!("the demo runs on {description}"));
            None
        }
        Driver::Missing { .. } => {
            warn("no usable GPU here, so the demo runs on the simulated driver");
            Some(SimPolicy::Eager)
        }
    };
    let mut program = vec![this.into_os_string(), OsString::from("__demo-program")];
    if options.clean {
        program.push("--clean".into());
    }
    super::run(&RunOptions {
        // A percent sign in the name has no meaning here.
        output: options.output.replace('%', "%%"),
        sim,
        threshold: ThresholdOption { fail_on: Threshold::default() },
        // On a real driver a version may well make calls that are not understood; the demo shows
        // a race, and its clean variant the absence of one.
        allow_incomplete: true,
        require_cuda: true,
        max_trace: None,
        report: Vec::new(),
        quiet: false,
        program,
    })
}

/// The program that the demo runs.
pub(crate) fn demo_program(clean: bool) -> Result<ExitCode, Error> {
    streamsan_demo::run(clean).map_err(Error::Demo)?;
    Ok(ExitCode::SUCCESS)
}
