//! NVIDIA's driver functions that the library calls for its own work. The runtime gives the driver's
//! own ones, so that nothing done here becomes a record.
//!
//! Source of the signatures: CUDA Driver API.

use core::ffi::{c_char, c_void};
use std::cell::Cell;
use std::sync::OnceLock;

use crate::runtime;

/// A handle of the driver.
pub(crate) type Handle = *mut c_void;

/// A result of the driver; 0 is success.
pub(crate) type DriverResult = i32;

pub(crate) const NOT_READY: DriverResult = 600;
/// `CU_STREAM_NON_BLOCKING`: without order towards the legacy default stream.
pub(crate) const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DEFAULT`: an event that knows its time.
pub(crate) const WITH_TIMING: u32 = 0;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
pub(crate) const MAPPED: u32 = 3;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
pub(crate) const RELAXED: u32 = 2;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `..._MINOR`.
pub(crate) const CAPABILITY: [i32; 2] = [75, 76];

macro_rules! functions {
    ($(#[$about:meta])* $table:ident: $($field:ident = $name:literal: fn($($arg:ty),*);)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $table {
            $(pub(crate) $field: unsafe extern "C" fn($($arg),*) -> DriverResult,)*
        }

        impl $table {
            fn find() -> Option<Self> {
                Some(Self {
                    $($field: {
                        let address = runtime::driver_function($name)?;
                        // SAFETY: the driver's function of this name has this type.
                        unsafe {
                            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> DriverResult>(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    /// The driver's functions.
    Driver:
    ctx_get_current = c"cuCtxGetCurrent": fn(*mut Handle);
    ctx_set_current = c"cuCtxSetCurrent": fn(Handle);
    ctx_get_device = c"cuCtxGetDevice": fn(*mut i32);
    device_get_attribute = c"cuDeviceGetAttribute": fn(*mut i32, i32, i32);
    mem_get_info = c"cuMemGetInfo_v2": fn(*mut usize, *mut usize);
    mem_alloc = c"cuMemAlloc_v2": fn(*mut u64, usize);
    mem_host_alloc = c"cuMemHostAlloc": fn(*mut *mut c_void, usize, u32);
    memset_d8_async = c"cuMemsetD8Async": fn(u64, u8, usize, Handle);
    memcpy_to_device_async = c"cuMemcpyHtoDAsync_v2": fn(u64, *const c_void, usize, Handle);
    memcpy_to_host_async = c"cuMemcpyDtoHAsync_v2": fn(*mut c_void, u64, usize, Handle);
    stream_create_with_priority = c"cuStreamCreateWithPriority": fn(*mut Handle, u32, i32);
    ctx_get_stream_priority_range = c"cuCtxGetStreamPriorityRange": fn(*mut i32, *mut i32);
    stream_synchronize = c"cuStreamSynchronize": fn(Handle);
    event_create = c"cuEventCreate": fn(*mut Handle, u32);
    event_record = c"cuEventRecord": fn(Handle, Handle);
    event_query = c"cuEventQuery": fn(Handle);
    module_load_data = c"cuModuleLoadData": fn(*mut Handle, *const c_void);
    module_get_function = c"cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char);
    launch_kernel = c"cuLaunchKernel": fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void);
    exchange_capture_mode = c"cuThreadExchangeStreamCaptureMode": fn(*mut u32);
}

functions! {
    /// The functions that twins need; `cuFuncGetName` is there since CUDA 12.3.
    TwinDriver:
    func_get_module = c"cuFuncGetModule": fn(*mut Handle, Handle);
    func_get_name = c"cuFuncGetName": fn(*mut *const c_char, Handle);
    func_get_attribute = c"cuFuncGetAttribute": fn(*mut i32, i32, Handle);
    func_set_attribute = c"cuFuncSetAttribute": fn(Handle, i32, i32);
    kernel_get_function = c"cuKernelGetFunction": fn(*mut Handle, Handle);
    stream_is_capturing = c"cuStreamIsCapturing": fn(Handle, *mut i32);
    event_elapsed_time = c"cuEventElapsedTime": fn(*mut f32, Handle, Handle);
}

/// The functions that twins need, `None` where the driver lacks one.
pub(crate) fn twin_driver() -> Option<&'static TwinDriver> {
    static DRIVER: OnceLock<Option<TwinDriver>> = OnceLock::new();
    DRIVER.get_or_init(TwinDriver::find).as_ref()
}

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the driver works for this library on the calling thread: its callbacks are about the
/// library's own modules and launches.
pub(crate) fn is_own() -> bool {
    OWN.get()
}

/// Everything that the calling thread does from now on is the library's own work.
pub(crate) fn own_thread() {
    OWN.set(true);
}

/// The functions, `None` where the driver or the runtime lacks one.
pub(crate) fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(Driver::find).as_ref()
}

/// The result of a call as an error that names the function.
pub(crate) fn checked(what: &str, result: DriverResult) -> Result<(), String> {
    if result == 0 { Ok(()) } else { Err(format!("{what} failed with CUDA error {result}")) }
}

impl Driver {
    /// The calling thread's context, null where there is none.
    pub(crate) fn current(&self) -> Handle {
        let mut context = core::ptr::null_mut();
        // SAFETY: a writable result.
        unsafe { (self.ctx_get_current)(&mut context) };
        context
    }

    /// Runs calls of the library's own, also such that a capture of another stream would forbid to
    /// this thread (CUDA Driver API, `cuThreadExchangeStreamCaptureMode`).
    pub(crate) fn own<T>(&self, run: impl FnOnce() -> T) -> T {
        let mut mode = RELAXED;
        OWN.set(true);
        // SAFETY: a writable mode, exchanged for the thread's own.
        unsafe { (self.exchange_capture_mode)(&mut mode) };
        let result = run();
        OWN.set(false);
        // SAFETY: as above; the thread's own mode goes back.
        unsafe { (self.exchange_capture_mode)(&mut mode) };
        result
    }
}
