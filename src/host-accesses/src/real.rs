//! The C library's own functions.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

#[cfg(not(test))]
unsafe extern "C" {
    /// The runtime's; it is loaded before this library.
    fn streamsan_c_function(name: *const c_char) -> *const c_void;
}

/// # Safety
/// `name` is NUL-terminated.
#[cfg(test)]
unsafe fn streamsan_c_function(_name: *const c_char) -> *const c_void {
    ptr::null()
}

/// A function of the C library, looked up at its first use.
pub(crate) struct Real {
    name: &'static str,
    address: AtomicPtr<c_void>,
}

impl Real {
    /// `name` ends in NUL.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Its address. There is always one: the program was linked with it.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.find() } else { known }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        let found = match CStr::from_bytes_with_nul(self.name.as_bytes()) {
            // SAFETY: a NUL-terminated name.
            Ok(name) => unsafe { streamsan_c_function(name.as_ptr()) }.cast_mut(),
            Err(_) => ptr::null_mut(),
        };
        if found.is_null() {
            // SAFETY: no preconditions. There is nothing to go on with.
            unsafe { libc::abort() };
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// The address of the C library's function of this name.
macro_rules! real {
    ($name:expr) => {{
        static REAL: $crate::real::Real = $crate::real::Real::new(concat!($name, "\0"));
        REAL.address()
    }};
}
pub(crate) use real;
