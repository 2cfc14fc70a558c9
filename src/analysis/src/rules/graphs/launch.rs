//! Launches of executable graphs.
//!
//! Invariant: launches of one executable graph are ordered, in whatever streams they are. Source:
//! Driver API, `cuGraphLaunch`.

use super::executables::{current, order_behind};
use super::summary::{Intake, Item, Outlet, Summary, Target, Touch};
use crate::Sink;
use crate::clock::{Chain, Know, Part};
use crate::core::{Core, HostFunction, View};
use crate::record::Place;
use crate::rules::catalogue::Rule;
use crate::rules::events::{captured, is_imported};
use crate::rules::managed::note_kernel;
use crate::rules::signals;
use crate::state::{Captured, Record};
use crate::touch::{Site, mapping};
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::{
    Access, AllocationId, Basis, ByteRange, ContextId, EdgeKind, ExecutableId, Extent, GraphId,
    Mode, Operation, StreamId, Tier,
};

/// `cuGraphLaunch`: all nodes are behind the stream's earlier work and behind all earlier launches
/// of the same executable graph, in whatever stream; the stream's later work is behind all nodes.
/// Two executable graphs are ordered by their streams only. Documented: Driver API, `cuGraphLaunch`:
/// "each launch is ordered behind both any previous work in [the stream] and any previous launches".
pub(crate) fn launch(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    executable: ExecutableId,
    graph: GraphId,
    sink: &mut dyn Sink,
) {
    let snapshot = current(core, op, executable, graph, sink);
    let previous = core.graphs.executable(executable).previous.clone();
    order_behind(core, op, stream, previous, sink);
    let view = core.enqueue(op, stream, sink);
    let Some((chain, _)) = view.own else { return };
    if let Some(snapshot) = snapshot {
        let summary = &snapshot.summary;
        if let Some(kernel) = summary.kernel {
            let site = Site::stream(&view, stream, Place::Chain(chain)).of_kernel(kernel);
            note_kernel(core, op, &site);
        }
        if summary.is_plain() {
            plain(core, op, stream, executable, &view, summary);
        } else {
            with_events(core, op, stream, executable, &view, summary, sink);
        }
    }
    let know = core.stream(stream).map_or_else(Arc::default, |state| Arc::clone(&state.know));
    core.graphs.executable(executable).previous = Some(Part { chain, g: op.g.0, know });
}

/// A launch whose nodes are all at one place in the order.
fn plain(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    executable: ExecutableId,
    view: &View,
    summary: &Summary,
) {
    let Some((chain, _)) = view.own else { return };
    let site = Site::stream(view, stream, Place::Chain(chain));
    // A lease assumes that launches are ordered.
    let may_lease = core.applies(Rule::GraphLaunchOrder) && core.applies(Rule::StreamOrder);
    if !may_lease {
        for item in &summary.items {
            begin(core, op, executable, item, &site);
            touch_item(core, op, item, |_| site.clone());
        }
        return;
    }
    let itself = Arc::new(core.record(op, &NOTHING, &site));
    let known = core.graphs.executable(executable).lease;
    let renewed = known.and_then(|id| Some((id, core.memory.renew_lease(id, &itself)?)));
    let (lease, due) = renewed.unwrap_or_else(|| {
        let lease = core.memory.new_lease(itself);
        core.graphs.executable(executable).lease = Some(lease);
        (lease, (0..summary.items.len() as u32).collect())
    });
    for index in due {
        let item = &summary.items[index as usize];
        let before = core.memory.conflicts.len();
        begin(core, op, executable, item, &site);
        touch_item(core, op, item, |_| site.clone());
        let is_shared = mapping(&core.entities, item.allocation).is_some();
        let clean = !is_shared && core.memory.conflicts.len() == before;
        core.memory.checked(lease, index, item.allocation, clean);
    }
}

/// Stands for a launch as a whole.
const NOTHING: Access = Access {
    allocation: AllocationId(0),
    extent: Extent::Range(ByteRange::new(0, 0)),
    mode: Mode::Read,
    basis: Basis::Exact,
};

