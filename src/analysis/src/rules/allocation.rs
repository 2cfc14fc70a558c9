//! The life of memory: allocation and free count as writes of the whole generation.
//!
//! Invariant: two generations at one address are never compared with each other. Sources: Driver
//! API, Memory Management; Programming Guide, Stream Ordered Memory Allocator.

use crate::core::Core;
use crate::host::Acquisition;
use crate::record::Place;
use crate::rules::contexts::whole_context;
use crate::touch::Site;
use crate::{Rule, Sink};
use std::sync::Arc;
use streamsan_model::{
    Access, AllocationId, Basis, ContextId, EdgeKind, Extent, MemoryKind, Mode, Operation,
    StreamId, Tier,
};

/// `cuMemAllocAsync`, `cuMemFreeAsync`: operations of their stream. The memory may be used behind
/// the allocation, and every use must be before the free; a use submitted after the free is an
/// error whatever orders it. Two generations at one address are never compared with each other:
/// whether the pool may reuse memory is up to the pool. Documented: Programming Guide, Stream
/// Ordered Memory Allocator.
pub(crate) fn in_stream(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    for access in &op.accesses {
        core.touch(op, access, &Site::stream(&view, stream, Place::Chain(chain)));
    }
}

/// `cuMemAlloc`, `cuMemAllocPitch`, `cuMemAllocManaged`, `cuMemAllocHost`, `cuMemHostAlloc`,
/// `cuMemHostRegister`, `cuArrayCreate`, `cuMemMap`, `cuIpcOpenMemHandle`: the memory is valid
/// everywhere at return, and the call orders nothing. Older Programming Guides listed allocations
/// among the operations that keep two streams from running concurrently. Today's section "Implicit
/// Synchronization" names operations on the NULL stream only, and the reference of these calls
/// never named a synchronisation. Registering a region of a memory pool is no call of the driver.
pub(crate) fn allocate(core: &mut Core, op: &Operation) {
    let view = core.host_view(op.process);
    for access in &op.accesses {
        core.touch(op, access, &Site::host(&view));
    }
}

/// `cuMemFree` "may perform implicit synchronization" (Driver API, Memory Management). The
/// documentation says nothing about `cuMemFreeHost` and `cuMemHostUnregister`. The order is
/// incidental, so work in flight at the free is a latent finding. Freeing stream-ordered memory
/// this way does not synchronise at all: "the driver assumes all accesses are complete"; memory of
/// a graph's allocation node is stream-ordered in this sense. `cuMemUnmap` and
/// `cuIpcCloseMemHandle` are like `cuMemFree`.
///
/// A region of a memory pool ends on the host too, for what is issued later: an allocator may take
/// memory back while its user still runs, and hand it out again behind that use. NVTX,
/// nvToolsExtMem.h: "should not be accessed by the user until regions are registered".
pub(crate) fn free(core: &mut Core, op: &Operation, allocation: AllocationId, sink: &mut dyn Sink) {
    let waits_for_nothing = core
        .entities
        .allocation(allocation)
        .is_some_and(|a| is_pooled(a.kind) || a.kind == MemoryKind::Region);
    if waits_for_nothing {
        let view = core.host_view(op.process);
        for access in &op.accesses {
            core.touch(op, access, &Site::host(&view));
        }
        return;
    }
    let acquisition = implicit_synchronisation(core, op, allocation);
    end_of_life(core, op, &op.accesses, acquisition, sink);
}

/// Whether the memory comes from a pool, of streams or of graphs.
const fn is_pooled(kind: MemoryKind) -> bool {
    matches!(kind, MemoryKind::StreamOrdered | MemoryKind::GraphOrdered)
}

/// The memory of a context, except stream-ordered memory, ends with the context. The documentation
/// does not say whether the call waits for the context's work. Incidental. Driver API,
/// `cuCtxDestroy`, `cuDevicePrimaryCtxReset`.
pub(crate) fn destroy_context(
    core: &mut Core,
    op: &Operation,
    context: ContextId,
    sink: &mut dyn Sink,
) {
    let frees: Vec<Access> = core
        .entities
        .allocations()
        .filter(|a| a.context == Some(context) && !a.kind.is_host())
        // Physical memory of `cuMemCreate` belongs to no context.
        .filter(|a| !is_pooled(a.kind))
        .filter(|a| !matches!(a.kind, MemoryKind::Mapped | MemoryKind::Region))
        .filter(|a| core.memory.is_in_use(a.id))
        .map(|a| Access {
            allocation: a.id,
            extent: Extent::Range(a.range),
            mode: Mode::Free,
            basis: Basis::Exact,
        })
        .collect();
    let waits = core.applies(Rule::ContextDestroyMayWait);
    let contexts = waits.then_some(context).into_iter().collect();
    let acquisition = whole_context(core, op, Tier::Incidental, contexts);
    end_of_life(core, op, &frees, acquisition, sink);
}

/// Ends the memory's life on the host, by a call that may synchronise first.
fn end_of_life(
    core: &mut Core,
    op: &Operation,
    frees: &[Access],
    acquisition: Acquisition,
    sink: &mut dyn Sink,
) {
    let mut view = core.host_view(op.process);
    acquisition.apply(Arc::make_mut(&mut view.know));
    for access in frees {
        core.touch(op, access, &Site::host(&view));
    }
    core.acquire(op, acquisition, EdgeKind::ContextHost, sink);
}

/// All earlier work on the device that the memory belongs to.
fn implicit_synchronisation(
    core: &mut Core,
    op: &Operation,
    allocation: AllocationId,
) -> Acquisition {
    if !core.applies(Rule::FreeMayWait) {
        return Acquisition::new(op.g, Tier::Incidental);
    }
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
