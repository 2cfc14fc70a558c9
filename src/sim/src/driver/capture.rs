//! Stream capture: what is submitted to a capturing stream becomes nodes of a graph.
//!
//! Source of the rules: CUDA Driver API, the pages of the calls named below; CUDA C++ Programming
//! Guide, "Creating a Graph Using Stream Capture". A call that a capture does not permit
//! invalidates the capture, which then only ends.

use super::graph::{EdgeData, Graph, NodeKind};
use super::launch::LaunchSpec;
use super::sim::Call;
use super::state::Driver;
use super::stream::{DefaultStream, StreamKind};
use super::thread;
use crate::errors::{CuError, Outcome};

/// CUstreamCaptureMode: which calls that may be unsafe a capture prohibits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaptureMode {
    /// Those of every thread.
    Global,
    /// Those of the thread that began the capture.
    ThreadLocal,
    /// None.
    Relaxed,
}

impl CaptureMode {
    pub(crate) fn from_number(number: u32) -> Outcome<CaptureMode> {
        Ok(match number {
            0 => CaptureMode::Global,
            1 => CaptureMode::ThreadLocal,
            2 => CaptureMode::Relaxed,
            _ => return Err(CuError::INVALID_VALUE),
        })
    }
}

/// A capture under way.
#[derive(Debug)]
pub(crate) struct Capture {
    graph: u64,
    /// The stream in which it was begun.
    origin: u64,
    mode: CaptureMode,
    thread: u64,
    invalid: bool,
    /// It adds to a graph that the program made.
    into_graph: bool,
}

/// A stream's part in a capture: what its next node will depend on.
#[derive(Clone, Debug)]
pub(crate) struct Capturing {
    capture: u64,
    pub(super) after: Vec<(u64, EdgeData)>,
    /// The newest node that the stream itself has made.
    newest: Option<u64>,
}

/// The content of an event that was recorded in a capturing stream.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    capture: u64,
    after: Vec<(u64, EdgeData)>,
}

/// The answer of `cuStreamGetCaptureInfo`.
#[derive(Clone, Debug)]
pub(crate) struct CaptureInfo {
    /// CUstreamCaptureStatus.
    pub(crate) status: u32,
    pub(crate) id: u64,
    pub(crate) graph: u64,
    pub(crate) after: Vec<(u64, EdgeData)>,
}

const NONE: u32 = 0;
const ACTIVE: u32 = 1;
const INVALIDATED: u32 = 2;

/// Adds dependencies that are not there yet.
fn merge(into: &mut Vec<(u64, EdgeData)>, more: &[(u64, EdgeData)]) {
    for edge in more {
        if !into.iter().any(|(node, _)| *node == edge.0) {
            into.push(*edge);
        }
    }
}

impl Driver {
    fn capturing_of(&self, stream: u64) -> Option<&Capturing> {
        self.streams.get(&stream)?.capturing.as_ref()
    }

    /// Whether a stream is being captured; an error if its capture is invalid.
    pub(super) fn is_capturing(&self, stream: u64) -> Outcome<bool> {
        let Some(capturing) = self.capturing_of(stream) else { return Ok(false) };
        match self.captures.get(&capturing.capture) {
            Some(capture) if capture.invalid => Err(CuError::STREAM_CAPTURE_INVALIDATED),
            _ => Ok(true),
        }
    }

    /// Whether a capture is adding to a graph.
    pub(super) fn is_being_captured(&self, graph: u64) -> bool {
        self.captures.values().any(|capture| capture.graph == graph)
    }

    fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.invalid = true;
        }
    }

    /// Refuses a call that a capturing stream does not take.
    pub(super) fn refuse_capture(&mut self, stream: u64) -> Outcome {
        let Some(capturing) = self.capturing_of(stream) else { return Ok(()) };
        let capture = capturing.capture;
        self.is_capturing(stream)?;
        self.invalidate(capture);
        Err(CuError::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Captures that the legacy stream of a context would have to wait for.
    fn implicit_captures(&self, context: u64) -> Vec<u64> {
        let blocking = |kind| matches!(kind, StreamKind::Blocking | StreamKind::PerThread);
        let streams = self.streams.values().filter(|stream| stream.context == context);
        let captured = streams.filter(|stream| blocking(stream.kind));
        captured.filter_map(|stream| Some(stream.capturing.as_ref()?.capture)).collect()
    }

    /// Refuses work in the legacy stream while a stream that it waits for is being captured.
    pub(super) fn check_implicit(&mut self, stream: u64, invalidate: bool) -> Outcome {
        if self.captures.is_empty() {
            return Ok(());
        }
        let target = self.streams.get(&stream).filter(|stream| stream.kind == StreamKind::Legacy);
        let captures = target.map(|stream| self.implicit_captures(stream.context));
        let captures = captures.unwrap_or_default();
        if captures.is_empty() {
            return Ok(());
        }
        for capture in captures.into_iter().filter(|_| invalidate) {
            self.invalidate(capture);
        }
        Err(CuError::STREAM_CAPTURE_IMPLICIT)
    }

    /// Refuses a call that may be unsafe, as the modes of the captures and of the thread say.
    pub(super) fn check_unsafe(&mut self) -> Outcome {
        if self.captures.is_empty() || thread::capture_mode() == CaptureMode::Relaxed {
            return Ok(());
        }
        let (thread, mode) = (thread::id(), thread::capture_mode());
        let prohibits = |capture: &Capture| {
            if capture.thread == thread {
                capture.mode != CaptureMode::Relaxed
            } else {
                capture.mode == CaptureMode::Global && mode == CaptureMode::Global
            }
        };
        let mut refused = false;
        for capture in self.captures.values_mut().filter(|capture| prohibits(capture)) {
            capture.invalid = true;
            refused = true;
        }
        if refused { Err(CuError::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    /// Refuses to wait for, or to ask, a context of which a stream is being captured.
    pub(super) fn check_context_capture(&mut self, context: u64) -> Outcome {
        let of_context = |stream: &&super::stream::Stream| stream.context == context;
        let captures: Vec<u64> = self
            .streams
            .values()
            .filter(of_context)
            .filter_map(|stream| Some(stream.capturing.as_ref()?.capture))
            .collect();
        for capture in &captures {
            self.invalidate(*capture);
        }
        if captures.is_empty() { Ok(()) } else { Err(CuError::STREAM_CAPTURE_UNSUPPORTED) }
    }

    /// Adds a node behind what a capturing stream holds.
    pub(super) fn capture(&mut self, stream: u64, kind: NodeKind) -> Outcome<u64> {
        let capturing = self.capturing_of(stream).ok_or(CuError::ILLEGAL_STATE)?.clone();
        let capture = self.captures.get(&capturing.capture).ok_or(CuError::ILLEGAL_STATE)?;
        let mut before = capturing.after.clone();
        if !matches!(kind, NodeKind::Kernel(_)) {
            // Only a kernel can begin before another one has ended.
            before.iter_mut().for_each(|(_, data)| *data = EdgeData::default());
        }
        let node = self.add_node(capture.graph, &before, kind)?;
        if let Some(stream) = self.streams.get_mut(&stream) {
            let after = vec![(node, EdgeData::default())];
            stream.capturing = Some(Capturing { after, newest: Some(node), ..capturing });
        }
        Ok(node)
    }

    /// Adds an allocation; answers its address.
    pub(super) fn capture_alloc(&mut self, stream: u64, device: i32, length: u64) -> Outcome<u64> {
        let (graph, after) = self.captured_front(stream)?;
        let alloc = self.alloc_node(graph, &after, device, length)?;
        self.capture(stream, NodeKind::Alloc(alloc))?;
        Ok(alloc.start)
    }

    /// Adds a free of memory of a graph.
    pub(super) fn capture_free(&mut self, stream: u64, start: u64) -> Outcome {
        let (graph, _) = self.captured_front(stream)?;
        let free = self.free_node(graph, start)?;
        self.capture(stream, free).map(|_| ())
    }

    /// The graph that a capturing stream adds to, and what its next node will depend on.
    fn captured_front(&self, stream: u64) -> Outcome<(u64, Vec<(u64, EdgeData)>)> {
        let capturing = self.capturing_of(stream).ok_or(CuError::ILLEGAL_STATE)?;
        let capture = self.captures.get(&capturing.capture).ok_or(CuError::ILLEGAL_STATE)?;
        Ok((capture.graph, capturing.after.clone()))
    }

    /// Adds a kernel, whose edge from a kernel before it is programmatic if the launch was.
    pub(super) fn capture_launch(
        &mut self,
        stream: u64,
        kind: NodeKind,
        programmatic: bool,
    ) -> Outcome<u64> {
        let newest = self.capturing_of(stream).and_then(|capturing| capturing.newest);
        if let Some(primary) = newest.filter(|newest| programmatic && self.is_kernel(*newest))
            && let Some(stream) = self.streams.get_mut(&stream)
            && let Some(capturing) = &mut stream.capturing
        {
            for (node, data) in &mut capturing.after {
                if *node == primary && *data == EdgeData::default() {
                    *data = EdgeData::programmatic();
                }
            }
        }
        self.capture(stream, kind)
    }

    /// Events that a captured launch records by attribute: who waits for them gets an edge from the
    /// kernel's port (Programming Guide, Programmatic Dependent Launch: use in CUDA graphs).
    pub(super) fn capture_fired(&mut self, stream: u64, node: u64, spec: &LaunchSpec) {
        let Some(capture) = self.capturing_of(stream).map(|capturing| capturing.capture) else {
            return;
        };
        let first = match spec.at_block_start {
            true => EdgeData::launch_order(true),
            false => EdgeData::programmatic(),
        };
        for (event, data) in spec.events.into_iter().zip([first, EdgeData::launch_order(false)]) {
            if let Some(entry) = self.events.get_mut(event) {
                entry.captured = Some(Captured { capture, after: vec![(node, data)] });
            }
        }
    }

    /// `cuEventRecord` in a capturing stream: the event holds the nodes that it comes behind.
    pub(super) fn captured(&self, stream: u64) -> Option<Captured> {
        let capturing = self.capturing_of(stream)?;
        Some(Captured { capture: capturing.capture, after: capturing.after.clone() })
    }

    /// Refuses to wait for, or to ask, an event that was last recorded in a capture. Once the
    /// capture has ended the event holds nothing that can be asked for, as driver 580 has it.
    pub(super) fn check_captured_event(&mut self, event: u64) -> Outcome {
        let captured = self.events.get(event).and_then(|event| event.captured.as_ref());
        let Some(capture) = captured.map(|captured| captured.capture) else { return Ok(()) };
        if !self.captures.contains_key(&capture) {
            return Err(CuError::INVALID_VALUE);
        }
        self.invalidate(capture);
        Err(CuError::CAPTURED_EVENT)
    }

    /// `cuStreamWaitEvent` where the stream or the event is in a capture. True if that is all.
    pub(super) fn wait_in_capture(
        &mut self,
        stream: u64,
        event: u64,
        external: bool,
    ) -> Outcome<bool> {
        let capturing = self.is_capturing(stream)?;
        let entry = self.events.get(event).ok_or(CuError::INVALID_HANDLE)?;
        let (captured, recorded) = (entry.captured.clone(), entry.recorded.is_some());
        if capturing && external {
            self.capture(stream, NodeKind::EventWait(event))?;
            return Ok(true);
        }
        let own = self.capturing_of(stream).map(|capturing| capturing.capture);
        let Some(Captured { capture, after }) = captured else {
            // Work from outside may not be waited for; an event that holds none is no wait.
            if let Some(own) = own.filter(|_| recorded) {
                self.invalidate(own);
                return Err(CuError::STREAM_CAPTURE_ISOLATION);
            }
            return Ok(capturing);
        };
        match self.captures.get(&capture) {
            None => return Err(CuError::INVALID_VALUE),
            Some(capture) if capture.invalid => return Err(CuError::STREAM_CAPTURE_INVALIDATED),
            Some(_) => {}
        }
        if let Some(own) = own.filter(|own| *own != capture) {
            self.invalidate(own);
            self.invalidate(capture);
            return Err(CuError::STREAM_CAPTURE_MERGE);
        }
        if let Some(entry) = self.streams.get_mut(&stream) {
            if entry.kind == StreamKind::Legacy {
                self.invalidate(capture);
                return Err(CuError::STREAM_CAPTURE_IMPLICIT);
            }
            let joined = Capturing { capture, after: Vec::new(), newest: None };
            merge(&mut entry.capturing.get_or_insert(joined).after, &after);
        }
        Ok(true)
    }

    /// Takes every stream out of a capture.
    fn release_capture(&mut self, capture: u64) {
        let of_capture = |capturing: &Capturing| capturing.capture == capture;
        for stream in self.streams.values_mut() {
            if stream.capturing.as_ref().is_some_and(of_capture) {
                stream.capturing = None;
            }
        }
        self.captures.remove(&capture);
    }

    /// A capture does not outlive its stream.
    pub(super) fn drop_capture_of(&mut self, stream: u64) {
        let Some(capture) = self.capturing_of(stream).map(|capturing| capturing.capture) else {
            return;
        };
        self.invalidate(capture);
        let ended = self.captures.get(&capture).filter(|entry| entry.origin == stream);
        if let Some((graph, into_graph)) = ended.map(|entry| (entry.graph, entry.into_graph)) {
            self.release_capture(capture);
            if !into_graph {
                self.destroy_graph(graph);
            }
        }
    }

    /// Whether everything that was captured is before what the origin stream now holds.
    fn is_joined(&self, capture: u64, origin: u64) -> bool {
        let Some(end) = self.capturing_of(origin) else { return false };
        let Some(graph) = self.captures.get(&capture).map(|capture| capture.graph) else {
            return false;
        };
        let past = self.past_of(graph, end.after.iter().map(|(node, _)| *node));
        let of_capture = |capturing: &&Capturing| capturing.capture == capture;
        let forked = self.streams.values().filter_map(|stream| stream.capturing.as_ref());
        forked.filter(of_capture).all(|fork| fork.after.iter().all(|(node, _)| past.contains(node)))
    }
}

impl Call {
    pub(crate) fn capture_begin(
        &self,
        stream: u64,
        mode: CaptureMode,
        into: Option<(u64, Vec<(u64, EdgeData)>)>,
        default: DefaultStream,
    ) -> Outcome {
        let mut driver = self.lock();
        let id = driver.resolve(stream, default)?;
        let target = driver.streams.get(&id).ok_or(CuError::INVALID_HANDLE)?;
        if target.kind == StreamKind::Legacy {
            return Err(CuError::STREAM_CAPTURE_UNSUPPORTED);
        }
        if target.capturing.is_some() {
            return Err(CuError::ILLEGAL_STATE);
        }
        let into_graph = into.is_some();
        let (graph, after) = match into {
            Some((graph, after)) => {
                driver.check_nodes_of(graph, after.iter().map(|(node, _)| *node))?;
                (graph, after)
            }
            None => (driver.graphs.insert(Graph::of_capture()), Vec::new()),
        };
        let capture = driver.fresh_id();
        let (origin, thread, invalid) = (id, thread::id(), false);
        let entry = Capture { graph, origin, mode, thread, invalid, into_graph };
        driver.captures.insert(capture, entry);
        if let Some(stream) = driver.streams.get_mut(&id) {
            stream.capturing = Some(Capturing { capture, after, newest: None });
        }
        Ok(())
    }

    /// `cuStreamEndCapture`: the graph, or why there is none.
    pub(crate) fn capture_end(&self, stream: u64, default: DefaultStream) -> Outcome<u64> {
        let mut driver = self.lock();
        let id = driver.resolve(stream, default)?;
        let capturing = driver.capturing_of(id).ok_or(CuError::ILLEGAL_STATE)?;
        let capture = capturing.capture;
        let entry = driver.captures.get(&capture).ok_or(CuError::ILLEGAL_STATE)?;
        let (graph, into_graph, invalid) = (entry.graph, entry.into_graph, entry.invalid);
        if entry.mode != CaptureMode::Relaxed && entry.thread != thread::id() {
            return Err(CuError::STREAM_CAPTURE_WRONG_THREAD);
        }
        let unmatched = entry.origin != id;
        if unmatched {
            driver.invalidate(capture);
            return Err(CuError::STREAM_CAPTURE_UNMATCHED);
        }
        let joined = driver.is_joined(capture, id);
        driver.release_capture(capture);
        if !invalid && joined {
            if !into_graph {
                driver.give_away(graph);
            }
            return Ok(graph);
        }
        if !into_graph {
            driver.destroy_graph(graph);
        }
        let (invalidated, unjoined) =
            (CuError::STREAM_CAPTURE_INVALIDATED, CuError::STREAM_CAPTURE_UNJOINED);
        Err(if invalid { invalidated } else { unjoined })
    }

    /// The state of a stream's capture; nothing of the legacy stream while a stream that it
    /// waits for is being captured.
    pub(crate) fn capture_info(&self, stream: u64, default: DefaultStream) -> Outcome<CaptureInfo> {
        let mut driver = self.lock();
        let id = driver.find_stream(stream, default)?;
        driver.check_implicit(id, false)?;
        let none = CaptureInfo { status: NONE, id: 0, graph: 0, after: Vec::new() };
        let Some(capturing) = driver.capturing_of(id) else { return Ok(none) };
        let capture = driver.captures.get(&capturing.capture).ok_or(CuError::UNKNOWN)?;
        if capture.invalid {
            return Ok(CaptureInfo { status: INVALIDATED, ..none });
        }
        let (id, after) = (capturing.capture, capturing.after.clone());
        Ok(CaptureInfo { status: ACTIVE, id, graph: capture.graph, after })
    }

    /// `cuStreamUpdateCaptureDependencies`: adds to, or replaces, what the stream's next node
    /// will depend on.
    pub(crate) fn capture_update(
        &self,
        stream: u64,
        nodes: &[(u64, EdgeData)],
        replace: bool,
        default: DefaultStream,
    ) -> Outcome {
        let mut driver = self.lock();
        let id = driver.find_stream(stream, default)?;
        if !driver.is_capturing(id)? {
            return Err(CuError::ILLEGAL_STATE);
        }
        let capture = driver.capturing_of(id).map(|capturing| capturing.capture);
        let graph = capture.and_then(|capture| Some(driver.captures.get(&capture)?.graph));
        driver
            .check_nodes_of(graph.ok_or(CuError::UNKNOWN)?, nodes.iter().map(|(node, _)| *node))?;
        let entry = driver.streams.get_mut(&id).and_then(|stream| stream.capturing.as_mut());
        if let Some(capturing) = entry {
            if replace {
                capturing.after.clear();
            }
            merge(&mut capturing.after, nodes);
        }
        Ok(())
    }

    /// `cuThreadExchangeStreamCaptureMode`: sets the calling thread's mode and returns the old.
    pub(crate) fn exchange_capture_mode(&self, mode: CaptureMode) -> u32 {
        thread::exchange_capture_mode(mode) as u32
    }
}
