//! `cuGetProcAddress`: the driver chooses the ABI by version and flags, we map the pointer that it
//! returns to the exact symbol and give the program our function of that symbol. A mismatch of
//! ABIs is thus impossible, and per-thread twins come out right by themselves.

use core::ffi::{CStr, c_char, c_int, c_void};

use streamsan_wire::{Counted, EntryPoint};

use crate::{attach, resolve, thread, thunks, unknown};

/// CUDA before 12.0.
///
/// # Safety
/// As the driver API documents.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "the driver's symbol"))]
pub(crate) unsafe extern "C-unwind" fn cuGetProcAddress(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> i32 {
    type Real = unsafe extern "C-unwind" fn(*const c_char, *mut *mut c_void, c_int, u64) -> i32;
    let Some(real) = enter(Counted::cuGetProcAddress) else { return resolve::NOT_FOUND };
    // SAFETY: the driver's function with its documented signature and the program's arguments.
    unsafe {
        let real: Real = core::mem::transmute(real);
        let result = real(symbol, pfn, version, flags);
        route(symbol, pfn, result);
        result
    }
}

/// CUDA 12.0 and later.
///
/// # Safety
/// As the driver API documents.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_snake_case, reason = "the driver's symbol"))]
pub(crate) unsafe extern "C-unwind" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_void,
) -> i32 {
    type Real = unsafe extern "C-unwind" fn(
        *const c_char,
        *mut *mut c_void,
        c_int,
        u64,
        *mut c_void,
    ) -> i32;
    let Some(real) = enter(Counted::cuGetProcAddress_v2) else { return resolve::NOT_FOUND };
    // SAFETY: the driver's function with its documented signature and the program's arguments.
    unsafe {
        let real: Real = core::mem::transmute(real);
        let result = real(symbol, pfn, version, flags, status);
        route(symbol, pfn, result);
        result
    }
}

fn enter(counted: Counted) -> Option<usize> {
    let errno = thread::errno();
    let index = resolve::counted_index(counted);
    thunks::count(index);
    let real = resolve::real(EntryPoint::from_index(index)?);
    thread::set_errno(errno);
    real
}

/// Replaces the pointer of a successful look-up. Callers also probe with an empty name and with
/// null pointers: those pass.
///
/// # Safety
/// The arguments are those of a call that returned `result`.
unsafe fn route(symbol: *const c_char, pfn: *mut *mut c_void, result: i32) {
    if result != 0 || symbol.is_null() || pfn.is_null() || attach::attachment().is_none() {
        return;
    }
    let errno = thread::errno();
    // SAFETY: a successful look-up has a NUL-terminated name and wrote a pointer.
    let (symbol, address) = unsafe { (CStr::from_ptr(symbol), *pfn as usize) };
    if address != 0 && !symbol.is_empty() {
        let name = symbol.to_str().unwrap_or_default();
        let ours = match resolve::entry_at(address, name) {
            Some(entry) => resolve::export(entry),
            None if resolve::is_ours(address) => address,
            None => unknown::thunk_for(symbol.to_bytes(), address),
        };
        // SAFETY: as above.
        unsafe { *pfn = ours as *mut c_void };
    }
    thread::set_errno(errno);
}
