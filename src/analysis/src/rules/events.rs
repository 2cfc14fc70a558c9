//! Events: a record captures the work before it, and a wait binds to the newest record at the time
//! of its call.
//!
//! Invariant: a later record or the event's destruction changes no wait that has been issued.
//! Source: Driver API, Event Management.

use crate::clock::{Agent, Know};
use crate::core::Core;
use crate::host::Acquisition;
use crate::lints::{Call, fingerprint};
use crate::state::{Captured, Record, Unconsumed, Wait};
use crate::{Rule, Sink};
use std::sync::Arc;
use streamsan_model::{EdgeKind, EventId, Lint, Operation, RaceClass, StreamId, Tier};

/// `cuEventRecord`: the event captures the stream's work so far and forgets what it captured
/// before. A record on the legacy stream captures the blocking streams too. Documented: Driver API,
/// Event Management.
pub(crate) fn record(
    core: &mut Core,
    op: &Operation,
    event: EventId,
    stream: StreamId,
    sink: &mut dyn Sink,
) {
    let state = core.pass_and_take(op, stream, sink);
    let context = state.chain.context;
    let (mut parts, awaited) = (state.own_parts(), state.awaited.clone());
    core.put_back(state);
    let record = Record { g: op.g, stream: Some(stream) };
    note_record(core, op, event, stream);
    if !core.applies(Rule::EventRecord) {
        parts.clear();
    } else if !core.applies(Rule::ProgrammaticJoin) {
        // Drop the kernels beside the chain.
        parts.truncate(1);
    }
    let process = op.process;
    core.event(event).capture(Captured { record, context, process, parts, awaited });
}

/// The work that an event has captured, for a wait by the current operation.
///
/// `cuIpcOpenEventHandle`: an event may have been recorded by another process. A waiter is behind
/// the captured work, and therefore behind what that process's host did before the record.
/// Documented: Driver API, Event Management, Interprocess Communication.
pub(crate) fn captured(core: &mut Core, op: &Operation, event: EventId) -> Option<Captured> {
    let mut captured = core.event(event).captured.clone()?;
    if captured.process != op.process {
        if !core.applies(Rule::EventOfOtherProcess) {
            return None;
        }
        // With strict host threads the parts hold that knowledge already.
        if !core.strict {
            for part in &mut captured.parts {
                let host = Agent(captured.process.0);
                Arc::make_mut(&mut part.know).documented.raise_host(host, captured.record.g.0);
            }
        }
    }
    Some(captured)
}

/// Lint: a wait for an event that was never recorded waits for nothing, which no program intends. A
/// query is exempt: it does not wait, and programs poll events that they have not used yet.
pub(crate) fn note_never_recorded(
    core: &mut Core,
    op: &Operation,
    event: EventId,
    sink: &mut dyn Sink,
) {
    if core.event(event).records.is_empty() && !is_imported(core, event) {
        core.lint(op, RaceClass::WaitBeforeRecord, Some(event), None, sink);
    }
}

/// Notes a record on another stream than that of the event's former record, which nothing has
/// waited for.
fn note_record(core: &mut Core, op: &Operation, event: EventId, stream: StreamId) {
    let call = (op.g, core.api_names.number(&op.api), op.stack);
    let state = core.event(event);
    let replaces = match state.unconsumed.take() {
        Some(before) if before.stream != stream => {
            let parts = state.captured.as_ref().map(|captured| captured.parts.clone());
            Some((before.call, parts.unwrap_or_default()))
        }
        Some(before) => before.replaces,
        None => None,
    };
    state.unconsumed = Some(Unconsumed { call, stream, replaces });
}

/// Notes a wait for the event; the waiter then knows `know`. Lint `event-rerecorded`, at the newest
/// record: the event was recorded on one stream, then on another, and only then waited for, and the
/// waiter is not behind the first record in any other way. Two cases are in order, because programs
/// use events repeatedly: a second record on the same stream, and a first record that was waited
/// for or that the waiter does not depend on.
fn note_wait(core: &mut Core, event: EventId, know: &Know, sink: &mut dyn Sink) {
    if let Some(newest) = core.event(event).unconsumed.take() {
        note_consumed(core, event, newest, know, sink);
    }
}

fn note_consumed(
    core: &mut Core,
    event: EventId,
    newest: Unconsumed,
    know: &Know,
    sink: &mut dyn Sink,
) {
    let Some((first, parts)) = newest.replaces else { return };
    if parts.iter().all(|part| know.documented.covers(part.chain, part.g)) {
        return;
    }
    let class = RaceClass::EventRerecorded;
    let [at, first] = [newest.call, first].map(|(g, api, stack)| Call {
        g,
        api: Arc::clone(core.api_names.name(api)),
        stack,
    });
    let lint = Lint {
        fingerprint: fingerprint(class, &at, Some(&first)),
        class,
        op: at.g,
        api: at.api,
        stream: Some(newest.stream),
        event: Some(event),
        related: Some(first.g),
        stack: at.stack,
        related_stack: first.stack,
    };
    core.ended.name_lint(&lint);
    sink.lint(lint);
}

