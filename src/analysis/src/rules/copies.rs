//! Copies: the stream that carries a copy, the place where the source is read, and what the host
//! waits for.
//!
//! Invariant: where the documentation leaves the moment of a read open, the read has the widest
//! span that the documentation allows. Sources: Runtime API, "API synchronization behavior"; Driver
//! API, `CUmemcpySrcAccessOrder`.

use crate::clock::{Chain, Part};
use crate::core::{Core, View};
use crate::explain::Mask;
use crate::host::Acquisition;
use crate::record::Place;
use crate::rules::streams::synchronized_parts;
use crate::state::Gate;
use crate::touch::Site;
use crate::{Rule, Sink};
use std::sync::Arc;
use streamsan_model::{
    ContextId, Copy, EdgeKind, MemoryKind, OpSeq, Operation, SourceOrder, StreamKind, Tier,
};

/// The host's wait before a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostOrder {
    /// Nothing.
    Nothing,
    /// The stream's earlier work, but not the copy's own write.
    StreamBefore,
    /// The operation itself. Documented.
    Itself,
    /// The operation itself, by behaviour that is not guaranteed.
    ItselfIncidentally,
    /// The read of its source, by behaviour that is not guaranteed.
    SourceIncidentally,
}

/// A synchronous copy of at most so many bytes from pageable memory is on the device when the call
/// returns, with today's drivers: they pass so little data along with the command. No documentation
/// promises it.
const SMALL: u64 = 64 << 10;

/// The host's wait in a copy, by the kinds of memory.
///
/// Runtime API, "API synchronization behavior", synchronous forms:
/// - From pageable memory to the device, "a stream sync is performed before the copy is initiated",
///   and the call returns once the source has been staged, while "the DMA to final destination may
///   not have completed".
/// - From pinned memory, and from the device to any host memory, the call returns when the copy is
///   done.
/// - From device to device "no host-side synchronization is performed".
/// - From host to host the call is fully synchronous.
///
/// Asynchronous forms:
/// - With pinned and device memory the call is fully asynchronous.
/// - With pageable memory it "might be synchronous": incidental. From pageable memory that can only
///   mean the staging of the source, since even the synchronous form does not wait for the write.
/// - From host to host the call is fully synchronous.
///
/// Older pages called managed memory fully synchronous; today's do not mention it: incidental.
///
/// `CU_CTX_SYNC_MEMOPS`, `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`: "memory operations that are
/// synchronous will always synchronize", with every kind of memory.
pub(crate) const fn host_order(copy: &Copy) -> (Rule, HostOrder) {
    let &Copy { source, destination, synchronous, .. } = copy;
    let managed =
        matches!(source, MemoryKind::Managed) || matches!(destination, MemoryKind::Managed);
    let pageable =
        matches!(source, MemoryKind::Pageable) || matches!(destination, MemoryKind::Pageable);
    match (source.is_host(), destination.is_host()) {
        (true, true) => (Rule::CopyHostToHost, HostOrder::Itself),
        _ if synchronous && copy.sync_memops => (Rule::SyncMemops, HostOrder::Itself),
        (false, true) if synchronous => (Rule::CopySyncDeviceToHost, HostOrder::Itself),
        (true, false) if synchronous && pageable => {
            (Rule::CopySyncPageableToDevice, HostOrder::StreamBefore)
        }
        (true, false) if synchronous => (Rule::CopySyncPinnedToDevice, HostOrder::Itself),
        (false, false) if synchronous && managed => {
            (Rule::CopySyncManaged, HostOrder::ItselfIncidentally)
        }
        (false, false) if synchronous => (Rule::CopySyncDeviceToDevice, HostOrder::Nothing),
        (true, false) if pageable => (Rule::CopyAsyncPageableSource, HostOrder::SourceIncidentally),
        (false, true) if pageable => (Rule::CopyAsyncPageable, HostOrder::ItselfIncidentally),
        _ => (Rule::CopyAsync, HostOrder::Nothing),
    }
}

