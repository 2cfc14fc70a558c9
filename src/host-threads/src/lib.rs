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

mod locks;
mod threads;

/// The address of the C library's function of this name.
macro_rules! real {
    ($name:expr) => {
        streamsan_interpose::real!($name, crate::streamsan_c_function)
    };
}
use real;

use core::ffi::{c_char, c_void};
use streamsan_wire::HostCall;

// The runtime's; it is loaded before this library.
unsafe extern "C" {
    fn streamsan_host_sync(call: u16, object: u64);
    fn streamsan_c_function(name: *const c_char) -> *const c_void;
}

/// Tells the runtime.
fn tell(call: HostCall, object: u64) {
    // SAFETY: takes plain numbers.
    unsafe { streamsan_host_sync(call as u16, object) };
}
