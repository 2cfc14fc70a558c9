//! Contexts: synchronisation of all their streams at once, and gates that hold all of them back.
//!
//! Invariant: a floor or a gate concerns the streams of its context (and of its green contexts)
//! only. Source: Driver API, Context Management.

use crate::core::Core;
use crate::host::Acquisition;
use crate::rules::events::{captured, is_imported, note_never_recorded};
use crate::state::{Captured, Gate, Record, StreamState};
use crate::{Rule, Sink};
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::{ContextId, EdgeKind, EventId, Operation, StreamKind, Tier};

/// `cuCtxSynchronize`: the host is behind every stream of the context, including non-blocking
/// streams, all threads' default streams and, for a primary context, its green contexts. Other
/// contexts are not concerned. Documented: Driver API, Context Management.
pub(crate) fn synchronize(
    core: &mut Core,
    op: &Operation,
    context: ContextId,
    sink: &mut dyn Sink,
) {
    if !core.applies(Rule::ContextSynchronize) {
        return;
    }
    let contexts = core.with_green(context, op.process);
    let acquisition = whole_context(core, op, Tier::Documented, contexts);
    core.acquire(op, acquisition, EdgeKind::ContextHost, sink);
}

/// All work issued in the contexts before the call.
pub(crate) fn whole_context(
    core: &mut Core,
    op: &Operation,
    tier: Tier,
    contexts: SmallVec<[ContextId; 1]>,
) -> Acquisition {
    let mut acquisition = Acquisition::new(op.g, tier);
    for &context in &contexts {
        // The acquisition adds what the streams have learnt of other contexts; the floor covers
        // their own. With strict host threads it also adds the agents that issued the work.
        let strict = core.strict;
        let state = core.context(context, op.process);
        let learned = if strict { state.streams.clone() } else { state.foreign.clone() };
        for stream in learned {
            acquisition.parts.extend(core.stream(stream).into_iter().flat_map(StreamState::parts));
        }
    }
    acquisition.floors = contexts;
    acquisition
}

/// `cuCtxRecordEvent`: the event captures all activities of the context at the call. Documented:
/// Driver API, Context Management.
pub(crate) fn record_event(core: &mut Core, op: &Operation, context: ContextId, event: EventId) {
    let mut streams = Vec::new();
    if core.applies(Rule::ContextRecordEvent) {
        for context in core.with_green(context, op.process) {
            streams.extend_from_slice(&core.context(context, op.process).streams);
        }
    }
    let parts =
        streams.iter().filter_map(|&s| core.stream(s)).flat_map(StreamState::parts).collect();
    let record = Record { g: op.g, stream: None };
    core.event(event).capture(Captured {
        record,
        context,
        process: op.process,
        parts,
        awaited: SmallVec::new(),
    });
}

/// `cuCtxWaitEvent`: all later work of the context is behind the work that the event has captured.
/// Documented: Driver API, Context Management.
pub(crate) fn wait_event(
    core: &mut Core,
    op: &Operation,
    context: ContextId,
    event: EventId,
    sink: &mut dyn Sink,
) {
    note_never_recorded(core, op, event, sink);
    if is_imported(core, event) {
        wait_for_outsider(core, op, context);
    }
    let Some(captured) = captured(core, op, event) else { return };
    if !core.applies(Rule::ContextWaitEvent) {
        return;
    }
    for context in core.with_green(context, op.process) {
        for part in &captured.parts {
            core.raise_gate(context, op.process, Gate::All, Tier::Documented, part);
        }
    }
    core.edge(captured.record.g, op.g, EdgeKind::EventWait, Tier::Documented, sink);
}

/// All later work of the context is behind a wait for an agent that is not recorded.
fn wait_for_outsider(core: &mut Core, op: &Operation, context: ContextId) {
    let part = core.wait_for_outsider(op.g);
    for context in core.with_green(context, op.process) {
        core.raise_gate(context, op.process, Gate::All, Tier::Documented, &part);
    }
}

/// Orders an operation behind the work for which its context's gates hold it back.
pub(crate) fn pass_gates(core: &mut Core, state: &mut StreamState) {
    let context = core.context(state.chain.context, state.process);
    let mut learnt = false;
    for gate in [Gate::All, Gate::Blocking] {
        if gate == Gate::Blocking && state.kind == StreamKind::NonBlocking {
            continue;
        }
        let raised = &context.gates[gate as usize];
        if raised.version != state.gates_seen[gate as usize] {
            state.gates_seen[gate as usize] = raised.version;
            Arc::make_mut(&mut state.know).join(&raised.know);
            learnt = true;
        }
    }
    if learnt {
        core.note_foreign(state.chain.context, state.id, state.process);
    }
}
