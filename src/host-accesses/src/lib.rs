//! Stands before the C library where fences around host memory need it (unless `--host-accesses=off`).
//!
//! Preloaded behind the runtime in that mode only. It keeps the program's signal handler for SIGSEGV
//! behind the runtime's, keeps that signal deliverable, and opens fences before system calls that
//! would fail in them instead of faulting. Nothing is retried after a failure: a short count or a
//! lost datagram cannot be taken back.
//!
//! Invariants: results and `errno` stay as they are; nothing is held across a call; nothing here
//! allocates but alternate signal stacks, by the system. While there is no memory that could be fenced, a
//! call costs one load.
//!
//! Not seen: system calls that the program makes by itself (io_uring, Go, static code).

mod asynchronous;
mod buffers;
mod by_number;
mod control;
mod mappings;
mod runtime;
mod signals;
mod stdio;
mod verbs;

/// The address of the C library's function of this name.
macro_rules! real {
    ($name:expr) => {
        streamsan_interpose::real!($name, crate::runtime::streamsan_c_function)
    };
}
use real;
