//! The example program of `streamsan demo`: an image is uploaded, brightened and downloaded, each
//! in a stream of its own, with one wait forgotten.
//!
//! ```text
//! upload   : pixels ──▶ inbox          (record `uploaded`)
//! compute  :            inbox ──▶ image, brighten image      (record `brightened`)
//! download :                             image ──▶ result
//! ```
//!
//! A stream runs its own work in order; two streams run theirs in any order unless an event says
//! otherwise. `download` waits for `brightened`. `compute` ought to wait for `uploaded`: in the
//! clean variant it does. Without that wait, `compute` may take the image out of the inbox before
//! the upload has put it there. Most runs look right, because an upload that starts first mostly
//! ends first; nothing promises it.
//!
//! This is an ordinary CUDA program: it knows nothing of streamsan, and runs on a real driver as
//! on the simulated one. It calls the driver API directly (cudarc's `result` and `sys`), because
//! cudarc's safe API would add the missing wait by itself. Deliberately absent: output, and any
//! dependence of the exit code on how the race ends.

mod probe;
mod ways;

pub use probe::probe;
pub use ways::{CALLED, Way, call_by};

use std::ffi::{CString, c_void};
use std::ptr::NonNull;

use cudarc::driver::result::stream::StreamKind;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

/// Pixels in the image, one 32-bit word each.
const PIXELS: usize = 1024;
const IMAGE_BYTES: usize = PIXELS * size_of::<u32>();
/// Threads in a block of the kernel.
const BLOCK: usize = 128;
/// The amount that the kernel adds to every pixel.
const AMOUNT: u32 = 40;

/// Runs the pipeline once. `clean` adds the wait whose absence is the race.
///
/// # Errors
/// A sentence: the driver call that failed, or, in the clean variant, a pixel that came out wrong.
pub fn run(clean: bool) -> Result<(), String> {
    let pixels = pipeline(clean).map_err(|error| format!("driver call failed: {:?}", error.0))?;
    // A racy image may hold anything; only an ordered one is worth a look.
    if clean {
        for (index, pixel) in pixels.into_iter().enumerate() {
            let expected = index as u32 + AMOUNT;
            if pixel != expected {
                return Err(format!("pixel {index} is {pixel} instead of {expected}"));
            }
        }
    }
    Ok(())
}

fn pipeline(clean: bool) -> Result<Vec<u32>, DriverError> {
    result::init()?;
    let device = result::device::get(0)?;
    // SAFETY: the device comes from the driver; released below.
    let context = unsafe { result::primary_ctx::retain(device) }?;
    // SAFETY: the context was just retained.
    unsafe { result::ctx::set_current(context) }?;

    let image = CString::new(include_str!("brighten.ptx")).expect("the PTX text holds no NUL");
    // SAFETY: the image is NUL-terminated PTX text.
    let module = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }?;
    let name = CString::new("brighten").expect("the name holds no NUL");
    // SAFETY: the module is loaded until the end of this function.
    let brighten = unsafe { result::module::get_function(module, name) }?;

    let upload = result::stream::create(StreamKind::NonBlocking)?;
    let compute = result::stream::create(StreamKind::NonBlocking)?;
    let download = result::stream::create(StreamKind::NonBlocking)?;
    let uploaded = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
    let brightened = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;

    let pixels = HostImage::alloc()?;
    let result_pixels = HostImage::alloc()?;
    pixels.write_each(|index| index as u32);
    // SAFETY: device memory, named by address only.
    let inbox = unsafe { result::malloc_sync(IMAGE_BYTES) }?;
    // SAFETY: as above.
    let image = unsafe { result::malloc_sync(IMAGE_BYTES) }?;

    // SAFETY: every handle above is alive until the end of this function, every range is as long
    // as the copy, and the host touches neither image before the context is synchronised.
    unsafe {
        sys::cuMemcpyHtoDAsync_v2(inbox, pixels.start(), IMAGE_BYTES, upload).result()?;
        result::event::record(uploaded, upload)?;

        // The one line that the racy variant forgets.
        if clean {
            wait(compute, uploaded)?;
        }
        result::memcpy_dtod_async(image, inbox, IMAGE_BYTES, compute)?;
        launch_brighten(brighten, image, compute)?;
        result::event::record(brightened, compute)?;

        wait(download, brightened)?;
        sys::cuMemcpyDtoHAsync_v2(result_pixels.start(), image, IMAGE_BYTES, download).result()?;
    }
    result::ctx::synchronize()?;
    let finished = result_pixels.read();

    // SAFETY: the context is idle, and each handle is given back once.
    unsafe {
        for event in [uploaded, brightened] {
            result::event::destroy(event)?;
        }
        for stream in [upload, compute, download] {
            result::stream::destroy(stream)?;
        }
        for buffer in [inbox, image] {
            result::free_sync(buffer)?;
        }
        for host in [pixels, result_pixels] {
            result::free_host(host.start())?;
        }
        result::module::unload(module)?;
        result::primary_ctx::release(device)?;
    }
    Ok(finished)
}

/// Makes later work of `stream` wait for what `event` captured.
///
/// # Safety
/// Both handles are alive.
unsafe fn wait(stream: sys::CUstream, event: sys::CUevent) -> Result<(), DriverError> {
    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
    // SAFETY: promised by the caller.
    unsafe { result::stream::wait_event(stream, event, flags) }
}

/// Queues the kernel on a whole image.
///
/// # Safety
/// The handles are alive and `image` has room for [`PIXELS`] words until the kernel is done.
unsafe fn launch_brighten(
    brighten: sys::CUfunction,
    mut image: sys::CUdeviceptr,
    stream: sys::CUstream,
) -> Result<(), DriverError> {
    let mut amount = AMOUNT;
    let mut count = PIXELS as u32;
    let mut parameters = [
        (&raw mut image).cast::<c_void>(),
        (&raw mut amount).cast::<c_void>(),
        (&raw mut count).cast::<c_void>(),
    ];
    let grid = ((PIXELS / BLOCK) as u32, 1, 1);
    // SAFETY: the parameters are those of the kernel; the rest is promised by the caller.
    unsafe {
        result::launch_kernel(brighten, grid, (BLOCK as u32, 1, 1), 0, stream, &mut parameters)
    }
}

/// An image in page-locked host memory, reached through its pointer only: no reference is made to
/// words that a copy may be changing.
struct HostImage(NonNull<u32>);

impl HostImage {
    fn alloc() -> Result<Self, DriverError> {
        // SAFETY: the size is not zero; nothing is read before it is written.
        let start = unsafe { result::malloc_host(IMAGE_BYTES, 0) }?.cast::<u32>();
        let image = Self(NonNull::new(start).expect("an allocation that succeeded has an address"));
        image.write_each(|_| 0);
        Ok(image)
    }

    fn start(&self) -> *mut c_void {
        self.0.as_ptr().cast::<c_void>()
    }

    fn write_each(&self, pixel: impl Fn(usize) -> u32) {
        for index in 0..PIXELS {
            // SAFETY: inside the allocation.
            unsafe { self.0.add(index).write_volatile(pixel(index)) };
        }
    }

    fn read(&self) -> Vec<u32> {
        // SAFETY: inside the allocation, every word of which `alloc` has written.
        (0..PIXELS).map(|index| unsafe { self.0.add(index).read_volatile() }).collect()
    }
}

/// This file, for a report that quotes its lines where no source tree is.
pub const SOURCE: &str = include_str!("lib.rs");

/// Where this file lies in the source tree; paths of debug information end with it.
pub const SOURCE_PATH: &str = "src/demo/src/lib.rs";