/// When and where a copy reads its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceRead {
    /// In stream order.
    InStream,
    /// By the host, behind the stream synchronisation at the begin of the call.
    Staged,
    /// By the host during the call, out of stream order.
    DuringCall,
    /// At any time from the call to the copy's end: not behind the stream's earlier work, and not
    /// necessarily done before the copy is.
    Floating,
}

/// Whether the call states when its source is read: `cuMemcpyWithAttributesAsync`,
/// `cuMemcpy3DWithAttributesAsync`.
fn has_attributes(op: &Operation) -> bool {
    op.api.contains("WithAttributes")
}

/// When a copy reads its source. Forms with `CUmemcpySrcAccessOrder` state it: in stream order, or
/// out of it "during the API call" or at "any" time. A synchronous form without it stages a
/// pageable source (see [`host_order`]). An asynchronous form without it may stage the source
/// during the call or read it later: the weaker edge. Driver API, `cuMemcpyBatchAsync`; Runtime
/// API, "API synchronization behavior".
pub(crate) const fn source_read(copy: &Copy, has_attributes: bool) -> SourceRead {
    let pageable = matches!(copy.source, MemoryKind::Pageable)
        && !copy.destination.is_host()
        && !has_attributes;
    match copy.source_order {
        SourceOrder::DuringCall => SourceRead::DuringCall,
        SourceOrder::Any => SourceRead::Floating,
        SourceOrder::Stream if pageable && copy.synchronous => SourceRead::Staged,
        SourceOrder::Stream if pageable => SourceRead::Floating,
        SourceOrder::Stream => SourceRead::InStream,
    }
}

/// `cuMemcpy*`: an operation of its stream; the synchronous forms use the default stream. The
/// asynchronous peer forms are no different and order nothing on the peer device.
pub(crate) fn copy(core: &mut Core, op: &Operation, copy: &Copy, sink: &mut dyn Sink) {
    core.live_stream(copy.stream, op.process);
    let before = synchronized_parts(core, copy.stream);
    let peers = copy.peer.filter(|_| copy.synchronous);
    if let Some(peers) = peers {
        wait_for_peers(core, op, copy, peers, sink);
    }
    let view = core.enqueue(op, copy.stream, sink);
    let Some((chain, _)) = view.own else { return };
    if let Some(peers) = peers {
        hold_back_peers(core, op, peers, Part { chain, g: op.g.0, know: Arc::clone(&view.know) });
    }
    let has_attributes = has_attributes(op);
    let (rule, order) = match host_order(copy) {
        // A copy whose staging is not the driver's own choice has nothing to wait for.
        (Rule::CopyAsyncPageable | Rule::CopyAsyncPageableSource, _) if has_attributes => {
            (Rule::CopyAsync, HostOrder::Nothing)
        }
        order => order,
    };
    let to_managed = copy.destination == MemoryKind::Managed;
    let mut in_stream = Site::stream(&view, copy.stream, Place::Chain(chain));
    in_stream.synchronous = copy.synchronous;
    in_stream.has_tail = order == HostOrder::StreamBefore && !to_managed;

    let host = core.host_view(op.process);
    let staged = staged_view(&host, &before);
    let source = match source_read(copy, has_attributes) {
        SourceRead::Staged if core.applies(Rule::CopySyncPageableSource) => {
            Site { synchronous: true, ..Site::host(&staged) }
        }
        SourceRead::DuringCall if core.applies(Rule::CopySourceDuringCall) => Site::host(&host),
        SourceRead::Floating if order == HostOrder::SourceIncidentally => {
            let sources = sources(core, op, copy);
            Site::stream(&host, copy.stream, Place::Chain(sources))
        }
        SourceRead::Floating | SourceRead::DuringCall => {
            Site::stream(&host, copy.stream, Place::Chain(chain))
        }
        SourceRead::InStream | SourceRead::Staged => in_stream.clone(),
    };
    for access in &op.accesses {
        let reads_source = access.mode.reads() && !access.mode.writes();
        core.touch(op, access, if reads_source { &source } else { &in_stream });
    }
    if in_stream.has_tail {
        note_return(core, op, chain);
    }
    match order {
        _ if !core.applies(rule) => {}
        HostOrder::StreamBefore => {
            let mut acquisition = Acquisition::new(op.g, Tier::Documented);
            acquisition.parts = before;
            core.acquire(op, acquisition, EdgeKind::Blocking, sink);
            let is_done = match to_managed {
                true => core.applies(Rule::CopySyncManaged),
                false => copy.bytes <= SMALL && core.applies(Rule::CopySyncPageableSmall),
            };
            if is_done {
                order_host(core, op, HostOrder::ItselfIncidentally, &view, sink);
            }
        }
        HostOrder::SourceIncidentally => {
            if let Place::Chain(sources) = source.place {
                let read = View { own: Some((sources, op.g.0)), ..host };
                order_host(core, op, HostOrder::ItselfIncidentally, &read, sink);
            }
        }
        order => order_host(core, op, order, &view, sink),
    }
}

