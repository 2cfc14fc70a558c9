//! `streamsan doctor`: what would keep streamsan from working here, and what to do about it.

mod machine;
mod program;

use super::output::{print, print_json};
use super::probe::{Driver, probe};
use crate::error::Error;
use crate::launch::{Environment, Libraries, Watched, unpack};
use crate::options::{DoctorOptions, SimPolicy};
use serde_json::json;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use streamsan_demo::{CALLED, Way, call_by};
use streamsan_model::ExitCode;
use streamsan_names::printable_line;
use streamsan_wire::{RingOptions, RunDirectory};

/// How a check came out. Only `Bad` keeps streamsan from working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Good,
    Note,
    Bad,
}

impl Mark {
    /// The word of the JSON form.
    const fn description(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "bad",
        }
    }
}

/// The result of a check, and what to do about it.
struct Diagnosis {
    /// Stable id of the check.
    check: &'static str,
    mark: Mark,
    text: String,
}

fn good(check: &'static str, text: impl Into<String>) -> Diagnosis {
    Diagnosis { check, mark: Mark::Good, text: text.into() }
}

fn note(check: &'static str, text: impl Into<String>) -> Diagnosis {
    Diagnosis { check, mark: Mark::Note, text: text.into() }
}

fn bad(check: &'static str, text: impl Into<String>) -> Diagnosis {
    Diagnosis { check, mark: Mark::Bad, text: text.into() }
}

/// `streamsan doctor`.
///
/// # Errors
///
/// A program that cannot be found, and where the file of this command cannot be found. What is
/// wrong with the machine is a diagnosis and no error.
pub(crate) fn doctor(options: &DoctorOptions) -> Result<ExitCode, Error> {
    let this =
        std::env::current_exe().map_err(Error::run("cannot find the file of this command"))?;
    // A name that leads nowhere is told before anything is tried.
    let program = options.program.as_deref().map(crate::launch::find).transpose()?;
    let mut diagnoses = vec![machine::platform(), machine::glibc()];
    let driver = probe(&this, &[]);
    match unpack() {
        Ok(libraries) => {
            let at = libraries.runtime.display();
            diagnoses.push(good("runtime", format!("the runtime is unpacked at {at}")));
            diagnoses.push(injection(&this, &libraries));
            diagnoses.push(simulator(&this, &libraries));
            diagnoses.push(self::driver(&driver));
            let is_real = matches!(driver, Driver::Working { .. });
            diagnoses.extend(Way::ALL.map(|way| interposition(&this, &libraries, way, is_real)));
        }
        Err(error) => {
            diagnoses.push(bad(
                "runtime",
                format!(
                    "the runtime cannot be unpacked ({error}); set XDG_CACHE_HOME to a directory \
                     of yours whose path holds no space, colon, semicolon or dollar sign"
                ),
            ));
            diagnoses.push(self::driver(&driver));
        }
    }
    diagnoses.push(machine::disassembler(program.as_deref()));
    diagnoses.push(machine::sanitizer(program.as_deref()));
    diagnoses.extend(machine::memory());
    diagnoses.extend(machine::preloads());
    if let Some(program) = &program {
        diagnoses.extend(program::program(program));
    }
    let is_healthy = diagnoses.iter().all(|diagnosis| diagnosis.mark != Mark::Bad);
    if options.json {
        let checks = diagnoses.iter().map(|Diagnosis { check, mark, text }| {
            json!({"check": check, "status": mark.description(), "text": text})
        });
        let checks: Vec<_> = checks.collect();
        let document = json!({"schema": 1, "healthy": is_healthy, "checks": checks});
        print_json(&document);
    } else {
        for Diagnosis { mark, text, .. } in &diagnoses {
            let word = match mark {
                Mark::Good => "ok   ",
                Mark::Note => "note ",
                Mark::Bad => "BAD  ",
            };
            print(&format!("{word} {}\n", printable_line(text)));
        }
    }
    Ok(if is_healthy { ExitCode::SUCCESS } else { ExitCode::FINDINGS })
}

