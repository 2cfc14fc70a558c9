//! Work that runs on the host: the host's own accesses, and host functions in streams.
//!
//! Invariant: an access in a host function is ordered where the function stands in its stream,
//! whenever the host makes it. Source: Driver API, `cuLaunchHostFunc`.

use crate::clock::Part;
use crate::core::{Core, HostFunction};
use crate::host::Acquisition;
use crate::record::Place;
use crate::touch::Site;
use crate::{Rule, Sink};
use std::sync::Arc;
use streamsan_model::{EdgeKind, OpSeq, Operation, StreamId, ThreadId, Tier};

/// The issuing thread touches memory: behind everything that the host knows, and before everything
/// that is issued later. Programming Guide: page-locked and managed memory are shared normally.
pub(crate) fn access(core: &mut Core, op: &Operation) {
    let mut view = core.host_view(op.process);
    if !core.applies(Rule::HostAccess) {
        view.know = Arc::default();
    }
    let function = core.running_functions.iter().rev().find(|running| running.holds(op));
    let function = function.map(|running| Arc::clone(&running.function));
    let site = Site { function, ..Site::host(&view) };
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}

/// A host function that runs, or has run.
#[derive(Clone, Debug)]
pub(crate) struct RunningFunction {
    thread: ThreadId,
    entry: OpSeq,
    exit: Option<OpSeq>,
    /// The function's point in its stream.
    function: Arc<Part>,
}

impl RunningFunction {
    /// Whether an operation happens within the function.
    fn holds(&self, op: &Operation) -> bool {
        self.thread == op.thread && self.entry < op.g && self.exit.is_none_or(|exit| op.g < exit)
    }

    /// Ends the function if `g` is its call.
    pub(crate) fn returned(&mut self, g: OpSeq, exit: OpSeq) {
        if self.entry == g {
            self.exit = Some(exit);
        }
    }
}

/// `cuLaunchHostFunc`, `cuStreamAddCallback`: the function runs behind the stream's earlier work
/// and before its later work; functions of independent streams are not ordered. Documented: Driver
/// API, `cuLaunchHostFunc`: "the same effect as synchronizing an event recorded in the same stream
/// immediately prior to the function".
pub(crate) fn enqueue_function(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    sink: &mut dyn Sink,
) {
    core.live_stream(stream, op.process);
    let last = core.stream(stream).map_or(0, |state| state.newest());
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    let before = Part { chain, g: last, know: view.know.clone() };
    let itself = Part { chain, g: op.g.0, know: view.know.clone() };
    core.host_functions.insert(op.g, HostFunction { before: [before].into(), itself });
    for access in &op.accesses {
        core.touch(op, access, &Site::stream(&view, stream, Place::Chain(chain)));
    }
}

/// A host function runs: from the function's entry the host is behind the stream's work before the
/// function, from the function's end behind the function. The function's accesses are before the
/// stream's later work, even if that work was issued long before the function runs. Documented, as
/// [`enqueue_function`].
pub(crate) fn run_function(core: &mut Core, op: &Operation, enqueued: OpSeq, sink: &mut dyn Sink) {
    let Some(function) = core.host_functions.remove(&enqueued) else { return };
    let mut begin = Acquisition::new(op.g, Tier::Documented);
    if core.applies(Rule::HostFunctionEntry) {
        begin.parts = function.before;
    }
    let mut view = core.host_view(op.process);
    begin.apply(Arc::make_mut(&mut view.know));
    core.host(op.process).schedule(begin, Some(op.g));
    let mut end = Acquisition::new(op.g, Tier::Documented);
    if core.applies(Rule::HostFunctionReturn) {
        end.parts = [function.itself.clone()].into();
    }
    core.acquire(op, end, EdgeKind::HostFunction, sink);
    let function = core.applies(Rule::HostFunctionOrder).then(|| Arc::new(function.itself));
    if let Some(function) = &function {
        core.running_functions.retain(|running| running.exit.is_none_or(|exit| exit > op.g));
        core.running_functions.push(RunningFunction {
            thread: op.thread,
            entry: op.g,
            exit: op.exit,
            function: Arc::clone(function),
        });
    }
    let site = Site { function, ..Site::host(&view) };
    for access in &op.accesses {
        core.touch(op, access, &site);
    }
}
