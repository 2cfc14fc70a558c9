//! Batched copies: one operation of its stream whose entries have no order among themselves.

use crate::Sink;
use crate::core::Core;
use streamsan_model::{Batch, Operation};

/// `cuMemcpyBatchAsync` and the like.
pub(crate) fn batch(core: &mut Core, op: &Operation, batch: &Batch, sink: &mut dyn Sink) {
    let _ = core.enqueue(op, batch.stream, sink);
}
