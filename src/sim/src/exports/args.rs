//! Argument types of the C interface: pointers that are checked for null before they are used.
//!
//! A pointer that is neither null nor valid is the program's error, as with any C interface.

use std::ffi::{CStr, c_char};

use crate::errors::{CuError, Outcome};

/// Where a call puts a result.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T: Copy> Out<T> {
    pub(super) const NULL: Out<T> = Out(std::ptr::null_mut());

    /// The value that the program put there before the call.
    pub(super) fn get(self) -> Outcome<T> {
        In(self.0.cast_const()).at(0)
    }

    /// Refuses a null pointer before anything is done.
    pub(super) fn check(self) -> Outcome {
        if self.0.is_null() { Err(CuError::INVALID_VALUE) } else { Ok(()) }
    }

    pub(super) fn set(self, value: T) -> Outcome {
        self.check()?;
        self.set_if_wanted(value);
        Ok(())
    }

    /// A pointer that the program passed as a number.
    pub(super) fn from_address(address: u64) -> Out<T> {
        Out(address as *mut T)
    }

    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Where it points, as a number.
    pub(super) fn address(self) -> u64 {
        self.0 as u64
    }

    /// For results that the program may leave out.
    pub(super) fn set_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, and the interface has the program pass room for one value.
            unsafe { self.0.write_unaligned(value) };
        }
    }
}

/// A value that a call reads.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    pub(super) const NULL: In<T> = In(std::ptr::null());

    /// A pointer that the program passed as a number.
    pub(super) fn from_address(address: u64) -> In<T> {
        In(address as *const T)
    }

    pub(super) fn get(self) -> Outcome<T> {
        self.at(0)
    }

    /// The value at `index` of an array that the program says is longer.
    pub(super) fn at(self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(CuError::INVALID_VALUE);
        }
        // SAFETY: not null, and the interface has the program pass an array of at least the
        // length that it gave, which callers keep to.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A NUL-terminated string.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Text(*const c_char);

impl Text {
    /// The string; a name that is not UTF-8 names nothing.
    pub(super) fn get(self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(CuError::INVALID_VALUE);
        }
        // SAFETY: not null, and the interface has the program pass a terminated string.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| CuError::NOT_FOUND)
    }
}

/// Room for an array of results.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct OutList<T>(*mut T);

impl<T> Clone for OutList<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OutList<T> {}

impl<T: Copy> OutList<T> {
    pub(super) const NULL: OutList<T> = OutList(std::ptr::null_mut());

    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Writes as many of `values` as there is room for.
    pub(super) fn fill(self, values: &[T], room: usize) -> Outcome {
        if self.0.is_null() {
            return Err(CuError::INVALID_VALUE);
        }
        for (index, value) in values.iter().take(room).enumerate() {
            // SAFETY: not null, and the interface has the program pass room for `room` values.
            unsafe { self.0.add(index).write_unaligned(*value) };
        }
        Ok(())
    }
}

/// Writes a string and its NUL, cut to the room there is.
pub(super) fn put_text(buffer: OutList<u8>, room: i32, text: &str) -> Outcome {
    let room = usize::try_from(room).ok().filter(|room| *room > 0);
    let room = room.ok_or(CuError::INVALID_VALUE)?;
    let mut bytes = text.as_bytes()[..text.len().min(room - 1)].to_vec();
    bytes.push(0);
    buffer.fill(&bytes, room)
}