/// Begins another life of the memory that the graph allocates. Memory that the former launch
/// allocated and that nothing has freed is freed by this launch, before its nodes run: all other
/// users must be done with it. Documented: Driver API,
/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`; without that flag the driver refuses such a
/// launch.
fn begin(core: &mut Core, op: &Operation, executable: ExecutableId, item: &Item, site: &Site<'_>) {
    if !item.begins {
        return;
    }
    let was_launched = core.graphs.executable(executable).previous.is_some();
    let memory = core.entities.allocation(item.allocation);
    if let Some(memory) = memory.filter(|_| was_launched && core.memory.is_in_use(item.allocation))
    {
        let (extent, basis) = (Extent::Range(memory.range), Basis::Exact);
        let free = Access { allocation: item.allocation, extent, mode: Mode::Free, basis };
        core.touch(op, &free, site);
    }
    core.memory.begin_generation(item.allocation);
}

fn touch_item<'a>(
    core: &mut Core,
    op: &Operation,
    item: &Item,
    site_of: impl Fn(usize) -> Site<'a>,
) {
    for touch in &item.touches {
        touch_one(core, op, touch, site_of(touch.group));
    }
}

fn touch_one(core: &mut Core, op: &Operation, touch: &Touch, mut site: Site<'_>) {
    (site.kernel, site.role) = (touch.kernel, touch.role);
    core.touch(op, &touch.access, &site);
}

/// Checks the nodes of each view against the memory as it was before the launch. A node must find a
/// conflict that nodes with other views are ordered behind, whichever of them is checked first.
fn check_views<'a>(
    core: &mut Core,
    op: &Operation,
    item: &Item,
    summary: &Summary,
    site_of: &impl Fn(usize) -> Site<'a>,
) {
    let intakes = |touch: &Touch| &summary.groups[touch.group].intakes;
    if item.touches.windows(2).all(|pair| intakes(&pair[0]) == intakes(&pair[1])) {
        return;
    }
    let mut views: Vec<_> = item.touches.iter().map(intakes).collect();
    views.sort();
    views.dedup();
    let saved = core.memory.save(item.allocation, mapping(&core.entities, item.allocation));
    for view in views {
        for touch in item.touches.iter().filter(|touch| intakes(touch) == view) {
            touch_one(core, op, touch, site_of(touch.group));
        }
        core.memory.restore(&saved);
    }
}

/// A launch of a graph that has nodes at which order comes in or goes out.
fn with_events(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    executable: ExecutableId,
    view: &View,
    summary: &Summary,
    sink: &mut dyn Sink,
) {
    let Some((chain, upto)) = view.own else { return };
    let chains = chains(core, executable, chain.context, summary);
    let (classes, ends) = chains.split_at(summary.classes.saturating_sub(1));
    let place = |class: usize| class.checked_sub(1).map_or(chain, |class| classes[class]);
    // The work that the event had captured before this launch records anything.
    let taken: Vec<Option<Know>> =
        summary.intakes.iter().map(|intake| take_in(core, op, view, intake, sink)).collect();
    let behind = |know: &mut Arc<Know>, intakes: &[usize]| {
        for news in intakes.iter().filter_map(|&intake| taken[intake].as_ref()) {
            Arc::make_mut(know).join(news);
        }
    };
    let views: Vec<View> = summary
        .groups
        .iter()
        .map(|group| {
            let mut know = Arc::clone(&view.know);
            behind(&mut know, &group.intakes);
            View { know, ..view.clone() }
        })
        .collect();
    for item in &summary.items {
        let site_of = |group: usize| {
            let place = Place::Chain(place(summary.groups[group].class));
            Site::stream(&views[group], stream, place)
        };
        begin(core, op, executable, item, &Site::stream(view, stream, Place::Chain(chain)));
        check_views(core, op, item, summary, &site_of);
        touch_item(core, op, item, site_of);
    }
    // The end of an outlet's own chain stands for the nodes before it.
    let outgoing: Vec<Part> = summary
        .outlets
        .iter()
        .zip(ends)
        .map(|(outlet, &end)| {
            let mut know = Arc::clone(&view.know);
            Arc::make_mut(&mut know).documented.raise(chain, upto);
            behind(&mut know, &outlet.intakes);
            for &class in &outlet.classes {
                Arc::make_mut(&mut know).documented.raise(place(class), op.g.0);
            }
            Part { chain: end, g: op.g.0, know }
        })
        .collect();
    let mut state = core.take(stream);
    let all: Vec<usize> = (0..taken.len()).collect();
    behind(&mut state.know, &all);
    for &beside in &chains {
        Arc::make_mut(&mut state.know).documented.raise(beside, op.g.0);
    }
    core.put_back(state);
    if taken.iter().any(Option::is_some) {
        core.note_foreign(chain.context, stream, op.process);
    }
    let_out(core, op, stream, &summary.outlets, outgoing);
}

/// The executable's chains beside those of streams: one for each class of nodes outside the
/// stream's chain, and one for each outlet. Launches are ordered, so each of these is a chain.
fn chains(
    core: &mut Core,
    executable: ExecutableId,
    context: ContextId,
    summary: &Summary,
) -> Vec<Chain> {
    let count = summary.classes.saturating_sub(1) + summary.outlets.len();
    let known = &core.graphs.executable(executable).chains;
    let known = known.iter().find(|(home, _)| *home == context);
    let mut chains = known.map_or_else(Vec::new, |(_, chains)| chains.clone());
    if chains.len() < count {
        chains.resize_with(count, || core.new_chain(context));
        let known = &mut core.graphs.executable(executable).chains;
        known.retain(|(home, _)| *home != context);
        known.push((context, chains.clone()));
    }
    chains.truncate(count);
    chains
}

/// The work that a node waits for: what the event had captured at the launch call. The
/// documentation does not say whether the call or the node's run counts; the call is the earlier of
/// the two.
fn take_in(
    core: &mut Core,
    op: &Operation,
    view: &View,
    intake: &Intake,
    sink: &mut dyn Sink,
) -> Option<Know> {
    let mut know = Know::default();
    match intake {
        Intake::Event(event) => {
            if !core.applies(Rule::GraphEventWaitNode) {
                return None;
            }
            if is_imported(core, *event) {
                know.acquire(&core.wait_for_outsider(op.g));
            }
            if let Some(captured) = captured(core, op, *event) {
                let record = captured.record.g;
                core.edge(record, op.g, EdgeKind::EventWait, Tier::Documented, sink);
                captured.parts.iter().for_each(|part| know.acquire(part));
            }
        }
        Intake::Signals(operations) => {
            for &operation in operations {
                let waited = signals::wait(core, op, view, operation, sink);
                if !core.applies(Rule::GraphSignalNode) {
                    continue;
                }
                if let Some(by) = waited.order {
                    know.join(&by.know);
                }
                if waited.is_from_outside {
                    know.acquire(&core.wait_for_outsider(op.g));
                }
            }
        }
    }
    Some(know)
}

/// The order that the nodes give to others. An event record node captures its predecessors, not the
/// whole graph: Driver API, `cuGraphAddEventRecordNode`. A host function gives the same order as in
/// a stream.
fn let_out(
    core: &mut Core,
    op: &Operation,
    stream: StreamId,
    outlets: &[Outlet],
    outgoing: Vec<Part>,
) {
    let mut host = None;
    for (outlet, part) in outlets.iter().zip(outgoing) {
        match &outlet.to {
            Target::Event(event) => {
                if core.applies(Rule::GraphEventRecordNode) {
                    let record = Record { g: op.g, stream: Some(stream) };
                    let context = part.chain.context;
                    let process = op.process;
                    let (parts, awaited) = ([part].into(), SmallVec::new());
                    let captured = Captured { record, context, process, parts, awaited };
                    core.event(*event).capture(captured);
                }
            }
            Target::HostBegin => host = Some(part),
            Target::HostEnd => {
                if let Some(before) = host.take() {
                    let function = HostFunction { before: [before].into(), itself: part };
                    core.host_functions.insert(op.g, function);
                }
            }
            Target::Signals(operations) => {
                for &operation in operations {
                    if core.applies(Rule::GraphSignalNode) {
                        signals::signal(core, op, stream, operation, part.clone());
                    }
                }
            }
        }
    }
}
