//! The entry points that are only counted: increment, jump on to the driver.
//!
//! A thunk knows nothing of its function's parameters, so it changes no argument register and
//! leaves the stack as it is. It uses registers that the processor's ABI leaves to such code.

use core::ffi::c_void;

use streamsan_wire::{Api, Counted, ENTRY_POINTS, EntryPoint, ProcessFile, for_each_counted};

use crate::attach;
use crate::hooks::Address;
use crate::resolve::{self, REAL};

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::{count_and_jump, count_as, unknown_thunks};
#[cfg(target_arch = "x86_64")]
use x86_64::{count_and_jump, count_as, unknown_thunks};

/// Bytes between two thunks of [`unknown_thunks`].
const UNKNOWN_STRIDE: usize = 16;

/// The rare ways through a thunk; returns where to jump.
extern "C" fn slow(index: u32, uncounted: u32) -> usize {
    let index = index as usize;
    let errno = crate::thread::errno();
    if uncounted != 0 {
        let _ = attach::attachment();
        count(index);
    }
    let address = match EntryPoint::from_index(index) {
        Some(entry) => resolve::real_or_absent(entry),
        None => REAL[index].load(core::sync::atomic::Ordering::Relaxed),
    };
    crate::thread::set_errno(errno);
    address
}

/// Counts a call of the entry point with this number.
pub(crate) fn count(index: usize) {
    let counter = match index.checked_sub(ENTRY_POINTS) {
        None => index,
        Some(slot) => ProcessFile::unknown_counter(slot),
    };
    if let Some(attachment) = attach::attachment() {
        attachment.process.counters[counter].fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    }
}

macro_rules! thunk {
    // Answered by `procaddr`.
    (cuGetProcAddress) => {
        use crate::procaddr::cuGetProcAddress;
    };
    (cuGetProcAddress_v2) => {
        use crate::procaddr::cuGetProcAddress_v2;
    };
    ($name:ident) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            count_as!(Api::COUNT + Counted::$name as usize)
        }
    };
}

macro_rules! thunks {
    (orders: $($orders:ident)+; inert: $($inert:ident)+;) => {
        $(thunk! { $orders })+
        $(thunk! { $inert })+

        /// Our functions in the order of [`Counted`].
        pub(super) static THUNKS: [Address; ENTRY_POINTS - Api::COUNT] = [
            $(Address($orders as *const c_void),)+
            $(Address($inert as *const c_void),)+
        ];
    };
}

/// Address of our own function for a counted entry point, by its number in [`Counted`].
pub(crate) fn address(counted: usize) -> usize {
    exported::THUNKS[counted].0 as usize
}

mod exported {
    use super::*;
    for_each_counted!(thunks);
}

/// Address of the thunk of an unknown entry point.
pub(crate) fn unknown_address(slot: usize) -> usize {
    let start = unknown_thunks as *const () as usize;
    start.next_multiple_of(UNKNOWN_STRIDE) + slot * UNKNOWN_STRIDE
}
