//! Streams: explicit ones, and the default streams that come with a context.

use super::capture::Capturing;
use super::sim::Call;
use super::state::Driver;
use super::thread;
use super::work::Work;
use crate::errors::{CuError, Outcome};
use crate::schedule::OpId;

/// Which stream the handle 0 means: the choice is made by the symbol that was called
/// (`cuLaunchKernel` or `cuLaunchKernel_ptsz`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DefaultStream {
    Legacy,
    PerThread,
}

/// How a stream relates to the legacy default stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StreamKind {
    Legacy,
    PerThread,
    Blocking,
    NonBlocking,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) context: u64,
    pub(super) kind: StreamKind,
    pub(super) priority: i32,
    /// Place among the streams that the program created, from 1; 0 for default streams.
    pub(super) ordinal: u32,
    /// The last operation submitted to it.
    pub(super) tail: Option<OpId>,
    /// The last kernel submitted to it.
    pub(super) primary: Option<Primary>,
    pub(super) destroyed: bool,
    /// The green context that it belongs to, and whether that is gone.
    pub(super) green: Option<u64>,
    pub(super) orphan: bool,
    /// Kernels that the wait of its next kernel covers.
    pub(super) awaited: Vec<OpId>,
    /// Its part in a capture.
    pub(super) capturing: Option<Capturing>,
}

/// A kernel that a programmatic launch may overtake, as long as it is its stream's last operation.
#[derive(Clone, Debug)]
pub(super) struct Primary {
    /// The stream's tail when the kernel had been submitted.
    pub(super) tail: OpId,
    /// The operations that the kernel waits for.
    pub(super) before: Vec<OpId>,
}

const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;
const NON_BLOCKING: u32 = 1;
const EVENT_WAIT_EXTERNAL: u32 = 1;
/// Numerically lowest priority, which is the greatest.
pub(crate) const GREATEST_PRIORITY: i32 = -5;

impl Driver {
    /// Makes a stream and returns its identity.
    pub(super) fn make_stream(&mut self, context: u64, kind: StreamKind, priority: i32) -> u64 {
        let id = self.fresh_id();
        let ordinal = match kind {
            StreamKind::Legacy | StreamKind::PerThread => 0,
            StreamKind::Blocking | StreamKind::NonBlocking => {
                self.created_streams += 1;
                self.created_streams
            }
        };
        let stream = Stream {
            context,
            kind,
            priority,
            ordinal,
            tail: None,
            primary: None,
            awaited: Vec::new(),
            destroyed: false,
            green: None,
            orphan: false,
            capturing: None,
        };
        self.streams.insert(id, stream);
        if let Some(context) = self.contexts.get_mut(context) {
            context.streams.insert(id);
        }
        id
    }

    /// The stream that a handle means to the calling thread, if its context is usable and no
    /// capture is in the way of work in it.
    pub(super) fn resolve(&mut self, handle: u64, default: DefaultStream) -> Outcome<u64> {
        let id = self.find_stream(handle, default)?;
        self.check_implicit(id, true)?;
        Ok(id)
    }

    /// The stream that a handle means to the calling thread, if its context is usable.
    pub(super) fn find_stream(&mut self, handle: u64, default: DefaultStream) -> Outcome<u64> {
        let per_thread = match handle {
            0 => default == DefaultStream::PerThread,
            LEGACY => false,
            PER_THREAD => true,
            _ => {
                self.current()?;
                let id = *self.stream_handles.get(handle).ok_or(CuError::INVALID_HANDLE)?;
                let stream = self.streams.get(&id).ok_or(CuError::INVALID_HANDLE)?;
                self.usable(stream.context)?;
                if stream.orphan {
                    return Err(CuError::CONTEXT_IS_DESTROYED);
                }
                return Ok(id);
            }
        };
        let context = self.current()?;
        self.default_stream(context, per_thread)
    }

    /// The default stream of a context: the legacy one, or the calling thread's.
    pub(super) fn default_stream(&mut self, context: u64, per_thread: bool) -> Outcome<u64> {
        let entry = self.contexts.get(context).ok_or(CuError::INVALID_CONTEXT)?;
        if !per_thread {
            return Ok(entry.legacy);
        }
        let thread = thread::id();
        if let Some(id) = entry.per_thread.get(&thread) {
            return Ok(*id);
        }
        self.retire_streams_of_ended_threads();
        let id = self.make_stream(context, StreamKind::PerThread, 0);
        if let Some(entry) = self.contexts.get_mut(context) {
            entry.per_thread.insert(thread, id);
        }
        Ok(id)
    }

    /// A thread's default streams go with it, once their work is done.
    fn retire_streams_of_ended_threads(&mut self) {
        let ended = thread::take_ended();
        if ended.is_empty() {
            return;
        }
        let mut touched = Vec::new();
        for (handle, context) in self.contexts.iter_mut() {
            for thread in &ended {
                if let Some(id) = context.per_thread.remove(thread)
                    && let Some(stream) = self.streams.get_mut(&id)
                {
                    stream.destroyed = true;
                    touched.push(handle);
                }
            }
        }
        touched.dedup();
        for context in touched {
            self.sweep_streams(context);
        }
    }

