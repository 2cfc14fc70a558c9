//! Atomic operations of 16 bytes, by the processor's compare and exchange of so many.

use core::ffi::c_int;

use crate::view::{Mode, touch};

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64::compare_exchange;
#[cfg(target_arch = "x86_64")]
use x86_64::compare_exchange;

/// # Safety
/// As [`compare_exchange`].
unsafe fn update(address: *mut u128, new: impl Fn(u128) -> u128) -> u128 {
    touch(address as usize, 16, Mode::Atomic);
    let mut known = 0;
    loop {
        // SAFETY: promised by the caller.
        let found = unsafe { compare_exchange(address, known, new(known)) };
        if found == known {
            return found;
        }
        known = found;
    }
}

/// # Safety
/// `address` is that of an atomic object.
#[unsafe(no_mangle)]
unsafe extern "C" fn __tsan_atomic128_load(address: *mut u128, _order: c_int) -> u128 {
    // SAFETY: promised by the caller.
    unsafe { update(address, |old| old) }
}

/// # Safety
/// `address` is that of an atomic object.
#[unsafe(no_mangle)]
unsafe extern "C" fn __tsan_atomic128_store(address: *mut u128, value: u128, _order: c_int) {
    // SAFETY: promised by the caller.
    unsafe { update(address, |_| value) };
}

macro_rules! modify {
    ($($name:ident |$old:ident, $value:ident| $new:expr;)*) => {$(
        /// # Safety
        /// `address` is that of an atomic object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(address: *mut u128, $value: u128, _order: c_int) -> u128 {
            // SAFETY: promised by the caller.
            unsafe { update(address, |$old| $new) }
        }
    )*};
}

modify! {
    __tsan_atomic128_exchange |_old, value| value;
    __tsan_atomic128_fetch_add |old, value| old.wrapping_add(value);
    __tsan_atomic128_fetch_sub |old, value| old.wrapping_sub(value);
    __tsan_atomic128_fetch_and |old, value| old & value;
    __tsan_atomic128_fetch_or |old, value| old | value;
    __tsan_atomic128_fetch_xor |old, value| old ^ value;
    __tsan_atomic128_fetch_nand |old, value| !(old & value);
}

macro_rules! exchange_if {
    ($($name:ident)*) => {$(
        /// # Safety
        /// `address` is that of an atomic object, `expected` is writable.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            address: *mut u128,
            expected: *mut u128,
            value: u128,
            _order: c_int,
            _failure: c_int,
        ) -> c_int {
            touch(address as usize, 16, Mode::Atomic);
            // SAFETY: promised by the caller.
            unsafe {
                let wanted = *expected;
                let found = compare_exchange(address, wanted, value);
                *expected = found;
                c_int::from(found == wanted)
            }
        }
    )*};
}

exchange_if! { __tsan_atomic128_compare_exchange_strong __tsan_atomic128_compare_exchange_weak }

/// # Safety
/// `address` is that of an atomic object.
#[unsafe(no_mangle)]
unsafe extern "C" fn __tsan_atomic128_compare_exchange_val(
    address: *mut u128,
    expected: u128,
    value: u128,
    _order: c_int,
    _failure: c_int,
) -> u128 {
    touch(address as usize, 16, Mode::Atomic);
    // SAFETY: promised by the caller.
    unsafe { compare_exchange(address, expected, value) }
}
