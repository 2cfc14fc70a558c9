//! A mark on the open file that a file descriptor stands for, by which another process recognises it.
//!
//! Memory is exported as a file descriptor, sent over a socket and imported under another number,
//! when the exporter has often closed its own. The driver's files all have one inode, so nothing
//! that the importer can ask tells which of them it has. What travels with an open file are its
//! owner and its signal for asynchronous notices (fcntl(2), `F_SETOWN_EX` and `F_SETSIG`), which are
//! used only where `O_ASYNC` is set. The exporter names itself as the owner, and its count as the
//! signal. A file on which somebody has set either is left alone.

use core::sync::atomic::{AtomicI32, Ordering};

const SET_SIGNAL: i32 = 10;
const GET_SIGNAL: i32 = 11;
const SET_OWNER: i32 = 15;
const GET_OWNER: i32 = 16;
/// The owner is a process.
const OF_PROCESS: i32 = 1;
/// The highest number of a signal (signal(7)).
const HIGHEST_SIGNAL: i32 = 64;

/// `struct f_owner_ex`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Owner {
    kind: i32,
    pid: libc::pid_t,
}

/// How many files this process, and those that it comes from, have marked.
static MARKED: AtomicI32 = AtomicI32::new(0);

/// The owner and the signal of a file.
fn look(descriptor: i32) -> Option<(Owner, i32)> {
    let mut owner = Owner::default();
    // SAFETY: asks for what is written to a structure of the documented layout.
    let (asked, signal) = unsafe {
        (libc::fcntl(descriptor, GET_OWNER, &raw mut owner), libc::fcntl(descriptor, GET_SIGNAL))
    };
    (asked == 0 && signal >= 0).then_some((owner, signal))
}

/// Marks the file that a process is about to give to others, and answers the mark; 0 where that
/// cannot be done: there are marks for as many files as there are signals.
pub(crate) fn mark(descriptor: i32) -> u64 {
    let free = look(descriptor).is_some_and(|(owner, signal)| owner.pid == 0 && signal == 0);
    if !free || MARKED.load(Ordering::Relaxed) >= HIGHEST_SIGNAL {
        return 0;
    }
    let number = MARKED.fetch_add(1, Ordering::Relaxed) + 1;
    if number > HIGHEST_SIGNAL {
        return 0;
    }
    // SAFETY: `getpid` has no preconditions; the other calls read a structure of the documented
    // layout and a number.
    let set = unsafe {
        let owner = Owner { kind: OF_PROCESS, pid: libc::getpid() };
        libc::fcntl(descriptor, SET_OWNER, &raw const owner) == 0
            && libc::fcntl(descriptor, SET_SIGNAL, number) == 0
    };
    if set { read(descriptor) } else { 0 }
}

/// The mark on a file: process id of who marked it, as this process sees it, and its count. 0 where
/// there is none.
pub(crate) fn read(descriptor: i32) -> u64 {
    match look(descriptor) {
        Some((Owner { kind: OF_PROCESS, pid }, signal)) if pid > 0 && signal > 0 => {
            (pid as u64) << 8 | signal as u64
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> i32 {
        // SAFETY: a NUL-terminated path.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) }
    }

    #[test]
    fn mark_is_of_the_file_and_not_of_the_number() {
        let (first, second) = (open(), open());
        let (one, two) = (mark(first), mark(second));
        assert!(one != 0 && two != 0 && one != two);
        assert_eq!(mark(first), 0, "it is marked");
        // SAFETY: a descriptor of this test.
        let copy = unsafe { libc::dup(first) };
        assert_eq!((read(copy), read(second)), (one, two));
        for descriptor in [first, second, copy] {
            // SAFETY: as above.
            unsafe { libc::close(descriptor) };
        }
        assert_eq!((read(first), mark(-1)), (0, 0));
    }
}
