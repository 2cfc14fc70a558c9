//! An upload and a download in two streams, over the driver API.
//!
//! The driver is loaded at run time, so that this builds where there is none.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

type Handle = *mut c_void;
type Address = u64;

const RTLD_NOW: c_int = 2;
const NON_BLOCKING: c_uint = 1;
const LENGTH: usize = 4096;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> Handle;
    fn dlsym(library: Handle, name: *const c_char) -> Handle;
}

/// Calls a function of the driver; `$types` are those of its parameters.
macro_rules! call {
    ($name:literal, ($($types:ty),*), $($arguments:expr),*) => {{
        let function = symbol($name);
        // SAFETY: the driver's documentation gives the function this type.
        let function: unsafe extern "C" fn($($types),*) -> c_int =
            unsafe { std::mem::transmute(function) };
        // SAFETY: every pointer lives through the call, and asynchronous ones until the streams
        // have been waited for.
        let result = unsafe { function($($arguments),*) };
        assert_eq!(result, 0, "{:?}", $name);
    }};
}

fn symbol(name: &CStr) -> Handle {
    // SAFETY: the names end in NUL.
    let function = unsafe {
        let library = dlopen(c"libcuda.so.1".as_ptr(), RTLD_NOW);
        assert!(!library.is_null(), "no driver");
        dlsym(library, name.as_ptr())
    };
    assert!(!function.is_null(), "{name:?}");
    function
}

fn stream() -> Handle {
    let mut stream = null_mut();
    call!(c"cuStreamCreate", (*mut Handle, c_uint), &mut stream, NON_BLOCKING);
    stream
}

fn pinned() -> Handle {
    let mut memory = null_mut();
    call!(c"cuMemAllocHost_v2", (*mut Handle, usize), &mut memory, LENGTH);
    memory
}

/// Uploads in one stream and downloads in another one, which waits for the first, or does not.
pub fn round_trip(with_wait: bool) {
    let (mut device, mut context, mut memory, mut event) = (0, null_mut(), 0, null_mut());
    call!(c"cuInit", (c_uint), 0);
    call!(c"cuDeviceGet", (*mut c_int, c_int), &mut device, 0);
    call!(c"cuDevicePrimaryCtxRetain", (*mut Handle, c_int), &mut context, device);
    call!(c"cuCtxSetCurrent", (Handle), context);
    let (upload, download) = (stream(), stream());
    let (source, destination) = (pinned(), pinned());
    call!(c"cuMemAlloc_v2", (*mut Address, usize), &mut memory, LENGTH);
    call!(c"cuEventCreate", (*mut Handle, c_uint), &mut event, 0);
    call!(
        c"cuMemcpyHtoDAsync_v2",
        (Address, Handle, usize, Handle),
        memory, source, LENGTH, upload
    );
    if with_wait {
        call!(c"cuEventRecord", (Handle, Handle), event, upload);
        call!(c"cuStreamWaitEvent", (Handle, Handle, c_uint), download, event, 0);
    }
    call!(
        c"cuMemcpyDtoHAsync_v2",
        (Handle, Address, usize, Handle),
        destination, memory, LENGTH, download
    );
    for stream in [upload, download] {
        call!(c"cuStreamSynchronize", (Handle), stream);
    }
}
