//! Memsets.

use crate::Sink;
use crate::core::Core;
use crate::record::Place;
use crate::rules::copies::{HostOrder, order_host};
use crate::touch::Site;
use streamsan_model::{MemoryKind, Operation, StreamId};

/// What a memset makes the host wait for. Runtime API, "API synchronization behavior": memsets
/// "are asynchronous with respect to the host except when the target is pinned host memory"; the
/// `Async` forms always are. Older pages name managed memory too: incidental.
const fn host_order(destination: MemoryKind, synchronous: bool) -> HostOrder {
    match destination {
        _ if !synchronous => HostOrder::Nothing,
        MemoryKind::Pinned | MemoryKind::Registered => HostOrder::Itself,
        MemoryKind::Managed => HostOrder::ItselfIncidentally,
        _ => HostOrder::Nothing,
    }
}

/// `cuMemset*`: an operation of its stream; the synchronous forms use the default stream.
pub(crate) fn memset(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    destination: MemoryKind,
    synchronous: bool,
    sink: &mut dyn Sink,
) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let mut site = Site::stream(&view, stream, Place::Chain(chain));
    site.synchronous = synchronous;
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
    order_host(core, op, host_order(destination, synchronous), &view, sink);
}
