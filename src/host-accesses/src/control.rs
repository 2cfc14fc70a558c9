//! Calls that describe or control files, sockets and devices, with a structure of the program's that
//! the kernel reads or fills. What is put there is not told of; the call must not fail.

use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use core::mem::transmute;

use crate::real;
use crate::runtime::Buffer;

/// Bytes that a control call uses of its argument where its number does not tell.
const UNTOLD: usize = 4096;

/// Opens the argument of `ioctl`: its number tells direction and bytes (`asm-generic/ioctl.h`), for
/// older calls it does not.
pub(crate) fn open_argument(number: u64, argument: *mut c_void) {
    let bytes = ((number >> 16) & 0x3fff) as usize;
    // Many arguments are plain numbers.
    if argument as usize > UNTOLD {
        Buffer::open_now(argument, if bytes == 0 { UNTOLD } else { bytes }, true);
    }
}

/// # Safety
/// As the C library documents. What the program has not given is passed on and not looked at.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn ioctl(file: c_int, number: c_ulong, argument: *mut c_void) -> c_int {
    type Function = unsafe extern "C-unwind" fn(c_int, c_ulong, ...) -> c_int;
    open_argument(number, argument);
    // SAFETY: the C library's function of this name, with the program's arguments.
    unsafe {
        let real: Function = transmute(real!("ioctl"));
        real(file, number, argument)
    }
}

/// # Safety
/// `size` is null or points to the bytes that `value` has.
pub(crate) unsafe fn open_option(value: *mut c_void, size: *mut c_uint) {
    // SAFETY: promised by the caller.
    if let Some(size) = unsafe { size.as_ref() } {
        Buffer::open_now(value, *size as usize, true);
        Buffer::open_now(core::ptr::from_ref(size).cast(), size_of::<c_uint>(), true);
    }
}

/// # Safety
/// As the C library documents.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn getsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    size: *mut c_uint,
) -> c_int {
    type Function =
        unsafe extern "C-unwind" fn(c_int, c_int, c_int, *mut c_void, *mut c_uint) -> c_int;
    // SAFETY: the C library's function of this name, with the program's arguments.
    unsafe {
        open_option(value, size);
        let real: Function = transmute(real!("getsockopt"));
        real(socket, level, name, value, size)
    }
}

/// Calls that fill a structure, or bytes, and tell by their result whether they did.
macro_rules! fills {
    ($($name:ident($($before:ident: $kind:ty,)* [$buffer:ident, $len:expr] $(, $after:ident: $other:ty)*) -> $result:ty;)*) => {$(
        /// # Safety
        /// As the C library documents.
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            $($before: $kind,)* $buffer: *mut c_void $(, $after: $other)*
        ) -> $result {
            type Function = unsafe extern "C-unwind" fn($($kind,)* *mut c_void $(, $other)*) -> $result;
            let opened = Buffer::open($buffer, $len, true);
            // SAFETY: the C library's function of this name, with the program's arguments.
            let result = unsafe {
                let real: Function = transmute(real!(stringify!($name)));
                real($($before,)* $buffer $(, $after)*)
            };
            opened.closed();
            result
        }
    )*};
}

fills! {
    fstat(file: c_int, [buffer, size_of::<libc::stat>()]) -> c_int;
    fstat64(file: c_int, [buffer, size_of::<libc::stat>()]) -> c_int;
    stat(path: *const c_char, [buffer, size_of::<libc::stat>()]) -> c_int;
    stat64(path: *const c_char, [buffer, size_of::<libc::stat>()]) -> c_int;
    lstat(path: *const c_char, [buffer, size_of::<libc::stat>()]) -> c_int;
    lstat64(path: *const c_char, [buffer, size_of::<libc::stat>()]) -> c_int;
    fstatat(folder: c_int, path: *const c_char, [buffer, size_of::<libc::stat>()], flags: c_int) -> c_int;
    fstatat64(folder: c_int, path: *const c_char, [buffer, size_of::<libc::stat>()], flags: c_int) -> c_int;
    statx(folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, [buffer, size_of::<libc::statx>()]) -> c_int;
    statfs(path: *const c_char, [buffer, size_of::<libc::statfs>()]) -> c_int;
    fstatfs(file: c_int, [buffer, size_of::<libc::statfs>()]) -> c_int;
    readlink(path: *const c_char, [buffer, len], len: usize) -> isize;
    readlinkat(folder: c_int, path: *const c_char, [buffer, len], len: usize) -> isize;
    getcwd([buffer, len], len: usize) -> *mut c_char;
}