    /// Whether a stream is a legacy default stream.
    pub(super) fn is_legacy(&self, id: u64) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.kind == StreamKind::Legacy)
    }

    fn stream(&mut self, handle: u64, default: DefaultStream) -> Outcome<&Stream> {
        let id = self.find_stream(handle, default)?;
        self.streams.get(&id).ok_or(CuError::INVALID_HANDLE)
    }
}

impl Call {
    /// `cuStreamCreateWithPriority`: the priority is clamped to what the device has.
    pub(crate) fn stream_create(&self, flags: u32, priority: i32) -> Outcome<u64> {
        let mut driver = self.lock();
        let context = driver.current()?;
        let kind = match flags {
            0 => StreamKind::Blocking,
            NON_BLOCKING => StreamKind::NonBlocking,
            _ => return Err(CuError::INVALID_VALUE),
        };
        let id = driver.make_stream(context, kind, priority.clamp(GREATEST_PRIORITY, 0));
        let green = driver.current_green();
        if let Some(stream) = driver.streams.get_mut(&id) {
            stream.green = green;
        }
        Ok(driver.stream_handles.insert(id))
    }

    /// `cuStreamDestroy`: returns at once, work in the stream still completes.
    pub(crate) fn stream_destroy(&self, handle: u64) -> Outcome {
        let mut driver = self.lock();
        driver.current()?;
        let id = driver.stream_handles.remove(handle).ok_or(CuError::INVALID_HANDLE)?;
        driver.drop_capture_of(id);
        let stream = driver.streams.get_mut(&id).ok_or(CuError::INVALID_HANDLE)?;
        stream.destroyed = true;
        let context = stream.context;
        driver.sweep_streams(context);
        Ok(())
    }

    pub(crate) fn stream_synchronize(&self, handle: u64, default: DefaultStream) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(handle, default)?;
        driver.refuse_capture(id)?;
        driver.check_unsafe()?;
        let targets = driver.stream_targets(id);
        let mut driver = self.sim.wait(driver, &targets);
        if let Some(context) = driver.streams.get(&id).map(|stream| stream.context) {
            driver.sweep_streams(context);
            driver.usable(context)?;
        }
        Ok(())
    }

    pub(crate) fn stream_query(&self, handle: u64, default: DefaultStream) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(handle, default)?;
        driver.refuse_capture(id)?;
        driver.check_unsafe()?;
        let targets = driver.stream_targets(id);
        let (_driver, done) = self.sim.poll(driver, &targets);
        if done { Ok(()) } else { Err(CuError::NOT_READY) }
    }

    /// `cuStreamWaitEvent`: binds to what the event holds now. An event that was never recorded
    /// holds nothing, and nothing waits.
    pub(crate) fn stream_wait_event(
        &self,
        handle: u64,
        event: u64,
        flags: u32,
        default: DefaultStream,
    ) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(handle, default)?;
        let recorded = driver.events.get(event).ok_or(CuError::INVALID_HANDLE)?.recorded.as_ref();
        let recorded = recorded.map(|recorded| (recorded.ops.clone(), recorded.awaited.clone()));
        let (after, awaited) = recorded.unwrap_or_default();
        if flags & !EVENT_WAIT_EXTERNAL != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        if driver.wait_in_capture(id, event, flags & EVENT_WAIT_EXTERNAL != 0)? {
            return Ok(());
        }
        if !after.is_empty() {
            let before = driver.take_awaited(id);
            driver.submit(id, Work::Marker, &after);
            if let Some(stream) = driver.streams.get_mut(&id) {
                stream.awaited = [before, awaited].concat();
            }
            drop(self.sim.submitted(driver));
        }
        Ok(())
    }

    /// Submits an operation that does nothing but take its place in the stream.
    pub(crate) fn marker(&self, handle: u64, default: DefaultStream) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(handle, default)?;
        driver.refuse_capture(id)?;
        driver.submit(id, Work::Marker, &[]);
        drop(self.sim.submitted(driver));
        Ok(())
    }

    pub(crate) fn stream_context(&self, handle: u64, default: DefaultStream) -> Outcome<u64> {
        Ok(self.lock().stream(handle, default)?.context)
    }

    pub(crate) fn stream_device(&self, handle: u64, default: DefaultStream) -> Outcome<u32> {
        let mut driver = self.lock();
        let context = driver.stream(handle, default)?.context;
        Ok(driver.usable(context)?.device)
    }

    pub(crate) fn stream_id(&self, handle: u64, default: DefaultStream) -> Outcome<u64> {
        self.lock().find_stream(handle, default)
    }

    pub(crate) fn stream_flags(&self, handle: u64, default: DefaultStream) -> Outcome<u32> {
        let non_blocking = self.lock().stream(handle, default)?.kind == StreamKind::NonBlocking;
        Ok(if non_blocking { NON_BLOCKING } else { 0 })
    }

    pub(crate) fn stream_priority(&self, handle: u64, default: DefaultStream) -> Outcome<i32> {
        Ok(self.lock().stream(handle, default)?.priority)
    }
}
