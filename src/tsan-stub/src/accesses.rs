//! Plain loads and stores, ranges, and what else the compiler calls.

use core::ffi::{c_int, c_void};

use crate::view::{Mode, touch, touch_range};

macro_rules! accesses {
    ($($mode:ident $bytes:literal: $($name:ident)+;)*) => {$($(
        #[unsafe(no_mangle)]
        extern "C" fn $name(address: usize) {
            touch(address, $bytes, Mode::$mode);
        }
    )+)*};
}

accesses! {
    Read 1: __tsan_read1 __tsan_volatile_read1;
    Read 2: __tsan_read2 __tsan_unaligned_read2 __tsan_volatile_read2
        __tsan_unaligned_volatile_read2;
    Read 4: __tsan_read4 __tsan_unaligned_read4 __tsan_volatile_read4
        __tsan_unaligned_volatile_read4;
    Read 8: __tsan_read8 __tsan_unaligned_read8 __tsan_volatile_read8
        __tsan_unaligned_volatile_read8 __tsan_vptr_read;
    Read 16: __tsan_read16 __tsan_unaligned_read16 __tsan_volatile_read16
        __tsan_unaligned_volatile_read16;
    Write 1: __tsan_write1 __tsan_volatile_write1;
    Write 2: __tsan_write2 __tsan_unaligned_write2 __tsan_volatile_write2
        __tsan_unaligned_volatile_write2;
    Write 4: __tsan_write4 __tsan_unaligned_write4 __tsan_volatile_write4
        __tsan_unaligned_volatile_write4;
    Write 8: __tsan_write8 __tsan_unaligned_write8 __tsan_volatile_write8
        __tsan_unaligned_volatile_write8;
    Write 16: __tsan_write16 __tsan_unaligned_write16 __tsan_volatile_write16
        __tsan_unaligned_volatile_write16;
}

macro_rules! read_and_write {
    ($($bytes:literal: $($name:ident)+;)*) => {$($(
        #[unsafe(no_mangle)]
        extern "C" fn $name(address: usize) {
            touch(address, $bytes, Mode::Read);
            touch(address, $bytes, Mode::Write);
        }
    )+)*};
}

read_and_write! {
    1: __tsan_read_write1;
    2: __tsan_read_write2 __tsan_unaligned_read_write2;
    4: __tsan_read_write4 __tsan_unaligned_read_write4;
    8: __tsan_read_write8 __tsan_unaligned_read_write8;
    16: __tsan_read_write16 __tsan_unaligned_read_write16;
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_vptr_update(address: usize, _value: usize) {
    touch(address, 8, Mode::Write);
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_read_range(address: usize, bytes: usize) {
    touch_range(address, bytes as u64, Mode::Read);
}

#[unsafe(no_mangle)]
extern "C" fn __tsan_write_range(address: usize, bytes: usize) {
    touch_range(address, bytes as u64, Mode::Write);
}

/// # Safety
/// As `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __tsan_memcpy(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    touch_range(from as usize, bytes as u64, Mode::Read);
    touch_range(to as usize, bytes as u64, Mode::Write);
    // SAFETY: passed on to the caller.
    unsafe { libc::memcpy(to, from, bytes) }
}

/// # Safety
/// As `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __tsan_memmove(
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> *mut c_void {
    touch_range(from as usize, bytes as u64, Mode::Read);
    touch_range(to as usize, bytes as u64, Mode::Write);
    // SAFETY: passed on to the caller.
    unsafe { libc::memmove(to, from, bytes) }
}

/// # Safety
/// As `memset`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __tsan_memset(to: *mut c_void, value: c_int, bytes: usize) -> *mut c_void {
    touch_range(to as usize, bytes as u64, Mode::Write);
    // SAFETY: passed on to the caller.
    unsafe { libc::memset(to, value, bytes) }
}

macro_rules! nothing {
    ($($name:ident($($arg:ident),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: usize),*) {
            $(let _ = $arg;)*
        }
    )*};
}

// Stack traces, and what programs tell ThreadSanitizer of their own locks: host threads are not
// looked at here.
nothing! {
    __tsan_func_entry(caller);
    __tsan_func_exit();
    __tsan_ignore_thread_begin();
    __tsan_ignore_thread_end();
    __tsan_acquire(address);
    __tsan_release(address);
    __tsan_mutex_create(address, flags);
    __tsan_mutex_destroy(address, flags);
    __tsan_mutex_pre_lock(address, flags);
    __tsan_mutex_post_lock(address, flags, recursion);
    __tsan_mutex_post_unlock(address, flags);
    __tsan_mutex_pre_signal(address, flags);
    __tsan_mutex_post_signal(address, flags);
    __tsan_mutex_pre_divert(address, flags);
    __tsan_mutex_post_divert(address, flags);
}

/// Answers how deeply the mutex was locked by the calling thread.
#[unsafe(no_mangle)]
extern "C" fn __tsan_mutex_pre_unlock(_address: usize, _flags: u32) -> i32 {
    1
}
