//! `streamsan demo`: a program with a known mistake, run and reported like any other.

use super::output::{say, warn};
use super::probe::{Driver, probe};
use crate::error::Error;
use crate::options::{
    DemoOptions, GateOptions, HostAccesses, Listed, RunOptions, SimPolicy, Stacks, ThresholdOption,
};
use std::ffi::{OsStr, OsString};
use streamsan_model::{ExitCode, Threshold};

/// The hidden command that the demo runs.
const PROGRAM: &str = "__demo-program";

/// Whether a command line is the demo's.
pub(super) fn is_demo<'a>(mut command: impl Iterator<Item = &'a OsStr>) -> bool {
    command.nth(1).is_some_and(|word| word == PROGRAM)
}

/// `streamsan demo`.
///
/// # Errors
///
/// As [`run`](super::run()), and where the file of this command cannot be found.
pub(crate) fn demo(options: &DemoOptions) -> Result<ExitCode, Error> {
    let this = std::env::current_exe()
        .map_err(Error::run("cannot find the file of this command, which holds the demo"))?;
    let (sim, place) = match probe(&this, &[]) {
        Driver::Working { description } => (None, description),
        Driver::Missing { .. } => {
            let place = "the simulated driver, since there is no usable GPU here";
            (Some(SimPolicy::Eager), place.to_owned())
        }
    };
    let wait = if options.clean { "every wait in place" } else { "one wait missing" };
    warn(&format!(
        "an upload, a computation and a download run in three streams, with {wait}, on {place}"
    ));
    let mut program = vec![this.into_os_string(), OsString::from(PROGRAM)];
    if options.clean {
        program.push("--clean".into());
    }
    let code = super::run(&RunOptions {
        // A percent sign in the name has no meaning here.
        output: options.output.replace('%', "%%"),
        sim,
        threshold: ThresholdOption { fail_on: Threshold::default() },
        // On a real driver a version may well make calls that are not understood; the demo shows
        // a race, and its clean variant the absence of one.
        allow_incomplete: true,
        require_cuda: true,
        exit_as_program: false,
        strict_host_threads: false,
        host_accesses: HostAccesses::default(),
        torch_allocator: None,
        measure: Vec::new(),
        settle: None,
        stacks: Stacks::default(),
        max_trace: None,
        report: Vec::new(),
        gate: GateOptions::default(),
        listed: Listed::default(),
        quiet: false,
        view: false,
        program,
    })?;
    let again = match (options.clean, code) {
        (false, ExitCode::RACY) => true,
        (true, ExitCode::SUCCESS) => false,
        // The cause was said already.
        _ => return Ok(code),
    };
    let view = format!("streamsan view {}", options.output);
    let mut next = vec![
        (view.as_str(), "shows the trace"),
        ("streamsan run -- PROGRAM", "looks for races in a program of yours"),
    ];
    if again {
        next.insert(0, ("streamsan demo --clean", "runs the same with the missing wait"));
    }
    let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let lines = next.iter().map(|(command, what)| format!("\n  {command:width$}  {what}"));
    say(&format!("streamsan: what next?{}\n", lines.collect::<String>()));
    Ok(code)
}

/// The program that the demo runs.
///
/// # Errors
///
/// A driver call that fails.
pub(crate) fn demo_program(clean: bool) -> Result<ExitCode, Error> {
    streamsan_demo::run(clean).map_err(Error::Demo)?;
    Ok(ExitCode::SUCCESS)
}
