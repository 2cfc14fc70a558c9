//! Memory's life: allocation and free are writes of the whole generation.

use crate::Sink;
use crate::core::Core;
use crate::host::Acquisition;
use crate::record::Place;
use crate::rules::contexts::whole_context;
use crate::touch::Site;
use std::sync::Arc;
use streamsan_model::{AllocationId, EdgeKind, MemoryKind, Operation, StreamId, Tier};

/// `cuMemAllocAsync`, `cuMemFreeAsync`: operations of their stream. The memory may be used behind
/// the allocation, and every use must be before the free; a use submitted after the free is an
/// error whatever orders it. Two generations at one address are never compared with each other:
/// whether the pool may reuse memory is the pool's affair. Documented: Programming Guide, Stream
/// Ordered Memory Allocator.
pub(crate) fn in_stream(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    for access in &op.accesses {
        core.touch(op, access, &Site::stream(&view, stream, Place::Chain(chain)));
    }
}

/// `cuMemAlloc`, `cuMemAllocPitch`, `cuMemAllocManaged`, `cuMemAllocHost`, `cuMemHostAlloc`,
/// `cuMemHostRegister`: valid everywhere at return. The Programming Guide lists allocations among
/// operations that synchronise implicitly; the reference does not, and drivers mostly do not:
/// incidental.
pub(crate) fn allocate(
    core: &mut Core,
    op: &Operation,
    allocation: AllocationId,
    sink: &mut dyn Sink,
) {
    let view = core.host_view(op.process);
    for access in &op.accesses {
        core.touch(op, access, &Site::host(&view));
    }
    let acquisition = implicit_synchronisation(core, op, allocation);
    core.acquire(op, acquisition, EdgeKind::ContextHost, sink);
}

/// `cuMemFree` "may perform implicit synchronization" (Driver API, Memory Management), and of
/// `cuMemFreeHost` and `cuMemHostUnregister` the documentation says nothing: incidental, so work
/// in flight at the free is a latent finding. Freeing stream-ordered memory this way does not
/// synchronise at all: "the driver assumes all accesses are complete".
pub(crate) fn free(core: &mut Core, op: &Operation, allocation: AllocationId, sink: &mut dyn Sink) {
    let pooled =
        core.entities.allocation(allocation).is_some_and(|a| a.kind == MemoryKind::StreamOrdered);
    let mut view = core.host_view(op.process);
    if pooled {
        for access in &op.accesses {
            core.touch(op, access, &Site::host(&view));
        }
        return;
    }
    let acquisition = implicit_synchronisation(core, op, allocation);
    acquisition.apply(Arc::make_mut(&mut view.know));
    for access in &op.accesses {
        core.touch(op, access, &Site::host(&view));
    }
    core.acquire(op, acquisition, EdgeKind::ContextHost, sink);
}

/// Everything issued before on the device that the memory belongs to.
fn implicit_synchronisation(
    core: &mut Core,
    op: &Operation,
    allocation: AllocationId,
) -> Acquisition {
    let home = core.entities.allocation(allocation).and_then(|allocation| allocation.context);
    let contexts = match home {
        Some(home) => {
            let device = core.context(home, op.process).device;
            core.contexts_of_device(op.process, device)
        }
        None => core.contexts_of(op.process),
    };
    whole_context(core, op, Tier::Incidental, contexts)
}
