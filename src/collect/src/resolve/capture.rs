//! Streams that are being captured into graphs: what is issued to them is not executed.
//!
//! Programming Guide, "CUDA Graphs", "Creating a Graph Using Stream Capture": a capture begins in
//! one stream; an event recorded in a capturing stream belongs to the capture, and a stream that
//! waits for it joins; ending the capture in the stream where it began releases all.
//!
//! The runtime asks the driver of each call whether it was captured and as which node; what is kept
//! here stands in for that answer where a call is handed over before it has returned.
//!
//! Deliberately absent: what the graph then holds. It is read back when it becomes executable.

use super::resolution::Resolution;
use std::collections::HashMap;
use streamsan_model::{Action, EventId, StreamId};

/// `CU_EVENT_RECORD_EXTERNAL`: makes a node that records the event when the graph runs.
const RECORD_EXTERNAL: u64 = 1;
/// `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED`, `CUDA_ERROR_STREAM_CAPTURE_UNJOINED`: the capture is
/// ended, there is no graph.
const ENDED_IN_VAIN: [i32; 2] = [901, 904];

/// The captures of one process. A capture is known by the stream in which it began.
#[derive(Debug, Default)]
pub(super) struct Captures {
    streams: HashMap<StreamId, StreamId>,
    /// Events whose last record belongs to a capture.
    events: HashMap<EventId, StreamId>,
}

impl Captures {
    /// Whether what is issued to the stream becomes part of a graph.
    pub(super) fn holds(&self, stream: StreamId) -> bool {
        !self.streams.is_empty() && self.streams.contains_key(&stream)
    }

    fn begin(&mut self, origin: StreamId) {
        self.streams.insert(origin, origin);
    }

    fn end(&mut self, origin: StreamId) {
        self.streams.retain(|_, capture| *capture != origin);
        self.events.retain(|_, capture| *capture != origin);
    }

    /// The event is recorded in the stream; whether that is captured.
    fn record(&mut self, event: EventId, stream: StreamId, external: bool) -> bool {
        let capture = self.streams.get(&stream).copied();
        match capture {
            Some(capture) if !external => {
                self.events.insert(event, capture);
            }
            Some(_) => {}
            None => {
                self.events.remove(&event);
            }
        }
        capture.is_some()
    }

    /// The stream waits for the event; whether that is captured.
    fn wait(&mut self, stream: StreamId, event: EventId) -> bool {
        if let Some(&capture) = self.events.get(&event) {
            self.streams.entry(stream).or_insert(capture);
        }
        self.holds(stream)
    }

    /// The stream is no more. Without the one where it began a capture is ended by nothing, and
    /// all that is issued to its other streams is refused.
    pub(super) fn destroyed(&mut self, stream: StreamId) {
        if self.streams.get(&stream) == Some(&stream) {
            self.end(stream);
        }
        self.streams.remove(&stream);
    }
}

/// `cuStreamBeginCapture(stream, ...)`, `cuStreamBeginCaptureToGraph(stream, ...)`,
/// `cuStreamBeginRecaptureToGraph(stream, ...)`.
pub(super) fn begin(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        let origin = resolution.named_stream(resolution.call.arg(0))?;
        resolution.tables.captures.begin(origin);
    }
    None
}

/// `cuStreamEndCapture(stream, graph)`.
pub(super) fn end(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() || ENDED_IN_VAIN.contains(&resolution.call.result()) {
        let origin = resolution.named_stream(resolution.call.arg(0))?;
        resolution.tables.captures.end(origin);
    }
    None
}

/// `cuEventRecord(event, stream)` and `cuEventRecordWithFlags(event, stream, flags)`.
pub(super) fn event_record(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.named_stream(resolution.call.arg(1))?;
    let event = resolution.event(resolution.call.arg(0))?;
    let external = resolution.call.arg(2) & RECORD_EXTERNAL != 0;
    let captured =
        resolution.call.succeeded() && resolution.tables.captures.record(event, stream, external);
    if captured || resolution.was_captured() {
        resolution.captured = Some(stream);
        return None;
    }
    Some(Action::EventRecord { event, stream })
}

/// `cuStreamWaitEvent(stream, event, flags)`.
pub(super) fn stream_wait(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.named_stream(resolution.call.arg(0))?;
    let event = resolution.event(resolution.call.arg(1))?;
    let captured = resolution.call.succeeded() && resolution.tables.captures.wait(stream, event);
    if captured || resolution.was_captured() {
        resolution.captured = Some(stream);
        return None;
    }
    Some(Action::StreamWaitEvent { stream, event })
}
