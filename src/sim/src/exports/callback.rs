//! Calling functions of the program. No lock is held here.

use std::ffi::c_void;

use crate::driver::{HostCall, HostForm};

type HostFn = unsafe extern "C" fn(*mut c_void);
type StreamCallback = unsafe extern "C" fn(u64, u32, *mut c_void);
type BlockToShared = unsafe extern "C" fn(i32) -> usize;

/// Calls a host function or stream callback.
pub(crate) fn call(call: HostCall, status: u32) {
    let data = call.data as *mut c_void;
    // SAFETY: the address is not zero (checked when it was submitted), and the program vouches
    // that a function of this type is there until it has been called.
    unsafe {
        match call.form {
            HostForm::Function => {
                std::mem::transmute::<usize, HostFn>(call.function)(data);
            }
            HostForm::StreamCallback { stream } => {
                std::mem::transmute::<usize, StreamCallback>(call.function)(stream, status, data);
            }
        }
    }
}

/// Asks the program how much dynamic shared memory a block of `threads` threads takes.
pub(super) fn block_to_shared(function: usize, threads: i32) -> u64 {
    // SAFETY: not zero (checked by the caller), and of this type by the interface.
    unsafe { std::mem::transmute::<usize, BlockToShared>(function)(threads) as u64 }
}