/// The chain in which the copies that this host issues to the stream read their pageable sources: one
/// after the other, as far as its calls return with the source read. The copy of another host thread
/// may be read at any time before. The stream's later work is behind the copy and so behind its read.
fn sources(core: &mut Core, op: &Operation, copy: &Copy) -> Chain {
    let mut state = core.take(copy.stream);
    let agent = core.issuer();
    let known = state.sources.iter().find(|(of, _)| *of == agent).map(|&(_, chain)| chain);
    let sources = known.unwrap_or_else(|| {
        let chain = core.new_chain(state.chain.context);
        state.sources.push((agent, chain));
        chain
    });
    Arc::make_mut(&mut state.know).documented.raise(sources, op.g.0);
    core.put_back(state);
    sources
}

/// Lets the host know of the call's return, but not of the copy: an agent that knows of the return
/// and not of the copy meets the copy's tail.
fn note_return(core: &mut Core, op: &Operation, chain: Chain) {
    let known = core.context(chain.context, op.process).returns;
    let returns = known.unwrap_or_else(|| core.new_chain(chain.context));
    core.context(chain.context, op.process).returns = Some(returns);
    let mut acquisition = Acquisition::new(op.g, Tier::Documented);
    acquisition.parts = [Part { chain: returns, g: op.g.0, know: Arc::default() }].into();
    core.host(op.process).schedule(acquisition, op.exit);
}

/// The host's knowledge once it has synchronised the stream.
fn staged_view(host: &View, before: &[Part]) -> View {
    let mut staged = host.clone();
    for part in before {
        Arc::make_mut(&mut staged.know).acquire(part);
    }
    staged
}

/// Makes the host wait for the operation that looks back from `view`.
pub(crate) fn order_host(
    core: &mut Core,
    op: &Operation,
    order: HostOrder,
    view: &View,
    sink: &mut dyn Sink,
) {
    let tier = match order {
        HostOrder::Nothing | HostOrder::StreamBefore | HostOrder::SourceIncidentally => return,
        HostOrder::Itself => Tier::Documented,
        HostOrder::ItselfIncidentally => Tier::Incidental,
    };
    let Some((chain, _)) = view.own else { return };
    let mut acquisition = Acquisition::new(op.g, tier);
    acquisition.parts = [Part { chain, g: op.g.0, know: Arc::clone(&view.know) }].into();
    core.acquire(op, acquisition, EdgeKind::Blocking, sink);
}

