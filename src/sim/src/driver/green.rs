//! Green contexts: parts of a device's primary context with streams of their own. Modules, memory
//! and events are those of the primary context; only what waits for a whole context, or holds one,
//! is narrower. How many multiprocessors a part has is kept and has no effect.

use super::event::Recorded;
use super::sim::Call;
use super::state::Driver;
use super::stream::StreamKind;
use super::thread;
use crate::errors::{CuError, Outcome};
use crate::schedule::OpId;

/// A green context.
#[derive(Debug)]
pub(crate) struct GreenContext {
    /// Unique over the life of the process.
    id: u64,
    /// The primary context that it is a part of, and the handle that stands for the part where a
    /// context is wanted.
    primary: u64,
    context: Option<u64>,
    multiprocessors: u32,
    /// The operations that `cuGreenCtxWaitEvent` put before everything submitted later to its
    /// streams.
    pub(super) gate: Vec<OpId>,
}

impl Driver {
    fn green(&self, handle: u64) -> Outcome<&GreenContext> {
        self.greens.get(handle).ok_or(CuError::INVALID_CONTEXT)
    }

    /// The context that a handle means: for one that stands for a green context, the primary one.
    pub(super) fn whole_context(&self, handle: u64) -> u64 {
        let green = self.contexts.get(handle).and_then(|context| context.green);
        green.and_then(|green| self.greens.get(green)).map_or(handle, |green| green.primary)
    }

    /// The green context that the calling thread's current context stands for.
    pub(super) fn current_green(&self) -> Option<u64> {
        thread::current().and_then(|handle| self.contexts.get(handle)?.green)
    }

    /// Everything pending in the streams of a green context.
    pub(super) fn green_targets(&self, handle: u64) -> Vec<OpId> {
        let own = self.streams.values().filter(|stream| stream.green == Some(handle));
        let gate = self.greens.get(handle).map(|green| green.gate.clone());
        own.filter_map(|stream| stream.tail).chain(gate.into_iter().flatten()).collect()
    }
}

impl Call {
    /// A description of so many multiprocessors.
    pub(crate) fn describe_resource(&self, multiprocessors: u32) -> u64 {
        self.lock().descriptions.insert(multiprocessors)
    }

    pub(crate) fn green_create(&self, description: u64, device: i32) -> Outcome<u64> {
        let known = self.lock().descriptions.get(description).copied();
        let multiprocessors = known.ok_or(CuError::INVALID_VALUE)?;
        // A green context holds the primary context that it is a part of.
        let primary = self.primary_retain(device)?;
        let mut driver = self.lock();
        let id = driver.fresh_id();
        let (context, gate) = (None, Vec::new());
        Ok(driver.greens.insert(GreenContext { id, primary, context, multiprocessors, gate }))
    }

    /// `cuGreenCtxDestroy`: its streams stay as handles and take no more work.
    pub(crate) fn green_destroy(&self, handle: u64) -> Outcome {
        let mut driver = self.lock();
        let green = driver.greens.remove(handle).ok_or(CuError::INVALID_CONTEXT)?;
        for stream in driver.streams.values_mut().filter(|stream| stream.green == Some(handle)) {
            stream.orphan = true;
        }
        let device = driver.contexts.get(green.primary).map(|context| context.device);
        if let Some(context) = green.context {
            driver.contexts.remove(context);
        }
        drop(driver);
        device.map_or(Ok(()), |device| self.primary_release(device as i32))
    }

    pub(crate) fn green_context(&self, handle: u64) -> Outcome<u64> {
        let mut driver = self.lock();
        let green = driver.green(handle)?;
        if let Some(context) = green.context {
            return Ok(context);
        }
        let primary = green.primary;
        let device = driver.usable(primary)?.device;
        let context = driver.make_context(device, 0, true);
        if let Some(entry) = driver.contexts.get_mut(context) {
            entry.green = Some(handle);
        }
        if let Some(green) = driver.greens.get_mut(handle) {
            green.context = Some(context);
        }
        Ok(context)
    }

    /// Streams of green contexts are non-blocking.
    pub(crate) fn green_stream(&self, handle: u64, priority: i32) -> Outcome<u64> {
        let mut driver = self.lock();
        let primary = driver.green(handle)?.primary;
        driver.usable(primary)?;
        let id = driver.make_stream(primary, StreamKind::NonBlocking, priority.clamp(-5, 0));
        if let Some(stream) = driver.streams.get_mut(&id) {
            stream.green = Some(handle);
        }
        Ok(driver.stream_handles.insert(id))
    }

    /// `cuGreenCtxRecordEvent`: the event holds all that its streams have pending.
    pub(crate) fn green_record(&self, handle: u64, event: u64) -> Outcome {
        let mut driver = self.lock();
        driver.green(handle)?;
        let ops = driver.green_targets(handle);
        let entry = driver.events.get_mut(event).ok_or(CuError::INVALID_HANDLE)?;
        entry.recorded = Some(Recorded { ops, stamp: Default::default(), awaited: Vec::new() });
        entry.captured = None;
        Ok(())
    }

    /// `cuGreenCtxWaitEvent`: what its streams are given from now on runs after the event.
    pub(crate) fn green_wait(&self, handle: u64, event: u64) -> Outcome {
        let mut driver = self.lock();
        driver.green(handle)?;
        driver.check_captured_event(event)?;
        let recorded = driver.events.get(event).ok_or(CuError::INVALID_HANDLE)?.recorded.as_ref();
        let ops = recorded.map(|recorded| recorded.ops.clone()).unwrap_or_default();
        if let Some(green) = driver.greens.get_mut(handle) {
            green.gate.extend(ops);
        }
        Ok(())
    }

    pub(crate) fn green_id(&self, handle: u64) -> Outcome<u64> {
        Ok(self.lock().green(handle)?.id)
    }

    /// The multiprocessors of a green context.
    pub(crate) fn green_multiprocessors(&self, handle: u64) -> Outcome<u32> {
        Ok(self.lock().green(handle)?.multiprocessors)
    }

    /// The green context that a stream belongs to, 0 for none.
    pub(crate) fn stream_green(
        &self,
        stream: u64,
        default: super::stream::DefaultStream,
    ) -> Outcome<u64> {
        let mut driver = self.lock();
        let id = driver.find_stream(stream, default)?;
        Ok(driver.streams.get(&id).and_then(|stream| stream.green).unwrap_or(0))
    }
}
