//! The C library's buffered streams, which call the kernel inside with the program's own buffer.

use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;

use crate::real;
use crate::runtime::{Buffer, is_any_watched};

macro_rules! items {
    ($($name:ident $writes:literal;)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            buffer: *mut c_void,
            size: usize,
            count: usize,
            stream: *mut c_void,
        ) -> usize {
            type Function = unsafe extern "C-unwind" fn(*mut c_void, usize, usize, *mut c_void) -> usize;
            let opened = Buffer::open(buffer, size.saturating_mul(count), $writes);
            // SAFETY: the C library's function of this name, with the program's arguments.
            let result = unsafe {
                let real: Function = transmute(real!(stringify!($name)));
                real(buffer, size, count, stream)
            };
            opened.used(result.saturating_mul(size) as u64);
            result
        }
    )*};
}

items! {
    fread true;
    fread_unlocked true;
    fwrite false;
    fwrite_unlocked false;
}

/// # Safety
/// As the C library documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn fgets(
    buffer: *mut c_char,
    size: c_int,
    stream: *mut c_void,
) -> *mut c_char {
    type Function = unsafe extern "C-unwind" fn(*mut c_char, c_int, *mut c_void) -> *mut c_char;
    let opened = Buffer::open(buffer.cast(), size.max(0) as usize, true);
    // SAFETY: the C library's function of this name, with the program's arguments; what it answers is
    // the buffer with a string in it.
    unsafe {
        let real: Function = transmute(real!("fgets"));
        let result = real(buffer, size, stream);
        opened.used(if result.is_null() { 0 } else { libc::strlen(result) as u64 + 1 });
        result
    }
}

/// The program's own line of `getdelim`, which may be one that it was given.
///
/// # Safety
/// Null, or pointers to a line and its size.
unsafe fn line(line: *mut *mut c_char, size: *mut usize) -> Option<Buffer> {
    // SAFETY: promised by the caller.
    unsafe {
        let (line, size) = (line.as_ref()?, size.as_ref()?);
        Some(Buffer::open(line.cast(), *size, true))
    }
}

macro_rules! lines {
    ($($name:ident($($delimiter:ident)?);)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            text: *mut *mut c_char,
            size: *mut usize,
            $($delimiter: c_int,)?
            stream: *mut c_void,
        ) -> isize {
            type Function = unsafe extern "C-unwind" fn(
                *mut *mut c_char, *mut usize, $(lines!(@ $delimiter),)? *mut c_void,
            ) -> isize;
            // SAFETY: the C library's function of this name, with the program's arguments.
            unsafe {
                let opened = line(text, size);
                let real: Function = transmute(real!(stringify!($name)));
                let result = real(text, size, $($delimiter,)? stream);
                if let Some(opened) = opened {
                    opened.used((result + 1).max(0) as u64);
                }
                result
            }
        }
    )*};
    (@ $delimiter:ident) => {
        c_int
    };
}

lines! {
    getline();
    getdelim(delimiter);
    __getdelim(delimiter);
}

/// # Safety
/// As the C library documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn fputs(text: *const c_char, stream: *mut c_void) -> c_int {
    type Function = unsafe extern "C-unwind" fn(*const c_char, *mut c_void) -> c_int;
    // SAFETY: the C library's function of this name, with the program's arguments.
    unsafe {
        let opened = is_any_watched().then(|| Buffer::open(text.cast(), libc::strlen(text), false));
        let real: Function = transmute(real!("fputs"));
        let result = real(text, stream);
        if let Some(opened) = opened {
            opened.used(if result >= 0 { libc::strlen(text) as u64 } else { 0 });
        }
        result
    }
}
