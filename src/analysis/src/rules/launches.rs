//! Kernel launches, including programmatic dependent launch.
//!
//! Invariant: a kernel that may overlap its predecessor gets a chain of its own beside the
//! stream's; every other launch is one operation of the stream's chain. Sources: Programming Guide,
//! Programmatic Dependent Launch; PTX ISA, `griddepcontrol`.

use crate::clock::{Chain, Know, Part};
use crate::core::{Core, View};
use crate::record::Place;
use crate::rules::managed::note_kernel;
use crate::state::{Captured, Primary, Record, StreamState};
use crate::touch::Site;
use crate::{Rule, Sink};
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::{
    EdgeKind, EventId, GridControl, KernelId, LaunchEventKind, MultiDeviceLaunch, OpSeq, Operation,
    StreamId, Tier, Trigger,
};

/// A launch of one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub(crate) stream: StreamId,
    pub(crate) kernel: KernelId,
    /// Whether the kernel may begin before the previous kernel of the stream has ended.
    pub(crate) programmatic: bool,
    /// How the kernel waits for earlier kernels and triggers later ones.
    pub(crate) control: GridControl,
    /// An event that the launch records by attribute.
    pub(crate) event: Option<(EventId, LaunchEventKind)>,
}

/// The order of a kernel beside the chain of its stream.
struct KernelOrder {
    /// At the kernel's begin.
    begin: Arc<Know>,
    /// Behind the kernel's wait; equal to `begin` where the kernel does not wait.
    waited: Arc<Know>,
}

/// `cuLaunchKernel`, `cuLaunchCooperativeKernel`, `cuLaunchKernelEx`: an operation of its stream,
/// asynchronous to the host. Documented: Programming Guide, Asynchronous Concurrent Execution.
///
/// Some kernels may begin before the kernels that their wait covers have ended. Such a kernel lies
/// beside the chain of its stream: its accesses before the wait are behind less work than its
/// accesses after the wait.
pub(crate) fn launch(core: &mut Core, op: &Operation, launch: Launch, sink: &mut dyn Sink) {
    let Launch { stream, kernel, programmatic, control, event } = launch;
    let mut state = core.take_prepared(op, stream, sink);
    let overlaps = programmatic && !matches!(state.primary, Primary::None);
    let awaited = std::mem::take(&mut state.awaited);
    if overlaps || (control.waits && !awaited.is_empty()) {
        let beside = match overlaps {
            true => behind_primary(core, &state, control),
            false => behind_events(core, op, &mut state),
        };
        return launch_beside(core, op, launch, (state, beside), &awaited);
    }
    let base = state.last;
    core.advance(op, &mut state);
    let ends_first = control.trigger == Trigger::AtEnd;
    state.primary = Primary::InChain { g: op.g.0, base, ends_first };
    let chain = state.chain;
    let view = core.view_of(op, &state);
    let begin = event.map(|_| begin_in_chain(core, &state));
    core.put_back(state);
    let site = Site::stream(&view, stream, Place::Chain(chain)).of_kernel(kernel);
    note_kernel(core, op, &site);
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
    if let Some((event, begin)) = event.zip(begin) {
        let end = Part { chain, g: op.g.0, know: view.know };
        record_event(core, op, stream, event, (begin.0, begin.1, end));
    }
}

/// The knowledge with which a kernel in its stream's chain begins, and the knowledge with which its
/// dependents begin.
///
/// A kernel that never triggers does so when all of its blocks have ended: "if the primary kernel
/// doesn't execute the trigger, it implicitly occurs after all thread blocks in the primary kernel"
/// have ended. At that time the kernel's reads are done, but its writes may not be visible yet.
/// Documented: Programming Guide, Programmatic Dependent Launch.
fn begin_in_chain(core: &Core, state: &StreamState) -> (Arc<Know>, Arc<Know>) {
    let mut begin = Arc::clone(&state.know);
    let Primary::InChain { g, base, ends_first } = state.primary else {
        return (Arc::clone(&begin), begin);
    };
    if core.applies(Rule::ProgrammaticBase) {
        Arc::make_mut(&mut begin).documented.raise(state.chain, base);
    }
    let mut start = Arc::clone(&begin);
    if ends_first && core.applies(Rule::ProgrammaticEnd) {
        Arc::make_mut(&mut start).documented.raise_reads(state.chain, g);
    }
    (begin, start)
}

/// A launch with programmatic stream serialization behind a kernel, its primary. The secondary
/// begins when all blocks of the primary have triggered or ended, and it is behind everything that
/// the primary was behind from the start. Work behind the secondary's wait is behind the primary:
/// "until all prerequisite grids in flight have completed and all the memory operations from the
/// prerequisite grids are performed and made visible" (PTX ISA, `griddepcontrol`). The
/// documentation does not say whether that wait reaches past a primary that did not wait itself;
/// the weaker reading is that it does not. Documented: Programming Guide, Programmatic Dependent
/// Launch.
fn behind_primary(core: &Core, state: &StreamState, control: GridControl) -> KernelOrder {
    let begin = match &state.primary {
        Primary::Beside { start } if core.applies(Rule::ProgrammaticBase) => {
            let mut begin = Arc::clone(&state.know);
            Arc::make_mut(&mut begin).join(start);
            begin
        }
        Primary::InChain { .. } => begin_in_chain(core, state).1,
        _ => Arc::clone(&state.know),
    };
    let mut waited = Arc::clone(&begin);
    if control.waits && core.applies(Rule::ProgrammaticWait) {
        match (&state.primary, state.open.last()) {
            (Primary::Beside { .. }, Some(primary)) => Know::acquire_shared(&mut waited, primary),
            _ => Arc::make_mut(&mut waited).documented.raise(state.chain, state.last),
        }
    }
    KernelOrder { begin, waited }
}

