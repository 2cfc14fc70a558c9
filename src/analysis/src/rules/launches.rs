//! Kernel launches.

use crate::clock::Part;
use crate::core::{Core, View};
use crate::record::Place;
use crate::rules::managed::note_kernel;
use crate::touch::Site;
use crate::{Rule, Sink};
use std::sync::Arc;
use streamsan_model::{KernelId, Operation, StreamId};

/// `cuLaunchKernel`, `cuLaunchCooperativeKernel`, `cuLaunchKernelEx`: an operation of its stream,
/// asynchronous to the host. Documented: Programming Guide, Asynchronous Concurrent Execution.
pub(crate) fn launch(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    kernel: KernelId,
    sink: &mut dyn Sink,
) {
    core.live_stream(stream, op.process);
    let before = core.stream(stream).map_or(0, |state| state.last);
    let view = core.enqueue(op, stream, sink);
    if let Some(state) = core.stream_mut(stream) {
        // A programmatic successor may run beside this kernel, but not beside what it is behind.
        state.programmatic_base = before;
    }
    let Some((chain, _)) = view.own else { return };
    let site = Site::stream(&view, stream, Place::Chain(chain)).of_kernel(kernel);
    note_kernel(core, op, &site);
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}

/// A launch with programmatic stream serialization: it may begin before its primary, the kernel
/// before it, has ended. If the kernel executes the wait it is behind its primary; otherwise only
/// behind what its primary was behind from the start. Whether the wait of a kernel reaches past a
/// primary that did not wait itself is not documented: it does not. The next ordinary operation of
/// the stream is behind all of them. Documented: Programming Guide, Programmatic Dependent Launch:
/// a secondary kernel "must always use cudaGridDependencySynchronize" to see the primary's writes.
pub(crate) fn launch_programmatic(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    kernel: KernelId,
    waits: bool,
    sink: &mut dyn Sink,
) {
    let primary_is_ordinary = core.stream(stream).is_none_or(|state| state.open.is_empty());
    if waits && primary_is_ordinary && core.applies(Rule::ProgrammaticWait) {
        return launch(core, op, stream, kernel, sink);
    }
    core.prepare(op, stream, sink);
    let mut state = core.take(stream);
    let beside = state.open.len();
    if state.side_chains.len() <= beside {
        state.side_chains.push(core.new_chain(state.chain.context));
    }
    let chain = state.side_chains[beside];
    let mut shared = Arc::clone(&state.know);
    let know = Arc::make_mut(&mut shared);
    match state.open.last() {
        Some(primary) if waits && core.applies(Rule::ProgrammaticWait) => know.acquire(primary),
        Some(primary) if core.applies(Rule::ProgrammaticBase) => know.join(&primary.know),
        None if core.applies(Rule::ProgrammaticBase) => {
            know.documented.raise(state.chain, state.programmatic_base);
        }
        _ => {}
    }
    state.open.push(Part { chain, g: op.g.0, know: Arc::clone(&shared) });
    core.put_back(state);
    let view = View { own: None, agent: core.issuing_agent(), know: shared };
    let site = Site::stream(&view, stream, Place::Chain(chain)).of_kernel(kernel);
    note_kernel(core, op, &site);
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}

/// `cuLaunchCooperativeKernelMultiDevice`.
pub(crate) fn launch_multi_device(
    core: &mut Core,
    op: &Operation,
    launch: &streamsan_model::MultiDeviceLaunch,
    sink: &mut dyn Sink,
) {
    for member in &launch.launches {
        let _ = core.enqueue(op, member.stream, sink);
    }
}
