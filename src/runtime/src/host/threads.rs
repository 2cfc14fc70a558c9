//! Synchronisation of host threads, as the library `streamsan-host-threads` tells it. That library
//! is only preloaded with `--strict-host-threads`.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;

use streamsan_wire::HostCall;

use super::publish::record;
use crate::elf::LoadedObject;

/// The thread let go of `object`, or got hold of it, by the call with this number.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_host_sync(call: u16, object: u64) {
    if let Some(call) = HostCall::from_u16(call).filter(|call| call.order().is_some()) {
        record(call, &[object], &[]);
    }
}

/// The C library's own function of this name, null where it has none. Neither allocates nor asks
/// `dlsym`, so that it can be called from anywhere.
///
/// # Safety
/// `name` is a NUL-terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_c_function(name: *const c_char) -> *const c_void {
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    let mut found = None;
    LoadedObject::find(|object| {
        // Before glibc 2.34 some functions live in libraries of their own.
        let system = object.soname().is_some_and(|soname| {
            let soname = soname.to_bytes();
            [&b"libpthread.so"[..], b"librt.so", b"libc.so"]
                .iter()
                .any(|begin| soname.starts_with(begin))
        });
        if system {
            found = object.function(name);
        }
        found.is_some()
    });
    found.map_or(ptr::null(), |address| address as *const c_void)
}
