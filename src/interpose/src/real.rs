//! The C library's own functions.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Finds a function of the C library by its NUL-terminated name; null where there is none.
pub type LookUp = unsafe extern "C" fn(name: *const c_char) -> *const c_void;

/// A function of the C library, looked up at its first use.
#[derive(Debug)]
pub struct Real {
    name: &'static CStr,
    look_up: LookUp,
    address: AtomicPtr<c_void>,
}

impl Real {
    /// # Panics
    /// At compile time, where `name` does not end in its only NUL.
    pub const fn new(name: &'static str, look_up: LookUp) -> Self {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else {
            panic!("a name ends in its only NUL")
        };
        Self { name, look_up, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Its address. There is always one: the program was linked with it.
    #[inline]
    pub fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.find() } else { known }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // SAFETY: a NUL-terminated name.
        let found = unsafe { (self.look_up)(self.name.as_ptr()) }.cast_mut();
        if found.is_null() {
            // SAFETY: no preconditions. There is nothing to go on with.
            unsafe { libc::abort() };
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// The address of the C library's function of this name, looked up by a [`LookUp`].
#[macro_export]
macro_rules! real {
    ($name:expr, $look_up:path) => {{
        static REAL: $crate::Real = $crate::Real::new(concat!($name, "\0"), $look_up);
        REAL.address()
    }};
}