/// Runs this command with the runtime in it, and answers what the run directory got to know.
fn under_runtime(
    this: &Path,
    arguments: &[&str],
    libraries: &Libraries,
    policy: Option<&SimPolicy>,
) -> std::io::Result<(RunDirectory, String)> {
    let mut run = RunDirectory::create(RingOptions::default())?;
    let environment = Environment::new(libraries, run.path(), policy, Watched::default());
    let output = Command::new(this)
        .args(arguments)
        .envs(environment.iter())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    run.drain(usize::MAX, &mut |_| {})?;
    Ok((run, String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Loads the runtime into a process and looks whether it says hello.
fn injection(this: &Path, libraries: &Libraries) -> Diagnosis {
    let check = "injection";
    match under_runtime(this, &["--version"], libraries, None) {
        Ok((run, _)) if !run.processes().is_empty() => {
            good(check, "the runtime loads into programs and reaches the collector")
        }
        Ok(_) => bad(
            check,
            format!(
                "the runtime does not load into programs; is {} on a file system mounted noexec, \
                 or is LD_PRELOAD switched off here? Set XDG_CACHE_HOME to another place",
                libraries.runtime.display()
            ),
        ),
        Err(error) => bad(check, format!("the runtime cannot be tried: {error}")),
    }
}

/// Makes one call of the driver in one of the ways, and looks whether the runtime counted it.
fn interposition(this: &Path, libraries: &Libraries, way: Way, is_real: bool) -> Diagnosis {
    let check = match way {
        Way::Linked => "interposition-link",
        Way::Dlsym => "interposition-dlsym",
        Way::GetProcAddress => "interposition-cuGetProcAddress",
    };
    let policy = (!is_real).then_some(SimPolicy::Eager);
    let driver = if is_real { "the driver here" } else { "the simulated driver" };
    let name = way.description();
    match under_runtime(this, &["__call-driver", name], libraries, policy.as_ref()) {
        Ok((run, said)) => {
            let calls: u64 = run
                .coverage()
                .iter()
                .filter(|(entry_point, _)| entry_point == CALLED)
                .map(|(_, calls)| *calls)
                .sum();
            match (calls, said.is_empty()) {
                (1, true) => good(check, format!("a call by {name} is seen, on {driver}")),
                (_, true) => bad(
                    check,
                    format!(
                        "a call by {name} was seen {calls} times instead of once, on {driver}; \
                         another preloaded library may stand before the runtime"
                    ),
                ),
                (_, false) => bad(check, format!("a call by {name} fails on {driver}: {said}")),
            }
        }
        Err(error) => bad(check, format!("a call by {name} cannot be tried: {error}")),
    }
}

/// The call itself, in a process of its own: prints what failed.
///
/// # Errors
///
/// A way to call that there is not.
pub(crate) fn call_driver(way: &str) -> Result<ExitCode, Error> {
    let way = Way::ALL.into_iter().find(|known| known.description() == way);
    let way = way.ok_or_else(|| Error::Usage("there is no such way to call".to_owned()))?;
    Ok(match call_by(way) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            print(&format!("{reason}\n"));
            ExitCode::FINDINGS
        }
    })
}

fn simulator(this: &Path, libraries: &Libraries) -> Diagnosis {
    let path: &OsStr = libraries.sim_directory.as_os_str();
    match probe(this, &[("LD_LIBRARY_PATH", path)]) {
        Driver::Working { .. } => good("simulator", "the simulated driver works (run --sim)"),
        Driver::Missing { reason } => {
            bad("simulator", format!("the simulated driver does not work: {reason}"))
        }
    }
}

fn driver(found: &Driver) -> Diagnosis {
    match found {
        Driver::Working { description } => good(
            "driver",
            match machine::kernel_module() {
                Some(version) => format!("{description}, kernel module {version}"),
                None => description.clone(),
            },
        ),
        Driver::Missing { reason } => {
            let hint = if machine::is_container() {
                "; a container gets a GPU when it is started with --gpus all (Docker) or \
                 --device nvidia.com/gpu=all (Podman)"
            } else if Path::new("/dev/nvidiactl").exists() {
                "; a device node is there, so look whether libcuda.so.1 of the same driver version \
                 is installed"
            } else {
                ""
            };
            let text = format!("no GPU to run on: {reason}{hint}. Without one, use run --sim");
            note("driver", text)
        }
    }
}