/// `cuMemcpyPeer` "does not start until all commands previously issued to either device have
/// completed" (Programming Guide, Peer-to-Peer Memory Copy). The documentation does not say that
/// the implicit default stream waits for non-blocking streams: incidental for them.
fn wait_for_peers(
    core: &mut Core,
    op: &Operation,
    copy: &Copy,
    peers: (ContextId, ContextId),
    sink: &mut dyn Sink,
) {
    let mut newest = 0;
    for context in peer_contexts(core, op, peers) {
        for stream in core.context(context, op.process).streams.clone() {
            if stream == copy.stream {
                continue;
            }
            let Some(other) = core.stream(stream) else { continue };
            let (parts, kind) = (other.parts(), other.kind);
            newest = newest.max(other.newest());
            let rule = match kind {
                StreamKind::NonBlocking => Rule::PeerCopyWaitsForNonBlocking,
                _ => Rule::PeerCopyWaits,
            };
            if !core.applies(rule) {
                continue;
            }
            let Some(state) = core.stream_mut(copy.stream) else { return };
            let know = Arc::make_mut(&mut state.know);
            if kind == StreamKind::NonBlocking {
                parts.iter().for_each(|part| know.acquire_incidentally(part));
                core.remember_mask(Mask::new(op.g, parts));
            } else {
                parts.iter().for_each(|part| know.acquire(part));
            }
        }
    }
    if let Some(state) = core.stream(copy.stream) {
        core.note_foreign(state.chain.context, copy.stream, op.process);
    }
    if newest > 0 {
        core.edge(OpSeq(newest), op.g, EdgeKind::PeerCopy, Tier::Documented, sink);
    }
}

/// `cuMemcpyPeer` "runs to completion before any commands issued afterwards to either device can
/// start" (as above).
fn hold_back_peers(core: &mut Core, op: &Operation, peers: (ContextId, ContextId), part: Part) {
    for context in peer_contexts(core, op, peers) {
        if core.applies(Rule::PeerCopyHoldsBack) {
            core.raise_gate(context, op.process, Gate::Blocking, Tier::Documented, &part);
        }
        if core.applies(Rule::PeerCopyHoldsBackNonBlocking) {
            core.raise_gate(context, op.process, Gate::All, Tier::Incidental, &part);
        }
    }
    core.remember_mask(Mask::new(op.g, [part].into()));
}

/// All contexts on the devices of the two given contexts.
fn peer_contexts(core: &mut Core, op: &Operation, peers: (ContextId, ContextId)) -> Vec<ContextId> {
    let mut contexts = Vec::new();
    for peer in [peers.0, peers.1] {
        let device = core.context(peer, op.process).device;
        contexts.extend(core.contexts_of_device(op.process, device));
    }
    contexts.sort();
    contexts.dedup();
    contexts
}

#[cfg(test)]
mod tests {
    use super::*;
    use MemoryKind::{Device, Managed, Pageable, Pinned};

    #[test]
    fn what_the_host_waits_for() {
        use HostOrder::{Itself, ItselfIncidentally, Nothing, SourceIncidentally, StreamBefore};
        use streamsan_model::StreamId;
        let table = [
            (Pageable, Device, true, StreamBefore),
            (Pinned, Device, true, Itself),
            (Device, Pageable, true, Itself),
            (Device, Pinned, true, Itself),
            (Device, Device, true, Nothing),
            (Pageable, Pinned, true, Itself),
            (Managed, Device, true, ItselfIncidentally),
            (Pageable, Device, false, SourceIncidentally),
            (Pageable, Managed, false, SourceIncidentally),
            (Device, Pageable, false, ItselfIncidentally),
            (Pinned, Device, false, Nothing),
            (Device, Pinned, false, Nothing),
            (Device, Device, false, Nothing),
            (Pageable, Pageable, false, Itself),
        ];
        for (source, destination, synchronous, expected) in table {
            let copy = Copy {
                stream: StreamId(0),
                synchronous,
                source,
                destination,
                peer: None,
                bytes: 1,
                source_order: SourceOrder::Stream,
                sync_memops: false,
            };
            let (rule, got) = host_order(&copy);
            assert_eq!(got, expected, "{source:?} to {destination:?}, synchronous {synchronous}");
            assert_eq!(rule.tier().is_some(), got != Nothing, "{rule:?}");
            let with_memops = host_order(&Copy { sync_memops: true, ..copy }).1;
            assert_eq!(with_memops, if synchronous { Itself } else { expected });
        }
    }
}
