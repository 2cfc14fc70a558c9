//! The functions by which a program says what it does (`streamsan.h`, the crate
//! `streamsan-annotate`). Both find them by name, so a program runs unchanged without us.

use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::Ordering;

use streamsan_wire::{ALLOW_DOMAIN, HostCall, TEST_DOMAIN};

use super::fences;
use super::nvtx_ranges::{begin_in, end};
use super::publish::record;
use crate::attach;

/// The calling thread reads `len` bytes at `address`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_rt_host_read(address: *const c_void, len: usize) {
    record(HostCall::HostRead, &[address as u64, len as u64], &[]);
    fences::told(address as u64, len as u64, false);
}

/// The calling thread writes `len` bytes at `address`.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_rt_host_write(address: *const c_void, len: usize) {
    record(HostCall::HostWrite, &[address as u64, len as u64], &[]);
    fences::told(address as u64, len as u64, true);
}

/// The index that the next call of the run gets, in whatever process; `u64::MAX` where nothing is
/// recorded. Between two answers lie the calls that were made between them: the Python package marks
/// tests and regions of a program with it, and nothing is recorded.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_rt_issue_index() -> u64 {
    attach::attachment().map_or(u64::MAX, |attachment| attachment.control.g.load(Ordering::Acquire))
}

/// A test of the program begins. Answers what [`streamsan_rt_test_end`] takes.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_rt_test_begin(name: *const c_char) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { begin_in(HostCall::NvtxStart, TEST_DOMAIN, name) }
}

/// The test has ended.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_rt_test_end(test: u64) {
    end(test);
}

/// The running test allows findings of a class or with an id, or any (`*`).
///
/// # Safety
/// `finding` is null or a NUL-terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_rt_test_allow(finding: *const c_char) {
    // SAFETY: promised by the caller.
    unsafe { begin_in(HostCall::NvtxMark, ALLOW_DOMAIN, finding) };
}

/// Names a `CUstream`.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_rt_name_stream(stream: *mut c_void, name: *const c_char) {
    // SAFETY: promised by the caller.
    unsafe { record_name(HostCall::NameStream, stream as u64, name) };
}

/// Names a `CUevent`.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_rt_name_event(event: *mut c_void, name: *const c_char) {
    // SAFETY: promised by the caller.
    unsafe { record_name(HostCall::NameEvent, event as u64, name) };
}

/// Names the allocation that `address` lies in.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_rt_name_memory(address: *const c_void, name: *const c_char) {
    // SAFETY: promised by the caller.
    unsafe { record_name(HostCall::NameMemory, address as u64, name) };
}

/// Records a name.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
pub(super) unsafe fn record_name(call: HostCall, handle: u64, name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) };
    record(call, &[handle], name.to_bytes());
}
