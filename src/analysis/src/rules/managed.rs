//! Managed memory: prefetch, discard, attach.

use crate::Sink;
use crate::core::Core;
use crate::record::Place;
use crate::touch::Site;
use streamsan_model::{AllocationId, Attachment, Operation, StreamId};

fn in_stream(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let site = Site::stream(&view, stream, Place::Chain(chain));
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}

/// `cuMemPrefetchAsync`: an operation of its stream that touches no data.
pub(crate) fn prefetch(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    in_stream(core, op, stream, sink);
}

/// `cuMemDiscardBatchAsync`: an operation of its stream.
pub(crate) fn discard(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    in_stream(core, op, stream, sink);
}

/// `cuStreamAttachMemAsync`: an operation of its stream.
pub(crate) fn attach(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    _allocation: AllocationId,
    _attachment: Attachment,
    sink: &mut dyn Sink,
) {
    in_stream(core, op, stream, sink);
}