/// Whether a process outside of the run made the event, so that the captured work is not known.
/// Driver API, `cuIpcOpenEventHandle`.
pub(crate) fn is_imported(core: &Core, event: EventId) -> bool {
    core.entities.event(event).is_some_and(|event| event.imported)
}

/// `cuStreamWaitEvent`: later work of the stream is behind what the event has captured "at the time
/// of the API call"; later records and the event's destruction change nothing. An event that was
/// never recorded stands for an empty set of work, so a wait for it orders nothing. Documented:
/// Driver API, Stream Management and Event Management.
pub(crate) fn stream_wait(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    event: EventId,
    sink: &mut dyn Sink,
) {
    let mut state = core.pass_and_take(op, stream, sink);
    if is_imported(core, event) {
        core.outside.note(state.chain, op.g);
    }
    let known = core.event(event);
    // Taken out instead of copied, unless the knowledge is to be changed.
    let borrowed = known.captured.take_if(|captured| captured.process == op.process);
    if known.records.is_empty() {
        note_never_recorded(core, op, event, sink);
    }
    let is_borrowed = borrowed.is_some();
    let captured = borrowed.or_else(|| captured(core, op, event));
    state.waits.push(Wait {
        g: op.g,
        done: Some(op.g),
        event: event.index(),
        record: captured.as_ref().map(|captured| captured.record),
    });
    if let Some(captured) = &captured
        && core.applies(Rule::EventWait)
    {
        for part in &captured.parts {
            Know::acquire_shared(&mut state.know, part);
        }
        if core.applies(Rule::ProgrammaticEventWait) {
            state.awaited.extend(captured.awaited.iter().cloned());
        }
        let context = state.chain.context;
        if captured.context != context {
            core.note_foreign(context, stream, op.process);
        }
        core.edge(captured.record.g, op.g, EdgeKind::EventWait, Tier::Documented, sink);
    }
    let known = core.event(event);
    if is_borrowed {
        known.captured = captured;
    }
    if let Some(newest) = known.unconsumed.take() {
        note_consumed(core, event, newest, &state.know, sink);
    }
    core.put_back(state);
}

/// `cuEventSynchronize`, and `cuEventQuery` that answered success: the host is behind what the
/// event had captured at the call. Documented: Driver API, Event Management.
pub(crate) fn host_wait(
    core: &mut Core,
    op: &Operation,
    event: EventId,
    rule: Rule,
    sink: &mut dyn Sink,
) {
    if is_imported(core, event) {
        core.outside.note_host(core.issuer(), op.g, op.exit);
    }
    let captured = captured(core, op, event);
    if rule == Rule::EventSynchronize {
        note_never_recorded(core, op, event, sink);
    }
    core.host(op.process).waits.push(Wait {
        g: op.g,
        done: op.exit,
        event: event.index(),
        record: captured.as_ref().map(|captured| captured.record),
    });
    let Some(captured) = captured.filter(|_| core.applies(rule)) else { return };
    let acquisition = acquisition(op, Tier::Documented, captured);
    let mut know = Arc::clone(&core.host(op.process).know);
    if core.event(event).unconsumed.is_some() {
        acquisition.apply(Arc::make_mut(&mut know));
        note_wait(core, event, &know, sink);
    }
    core.acquire(op, acquisition, EdgeKind::EventHost, sink);
}

/// `cuEventElapsedTime` that answered success: both events have completed, but the documentation
/// does not offer the call as a way to wait. Incidental.
pub(crate) fn elapsed_time(
    core: &mut Core,
    op: &Operation,
    events: [EventId; 2],
    sink: &mut dyn Sink,
) {
    if !core.applies(Rule::EventElapsedTime) {
        return;
    }
    for event in events {
        let Some(captured) = captured(core, op, event) else { continue };
        core.acquire(op, acquisition(op, Tier::Incidental, captured), EdgeKind::EventHost, sink);
    }
}

/// `cuEventDestroy`: waits already issued keep what they wait for. Documented.
pub(crate) fn destroy(core: &mut Core, event: EventId) {
    core.event(event).captured = None;
    core.ended.event(event);
}

fn acquisition(op: &Operation, tier: Tier, captured: Captured) -> Acquisition {
    let mut acquisition = Acquisition::new(op.g, tier);
    acquisition.parts = captured.parts;
    acquisition
}
