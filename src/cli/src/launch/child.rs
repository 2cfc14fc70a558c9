//! The running program: signals to it, and how it ended.
//!
//! The program stays in the terminal's foreground process group, so Ctrl-C and Ctrl-\ reach it
//! from the terminal itself; what another process sends to the command alone is passed on. The
//! command outlives them, because the trace has to be finished.

use super::Environment;
use crate::error::Error;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use streamsan_model::ProgramOutcome;

/// The message where the system starts no more processes or threads.
pub(super) const TOO_MANY_PROCESSES: &str = "cannot start another process or thread, so the program was not started; raise the limit \
     (`ulimit -u`, or pids.max of the container), or end other processes";

/// `__WNOTHREAD` of wait(2): only children of the calling thread. The kernel gives orphans to the
/// first thread of their subreaper, so the program has to be started and polled there.
const OF_THIS_THREAD: u32 = 0x2000_0000;

/// Where a limit on the size of files (`ulimit -f`) is reached, a write fails as on a full disk; the
/// signal would end this command with everything that it has recorded. Programs that it starts have
/// the signal as it was.
pub(crate) fn outlive_file_size_limit() {
    if ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default()) & (1 << (SIGXFSZ - 1))
        == 0
    {
        // It is asked nowhere: the write tells.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

/// Signals that the command takes on the program's behalf. Installed before the program starts;
/// handlers (unlike ignored signals) are not inherited through exec. What was ignored already (by
/// nohup, by a shell for its background jobs) stays so, for the program too.
#[derive(Debug)]
pub(crate) struct Signals {
    pending: SignalsInfo<WithOrigin>,
    told_to_end: bool,
    /// Whether anybody has asked for an end.
    interrupted: bool,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    ///
    /// The system refuses a handler.
    pub(crate) fn install() -> Result<Self, Error> {
        let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
        let wanted = [SIGINT, SIGQUIT, SIGTERM, SIGHUP].into_iter();
        let wanted = wanted.filter(|signal| ignored & (1 << (signal - 1)) == 0);
        // Where it is ignored, the kernel tells nobody how a child ended.
        let pending = SignalsInfo::new(wanted.chain([SIGCHLD]))
            .map_err(Error::run("cannot install signal handlers"))?;
        Ok(Self { pending, told_to_end: false, interrupted: false })
    }

    /// Passes on what is meant for the program alone. Answers whether the user wants to stop.
    pub(crate) fn handle(&mut self, child: &Child) -> bool {
        let mut stop = false;
        for origin in self.pending.pending() {
            let forwarded = match origin.signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                SIGINT => Signal::INT,
                SIGQUIT => Signal::QUIT,
                _ => continue,
            };
            stop = true;
            self.interrupted = true;
            // The terminal sends these to the whole foreground group, and so does the viewer when
            // it has the terminal.
            let own =
                origin.process.is_some_and(|sender| sender.pid == std::process::id().cast_signed());
            let by_terminal = matches!(forwarded, Signal::INT | Signal::QUIT)
                && (own || !matches!(origin.cause, Cause::Sent(_)));
            if by_terminal {
                continue;
            }
            self.told_to_end = true;
            if child.outcome.is_none() {
                // It may have ended in the meantime.
                let _ = rustix::process::kill_process(child.pid, forwarded);
            }
        }
        stop
    }
}

impl Signals {
    /// Whether the user, or anybody else, wanted an end before the program's own.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether somebody else than the user at the terminal wants an end.
    pub(crate) fn told_to_end(&self) -> bool {
        self.told_to_end
    }
}

/// The program under test.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    outcome: Option<ProgramOutcome>,
}

impl Child {
    /// Starts the program. `streams`: standard input, output and error; `None` where they are ours.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub(crate) fn spawn(
        file: &Path,
        arguments: &[OsString],
        environment: &Environment,
        streams: [Option<Stdio>; 3],
    ) -> Result<Self, Error> {
        // Descendants that outlive their parent become children of this process, which then sees
        // when they end. Where the kernel refuses, their end is seen through the run directory.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let (name, rest) = arguments.split_first().expect("the program's name is required");
        let mut command = Command::new(file);
        let replayed = environment.replayed();
        // A selection of another run means nothing to this one.
        command.arg0(name).args(rest).env_remove(streamsan_wire::MEASURE_VARIABLE);
        for name in &replayed.unset {
            command.env_remove(name);
        }
        command.envs(replayed.set.iter().map(|(name, value)| (name, value)));
        command.envs(environment.iter());
        let [stdin, stdout, stderr] = streams;
        stdin.map(|stream| command.stdin(stream));
        stdout.map(|stream| command.stdout(stream));
        stderr.map(|stream| command.stderr(stream));
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => {
                Error::run(TOO_MANY_PROCESSES)(error)
            }
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
        for (pid, status) in ended() {
            if pid == self.pid {
                self.outcome = Some(outcome(status));
            }
        }
        self.outcome
    }
}

/// Children of this thread that have ended, adopted ones included. The program and all that it left
/// behind are reaped here and nowhere else: a zombie would count as alive. Tools that another
/// thread runs are that thread's own to wait for.
fn ended() -> impl Iterator<Item = (Pid, WaitStatus)> {
    let options = WaitOptions::NOHANG | WaitOptions::from_bits_retain(OF_THIS_THREAD);
    std::iter::from_fn(move || rustix::process::wait(options).ok().flatten())
}

/// The set of ignored signals in the text of `/proc/self/status`, bit 0 for signal 1.
fn ignored(status: &str) -> u64 {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

fn outcome(status: WaitStatus) -> ProgramOutcome {
    let byte = |code: i32| u8::try_from(code).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => ProgramOutcome::Succeeded,
        (Some(code), _) => ProgramOutcome::Failed(byte(code)),
        (None, signal) => ProgramOutcome::Signalled(byte(signal.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    #[test]
    fn tools_of_other_threads_are_left_to_them() {
        let mut own = Command::new("true").spawn().expect("starts");
        let tool = thread::spawn(|| {
            (0..20).all(|_| Command::new("true").status().is_ok_and(|status| status.success()))
        });
        let mut reaped = 0;
        while !tool.is_finished() || reaped == 0 {
            reaped += super::ended().count();
            thread::yield_now();
        }
        assert!(tool.join().expect("ends"), "somebody else waited for the tool");
        assert_eq!(reaped, 1);
        assert!(own.wait().is_err());
    }
}
