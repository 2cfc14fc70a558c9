//! The viewer's thread, and what it is told of the run.

use super::printed::{Printed, Shared, Taking};
use crate::commands::{hold_messages, release_messages, viewer_of, warn};
use crate::error::Error;
use crate::launch::{Child, Signals};
use rustix::process::Signal;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use streamsan_tui::live::{Phase, Run, Standing};

/// Between two looks whether the viewer was left.
const NAP: Duration = Duration::from_millis(20);

/// The viewer's sight of the run.
struct Standpoint {
    printed: Arc<Shared>,
    phase: Mutex<Phase>,
    leave: AtomicBool,
}

impl Run for Standpoint {
    fn standing(&self) -> Standing {
        Standing {
            phase: self.phase.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            printed: self.printed.bytes(),
            leave: self.leave.load(Ordering::Acquire),
        }
    }

    fn output(&self) -> Vec<String> {
        self.printed.lines()
    }

    fn interrupt(&self) {
        // A terminal sends it to the whole foreground group, this process included.
        let _ = rustix::process::kill_current_process_group(Signal::INT);
    }
}

/// The viewer of a run that goes on.
pub(crate) struct LiveViewer {
    standpoint: Arc<Standpoint>,
    taking: Taking,
    trace: PathBuf,
    /// `None` once it was left.
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl LiveViewer {
    /// Takes the terminal. The trace has been created, and the program been started.
    ///
    /// # Errors
    ///
    /// A file, a thread or the terminal cannot be had.
    pub(crate) fn start(printed: Printed, trace: &Path) -> Result<Self, Error> {
        let failed = || Error::run("cannot begin to view the run");
        let taking = printed.take(trace).map_err(failed())?;
        let standpoint = Arc::new(Standpoint {
            printed: taking.shared.clone(),
            phase: Mutex::default(),
            leave: AtomicBool::new(false),
        });
        let viewer = viewer_of(trace, standpoint.clone())?;
        hold_messages();
        let thread = std::thread::Builder::new()
            .name("viewer".to_owned())
            .spawn(move || streamsan_tui::run(viewer));
        match thread {
            Ok(thread) => {
                Ok(Self { standpoint, taking, trace: trace.to_owned(), thread: Some(thread) })
            }
            Err(error) => {
                release_messages();
                Err(failed()(error))
            }
        }
    }

    /// Gives the terminal back where the user has left the viewer.
    pub(crate) fn look_after(&mut self) {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.close("the program runs on");
        }
    }

    fn close(&mut self, then: &str) {
        let Some(thread) = self.thread.take() else { return };
        let outcome = thread.join();
        self.standpoint.printed.set_free();
        release_messages();
        let file = self.taking.path.display();
        match outcome {
            Ok(Ok(())) => warn(&format!("the viewer was left; {then}. Its output: {file}")),
            Ok(Err(error)) => warn(&format!(
                "the terminal cannot be used for the viewer: {error}; {then}. Its output: {file}"
            )),
            Err(_) => warn(&format!("the viewer failed; {then}. Its output: {file}")),
        }
    }

    fn set(&self, phase: Phase) {
        *self.standpoint.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    /// The program has ended; the trace is not finished yet.
    pub(crate) fn program_ended(&mut self) {
        self.set(Phase::Finishing);
        self.taking.finish();
    }

    /// All is done: waits until the user has seen enough. `words`: verdict and exit code.
    pub(crate) fn conclude(mut self, words: &str, signals: &mut Signals, child: &Child) {
        self.set(Phase::Ended(words.to_owned()));
        loop {
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                break;
            }
            signals.handle(child);
            if signals.told_to_end() {
                self.standpoint.leave.store(true, Ordering::Release);
            }
            std::thread::sleep(NAP);
        }
        self.close("the program has ended");
        // The viewer had the trace open while it was finished.
        if let Err(error) = streamsan_store::merge_log(&self.trace) {
            warn(&error);
        }
    }
}
