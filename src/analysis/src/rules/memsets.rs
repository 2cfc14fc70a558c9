//! Memsets.
//!
//! Invariant: a memset is one operation of its stream; the kind of memory decides only what the
//! host waits for. Source: Runtime API, "API synchronization behavior".

use crate::core::Core;
use crate::record::Place;
use crate::rules::copies::{HostOrder, order_host};
use crate::touch::Site;
use crate::{Rule, Sink};
use streamsan_model::{MemoryKind, Operation, StreamId};

/// The host's wait in a memset. Runtime API, "API synchronization behavior": memsets "are
/// asynchronous with respect to the host except when the target is pinned host memory"; the `Async`
/// forms are always asynchronous. Older pages name managed memory too: incidental.
///
/// `sync_memops`: as with copies.
const fn host_order(
    destination: MemoryKind,
    synchronous: bool,
    sync_memops: bool,
) -> (Rule, HostOrder) {
    match destination {
        _ if !synchronous => (Rule::MemsetIsAsynchronous, HostOrder::Nothing),
        _ if sync_memops => (Rule::SyncMemops, HostOrder::Itself),
        MemoryKind::Pinned | MemoryKind::Registered => (Rule::MemsetSyncPinned, HostOrder::Itself),
        MemoryKind::Managed => (Rule::MemsetSyncManaged, HostOrder::ItselfIncidentally),
        _ => (Rule::MemsetIsAsynchronous, HostOrder::Nothing),
    }
}

/// The form of a memset call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forms {
    /// A synchronous form.
    pub(crate) synchronous: bool,
    /// Whether synchronous forms wait with every kind of memory.
    pub(crate) sync_memops: bool,
}

/// `cuMemset*`: an operation of its stream; the synchronous forms use the default stream.
pub(crate) fn memset(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    destination: MemoryKind,
    forms: Forms,
    sink: &mut dyn Sink,
) {
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let mut site = Site::stream(&view, stream, Place::Chain(chain));
    site.synchronous = forms.synchronous;
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
    let (rule, order) = host_order(destination, forms.synchronous, forms.sync_memops);
    if core.applies(rule) {
        order_host(core, op, order, &view, sink);
    }
}
