//! Calls that are newer than the bindings, looked up as programs of the world do it.

use std::ffi::{CString, c_void};
use std::ptr;

use cudarc::driver::sys::{self, CUresult};

use crate::{DeviceRange, Event, Failure, Gpu, PinnedBuffer, Stream};

/// Looks up a call of the driver as it was in `version` (1000 * major + 10 * minor).
///
/// # Safety
/// `F` must be the type of the call in that version.
unsafe fn entry<F: Copy>(name: &str, version: i32) -> Result<F, Failure> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let name = CString::new(name).expect("no NUL in a name");
    let mut address = ptr::null_mut();
    // SAFETY: the out-pointer is valid, the name ends with NUL.
    unsafe {
        sys::cuGetProcAddress_v2(name.as_ptr(), &raw mut address, version, 0, ptr::null_mut())
            .result()?;
    }
    assert!(!address.is_null(), "a look-up that succeeded has an address");
    // SAFETY: the caller says so; the sizes were compared.
    Ok(unsafe { ptr::from_ref(&address).cast::<F>().read() })
}

type ContextEvent = unsafe extern "C" fn(sys::CUcontext, sys::CUevent) -> CUresult;

impl Gpu {
    /// `cuCtxRecordEvent` of CUDA 12.5: all work of the context so far.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn record_event(self, event: &Event) -> Result<(), Failure> {
        // SAFETY: the type is that of the driver API's page.
        let call = unsafe { entry::<ContextEvent>("cuCtxRecordEvent", 12050) }?;
        // SAFETY: context and event are alive.
        Ok(unsafe { call(self.raw(), event.raw()) }.result()?)
    }

    /// `cuCtxWaitEvent` of CUDA 12.5: all later work of the context waits.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn wait_event(self, event: &Event) -> Result<(), Failure> {
        // SAFETY: the type is that of the driver API's page.
        let call = unsafe { entry::<ContextEvent>("cuCtxWaitEvent", 12050) }?;
        // SAFETY: context and event are alive.
        Ok(unsafe { call(self.raw(), event.raw()) }.result()?)
    }
}

/// When a copy of a batch reads its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceAccess {
    /// In stream order.
    Stream = 1,
    /// During the call.
    DuringCall = 2,
}

/// `CUmemcpyAttributes` of CUDA 12.8: the source's access order, hints of both locations, flags.
#[repr(C)]
#[derive(Debug)]
struct Attributes {
    source_access: u32,
    source_hint: [i32; 2],
    target_hint: [i32; 2],
    flags: u32,
}

type Batch = unsafe extern "C" fn(
    *mut u64,
    *mut u64,
    *mut usize,
    usize,
    *mut Attributes,
    *mut usize,
    usize,
    *mut usize,
    sys::CUstream,
) -> CUresult;

/// `cuMemcpyBatchAsync` of CUDA 12.8 inside device memory: copies without an order among
/// themselves. Each pair is a target and a source of one length.
///
/// # Errors
/// [`Failure::Driver`].
pub fn copy_batch(
    copies: &[(DeviceRange, DeviceRange)],
    access: SourceAccess,
    stream: &Stream,
) -> Result<(), Failure> {
    let pairs = copies.iter().map(|(to, from)| (to.address(), from.address(), to.len()));
    batch(pairs.collect(), access, stream)
}

/// The same from page-locked memory to the device.
///
/// # Errors
/// [`Failure::Driver`].
pub fn copy_batch_to_device(
    target: DeviceRange,
    source: &PinnedBuffer,
    access: SourceAccess,
    stream: &Stream,
) -> Result<(), Failure> {
    batch(vec![(target.address(), source.address(), target.len())], access, stream)
}

fn batch(
    copies: Vec<(u64, u64, usize)>,
    access: SourceAccess,
    stream: &Stream,
) -> Result<(), Failure> {
    let mut targets: Vec<u64> = copies.iter().map(|copy| copy.0).collect();
    let mut sources: Vec<u64> = copies.iter().map(|copy| copy.1).collect();
    let mut sizes: Vec<usize> = copies.iter().map(|copy| copy.2).collect();
    let mut attributes = Attributes {
        source_access: access as u32,
        source_hint: [0; 2],
        target_hint: [0; 2],
        flags: 0,
    };
    let (mut first, mut failed) = (0, 0);
    // SAFETY: the type is that of the driver API's page.
    let call = unsafe { entry::<Batch>("cuMemcpyBatchAsync", 12080) }?;
    // SAFETY: every array has as many elements as the call is told, and lives until it returns.
    let status = unsafe {
        call(
            targets.as_mut_ptr(),
            sources.as_mut_ptr(),
            sizes.as_mut_ptr(),
            copies.len(),
            &raw mut attributes,
            &raw mut first,
            1,
            &raw mut failed,
            stream.raw(),
        )
    };
    Ok(status.result()?)
}
