//! Graphs.

use crate::Sink;
use crate::core::Core;
use streamsan_model::{ExecutableId, GraphId, Operation, StreamId};

/// `cuGraphInstantiate`, `cuGraphExecUpdate`.
pub(crate) fn set(
    _core: &mut Core,
    _op: &Operation,
    _executable: ExecutableId,
    _graph: GraphId,
    _sink: &mut dyn Sink,
) {
}

/// `cuGraphLaunch`.
pub(crate) fn launch(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    _executable: ExecutableId,
    _graph: GraphId,
    sink: &mut dyn Sink,
) {
    let _ = core.enqueue(op, stream, sink);
}

/// `cuGraphUpload`.
pub(crate) fn upload(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    _executable: ExecutableId,
    sink: &mut dyn Sink,
) {
    let _ = core.enqueue(op, stream, sink);
}

/// `cuGraphExecDestroy`.
pub(crate) fn destroy(_core: &mut Core, _executable: ExecutableId) {}
