//! Tells the runtime how the program's host threads synchronise (`--strict-host-threads`).
//!
//! It is preloaded behind the runtime in that mode only, exports the synchronisation functions of
//! POSIX threads, calls the C library's own and tells the runtime: a release before the call that
//! lets go of something, an acquisition after the call that got hold of it.
//!
//! Invariants: results, `errno` and cancellation stay as they are; nothing is held across a call;
//! nothing here allocates (save for one small block a created thread) or takes a lock.
//!
//! Not seen: programs that synchronise without these functions. Rust's standard library uses
//! futexes, C11's `mtx_lock` calls inside the C library, atomics are inline code.

#![cfg_attr(test, expect(dead_code, reason = "the test build exports nothing"))]

mod locks;
mod real;
mod threads;

use streamsan_wire::HostCall;

#[cfg(not(test))]
unsafe extern "C" {
    /// The runtime's; it is loaded before this library.
    fn streamsan_host_sync(call: u16, object: u64);
}

/// Tells the runtime.
#[cfg(not(test))]
fn tell(call: HostCall, object: u64) {
    // SAFETY: takes plain numbers.
    unsafe { streamsan_host_sync(call as u16, object) };
}

#[cfg(test)]
fn tell(_call: HostCall, _object: u64) {}
