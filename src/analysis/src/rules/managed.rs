//! Managed memory: prefetch, discard, attachment, and devices on which the host may not touch
//! managed memory while kernels run.
//!
//! Invariant: an attachment is a promise of the program and makes no edge. Sources: Driver API,
//! Unified Addressing; Programming Guide, Unified Memory.

use crate::Sink;
use crate::clock::Chain;
use crate::conflict::{self, Effect};
use crate::core::Core;
use crate::memory::{Conflict, Scope};
use crate::record::{AccessRecord, Place};
use crate::shadow::Order;
use crate::touch::Site;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::{
    Access, AllocationId, Attachment, Basis, Extent, MemoryKind, Mode, OpSeq, Operation, StreamId,
};

/// State for devices without concurrent managed access.
#[derive(Debug, Default)]
pub(crate) struct ManagedState {
    /// The newest kernel of each chain; the access in the record has no meaning.
    kernels: BTreeMap<Chain, Arc<AccessRecord>>,
    /// The attachments of each allocation, the newest last.
    attached: BTreeMap<AllocationId, Vec<Attached>>,
}

/// An attachment, in force behind the operation that makes it.
#[derive(Clone, Copy, Debug)]
struct Attached {
    chain: Chain,
    op: OpSeq,
    attachment: Attachment,
    stream: StreamId,
}

fn in_stream(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let site = Site::stream(&view, stream, Place::Chain(chain));
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}

/// `cuMemPrefetchAsync`: an operation of its stream, asynchronous to the host, that touches no
/// data: the memory is "always coherent" while it moves. Only a discard conflicts with it.
/// Documented: Driver API, Unified Addressing.
pub(crate) fn prefetch(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    in_stream(core, op, stream, sink);
}

/// `cuMemDiscardBatchAsync`, `cuMemDiscardAndPrefetchBatchAsync`: an operation of its stream; an
/// unordered read, write or prefetch of the memory is "undefined behavior". Documented: Driver API,
/// Unified Addressing.
pub(crate) fn discard(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    in_stream(core, op, stream, sink);
}

/// `cuStreamAttachMemAsync`: an operation of its stream that orders nothing else. The attachment
/// holds from the operation's end on. It is a promise of the program and not an order. Documented:
/// Driver API, Stream Management.
pub(crate) fn attach(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    allocation: AllocationId,
    attachment: Attachment,
    sink: &mut dyn Sink,
) {
    in_stream(core, op, stream, sink);
    let Some(chain) = core.stream(stream).map(|state| state.chain) else { return };
    let attached = Attached { chain, op: op.g, attachment, stream };
    core.managed.attached.entry(allocation).or_default().push(attached);
}

/// Remembers a kernel on a device without concurrent managed access.
pub(crate) fn note_kernel(core: &mut Core, op: &Operation, site: &Site<'_>) {
    let Place::Chain(chain) = site.place else { return };
    if core.entities.context(chain.context).is_none_or(|c| c.concurrent_managed_access) {
        return;
    }
    let access = Access {
        allocation: AllocationId(0),
        extent: Extent::Range(streamsan_model::ByteRange::new(0, 0)),
        mode: Mode::ReadWrite,
        basis: Basis::Exact,
    };
    let record = Arc::new(core.record(op, &access, site));
    core.managed.kernels.insert(chain, record);
}

/// The host touches managed memory. On a device without concurrent managed access the host may not
/// do so while any kernel runs there, whatever that kernel touches. Two cases are exempt: memory
/// that is attached to the host, and memory that is attached to one stream which is idle.
/// Documented: Programming Guide, Unified Memory on devices without concurrent managed access: "the
/// GPU has exclusive access" while it is active.
pub(crate) fn check_host_access(core: &mut Core, new: &AccessRecord) {
    if core.managed.kernels.is_empty() || matches!(new.access.mode, Mode::Allocate | Mode::Free) {
        return;
    }
    let Some(memory) = core.entities.allocation(new.access.allocation) else { return };
    let home = memory.context.and_then(|context| core.entities.context(context));
    let Some(home) = home.filter(|home| !home.concurrent_managed_access) else { return };
    if memory.kind != MemoryKind::Managed {
        return;
    }
    let attached = core.managed.attached.get(&memory.id).into_iter().flatten();
    let in_force =
        attached.rev().find(|attached| new.view.covers(Place::Chain(attached.chain), attached.op));
    let only = match in_force.map(|attached| (attached.attachment, attached.stream)) {
        Some((Attachment::Host, _)) => return,
        Some((Attachment::Single, stream)) => Some(stream),
        Some((Attachment::Global, _)) | None => None,
    };
    let whole = Access {
        allocation: memory.id,
        extent: Extent::Range(memory.range),
        mode: Mode::ReadWrite,
        basis: Basis::Exact,
    };
    let Some(overlap) = new.access.extent.hull().intersection(memory.range) else { return };
    let Some(kind) = conflict::kind(new.effect(), Effect { mode: whole.mode, on_host: false })
    else {
        return;
    };
    let later = Arc::new(new.clone());
    for (chain, kernel) in &core.managed.kernels {
        let context = core.entities.context(chain.context);
        if context.is_none_or(|c| (c.process, c.device) != (home.process, home.device))
            || only.is_some_and(|stream| kernel.stream != Some(stream))
            || new.view.covers(kernel.place, kernel.op)
        {
            continue;
        }
        let earlier = Arc::new(AccessRecord { access: whole.clone(), ..(**kernel).clone() });
        core.memory.conflicts.push(Conflict {
            scope: Scope::Operations,
            kind,
            latent: new.view.covers_incidentally(&earlier),
            earlier,
            later: Arc::clone(&later),
            overlap,
        });
    }
}
