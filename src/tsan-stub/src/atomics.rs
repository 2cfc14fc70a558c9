//! Atomic operations of up to 8 bytes. They are performed, whatever order was asked for, with the
//! strongest one.

use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, compiler_fence, fence,
};

use crate::view::{Mode, touch};

/// Sequentially consistent, the strongest there is.
const ORDER: Ordering = Ordering::SeqCst;

macro_rules! load_and_store {
    ($($atomic:ident $value:ident: $load:ident $store:ident;)*) => {$(
        /// # Safety
        /// `address` is that of an atomic object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $load(address: *mut $value, _order: c_int) -> $value {
            touch(address as usize, size_of::<$value>() as u64, Mode::Atomic);
            // SAFETY: promised by the caller.
            unsafe { $atomic::from_ptr(address) }.load(ORDER)
        }

        /// # Safety
        /// `address` is that of an atomic object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $store(address: *mut $value, value: $value, _order: c_int) {
            touch(address as usize, size_of::<$value>() as u64, Mode::Atomic);
            // SAFETY: promised by the caller.
            unsafe { $atomic::from_ptr(address) }.store(value, ORDER);
        }
    )*};
}

load_and_store! {
    AtomicU8 u8: __tsan_atomic8_load __tsan_atomic8_store;
    AtomicU16 u16: __tsan_atomic16_load __tsan_atomic16_store;
    AtomicU32 u32: __tsan_atomic32_load __tsan_atomic32_store;
    AtomicU64 u64: __tsan_atomic64_load __tsan_atomic64_store;
}

macro_rules! modify {
    ($($atomic:ident $value:ident: $($name:ident $method:ident,)*;)*) => {$($(
        /// # Safety
        /// `address` is that of an atomic object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(address: *mut $value, value: $value, _order: c_int) -> $value {
            touch(address as usize, size_of::<$value>() as u64, Mode::Atomic);
            // SAFETY: promised by the caller.
            unsafe { $atomic::from_ptr(address) }.$method(value, ORDER)
        }
    )*)*};
}

modify! {
    AtomicU8 u8: __tsan_atomic8_exchange swap, __tsan_atomic8_fetch_add fetch_add,
        __tsan_atomic8_fetch_sub fetch_sub, __tsan_atomic8_fetch_and fetch_and,
        __tsan_atomic8_fetch_or fetch_or, __tsan_atomic8_fetch_xor fetch_xor,
        __tsan_atomic8_fetch_nand fetch_nand,;
    AtomicU16 u16: __tsan_atomic16_exchange swap, __tsan_atomic16_fetch_add fetch_add,
        __tsan_atomic16_fetch_sub fetch_sub, __tsan_atomic16_fetch_and fetch_and,
        __tsan_atomic16_fetch_or fetch_or, __tsan_atomic16_fetch_xor fetch_xor,
        __tsan_atomic16_fetch_nand fetch_nand,;
    AtomicU32 u32: __tsan_atomic32_exchange swap, __tsan_atomic32_fetch_add fetch_add,
        __tsan_atomic32_fetch_sub fetch_sub, __tsan_atomic32_fetch_and fetch_and,
        __tsan_atomic32_fetch_or fetch_or, __tsan_atomic32_fetch_xor fetch_xor,
        __tsan_atomic32_fetch_nand fetch_nand,;
    AtomicU64 u64: __tsan_atomic64_exchange swap, __tsan_atomic64_fetch_add fetch_add,
        __tsan_atomic64_fetch_sub fetch_sub, __tsan_atomic64_fetch_and fetch_and,
        __tsan_atomic64_fetch_or fetch_or, __tsan_atomic64_fetch_xor fetch_xor,
        __tsan_atomic64_fetch_nand fetch_nand,;
}

macro_rules! compare_exchange {
    ($($atomic:ident $value:ident: $by_value:ident $($name:ident)+;)*) => {$(
        $(
            /// # Safety
            /// `address` is that of an atomic object, `expected` is writable.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name(
                address: *mut $value,
                expected: *mut $value,
                value: $value,
                _order: c_int,
                _failure: c_int,
            ) -> c_int {
                touch(address as usize, size_of::<$value>() as u64, Mode::Atomic);
                // SAFETY: promised by the caller.
                unsafe {
                    let atomic = $atomic::from_ptr(address);
                    match atomic.compare_exchange(*expected, value, ORDER, ORDER) {
                        Ok(_) => 1,
                        Err(found) => {
                            *expected = found;
                            0
                        }
                    }
                }
            }
        )+

        /// # Safety
        /// `address` is that of an atomic object.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $by_value(
            address: *mut $value,
            expected: $value,
            value: $value,
            _order: c_int,
            _failure: c_int,
        ) -> $value {
            touch(address as usize, size_of::<$value>() as u64, Mode::Atomic);
            // SAFETY: promised by the caller.
            let atomic = unsafe { $atomic::from_ptr(address) };
            match atomic.compare_exchange(expected, value, ORDER, ORDER) {
                Ok(found) | Err(found) => found,
            }
        }
    )*};
}

compare_exchange! {
    AtomicU8 u8: __tsan_atomic8_compare_exchange_val __tsan_atomic8_compare_exchange_strong
        __tsan_atomic8_compare_exchange_weak;
    AtomicU16 u16: __tsan_atomic16_compare_exchange_val __tsan_atomic16_compare_exchange_strong
        __tsan_atomic16_compare_exchange_weak;
    AtomicU32 u32: __tsan_atomic32_compare_exchange_val __tsan_atomic32_compare_exchange_strong
        __tsan_atomic32_compare_exchange_weak;
    AtomicU64 u64: __tsan_atomic64_compare_exchange_val __tsan_atomic64_compare_exchange_strong
        __tsan_atomic64_compare_exchange_weak;
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_atomic_thread_fence(_order: c_int) {
    fence(ORDER);
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_atomic_signal_fence(_order: c_int) {
    compiler_fence(ORDER);
}