/// An ordinary launch of a kernel that waits, behind events that other kernels record by attribute:
/// the kernel begins behind all earlier work of its stream.
fn behind_events(core: &Core, op: &Operation, state: &mut StreamState) -> KernelOrder {
    let last = state.last;
    core.join_open(state);
    let mut begin = Arc::clone(&state.know);
    if core.applies(Rule::StreamOrder) {
        Arc::make_mut(&mut begin).documented.raise(state.chain, last);
    }
    debug_assert!(last < op.g.0, "operations come in the order of their issue");
    KernelOrder { waited: Arc::clone(&begin), begin }
}

/// Launches a kernel beside the chain of its stream. The next ordinary operation of the stream is
/// behind the kernel.
///
/// The knowledge with which the kernel's dependents begin depends on where the kernel triggers. If
/// it triggers behind its wait, or never, they are behind what it has waited for; if it triggers
/// before its wait, they are not.
fn launch_beside(
    core: &mut Core,
    op: &Operation,
    launch: Launch,
    (mut state, KernelOrder { begin, mut waited }): (Box<StreamState>, KernelOrder),
    awaited: &[Part],
) {
    let Launch { stream, kernel, control, event, .. } = launch;
    if control.waits {
        awaited.iter().for_each(|part| Know::acquire_shared(&mut waited, part));
    }
    let chain = chain_beside(core, op, &mut state, &waited);
    let itself = Part { chain, g: op.g.0, know: Arc::clone(&waited) };
    state.open.retain(|earlier| !waited.documented.covers(earlier.chain, earlier.g));
    state.open.push(itself.clone());
    let triggers_early = control.trigger == Trigger::Early;
    let mut start = match triggers_early || !core.applies(Rule::ProgrammaticTrigger) {
        true => Arc::clone(&begin),
        false => Arc::clone(&waited),
    };
    if control.trigger == Trigger::AtEnd && core.applies(Rule::ProgrammaticEnd) {
        Arc::make_mut(&mut start).documented.raise_reads(chain, op.g.0);
    }
    state.primary = Primary::Beside { start: Arc::clone(&start) };
    core.put_back(state);
    let agent = core.issuing_agent();
    let [early, late] =
        [&begin, &waited].map(|know| View { own: None, agent, know: Arc::clone(know) });
    let place = Place::Chain(chain);
    let [early, late] =
        [&early, &late].map(|view| Site::stream(view, stream, place).of_kernel(kernel));
    note_kernel(core, op, &late);
    for (position, access) in op.accesses.iter().enumerate() {
        core.touch(op, access, if control.is_early(position) { &early } else { &late });
    }
    if let Some(event) = event {
        record_event(core, op, stream, event, (begin, start, itself));
    }
}

/// A chain for a kernel beside that of the stream: a chain whose newest operation is before the
/// kernel's end.
fn chain_beside(core: &mut Core, op: &Operation, state: &mut StreamState, know: &Know) -> Chain {
    let is_free = |(chain, newest): &&mut (Chain, u64)| know.documented.covers(*chain, *newest);
    if let Some((chain, newest)) = state.side_chains.iter_mut().find(is_free) {
        *newest = op.g.0;
        return *chain;
    }
    let chain = core.new_chain(state.chain.context);
    state.side_chains.push((chain, op.g.0));
    chain
}

/// A launch that records an event. A programmatic event may fire once all blocks have triggered, or
/// have begun with `triggerAtBlockStart`; a launch completion event fires about when all blocks
/// have begun. A waiter for the event is therefore behind no more than what the kernel's dependents
/// are behind when they begin. A kernel that waits itself (`griddepcontrol.wait`) behind a
/// programmatic event is behind all of the recording kernel: "the dependent launches can choose to
/// wait on the dependency using the programmatic sync". Documented: Driver API,
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`, `CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT`.
fn record_event(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    (event, kind): (EventId, LaunchEventKind),
    (begin, start, end): (Arc<Know>, Arc<Know>, Part),
) {
    let (rule, know, covered) = match kind {
        LaunchEventKind::Programmatic => (Rule::ProgrammaticEvent, start, Some(end)),
        LaunchEventKind::BlockStart => (Rule::ProgrammaticEvent, begin, Some(end)),
        LaunchEventKind::LaunchCompletion => (Rule::LaunchCompletionEvent, begin, None),
    };
    let mut state = core.take(stream);
    let context = state.chain.context;
    let chain = *state.begin_chain.get_or_insert_with(|| core.new_chain(context));
    core.put_back(state);
    let part = Part { chain, g: op.g.0, know };
    let captured = Captured {
        record: Record { g: op.g, stream: Some(stream) },
        context,
        process: op.process,
        parts: core.applies(rule).then_some(part).into_iter().collect(),
        awaited: covered.into_iter().collect(),
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

/// Points in several streams.
pub(crate) type Points = Vec<(StreamId, SmallVec<[Part; 1]>)>;

/// Orders each of the streams behind the given points of all of them.
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
