//! Streams: creation, synchronisation, and the barrier of the legacy default stream.
//!
//! Invariant: only blocking streams of the same context take part in the legacy barrier. Source:
//! Driver API, "Stream synchronization behavior".

use crate::clock::{Know, Part};
use crate::core::Core;
use crate::explain::{Mask, PoolMask};
use crate::host::Acquisition;
use crate::lints::Call;
use crate::state::{Primary, StreamState};
use crate::{Rule, Sink};
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::{
    Action, ContextId, EdgeKind, OpSeq, Operation, RaceClass, StreamId, StreamKind, Tier,
};

/// The legacy default stream waits for all blocking streams of its context, and they wait for it.
///
/// Driver API, "Stream synchronization behavior": "the legacy stream first waits on all blocking
/// streams, the action is queued in the legacy stream, and then all blocking streams wait on the
/// legacy stream". Per-thread default streams are blocking streams; streams made with
/// `CU_STREAM_NON_BLOCKING` and other contexts are exempt. A stream created *after* the legacy
/// operation waits for it too: Programming Guide, "Implicit Synchronization", speaks of operations
/// "from different streams" with one on the NULL stream "submitted in-between", not of when the
/// streams were made; "Legacy Default Stream": it "synchronizes with all other blocking streams".
/// All documented.
#[inline]
pub(crate) fn legacy_barrier(
    core: &mut Core,
    state: &mut StreamState,
    op: &Operation,
    sink: &mut dyn Sink,
) {
    match state.kind {
        StreamKind::NonBlocking => note_beside_legacy(core, state, op),
        _ => barrier(core, state, op, sink),
    }
}

fn barrier(core: &mut Core, state: &mut StreamState, op: &Operation, sink: &mut dyn Sink) {
    let context = state.chain.context;
    match state.kind {
        StreamKind::NonBlocking => {}
        StreamKind::PerThread if !core.applies(Rule::PerThreadIsBlocking) => {}
        StreamKind::Legacy if !core.applies(Rule::LegacyWaitsForBlocking) => {}
        StreamKind::Legacy => {
            let dirty = std::mem::take(&mut core.context(context, op.process).dirty);
            let mut newest = 0;
            for stream in dirty {
                let Some(blocking) = core.stream_mut(stream) else { continue };
                blocking.dirty = false;
                newest = newest.max(blocking.newest());
                for part in blocking.parts() {
                    Know::acquire_shared(&mut state.know, &part);
                }
            }
            if newest > 0 {
                core.edge(OpSeq(newest), op.g, EdgeKind::LegacyBarrier, Tier::Documented, sink);
            }
            check_beside_legacy(core, op, &Arc::clone(&state.know), context, sink);
        }
        StreamKind::Blocking | StreamKind::PerThread => {
            let ctx = core.context(context, op.process);
            if !state.dirty {
                state.dirty = true;
                ctx.dirty.push(state.id);
            }
            let Some(legacy) = ctx.legacy.and_then(|legacy| core.stream(legacy)) else { return };
            let last = legacy.newest();
            if last <= state.legacy_seen {
                return;
            }
            state.legacy_seen = last;
            let parts = legacy.parts();
            let rule = if state.created < last {
                Rule::BlockingWaitsForLegacy
            } else {
                Rule::NewBlockingAfterLegacy
            };
            if !core.applies(rule) {
                return;
            }
            let know = Arc::make_mut(&mut state.know);
            parts.iter().for_each(|part| know.acquire(part));
            core.edge(OpSeq(last), op.g, EdgeKind::LegacyBarrier, Tier::Documented, sink);
        }
    }
}

/// Notes that a non-blocking stream has touched memory since the legacy stream's last check.
#[inline]
fn note_beside_legacy(core: &mut Core, state: &mut StreamState, op: &Operation) {
    if state.beside.is_none() && !state.named_beside && touches_memory(op) {
        state.beside = Some(Call::of(op));
        core.context(state.chain.context, op.process).beside.push(state.id);
    }
}

fn touches_memory(op: &Operation) -> bool {
    !op.accesses.is_empty() || matches!(op.action, Action::GraphLaunch { .. })
}

