//! Device 0, its primary context, and a second context beside it.

use std::ptr;

use cudarc::driver::{result, sys};

use crate::Failure;

/// Device 0 with its primary context current on the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: a context handle may be made current on any host thread.
unsafe impl Send for Gpu {}
// SAFETY: as above; the handle is never dereferenced on the host.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// Initialises the driver, retains the primary context of device 0 and makes it current.
    ///
    /// # Errors
    /// [`Failure::Driver`] when there is no usable device.
    pub fn open() -> Result<Self, Failure> {
        result::init()?;
        let device = result::device::get(0)?;
        // SAFETY: the device comes from the driver.
        let context = unsafe { result::primary_ctx::retain(device) }?;
        let gpu = Self { device, context };
        gpu.make_current()?;
        Ok(gpu)
    }

    pub(crate) fn raw(self) -> sys::CUcontext {
        self.context
    }

    /// Makes the primary context current on the calling thread.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn make_current(self) -> Result<(), Failure> {
        // SAFETY: the context is retained until `close`.
        Ok(unsafe { result::ctx::set_current(self.context) }?)
    }

    /// Waits for all work of the *current* context, which is this one unless another was pushed.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn synchronize_current_context(self) -> Result<(), Failure> {
        Ok(result::ctx::synchronize()?)
    }

    /// The least and the greatest stream priority, as the driver numbers them.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn stream_priorities(self) -> Result<(i32, i32), Failure> {
        Ok(result::stream::get_priority_range()?)
    }

    /// Releases the primary context.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn close(self) -> Result<(), Failure> {
        // SAFETY: retained once by `open`, released once here.
        Ok(unsafe { result::primary_ctx::release(self.device) }?)
    }
}

/// A context beside the primary one, on the same device.
#[derive(Debug)]
pub struct SecondContext(sys::CUcontext);

impl SecondContext {
    /// Creates a context. The driver pushes a new context; it is popped again at once, so that the
    /// program itself shows where it becomes current.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn create(gpu: Gpu) -> Result<Self, Failure> {
        let mut context = ptr::null_mut();
        // SAFETY: the out-pointer is valid and the device comes from the driver.
        unsafe { sys::cuCtxCreate_v2(&raw mut context, 0, gpu.device) }.result()?;
        Self::pop()?;
        Ok(Self(context))
    }

    /// Makes this context current on top of the calling thread's stack.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn push(&self) -> Result<(), Failure> {
        // SAFETY: the context lives until `destroy` takes it.
        Ok(unsafe { sys::cuCtxPushCurrent_v2(self.0) }.result()?)
    }

    /// Takes the topmost context off the calling thread's stack.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn pop() -> Result<(), Failure> {
        let mut popped = ptr::null_mut();
        // SAFETY: the out-pointer is valid.
        Ok(unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) }.result()?)
    }

    /// Destroys the context.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn destroy(self) -> Result<(), Failure> {
        // SAFETY: created by `create`, and taken here, so destroyed once.
        Ok(unsafe { sys::cuCtxDestroy_v2(self.0) }.result()?)
    }
}
