//! The log: `tracing` events of the collector, for those who look for the cause of something.
//!
//! Nothing here is for the user of a run; messages for users go to the
//! [`Listener`](crate::Listener). Names that come from programs are printable.

use std::fs;
use std::path::Path;
use std::time::Duration;
use streamsan_kernels::reader::{CodeForm, Unread};
use streamsan_names::{printable, printable_line, printable_path};
use streamsan_wire::{ProcessInfo, ProcessStat};
use tracing::{debug, info, warn};

/// The recording begins.
pub(crate) fn begin(trace: &Path, driver: &str, exact_accesses: bool) {
    let (trace, driver) = (printable_path(trace), printable(driver));
    info!(%trace, %driver, exact_accesses, "the recording begins");
}

/// The code of a kernel was read, or cannot be.
pub(crate) fn kernel(name: &str, outcome: Result<CodeForm, &Unread>) {
    let kernel = printable(name);
    match outcome {
        Ok(source) => debug!(%kernel, ?source, "a kernel was read"),
        Err(reason) => {
            let reason = reason.to_string();
            let reason = printable_line(&reason);
            debug!(%kernel, %reason, "a kernel cannot be read");
        }
    }
}

/// The state of a process that was told last.
#[derive(Clone, Copy, Debug, Default)]
struct ToldProcess {
    ended: bool,
    waited: Duration,
    dropped: u64,
}

/// The events that were told so far, so that each is told once.
#[derive(Debug, Default)]
pub(crate) struct Log {
    processes: Vec<ToldProcess>,
    /// Entry index of the newest operation when the last commit began.
    committed: u64,
}

impl Log {
    /// Tells what is new of processes: those that said hello, that waited for room in their rings,
    /// that lost records, that ended.
    pub(crate) fn processes(&mut self, processes: &[ProcessInfo]) {
        for (at, process) in processes.iter().enumerate() {
            if at == self.processes.len() {
                self.processes.push(ToldProcess::default());
                hello(process);
            }
            let told = &mut self.processes[at];
            told.pressed(process);
            if !process.alive {
                told.end(process);
            }
        }
    }

    /// The run is over: tells of every process how it was left. A process may have ended since the
    /// run directory looked last.
    pub(crate) fn finish(&mut self, processes: &[ProcessInfo]) {
        self.processes(processes);
        for (told, process) in self.processes.iter_mut().zip(processes) {
            if !runs(process) {
                told.end(process);
            } else if !told.ended {
                info!(pid = process.pid, "a process runs on and is no longer recorded");
            }
        }
    }

    /// A commit begins, up to the operation `newest`.
    pub(crate) fn commit(&mut self, newest: u64, bytes_behind: u64) {
        if newest > self.committed {
            self.committed = newest;
            debug!(newest, bytes_behind, "a commit begins");
        }
    }
}

impl ToldProcess {
    fn pressed(&mut self, process: &ProcessInfo) {
        let (pid, waited_ms) = (process.pid, process.waited.as_millis() as u64);
        if process.waited > self.waited {
            self.waited = process.waited;
            debug!(pid, waited_ms, "rings were full: the program's threads waited");
        }
        if process.dropped > self.dropped {
            self.dropped = process.dropped;
            warn!(pid, dropped = process.dropped, "the program dropped records");
        }
    }

    fn end(&mut self, process: &ProcessInfo) {
        if !std::mem::replace(&mut self.ended, true) {
            let waited_ms = process.waited.as_millis() as u64;
            info!(pid = process.pid, waited_ms, dropped = process.dropped, "a process ended");
        }
    }
}

fn hello(process: &ProcessInfo) {
    let ProcessInfo { pid, parent, .. } = *process;
    let (program, arguments) = (printable(&process.exe), process.args.len());
    info!(pid, parent, %program, arguments, "a process said hello");
}

/// Whether a process still runs code: a zombie does so only through threads besides its first one.
fn runs(process: &ProcessInfo) -> bool {
    let stat = fs::read(format!("/proc/{}/stat", process.pid)).ok();
    process.alive
        && stat.and_then(|line| ProcessStat::parse(&line)).is_some_and(|stat| {
            let is_over = matches!(stat.state, b'Z' | b'X' | b'x') && stat.threads <= 1;
            !is_over && (process.start_time == 0 || process.start_time == stat.start_time)
        })
}