/// Lint `legacy-beside-nonblocking`, once for each pair of streams: the legacy stream touches
/// memory, a non-blocking stream of its context has used memory, and the legacy stream is not
/// behind that use, not through a blocking stream either. The check covers only the first use since
/// the legacy stream's last check, which is cheap. `know` is the legacy stream's knowledge behind
/// its barrier.
fn check_beside_legacy(
    core: &mut Core,
    op: &Operation,
    know: &Know,
    context: ContextId,
    sink: &mut dyn Sink,
) {
    if core.context(context, op.process).beside.is_empty() || !touches_memory(op) {
        return;
    }
    for stream in std::mem::take(&mut core.context(context, op.process).beside) {
        let Some(state) = core.stream_mut(stream) else { continue };
        let Some(beside) = state.beside.take() else { continue };
        let done = |chain, g| know.documented.covers(chain, g);
        let mut at_once = state.open.iter().filter(|part| part.g <= beside.g.0);
        if !done(state.chain, beside.g.0) || !at_once.all(|part| done(part.chain, part.g)) {
            state.named_beside = true;
            core.lint(op, RaceClass::LegacyBesideNonblocking, None, Some(&beside), sink);
        }
    }
}

/// A new chain. Its priority orders nothing: `cuStreamCreateWithPriority` gives no "functional
/// guarantee on execution order".
pub(crate) fn create(core: &mut Core, op: &Operation, stream: StreamId) {
    core.live_stream(stream, op.process).created = op.g.0;
    core.entities.note_creation(stream, op.g, op.stack);
}

/// `cuStreamDestroy` returns at once and orders nothing; pending work goes on. Documented.
pub(crate) fn destroy(core: &mut Core, stream: StreamId) {
    core.destroy_stream(stream);
}

/// The work that synchronising a stream waits for: the stream's, and for the legacy stream also
/// that of all blocking streams of its context.
///
/// Programming Guide, stream capture: the legacy stream "at all times encompasses these other
/// streams, and synchronizing it would synchronize them".
pub(crate) fn synchronized_parts(core: &Core, stream: StreamId) -> SmallVec<[Part; 1]> {
    let Some(state) = core.stream(stream) else { return SmallVec::new() };
    let mut parts = state.own_parts();
    if state.kind == StreamKind::Legacy && core.applies(Rule::LegacySynchronizeCoversBlocking) {
        for blocking in core.dirty_streams(state.chain.context) {
            parts.extend(blocking.parts());
        }
    }
    parts
}

/// `cuStreamSynchronize`, and `cuStreamQuery` that answered success: the host is behind the
/// stream's work. Driver API, Stream Management: a successful query "is equivalent to having
/// called cuStreamSynchronize". Documented.
pub(crate) fn synchronize(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    rule: Rule,
    sink: &mut dyn Sink,
) {
    core.live_stream(stream, op.process);
    if !core.applies(rule) {
        return;
    }
    let mut acquisition = Acquisition::new(op.g, Tier::Documented);
    acquisition.parts = synchronized_parts(core, stream);
    core.acquire(op, acquisition, EdgeKind::StreamHost, sink);
}

/// A stream pool of the program hands the stream out again. The new user's work is behind the
/// former user's, but the program has not stated that order, and the next run may hand out another
/// stream. The stream's work therefore goes on in a new chain, which is behind the old chain in the
/// incidental tier only. A pair that only this order separates is a finding of severity lint. Calls
/// that order all of the stream's work, like a context synchronisation or the legacy stream,
/// include the former users.
pub(crate) fn hand_out(core: &mut Core, op: &Operation, stream: StreamId, sink: &mut dyn Sink) {
    core.live_stream(stream, op.process);
    let host = Arc::clone(&core.host(op.process).know);
    let mut state = core.take(stream);
    let parts = state.own_parts();
    state.former.extend(parts);
    state.former.retain(|part| !host.documented.covers(part.chain, part.g));
    let newest = state.newest();
    state.former_chains.push(state.chain);
    let beside = std::mem::take(&mut state.side_chains);
    state.former_chains.extend(beside.into_iter().map(|(chain, _)| chain));
    state.former_chains.extend(state.begin_chain.take());
    state.former_chains.extend(state.sources.drain(..).map(|(_, chain)| chain));
    state.chain = core.new_chain(state.chain.context);
    state.open.clear();
    // A use by the former user is no use of the new chain.
    state.beside = None;
    state.awaited.clear();
    (state.last, state.primary) = (0, Primary::None);
    // The stream begins like one that has just been created, but it is not new to the legacy
    // stream.
    state.know = host;
    state.host_version = core.host(op.process).version;
    state.gates_seen = [0; 2];
    state.legacy_seen = 0;
    if core.applies(Rule::StreamPool) && !state.former.is_empty() {
        for part in &state.former {
            Arc::make_mut(&mut state.know).acquire_incidentally(part);
        }
        let parts = state.former.clone();
        core.remember_pool_mask(PoolMask { chain: state.chain, mask: Mask::new(op.g, parts) });
        core.edge(OpSeq(newest), op.g, EdgeKind::StreamPool, Tier::Incidental, sink);
    }
    core.put_back(state);
}
