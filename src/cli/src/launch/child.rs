//! The running program: signals to it, and how it ended.
//!
//! The program stays in the terminal's foreground process group, so Ctrl-C and Ctrl-\ reach it
//! from the terminal itself. The command outlives them, because the trace has to be finished.

use super::Environment;
use crate::error::Error;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals as PendingSignals;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use streamsan_model::ProgramOutcome;

/// Signals that the command takes on the program's behalf. Installed before the program starts;
/// handlers (unlike ignored signals) are not inherited through exec.
#[derive(Debug)]
pub(crate) struct Signals {
    pending: PendingSignals,
}

impl Signals {
    pub(crate) fn install() -> Result<Self, Error> {
        let pending = PendingSignals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])
            .map_err(Error::run("cannot install signal handlers"))?;
        Ok(Self { pending })
    }

    /// Passes on what is meant for the program alone. Answers whether the user wants to stop.
    pub(crate) fn handle(&mut self, child: &Child) -> bool {
        let mut stop = false;
        for signal in self.pending.pending() {
            stop = true;
            // The terminal sends the other two to the whole foreground group.
            let forwarded = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => continue,
            };
            if child.outcome.is_none() {
                // It may have ended in the meantime.
                let _ = rustix::process::kill_process(child.pid, forwarded);
            }
        }
        stop
    }
}

/// The program under test.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    outcome: Option<ProgramOutcome>,
}

impl Child {
    /// Starts the program.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub(crate) fn spawn(
        file: &Path,
        arguments: &[OsString],
        environment: &Environment,
    ) -> Result<Self, Error> {
        // Descendants that outlive their parent become children of this process, which then sees
        // when they end. Where the kernel refuses, their end is seen through the run directory.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let (name, rest) = arguments.split_first().expect("the program's name is required");
        let spawned = Command::new(file).arg0(name).args(rest).envs(environment.iter()).spawn();
        let child = spawned.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NotExecutable {
                program: name.to_string_lossy().into_owned(),
                reason: "the interpreter that its first line or its ELF header names is missing"
                    .to_owned(),
            },
            _ => Error::NotExecutable {
                program: name.to_string_lossy().into_owned(),
                reason: format!("{error}; is it a program for this machine?"),
            },
        })?;
        let pid = Pid::from_child(&child);
        Ok(Self { pid, outcome: None })
    }

    /// The operating system's number.
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Ends the program at once.
    pub(crate) fn kill(&mut self) {
        // It may have ended in the meantime.
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
    }

    /// Collects ended children, adopted ones included, and answers how the program ended, if it
    /// has.
    pub(crate) fn poll(&mut self) -> Option<ProgramOutcome> {
        // All children are reaped here and nowhere else: a zombie would count as alive.
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == self.pid {
                self.outcome = Some(outcome(status));
            }
        }
        self.outcome
    }
}

fn outcome(status: WaitStatus) -> ProgramOutcome {
    let byte = |code: i32| u8::try_from(code).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => ProgramOutcome::Succeeded,
        (Some(code), _) => ProgramOutcome::Failed(byte(code)),
        (None, signal) => ProgramOutcome::Signalled(byte(signal.unwrap_or(0))),
    }
}
