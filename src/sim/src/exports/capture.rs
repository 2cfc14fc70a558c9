//! Stream capture.

use std::cell::RefCell;

use super::args::{In, Out};
use super::enter::{api, twins};
use super::graph::build::dependencies;
use crate::driver::{Call, CaptureInfo, CaptureMode, DefaultStream, EdgeData};
use crate::errors::{CuError, Outcome};

thread_local! {
    /// The lists that the last query of the calling thread answered: the manual has them stay
    /// valid until the next call that changes them.
    static ANSWERED: RefCell<(Vec<u64>, Vec<EdgeData>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// The places that a query of a capture fills; each place may be null.
struct Wanted {
    status: Out<u32>,
    id: Out<u64>,
    graph: Out<u64>,
    nodes: Out<u64>,
    edges: Option<Out<u64>>,
    count: Out<u64>,
}

impl Wanted {
    fn answer(&self, call: &Call, stream: u64, default: DefaultStream) -> Outcome {
        self.status.check()?;
        let CaptureInfo { status, id, graph, after } = call.capture_info(stream, default)?;
        let plain = after.iter().all(|(_, data)| *data == EdgeData::default());
        if self.edges.is_none() && !self.nodes.is_null() && !plain {
            return Err(CuError::LOSSY_QUERY);
        }
        self.status.set(status)?;
        if status != ACTIVE {
            return Ok(());
        }
        let (nodes, edges, count) = ANSWERED
            .try_with(|answered| {
                let lists: (Vec<u64>, Vec<EdgeData>) = after.into_iter().unzip();
                let places = (lists.0.as_ptr() as u64, lists.1.as_ptr() as u64, lists.0.len());
                *answered.borrow_mut() = lists;
                places
            })
            .unwrap_or((0, 0, 0));
        self.id.set_if_wanted(id);
        self.graph.set_if_wanted(graph);
        self.nodes.set_if_wanted(nodes);
        // Null stands for edges without data.
        self.edges.unwrap_or(Out::NULL).set_if_wanted(if plain { 0 } else { edges });
        self.count.set_if_wanted(count as u64);
        Ok(())
    }
}

const ACTIVE: u32 = 1;
/// CU_STREAM_ADD_CAPTURE_DEPENDENCIES and CU_STREAM_SET_CAPTURE_DEPENDENCIES.
const ADD: u32 = 0;
const SET: u32 = 1;

fn update(
    call: &Call,
    stream: u64,
    nodes: &[(u64, EdgeData)],
    flags: u32,
    default: DefaultStream,
) -> Outcome {
    if !matches!(flags, ADD | SET) {
        return Err(CuError::INVALID_VALUE);
    }
    call.capture_update(stream, nodes, flags == SET, default)
}

/// The graph, null where the capture came to nothing.
fn end(call: &Call, stream: u64, graph: Out<u64>, default: DefaultStream) -> Outcome {
    graph.check()?;
    match call.capture_end(stream, default) {
        Ok(made) => graph.set(made),
        Err(error) => {
            graph.set(0)?;
            Err(error)
        }
    }
}

api! { TABLE;
    fn cuThreadExchangeStreamCaptureMode(mode: Out<u32>) |call| {
        let wanted = CaptureMode::from_number(mode.get()?)?;
        mode.set(call.exchange_capture_mode(wanted))
    }
}

twins! { TWINS;
    fn cuStreamBeginCapture / cuStreamBeginCapture_ptsz(stream: u64) |call, default| {
        call.capture_begin(stream, CaptureMode::Global, None, default)
    }
    fn cuStreamBeginCapture_v2 / cuStreamBeginCapture_v2_ptsz(
        stream: u64,
        mode: u32,
    ) |call, default| {
        call.capture_begin(stream, CaptureMode::from_number(mode)?, None, default)
    }
    fn cuStreamBeginCaptureToGraph / cuStreamBeginCaptureToGraph_ptsz(
        stream: u64,
        graph: u64,
        nodes: In<u64>,
        data: In<EdgeData>,
        count: u64,
        mode: u32,
    ) |call, default| {
        let after = dependencies(nodes, data, count)?;
        let mode = CaptureMode::from_number(mode)?;
        call.capture_begin(stream, mode, Some((graph, after)), default)
    }
    fn cuStreamEndCapture / cuStreamEndCapture_ptsz(
        stream: u64,
        graph: Out<u64>,
    ) |call, default| { end(call, stream, graph, default) }
    fn cuStreamIsCapturing / cuStreamIsCapturing_ptsz(
        stream: u64,
        status: Out<u32>,
    ) |call, default| {
        status.check()?;
        status.set(call.capture_info(stream, default)?.status)
    }
    fn cuStreamGetCaptureInfo / cuStreamGetCaptureInfo_ptsz(
        stream: u64,
        status: Out<u32>,
        id: Out<u64>,
    ) |call, default| {
        let (graph, nodes, edges, count) = (Out::NULL, Out::NULL, None, Out::NULL);
        Wanted { status, id, graph, nodes, edges, count }.answer(call, stream, default)
    }
    fn cuStreamGetCaptureInfo_v2 / cuStreamGetCaptureInfo_v2_ptsz(
        stream: u64,
        status: Out<u32>,
        id: Out<u64>,
        graph: Out<u64>,
        nodes: Out<u64>,
        count: Out<u64>,
    ) |call, default| {
        let edges = None;
        Wanted { status, id, graph, nodes, edges, count }.answer(call, stream, default)
    }
    fn cuStreamGetCaptureInfo_v3 / cuStreamGetCaptureInfo_v3_ptsz(
        stream: u64,
        status: Out<u32>,
        id: Out<u64>,
        graph: Out<u64>,
        nodes: Out<u64>,
        edges: Out<u64>,
        count: Out<u64>,
    ) |call, default| {
        let edges = Some(edges);
        Wanted { status, id, graph, nodes, edges, count }.answer(call, stream, default)
    }
    fn cuStreamUpdateCaptureDependencies / cuStreamUpdateCaptureDependencies_ptsz(
        stream: u64,
        nodes: In<u64>,
        count: u64,
        flags: u32,
    ) |call, default| {
        update(call, stream, &dependencies(nodes, In::NULL, count)?, flags, default)
    }
    fn cuStreamUpdateCaptureDependencies_v2 / cuStreamUpdateCaptureDependencies_v2_ptsz(
        stream: u64,
        nodes: In<u64>,
        data: In<EdgeData>,
        count: u64,
        flags: u32,
    ) |call, default| { update(call, stream, &dependencies(nodes, data, count)?, flags, default) }
}
