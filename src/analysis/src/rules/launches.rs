//! Kernel launches.

use crate::clock::{Know, Part};
use crate::core::{Core, View};
use crate::record::Place;
use crate::rules::managed::note_kernel;
use crate::state::{Captured, Record, StreamState};
use crate::touch::Site;
use crate::{Rule, Sink};
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::{
    EdgeKind, EventId, KernelId, LaunchEventKind, MultiDeviceLaunch, OpSeq, Operation, StreamId,
    Tier,
};

/// `cuLaunchKernel`, `cuLaunchCooperativeKernel`, `cuLaunchKernelEx`: an operation of its stream,
/// asynchronous to the host. Documented: Programming Guide, Asynchronous Concurrent Execution.
/// Returns what has happened when the kernel begins.
pub(crate) fn launch(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    kernel: KernelId,
    sink: &mut dyn Sink,
) -> Option<Part> {
    let (mut state, before) = core.enqueue_and_take(op, stream, sink);
    // A programmatic successor may run beside this kernel, but not beside what it is behind.
    state.programmatic_base = before;
    let chain = state.chain;
    let view = core.view_of(op, &state);
    core.put_back(state);
    let site = Site::stream(&view, stream, Place::Chain(chain)).of_kernel(kernel);
    note_kernel(core, op, &site);
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
    Some(Part { chain, g: before, know: view.know })
}

/// A launch with programmatic stream serialization: it may begin before its primary, the kernel
/// before it, has ended. If the kernel executes the wait it is behind its primary; otherwise only
/// behind what its primary was behind from the start. Whether the wait of a kernel reaches past a
/// primary that did not wait itself is not documented: it does not. The next ordinary operation of
/// the stream is behind all of them. Documented: Programming Guide, Programmatic Dependent Launch:
/// a secondary kernel "must always use cudaGridDependencySynchronize" to see the primary's writes.
/// Returns what has happened when the kernel begins.
pub(crate) fn launch_programmatic(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    kernel: KernelId,
    waits: bool,
    sink: &mut dyn Sink,
) -> Option<Part> {
    let state = core.stream(stream);
    let primary_is_ordinary = state.is_none_or(|state| state.open.is_empty());
    let base = state.map_or(0, |state| state.programmatic_base);
    if waits && primary_is_ordinary && core.applies(Rule::ProgrammaticWait) {
        let begin = launch(core, op, stream, kernel, sink)?;
        return Some(Part { g: base, ..begin });
    }
    core.prepare(op, stream, sink);
    let mut state = core.take(stream);
    let beside = state.open.len();
    if state.side_chains.len() <= beside {
        state.side_chains.push(core.new_chain(state.chain.context));
    }
    let chain = state.side_chains[beside];
    // What is behind the kernel's begin, and what is behind its accesses.
    let mut begin = Part { chain: state.chain, g: base, know: Arc::clone(&state.know) };
    match state.open.last() {
        Some(primary) if core.applies(Rule::ProgrammaticBase) => {
            Arc::make_mut(&mut begin.know).join(&primary.know);
        }
        None if core.applies(Rule::ProgrammaticBase) => {
            Arc::make_mut(&mut begin.know).documented.raise(state.chain, base);
        }
        _ => {}
    }
    let mut know = Arc::clone(&begin.know);
    if let Some(primary) = state.open.last().filter(|_| waits)
        && core.applies(Rule::ProgrammaticWait)
    {
        Arc::make_mut(&mut know).acquire(primary);
    }
    state.open.push(Part { chain, g: op.g.0, know: Arc::clone(&know) });
    core.put_back(state);
    let view = View { own: None, agent: core.issuing_agent(), know };
    let site = Site::stream(&view, stream, Place::Chain(chain)).of_kernel(kernel);
    note_kernel(core, op, &site);
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
    Some(begin)
}

/// A launch that records an event. A programmatic event may fire once all blocks have triggered,
/// and those who wait for it are "not guaranteed to observe" the kernel's writes; a launch
/// completion event fires about when all blocks have begun. Neither is behind anything that the
/// kernel does: each captures what has happened when the kernel begins. Documented: Driver API,
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`, `CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT`.
pub(crate) fn record_event(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    (event, kind): (EventId, LaunchEventKind),
    begin: Part,
) {
    let rule = match kind {
        LaunchEventKind::Programmatic => Rule::ProgrammaticEvent,
        LaunchEventKind::LaunchCompletion => Rule::LaunchCompletionEvent,
    };
    let captured = Captured {
        record: Record { g: op.g, stream: Some(stream) },
        context: begin.chain.context,
        process: op.process,
        parts: core.applies(rule).then_some(begin).into_iter().collect(),
    };
    core.event(event).capture(captured);
}

/// `cuLaunchCooperativeKernelMultiDevice`: "each kernel waits for all prior work in all the
/// specified streams", and later work of all of them waits for every kernel; each half can be
/// switched off by a flag. The kernels themselves run together. Documented: Driver API, Execution
/// Control.
pub(crate) fn launch_multi_device(
    core: &mut Core,
    op: &Operation,
    launch: &MultiDeviceLaunch,
    sink: &mut dyn Sink,
) {
    let mut before = Points::new();
    for member in &launch.launches {
        core.prepare(op, member.stream, sink);
        let parts = core.stream(member.stream).map(StreamState::parts).unwrap_or_default();
        before.push((member.stream, parts));
    }
    if launch.waits_before && core.applies(Rule::MultiDeviceWaits) {
        join_streams(core, op, &before);
        let newest = before.iter().flat_map(|(_, parts)| parts).map(|part| part.g).max();
        if let Some(newest) = newest {
            let (from, kind) = (OpSeq(newest), EdgeKind::MultiDeviceLaunch);
            core.edge(from, op.g, kind, Tier::Documented, sink);
        }
    }
    let mut after = Points::new();
    let mut accesses = op.accesses.iter();
    for member in &launch.launches {
        let stream = member.stream;
        let view = core.append(op, stream);
        let Some((chain, _)) = view.own else { continue };
        let site = Site::stream(&view, stream, Place::Chain(chain)).of_kernel(member.kernel);
        note_kernel(core, op, &site);
        for access in accesses.by_ref().take(member.accesses as usize) {
            core.touch(op, access, &site);
        }
        after.push((stream, [Part { chain, g: op.g.0, know: view.know }].into()));
    }
    if launch.holds_back_after && core.applies(Rule::MultiDeviceHoldsBack) {
        join_streams(core, op, &after);
    }
}

/// Points of several streams.
pub(crate) type Points = Vec<(StreamId, SmallVec<[Part; 1]>)>;

/// Puts each of the streams behind the given points of all of them.
pub(crate) fn join_streams(core: &mut Core, op: &Operation, points: &Points) {
    for &(stream, _) in points {
        let mut state = core.take(stream);
        for part in points.iter().filter(|(other, _)| *other != stream).flat_map(|(_, p)| p) {
            Know::acquire_shared(&mut state.know, part);
        }
        let context = state.chain.context;
        core.put_back(state);
        core.note_foreign(context, stream, op.process);
    }
}
