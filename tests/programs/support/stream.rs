//! Streams: creation, order between them, host functions.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::result::stream::StreamKind;
use cudarc::driver::{result, sys};

use crate::{Event, Failure};

/// A stream handle, one of the two special handles included.
#[derive(Debug)]
pub struct Stream(sys::CUstream);

// SAFETY: the driver API takes stream handles from any host thread.
unsafe impl Send for Stream {}
// SAFETY: as above; the handle is never dereferenced on the host.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that synchronises with the legacy default stream.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn blocking() -> Result<Self, Failure> {
        Ok(Self(result::stream::create(StreamKind::Default)?))
    }

    /// A stream that does not synchronise with the legacy default stream.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn non_blocking() -> Result<Self, Failure> {
        Ok(Self(result::stream::create(StreamKind::NonBlocking)?))
    }

    /// A non-blocking stream with a priority.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn with_priority(priority: i32) -> Result<Self, Failure> {
        Ok(Self(result::stream::create_with_priority(StreamKind::NonBlocking, priority)?))
    }

    /// Handle 0: the legacy default stream of whichever context is current at the call.
    pub fn legacy() -> Self {
        Self(ptr::null_mut())
    }

    /// Handle 2 (`CU_STREAM_PER_THREAD`): the calling thread's own default stream.
    pub fn per_thread() -> Self {
        Self(ptr::without_provenance_mut(2))
    }

    pub(crate) fn raw(&self) -> sys::CUstream {
        self.0
    }

    /// Makes later work of this stream wait for `event` as it stands now.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn wait(&self, event: &Event) -> Result<(), Failure> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both handles come from the driver and are alive.
        Ok(unsafe { result::stream::wait_event(self.0, event.raw(), flags) }?)
    }

    /// Blocks the host until the stream is idle.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: the handle comes from the driver and is alive.
        Ok(unsafe { result::stream::synchronize(self.0) }?)
    }

    /// Queues a host function. It may not call the driver (CUDA forbids it).
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn host_function(&self, function: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        // Twice boxed: a thin pointer is all that a host function is given.
        let boxed: Box<Box<dyn FnOnce() + Send>> = Box::new(Box::new(function));
        let argument = Box::into_raw(boxed).cast::<c_void>();
        // SAFETY: the stream is alive; the argument is owned by the queued call from here on.
        Ok(unsafe { result::stream::launch_host_function(self.0, call_once, argument) }?)
    }

    /// Destroys the stream; its pending work goes on.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn destroy(self) -> Result<(), Failure> {
        // SAFETY: a created handle, taken here, so destroyed once.
        Ok(unsafe { result::stream::destroy(self.0) }?)
    }
}

unsafe extern "C" fn call_once(argument: *mut c_void) {
    // SAFETY: `host_function` made this box, and the driver calls a host function once.
    let function = unsafe { Box::from_raw(argument.cast::<Box<dyn FnOnce() + Send>>()) };
    function();
}
