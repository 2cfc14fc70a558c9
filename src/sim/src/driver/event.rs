//! Events. Recording replaces what an event holds; waits keep what it held when they were made.

use std::sync::Arc;

use super::capture::Captured;
use super::graph::NodeKind;
use super::sim::Call;
use super::state::Driver;
use super::stream::DefaultStream;
use super::work::{Stamp, Work};
use crate::errors::{CuError, Outcome};
use crate::schedule::OpId;

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(super) context: u64,
    timing: bool,
    pub(super) recorded: Option<Recorded>,
    /// Set if it was last recorded in a capturing stream.
    pub(super) captured: Option<Captured>,
}

/// The content of an event since its last record.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) ops: Vec<OpId>,
    pub(super) stamp: Arc<Stamp>,
    /// Kernels that the wait of a kernel behind the event covers.
    pub(super) awaited: Vec<OpId>,
}

const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;
const RECORD_EXTERNAL: u32 = 1;

impl Driver {
    /// An event that a kernel fires is one of its context and does not time (CUDA Driver API,
    /// CUlaunchAttributeID).
    pub(super) fn check_fired_event(&self, event: u64, context: u64) -> Outcome {
        let entry = self.events.get(event).ok_or(CuError::INVALID_VALUE)?;
        if entry.context == context && !entry.timing { Ok(()) } else { Err(CuError::INVALID_VALUE) }
    }

    /// Makes an event hold the given operations; the wait of a kernel behind it covers `awaited`.
    pub(super) fn fire(&mut self, event: u64, ops: Vec<OpId>, awaited: Vec<OpId>) {
        if let Some(entry) = self.events.get_mut(event) {
            entry.recorded = Some(Recorded { ops, stamp: Arc::default(), awaited });
            entry.captured = None;
        }
    }
}

impl Call {
    pub(crate) fn event_create(&self, flags: u32) -> Outcome<u64> {
        let mut driver = self.lock();
        let context = driver.current()?;
        let known = BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS;
        // An interprocess event must not time (CUDA Driver API, cuEventCreate).
        let untimed = flags & (INTERPROCESS | DISABLE_TIMING) != INTERPROCESS;
        if flags & !known != 0 || !untimed {
            return Err(CuError::INVALID_VALUE);
        }
        let timing = flags & DISABLE_TIMING == 0;
        Ok(driver.events.insert(Event { context, timing, recorded: None, captured: None }))
    }

    /// `cuEventDestroy`: returns at once, waits that were made keep what they hold.
    pub(crate) fn event_destroy(&self, event: u64) -> Outcome {
        let mut driver = self.lock();
        driver.current()?;
        driver.events.remove(event).map(|_| ()).ok_or(CuError::INVALID_HANDLE)
    }

    pub(crate) fn event_record(
        &self,
        event: u64,
        stream: u64,
        flags: u32,
        default: DefaultStream,
    ) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(stream, default)?;
        let of = driver.events.get(event).ok_or(CuError::INVALID_HANDLE)?.context;
        if flags & !RECORD_EXTERNAL != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        // Event and stream must belong to one context (CUDA Driver API, cuEventRecord).
        if driver.streams.get(&id).is_none_or(|stream| stream.context != of) {
            return Err(CuError::INVALID_HANDLE);
        }
        if driver.is_capturing(id)? {
            if flags & RECORD_EXTERNAL != 0 {
                driver.capture(id, NodeKind::EventRecord(event))?;
                return Ok(());
            }
            let captured = driver.captured(id);
            if let Some(entry) = driver.events.get_mut(event) {
                entry.captured = captured;
            }
            return Ok(());
        }
        let stamp = Arc::new(Stamp::default());
        let op = driver.submit(id, Work::Record(Arc::clone(&stamp)), &[]);
        if let Some(entry) = driver.events.get_mut(event) {
            entry.recorded = Some(Recorded { ops: vec![op], stamp, awaited: Vec::new() });
            entry.captured = None;
        }
        drop(self.sim.submitted(driver));
        Ok(())
    }

    /// `cuCtxRecordEvent`: the event holds all that the context has pending, in every stream.
    pub(crate) fn context_record_event(&self, context: u64, event: u64) -> Outcome {
        let mut driver = self.lock();
        if let Some(green) = driver.contexts.get(context).and_then(|context| context.green) {
            drop(driver);
            return self.green_record(green, event);
        }
        driver.usable(context)?;
        driver.check_context_capture(context)?;
        let ops = driver.context_targets(context);
        let entry = driver.events.get_mut(event).ok_or(CuError::INVALID_HANDLE)?;
        entry.recorded = Some(Recorded { ops, stamp: Arc::default(), awaited: Vec::new() });
        entry.captured = None;
        Ok(())
    }

    /// `cuCtxWaitEvent`: everything that the context is given from now on runs after the event.
    pub(crate) fn context_wait_event(&self, context: u64, event: u64) -> Outcome {
        let mut driver = self.lock();
        if let Some(green) = driver.contexts.get(context).and_then(|context| context.green) {
            drop(driver);
            return self.green_wait(green, event);
        }
        driver.usable(context)?;
        driver.check_context_capture(context)?;
        driver.check_captured_event(event)?;
        let recorded = driver.events.get(event).ok_or(CuError::INVALID_HANDLE)?.recorded.as_ref();
        let ops = recorded.map(|recorded| recorded.ops.clone()).unwrap_or_default();
        if let Some(entry) = driver.contexts.get_mut(context) {
            entry.gate.extend(ops);
        }
        Ok(())
    }

    pub(crate) fn event_synchronize(&self, event: u64) -> Outcome {
        let mut driver = self.lock();
        driver.current()?;
        driver.check_captured_event(event)?;
        driver.check_unsafe()?;
        let entry = driver.events.get(event).ok_or(CuError::INVALID_HANDLE)?;
        let context = entry.context;
        let ops = entry.recorded.as_ref().map(|recorded| recorded.ops.clone()).unwrap_or_default();
        let driver = self.sim.wait(driver, &ops);
        driver.usable(context).map(|_| ())
    }

    pub(crate) fn event_query(&self, event: u64) -> Outcome {
        let mut driver = self.lock();
        driver.current()?;
        driver.check_captured_event(event)?;
        driver.check_unsafe()?;
        let entry = driver.events.get(event).ok_or(CuError::INVALID_HANDLE)?;
        let ops = entry.recorded.as_ref().map(|recorded| recorded.ops.clone()).unwrap_or_default();
        let (_driver, done) = self.sim.poll(driver, &ops);
        if done { Ok(()) } else { Err(CuError::NOT_READY) }
    }

    /// `cuEventElapsedTime`, in milliseconds of simulated time.
    pub(crate) fn event_elapsed(&self, start: u64, end: u64) -> Outcome<f32> {
        let driver = self.lock();
        driver.current()?;
        let mut times = [0; 2];
        let mut ops = Vec::new();
        for event in [start, end] {
            let entry = driver.events.get(event).filter(|event| event.timing);
            let recorded = entry.and_then(|event| event.recorded.as_ref());
            ops.extend(&recorded.ok_or(CuError::INVALID_HANDLE)?.ops);
        }
        let (driver, done) = self.sim.poll(driver, &ops);
        if !done {
            return Err(CuError::NOT_READY);
        }
        for (time, event) in times.iter_mut().zip([start, end]) {
            let recorded = driver.events.get(event).and_then(|event| event.recorded.as_ref());
            *time = recorded.ok_or(CuError::INVALID_HANDLE)?.stamp.get();
        }
        Ok((times[1] as f64 - times[0] as f64) as f32 / 1e6)
    }
}
