//! Events: record, wait on the host, ask, measure.

use cudarc::driver::{result, sys};

use crate::{Failure, Stream};

/// An event handle.
#[derive(Debug)]
pub struct Event(sys::CUevent);

// SAFETY: the driver API takes event handles from any host thread.
unsafe impl Send for Event {}
// SAFETY: as above; the handle is never dereferenced on the host.
unsafe impl Sync for Event {}

impl Event {
    /// An event for ordering only.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn create() -> Result<Self, Failure> {
        Ok(Self(result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?))
    }

    /// An event that carries a time.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn create_timed() -> Result<Self, Failure> {
        Ok(Self(result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?))
    }

    pub(crate) fn raw(&self) -> sys::CUevent {
        self.0
    }

    /// Captures the work that `stream` holds now.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn record(&self, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: both handles come from the driver and are alive.
        Ok(unsafe { result::event::record(self.0, stream.raw()) }?)
    }

    /// Blocks the host until the captured work is done.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: the handle comes from the driver and is alive.
        Ok(unsafe { result::event::synchronize(self.0) }?)
    }

    /// Whether the captured work is done.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn is_done(&self) -> Result<bool, Failure> {
        // SAFETY: the handle comes from the driver and is alive.
        match unsafe { result::event::query(self.0) } {
            Ok(()) => Ok(true),
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Milliseconds between two finished events.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn milliseconds_since(&self, start: &Self) -> Result<f32, Failure> {
        // SAFETY: both handles come from the driver and are alive.
        Ok(unsafe { result::event::elapsed(start.0, self.0) }?)
    }

    /// Destroys the event; waits already queued keep what it held.
    ///
    /// # Errors
    /// [`Failure::Driver`].
    pub fn destroy(self) -> Result<(), Failure> {
        // SAFETY: a created handle, taken here, so destroyed once.
        Ok(unsafe { result::event::destroy(self.0) }?)
    }
}
