//! NCCL: collective operations and transfers between GPUs.
//!
//! Deliberately absent: order among ranks. A receive is behind the send that it matches, but what a
//! rank's own streams do with their memory does not follow from it.

use crate::Sink;
use crate::core::Core;
use crate::record::Place;
use crate::touch::Site;
use streamsan_model::{Operation, StreamId};

/// `ncclAllReduce`, `ncclSend`, ...: an operation of its stream. Documented: NCCL user guide, stream
/// semantics.
pub(crate) fn collective(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let site = Site::stream(&view, stream, Place::Chain(chain));
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}
