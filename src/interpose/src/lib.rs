//! The code that the preloaded libraries share: the functions of the C library that
//! theirs stand before, and the end of a thread.
//!
//! Invariants: nothing here allocates but thread-specific data, by the C library; nothing takes a
//! lock of ours; `errno` may change where a key is created.
//!
//! Deliberately absent: symbols. A crate that declared the runtime's would need them in every binary
//! that it is linked into, so its users hand them in.
//!
//! Linking: <https://man7.org/linux/man-pages/man8/ld.so.8.html>; thread-specific data: POSIX,
//! `pthread_key_create`.

mod real;
mod thread_end;

pub use real::{LookUp, Real};
pub use thread_end::ThreadEnd;
