//! Waiting for room in a ring that is full.
//!
//! A record that is dropped may have been the very wait that orders a pair, and the verdict goes with
//! it. So a program waits as long as the collector is there and gets on, however slow the machine is:
//! the collector says so by a number in the control file that changes as it takes records, hands
//! operations on and writes. A collector that has ended makes nobody wait. One that does nothing for
//! as long as the control file says is stuck (stopped, or its disk hangs): then records are dropped,
//! by all threads of the process and at once, until that number changes.
//!
//! Time is counted by the steps of the wait: a program that was stopped meanwhile, perhaps together
//! with the collector, has not waited. Nothing here is a cancellation point, and nothing is left behind
//! that a forked child or a signal handler could find half-done.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use streamsan_wire::monotonic_ns;

use crate::attach::Attachment;
use crate::thread::errno;

/// Sleeps between two looks at the ring, in nanoseconds.
const SHORTEST_PAUSE: i64 = 20_000;
const LONGEST_PAUSE: i64 = 1_000_000;

/// A step of the wait that took longer counts as so many nanoseconds: the program did not run.
const LONGEST_STEP: u64 = 100_000_000;

/// The collector's progress when it was found to be gone or stuck. [`NEVER`] before that.
static STUCK_AT: AtomicU64 = AtomicU64::new(NEVER);
const NEVER: u64 = u64::MAX;

/// Waits for the collector to make room. `false` where it does not.
#[cold]
pub(crate) fn wait(attachment: &Attachment, mut has_room: impl FnMut() -> bool) -> bool {
    if has_room() {
        return true;
    }
    let control = attachment.control;
    let patience = u64::from(control.patience_ms) * 1_000_000;
    let mut progress = control.progress.load(Ordering::Relaxed);
    let (mut idle, mut pause) = (0, SHORTEST_PAUSE);
    let mut now = monotonic_ns();
    while STUCK_AT.load(Ordering::Relaxed) != progress {
        if idle >= patience || !collector_reads(attachment) {
            STUCK_AT.store(progress, Ordering::Relaxed);
            break;
        }
        sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        let before = core::mem::replace(&mut now, monotonic_ns());
        let step = now.saturating_sub(before).min(LONGEST_STEP);
        attachment.process.waited_ns.fetch_add(step, Ordering::Relaxed);
        idle += step;
        if has_room() {
            return true;
        }
        let latest = control.progress.load(Ordering::Relaxed);
        if latest != progress {
            (progress, idle) = (latest, 0);
        }
    }
    has_room()
}

/// Sleeps, in nanoseconds, without being a cancellation point, as the C library's function is.
pub(crate) fn sleep(nanoseconds: i64) {
    let wait = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let none = ptr::null_mut::<libc::timespec>();
    // SAFETY: a valid time; the remainder is not wanted.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const wait, none) };
}

fn collector_reads(attachment: &Attachment) -> bool {
    if attachment.control.closed.load(Ordering::Acquire) != 0 {
        return false;
    }
    // From another PID namespace the collector's process id cannot be looked up.
    if attachment.control.collector_namespace != attachment.process.pid_namespace {
        return true;
    }
    // SAFETY: signal 0 is not sent, only checked.
    let answer = unsafe { libc::kill(attachment.control.collector as i32, 0) };
    answer == 0 || errno() == libc::EPERM
}
