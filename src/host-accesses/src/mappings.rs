//! The program changes mappings: fences there fall first, since the protection is the program's.

use core::ffi::{c_int, c_void};
use core::mem::transmute;

use crate::real;
use crate::runtime::drop_fences;

macro_rules! changes {
    ($($name:ident($($arg:ident: $kind:ty),*) $for_good:literal;)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(start: *mut c_void, len: usize $(, $arg: $kind)*) -> c_int {
            type Function = unsafe extern "C-unwind" fn(*mut c_void, usize $(, $kind)*) -> c_int;
            drop_fences(start as u64, len as u64, $for_good);
            // SAFETY: the C library's function of this name, with the program's arguments.
            unsafe {
                let real: Function = transmute(real!(stringify!($name)));
                real(start, len $(, $arg)*)
            }
        }
    )*};
}

changes! {
    munmap() true;
    mprotect(protection: c_int) true;
    madvise(advice: c_int) false;
    mlock() false;
    mlock2(flags: u32) false;
}

/// # Safety
/// As the C library documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn mremap(
    start: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    type Function =
        unsafe extern "C-unwind" fn(*mut c_void, usize, usize, c_int, ...) -> *mut c_void;
    drop_fences(start as u64, old as u64, true);
    // SAFETY: the C library's function of this name, with the program's arguments; a fifth one that
    // it did not give is not looked at.
    unsafe {
        let real: Function = transmute(real!("mremap"));
        real(start, old, new, flags, to)
    }
}
