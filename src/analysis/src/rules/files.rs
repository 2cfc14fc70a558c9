//! GPUDirect Storage: transfers between files and memory.

use crate::Sink;
use crate::core::Core;
use crate::record::Place;
use crate::touch::Site;
use streamsan_model::{FileBatchId, Operation, StreamId};

/// `cuFileReadAsync`, `cuFileWriteAsync`: an operation of its stream.
pub(crate) fn transfer(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let site = Site::stream(&view, stream, Place::Chain(chain));
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}

/// `cuFileBatchIOSubmit`.
pub(crate) fn submit(_core: &mut Core, _op: &Operation, _batch: FileBatchId, _sink: &mut dyn Sink) {
}

/// `cuFileBatchIOGetStatus`.
pub(crate) fn complete(
    _core: &mut Core,
    _op: &Operation,
    _batch: FileBatchId,
    _sink: &mut dyn Sink,
) {
}
