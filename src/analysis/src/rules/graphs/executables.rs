//! Executable graphs, and the snapshots that they run.
//!
//! Invariant: a launch runs the snapshot that was set before it; a later update does not change it.
//! Source: Driver API, Graph Management.

use super::check::check;
use super::flatten::flatten;
use super::order::order;
use super::summary::Summary;
use crate::Sink;
use crate::clock::{Chain, Part};
use crate::core::Core;
use crate::memory::Conflict;
use crate::rules::catalogue::Rule;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use streamsan_model::{
    AllocationId, ContextId, EdgeKind, ExecutableId, GraphId, OpSeq, Operation, ProcessId,
    StreamId, Tier,
};

/// The state of all graphs.
#[derive(Debug, Default)]
pub(crate) struct GraphsState {
    executables: BTreeMap<ExecutableId, Executable>,
    /// The snapshots, each for as long as an executable graph runs it.
    snapshots: BTreeMap<GraphId, Weak<Snapshot>>,
    checked: BTreeSet<GraphId>,
    /// Pairs of calls whose nodes have been reported.
    reported: BTreeSet<(OpSeq, OpSeq, AllocationId)>,
    retired: Vec<Retired>,
}

/// Chains of a destroyed executable graph; they are free once the graph's last launch is known to
/// be done.
#[derive(Debug)]
struct Retired {
    process: ProcessId,
    last: Part,
    slots: Vec<u32>,
}

/// A graph as its launches see it.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) graph: GraphId,
    pub(crate) summary: Summary,
}

/// An executable graph.
#[derive(Debug, Default)]
pub(crate) struct Executable {
    pub(crate) snapshot: Option<Arc<Snapshot>>,
    /// The newest launch; earlier launches are before it.
    pub(crate) previous: Option<Part>,
    /// The newest upload.
    uploaded: Option<Part>,
    /// The lease of the executable's snapshot, if there is one.
    pub(crate) lease: Option<u64>,
    /// Chains beside those of streams, by context.
    pub(crate) chains: SmallVec<[(ContextId, Vec<Chain>); 1]>,
}

impl GraphsState {
    pub(crate) fn executable(&mut self, id: ExecutableId) -> &mut Executable {
        self.executables.entry(id).or_default()
    }

    /// Takes the slots of chains that no operation needs any more.
    pub(crate) fn take_retired(&mut self, is_done: &dyn Fn(ProcessId, &Part) -> bool) -> Vec<u32> {
        let done = self.retired.extract_if(.., |retired| is_done(retired.process, &retired.last));
        done.flat_map(|retired| retired.slots).collect()
    }

    /// Whether the snapshot has not been checked yet.
    pub(super) fn is_unchecked(&mut self, graph: GraphId) -> bool {
        self.checked.insert(graph)
    }

    /// Drops conflicts between nodes that were reported for another snapshot.
    pub(super) fn keep_new(&mut self, found: &mut Vec<Conflict>) {
        let pair = |c: &Conflict| (c.earlier.op, c.later.op, c.later.access.allocation);
        found.retain(|conflict| !self.reported.contains(&pair(conflict)));
        self.reported.extend(found.iter().map(pair));
    }
}

/// `cuGraphInstantiate`, `cuGraphExecUpdate`: later launches run this snapshot; earlier launches
/// are not affected. Driver API, Graph Management. Nothing is ordered, and the nodes are checked
/// against each other here.
pub(crate) fn set(
    core: &mut Core,
    op: &Operation,
    executable: ExecutableId,
    graph: GraphId,
    sink: &mut dyn Sink,
) {
    let snapshot = snapshot(core, op, graph, sink);
    let executable = core.graphs.executable(executable);
    executable.snapshot = snapshot;
    executable.lease = None;
}

/// The snapshot that the executable runs from now on, checked if it is new. `None` where the
/// snapshot was not declared.
pub(super) fn current(
    core: &mut Core,
    op: &Operation,
    executable: ExecutableId,
    graph: GraphId,
    sink: &mut dyn Sink,
) -> Option<Arc<Snapshot>> {
    let known = &core.graphs.executable(executable).snapshot;
    if known.as_ref().is_none_or(|snapshot| snapshot.graph != graph) {
        set(core, op, executable, graph, sink);
    }
    core.graphs.executable(executable).snapshot.clone()
}

fn snapshot(
    core: &mut Core,
    op: &Operation,
    graph: GraphId,
    sink: &mut dyn Sink,
) -> Option<Arc<Snapshot>> {
    if let Some(snapshot) = core.graphs.snapshots.get(&graph).and_then(Weak::upgrade) {
        return Some(snapshot);
    }
    let declared = Arc::clone(core.entities.graph(graph)?);
    let applies = |rule: Rule| core.applies(rule);
    let nodes = order(flatten(&core.entities, &declared, &applies), &applies);
    if core.graphs.is_unchecked(graph) {
        check(core, op.process, &nodes, sink);
    }
    let snapshot = Arc::new(Snapshot { graph, summary: Summary::of(&core.entities, &nodes) });
    core.graphs.snapshots.insert(graph, Arc::downgrade(&snapshot));
    Some(snapshot)
}

/// Orders the next operation of a stream behind an operation of the executable graph.
pub(super) fn order_behind(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    earlier: Option<Part>,
    sink: &mut dyn Sink,
) {
    core.live_stream(stream, op.process);
    let Some(earlier) = earlier.filter(|_| core.applies(Rule::GraphLaunchOrder)) else { return };
    let mut state = core.take(stream);
    let (chain, context) = (state.chain, state.chain.context);
    if chain != earlier.chain {
        Arc::make_mut(&mut state.know).acquire(&earlier);
    }
    core.put_back(state);
    if chain != earlier.chain {
        if context != earlier.chain.context {
            core.note_foreign(context, stream, op.process);
        }
        core.edge(OpSeq(earlier.g), op.g, EdgeKind::GraphLaunch, Tier::Documented, sink);
    }
}

/// `cuGraphUpload`: the upload is behind the stream's earlier work, the earlier launches and the
/// earlier uploads of the executable graph. Later work of the stream is behind the upload. The
/// upload touches no data. The documentation does not say that launches are behind uploads in other
/// streams. Documented: Driver API, `cuGraphUpload`.
pub(crate) fn upload(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    executable: ExecutableId,
    sink: &mut dyn Sink,
) {
    let known = core.graphs.executable(executable);
    let before = [known.previous.clone(), known.uploaded.clone()];
    for earlier in before {
        order_behind(core, op, stream, earlier, sink);
    }
    let view = core.enqueue(op, stream, sink);
    if let Some((chain, _)) = view.own {
        let itself = Part { chain, g: op.g.0, know: view.know };
        core.graphs.executable(executable).uploaded = Some(itself);
    }
}

/// `cuGraphExecDestroy`: launches under way go on. Driver API, Graph Management.
pub(crate) fn destroy(core: &mut Core, op: &Operation, executable: ExecutableId) {
    let Some(executable) = core.graphs.executables.remove(&executable) else { return };
    let Some(last) = executable.previous else { return };
    let slots = executable.chains.iter().flat_map(|(_, chains)| chains).map(|chain| chain.slot);
    let slots: Vec<u32> = slots.collect();
    if !slots.is_empty() {
        let process = core.context(last.chain.context, op.process).process;
        core.graphs.retired.push(Retired { process, last, slots });
    }
}
