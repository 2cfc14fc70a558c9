//! Tells streamsan what a host thread does and what things are called: the counterpart of the C
//! header `streamsan.h`.
//!
//! The functions call the runtime that `streamsan run` loads into the program, which they look for
//! by name at their first use; without it they do nothing but that look. They have no
//! dependencies, and nothing is read through the pointers that they get.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

type Access = unsafe extern "C" fn(*const c_void, usize);
type Name = unsafe extern "C" fn(*const c_void, *const c_char);

/// The calling thread reads `bytes` bytes at `address` now.
#[inline]
pub fn host_read<T: ?Sized>(address: *const T, bytes: usize) {
    if let Some(runtime) = runtime() {
        // SAFETY: the runtime's function of this signature; it reads nothing there.
        unsafe { (runtime.host_read)(address.cast(), bytes) };
    }
}

/// The calling thread writes `bytes` bytes at `address` now.
#[inline]
pub fn host_write<T: ?Sized>(address: *const T, bytes: usize) {
    if let Some(runtime) = runtime() {
        // SAFETY: the runtime's function of this signature; it writes nothing there.
        unsafe { (runtime.host_write)(address.cast(), bytes) };
    }
}

/// Names a `CUstream` or `cudaStream_t` in reports. A stream pool that gives a stream a new name
/// each time it hands it out also tells by it that the stream has a new user.
pub fn name_stream<T>(stream: *const T, name: &str) {
    give_name(|runtime| runtime.name_stream, stream.cast(), name);
}

/// Names a `CUevent` or `cudaEvent_t` in reports.
pub fn name_event<T>(event: *const T, name: &str) {
    give_name(|runtime| runtime.name_event, event.cast(), name);
}

/// Names the allocation that `address` lies in: device, pinned, registered or managed memory.
pub fn name_memory<T: ?Sized>(address: *const T, name: &str) {
    give_name(|runtime| runtime.name_memory, address.cast(), name);
}

fn give_name(function: fn(&Runtime) -> Name, what: *const c_void, name: &str) {
    // A name with a NUL inside is cut there.
    let name = name.split('\0').next().unwrap_or_default();
    if let (Some(runtime), Ok(name)) = (runtime(), CString::new(name)) {
        // SAFETY: the runtime's function of this signature, with a NUL-terminated name.
        unsafe { function(runtime)(what, name.as_ptr()) };
    }
}

/// The runtime's functions.
struct Runtime {
    host_read: Access,
    host_write: Access,
    name_stream: Name,
    name_event: Name,
    name_memory: Name,
}

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_LAZY: c_int = 1;

fn runtime() -> Option<&'static Runtime> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(find).as_ref()
}

fn find() -> Option<Runtime> {
    // SAFETY: no name stands for the program with all that was loaded at its start.
    let program = unsafe { dlopen(std::ptr::null(), RTLD_LAZY) };
    let function = |name: &CStr| {
        // SAFETY: a valid handle and a NUL-terminated name.
        let found = unsafe { dlsym(program, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    // SAFETY: the runtime's functions have these signatures.
    unsafe {
        Some(Runtime {
            host_read: as_access(function(c"streamsan_rt_host_read")?),
            host_write: as_access(function(c"streamsan_rt_host_write")?),
            name_stream: as_name(function(c"streamsan_rt_name_stream")?),
            name_event: as_name(function(c"streamsan_rt_name_event")?),
            name_memory: as_name(function(c"streamsan_rt_name_memory")?),
        })
    }
}

/// # Safety
/// `function` has the signature.
unsafe fn as_access(function: *mut c_void) -> Access {
    // SAFETY: promised by the caller.
    unsafe { std::mem::transmute(function) }
}

/// # Safety
/// `function` has the signature.
unsafe fn as_name(function: *mut c_void) -> Name {
    // SAFETY: promised by the caller.
    unsafe { std::mem::transmute(function) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests run without the runtime.
    #[test]
    fn without_the_runtime_nothing_happens() {
        assert!(find().is_none());
        let bytes = [1u8; 16];
        host_read(&bytes, bytes.len());
        host_write(bytes.as_ptr(), bytes.len());
        name_memory(&bytes, "name\0with a NUL");
        name_stream(std::ptr::null::<c_void>(), "");
        name_event(std::ptr::null::<c_void>(), "event");
    }
}
