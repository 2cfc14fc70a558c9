//! The program's output while the viewer has the terminal.
//!
//! It goes through a pseudo terminal, not through pipes: on a terminal, programs write line by line
//! and in colour, as they would without the viewer; into a pipe, most would keep their output back
//! until they end. Only what would have gone to the terminal is taken: a redirected stream stays
//! where it was led.
//!
//! All of it goes to a file beside the trace as it was printed, the last lines are kept for the
//! viewer's pane, and once the viewer has left, it goes to the terminal too.
//!
//! The program's input is none: keys are the viewer's. Redirected input stays what it is.

use super::screen::Screen;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, OutputModes};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Between two looks whether the run has ended.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A terminal for the program, before the program has begun.
#[derive(Debug)]
pub(crate) struct Printed {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Printed {
    /// Makes one, as large as ours.
    ///
    /// # Errors
    ///
    /// The system has no pseudo-terminal to give.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        let mut modes = rustix::termios::tcgetattr(&theirs)?;
        // The file gets what the program writes; nothing is typed here.
        modes.output_modes -= OutputModes::OPOST;
        modes.local_modes -= LocalModes::ECHO;
        rustix::termios::tcsetattr(&theirs, OptionalActions::Now, &modes)?;
        if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout()) {
            rustix::termios::tcsetwinsize(&theirs, size)?;
        }
        Ok(Self { ours, theirs })
    }

    /// Standard input, output and error for the program; `None` where they stay ours.
    ///
    /// # Errors
    ///
    /// A descriptor cannot be duplicated.
    pub(crate) fn streams(&self) -> io::Result<[Option<Stdio>; 3]> {
        let output = |is_terminal: bool| {
            is_terminal.then(|| self.theirs.try_clone().map(Stdio::from)).transpose()
        };
        Ok([
            io::stdin().is_terminal().then(Stdio::null),
            output(io::stdout().is_terminal())?,
            output(io::stderr().is_terminal())?,
        ])
    }

    /// Begins to take what is printed; the program has been started.
    ///
    /// # Errors
    ///
    /// The file cannot be made, or the thread not be started.
    pub(super) fn take(self, trace: &Path) -> io::Result<Taking> {
        let path = file_beside(trace);
        let file = fresh(&path)?;
        let shared = Arc::new(Shared::default());
        let printed = shared.clone();
        // Nobody but the program and its children writes: when they have closed it, it ends.
        drop(self.theirs);
        let thread = std::thread::Builder::new()
            .name("program output".to_owned())
            .spawn(move || read(&self.ours, &file, &printed))?;
        Ok(Taking { shared, path, thread: Some(thread) })
    }
}

/// The file that gets what the program prints.
fn file_beside(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".out");
    PathBuf::from(name)
}

/// A file of ours in the place of one of an earlier run. Beside a trace in a directory for everybody
/// (`/tmp`) the name may be a link of somebody else: it is not followed.
fn fresh(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

#[derive(Default)]
pub(super) struct Shared {
    screen: Mutex<Screen>,
    bytes: AtomicU64,
    /// The terminal is free: what is printed goes there too.
    is_free: AtomicBool,
    /// Nobody is waited for: only what was printed by now is taken.
    ended: AtomicBool,
}

impl Shared {
    /// Bytes printed.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// The last lines.
    pub(super) fn lines(&self) -> Vec<String> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).lines()
    }

    /// The viewer has left the terminal.
    pub(super) fn set_free(&self) {
        self.is_free.store(true, Ordering::Release);
    }
}

/// The thread that takes what is printed.
pub(super) struct Taking {
    pub(super) shared: Arc<Shared>,
    pub(super) path: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Taking {
    /// Takes what is left. What processes print that outlive the run is lost.
    pub(super) fn finish(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic of it was told by the panic hook.
            let _ = thread.join();
        }
    }
}

fn read(ours: &OwnedFd, mut file: &File, shared: &Shared) {
    let mut buffer = [0; 1 << 14];
    loop {
        // Asked before looking: what was printed before the end is taken.
        let ended = shared.ended.load(Ordering::Acquire);
        let mut ready = [PollFd::new(ours, PollFlags::IN)];
        match poll(&mut ready, Some(&PATIENCE)) {
            Ok(0) if ended => return,
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        // The last one who could write has gone: an error, on Linux.
        let Ok(length @ 1..) = rustix::io::read(ours, &mut buffer) else { return };
        let bytes = &buffer[..length];
        // A full disk is no reason to stop the program, which would wait for its output to be taken.
        let _ = file.write_all(bytes);
        shared.screen.lock().unwrap_or_else(PoisonError::into_inner).print(bytes);
        shared.bytes.fetch_add(length as u64, Ordering::Release);
        if shared.is_free.load(Ordering::Acquire) {
            let mut stdout = io::stdout().lock();
            let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fresh;
    use std::fs;

    #[test]
    fn what_a_link_leads_to_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (victim, path) = (folder.path().join("victim"), folder.path().join("trace.db.out"));
        fs::write(&victim, "secret").expect("written");
        std::os::unix::fs::symlink(&victim, &path).expect("made");
        for _ in 0..2 {
            fresh(&path).expect("made");
            assert!(path.symlink_metadata().expect("there").is_file());
        }
        assert_eq!(fs::read_to_string(&victim).expect("there"), "secret");
    }
}
