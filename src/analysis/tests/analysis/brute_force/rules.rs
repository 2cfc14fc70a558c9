//! From a trace to the two graphs of its order: documented edges only, and those together with
//! the incidental ones.
//!
//! Nodes: every call has one on the host at its entry. A call that is issued to a stream has one
//! in that stream. Memory touched by the host has one on the host within the call. What a call has
//! waited for arrives at a node on the host at its exit. The host's nodes form one chain, because
//! the program's own synchronisation between its threads is not seen; with strict host threads each
//! thread's form one.

use super::graph::{Graph, Node, Reachability};
use super::graphs::Graphs;
use super::launches::Overlaps;
use super::signals::Signal;
use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    Access, Action, AllocationId, ContextId, Copy, Entities, Entity, EventId, MemoryKind, Mode,
    NodeAction, OpSeq, Operation, ProcessId, SignalObject, SignalOperation, SourceOrder, Status,
    StreamId, StreamKind, SyncObject, TraceItem,
};

/// An access and the node at which it happens.
#[derive(Clone, Debug)]
pub(crate) struct PlacedAccess {
    pub(crate) op: OpSeq,
    pub(crate) node: Node,
    pub(crate) on_host: bool,
    pub(crate) access: Access,
    /// Whether the node may not run at all.
    pub(crate) may: bool,
    /// The stream of the copy at whose end the access is over, where it may happen at any time
    /// from the call on.
    pub(crate) floating: Option<StreamId>,
}

/// Everything that decides which accesses are ordered.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) entities: Entities,
    /// In the order of their operations.
    pub(crate) accesses: Vec<PlacedAccess>,
    /// The operations issued to each stream.
    pub(crate) issued: BTreeMap<StreamId, Vec<(OpSeq, Node)>>,
    pub(crate) documented: Reachability,
    /// Documented and incidental edges together.
    pub(crate) incidental: Reachability,
    /// The order within graphs and batches.
    pub(crate) inside: Vec<Inside>,
    /// Whether a kernel begins before the end of what is before it in its stream.
    pub(crate) overlaps: bool,
}

/// The order of the nodes of a graph or of the parts of a call, apart from everything else.
#[derive(Debug)]
pub(crate) struct Inside {
    /// The call that all are parts of; `None` for a graph, whose nodes were made by calls.
    pub(crate) part_of: Option<OpSeq>,
    pub(crate) order: Order,
}

impl Order {
    /// Applies the rules to a trace of one process; `None` where it calls what they do not cover.
    pub(crate) fn of(items: &[TraceItem]) -> Option<Self> {
        Self::with(Rules::default(), items)
    }

    /// The same with a chain for each host thread.
    pub(crate) fn strict(items: &[TraceItem]) -> Option<Self> {
        Self::with(Rules { strict: true, ..Rules::default() }, items)
    }

    fn with(mut rules: Rules, items: &[TraceItem]) -> Option<Self> {
        for item in items {
            if let TraceItem::Returned { g, exit, status } = item {
                rules.returned.insert(*g, (*exit, *status));
            }
        }
        for item in items {
            match item {
                TraceItem::Entity(entity) => {
                    is_known(entity).then(|| rules.entities.declare(entity.clone()))?;
                }
                TraceItem::Operation(operation) => {
                    is_covered(operation).then(|| rules.operation(operation))?;
                }
                TraceItem::Returned { .. } | TraceItem::Range(_) => {}
            }
        }
        Some(rules.finish())
    }
}

/// Whether the reference has a rule for a call.
fn is_covered(op: &Operation) -> bool {
    match op.action {
        Action::ContextCreate { .. }
        | Action::ContextDestroy { .. }
        | Action::HostFunction { .. }
        | Action::HostFunctionRun { .. }
        | Action::LaunchMultiDevice(_)
        | Action::Attach { .. }
        | Action::GraphDestroy { .. }
        | Action::StreamHandedOut { .. }
        | Action::FileTransfer { .. }
        | Action::Collective { .. }
        | Action::CollectiveGroup(_)
        | Action::FileBatchSubmit { .. }
        | Action::FileBatchComplete { .. }
        | Action::Memset { sync_memops: true, .. } => false,
        Action::Signals(ref signals) => signals.operations.len() == 1,
        Action::Copy(copy) => {
            copy.peer.is_none() && !copy.sync_memops && copy.source_order == SourceOrder::Stream
        }
        _ => true,
    }
}

/// Whether the reference has rules for what can be done with an entity.
fn is_known(entity: &Entity) -> bool {
    match entity {
        Entity::Process(process) => process.id == ProcessId(0),
        Entity::Context(context) => context.concurrent_managed_access,
        Entity::Event(event) => !event.imported,
        Entity::Allocation(allocation) => {
            allocation.backing.is_none()
                && !matches!(allocation.kind, MemoryKind::GraphOrdered | MemoryKind::Mapped)
        }
        Entity::Graph(graph) => {
            graph.edges.iter().all(|edge| edge.from < edge.to)
                && graph.nodes.is_sorted_by_key(|node| node.made_by)
                && graph.nodes.iter().all(|node| match node.action {
                    NodeAction::Empty
                    | NodeAction::Kernel { .. }
                    | NodeAction::Copy(_)
                    | NodeAction::Memset { .. }
                    | NodeAction::EventRecord { .. }
                    | NodeAction::EventWait { .. }
                    | NodeAction::Child { .. } => true,
                    // Several bodies exclude each other.
                    NodeAction::Conditional { ref bodies, .. } => bodies.len() == 1,
                    NodeAction::HostFunction
                    | NodeAction::Allocate { .. }
                    | NodeAction::Free { .. }
                    | NodeAction::Signals { .. }
                    | NodeAction::Unknown { .. } => false,
                })
        }
        Entity::Thread(_)
        | Entity::Stream(_)
        | Entity::Kernel(_)
        | Entity::Module(_)
        | Entity::KernelCode(_)
        | Entity::Frame(_)
        | Entity::Stack(_) => true,
    }
}

/// Where within one index of the global order a host node lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    Entry,
    During,
    Exit,
}

#[derive(Default)]
pub(super) struct Rules {
    pub(super) entities: Entities,
    returned: BTreeMap<OpSeq, (OpSeq, Status)>,
    pub(super) graph: Graph,
    pub(super) incidental_edges: Vec<(Node, Node)>,
    /// Whether every host thread has a chain of its own.
    strict: bool,
    /// The thread whose call is in hand.
    thread: u32,
    pub(super) host: Vec<(u32, OpSeq, Moment, Node)>,
    /// By object: the nodes of the threads that have let go of it.
    released: BTreeMap<SyncObject, Vec<Node>>,
    pub(super) signals: BTreeMap<SignalObject, Vec<Signal>>,
    /// Stream memory operations, whose accesses to their word reset nothing.
    pub(super) memory_operations: BTreeSet<OpSeq>,
    /// The operations issued to each stream.
    pub(super) issued: BTreeMap<StreamId, Vec<(OpSeq, Node)>>,
    /// The work that the newest record of each event captured.
    pub(super) recorded: BTreeMap<EventId, Vec<Node>>,
    /// The work that all later work of a context is behind.
    held_back: BTreeMap<ContextId, Vec<Node>>,
    pub(super) accesses: Vec<PlacedAccess>,
    pub(super) graphs: Graphs,
    pub(super) overlaps: Overlaps,
}

impl Rules {
    fn operation(&mut self, op: &Operation) {
        let (exit, status) = match self.returned.get(&op.g) {
            Some((exit, status)) => (Some(*exit), *status),
            None => (op.exit, op.status),
        };
        self.thread = if self.strict { op.thread.0 } else { 0 };
        let entry = self.host_node(op.g, Moment::Entry);
        if !status.is_success() {
            return; // Enqueues nothing, touches nothing, orders nothing.
        }
        let passes = matches!(
            op.action,
            Action::Launch { .. }
                | Action::EventRecord { .. }
                | Action::StreamWaitEvent { .. }
                | Action::StreamSynchronize { .. }
                | Action::StreamQuery { .. }
                | Action::Captured { .. }
        );
        if let Some(stream) = op.action.stream().filter(|_| !passes) {
            self.ordinary_operation(stream);
        }
        match op.action.clone() {
            Action::EventRecord { event, stream } => {
                let node = self.issue(op.g, entry, stream);
                self.recorded.insert(event, vec![node]);
                self.recorded_in_stream(event, stream, entry);
            }
            Action::ContextRecordEvent { context, event } => {
                self.recorded_elsewhere(event);
                let captured = self.all_of_context(context);
                self.recorded.insert(event, captured);
            }
            Action::StreamWaitEvent { stream, event } => {
                let node = self.issue(op.g, entry, stream);
                let captured = self.captured(event);
                for &captured in &captured {
                    self.graph.edge(captured, node);
                }
                self.waited_in_stream(event, stream, &[captured, vec![entry]].concat());
            }
            Action::ContextWaitEvent { context, event } => {
                let captured = self.captured(event);
                self.held_back.entry(context).or_default().extend(captured);
            }
            Action::StreamSynchronize { stream } | Action::StreamQuery { stream } => {
                let done = self.all_of_stream(stream);
                self.host_learns(exit, &done);
            }
            Action::EventSynchronize { event } | Action::EventQuery { event } => {
                let done = self.captured(event);
                self.host_learns(exit, &done);
            }
            Action::EventElapsedTime { start, end } => {
                let done = [self.captured(start), self.captured(end)].concat();
                self.host_may_learn(exit, done);
            }
            Action::ContextSynchronize { context } => {
                let done = self.all_of_context(context);
                self.host_learns(exit, &done);
            }
            Action::Launch { stream, kernel, programmatic, control, event, .. } => {
                self.launch(op, entry, stream, kernel, (programmatic, control), event);
            }
            Action::Memset { stream, synchronous, destination, .. } => {
                let node = self.issue(op.g, entry, stream);
                self.touch(op, node, false, |_| true);
                if synchronous && destination.is_pinned() {
                    self.host_learns(exit, &[node]);
                } else if synchronous && destination == MemoryKind::Managed {
                    self.host_may_learn(exit, [node]);
                }
            }
            Action::Copy(copy) => self.copy(op, entry, exit, copy),
            Action::Allocate { stream: Some(stream), .. }
            | Action::Free { stream: Some(stream), .. } => {
                let node = self.issue(op.g, entry, stream);
                self.touch(op, node, false, |_| true);
            }
            Action::Free { allocation, stream: None } => {
                let node = self.host_node(op.g, Moment::During);
                self.touch(op, node, true, |_| true);
                self.may_wait_for_device(node, allocation);
            }
            Action::Allocate { stream: None, .. } | Action::HostAccess => {
                let node = self.host_node(op.g, Moment::During);
                self.touch(op, node, true, |_| true);
            }
            Action::Prefetch { stream } | Action::Discard { stream } => {
                let node = self.issue(op.g, entry, stream);
                self.touch(op, node, false, |_| true);
            }
            Action::Batch(batch) => self.batch(op, entry, &batch),
            Action::GraphInstantiate { graph, .. } | Action::GraphUpdate { graph, .. } => {
                self.look_inside(graph);
            }
            Action::GraphLaunch { stream, executable, graph } => {
                self.launch_graph(op, entry, stream, executable, graph);
            }
            Action::GraphUpload { stream, executable } => {
                self.upload_graph(op, entry, stream, executable);
            }
            Action::EventDestroy { event } => {
                // A graph may still name it.
                self.recorded.remove(&event);
                self.recorded_elsewhere(event);
            }
            Action::Signals(signals) => {
                let operation = signals.operations[0];
                let waits = matches!(operation, SignalOperation::Wait { .. });
                // A wait looks at its word before it is over.
                let looks = self.put_behind(entry, signals.stream);
                let node = self.issue(op.g, entry, signals.stream);
                self.graph.edge(looks, node);
                self.signals(op.g, node, operation);
                self.memory_operations.insert(op.g);
                for access in &op.accesses {
                    self.accesses.push(PlacedAccess {
                        op: op.g,
                        node: if waits { looks } else { node },
                        on_host: false,
                        access: access.clone(),
                        // The word that is waited for is there to be written meanwhile.
                        may: waits,
                        floating: None,
                    });
                }
            }
            Action::HostRelease { object } => {
                let node = self.host_node(op.g, Moment::During);
                self.released.entry(object).or_default().push(node);
            }
            Action::HostAcquire { object } => {
                let node = self.host_node(op.g, Moment::During);
                // All threads are one chain otherwise.
                for released in self.released.get(&object).cloned().unwrap_or_default() {
                    self.graph.edge(released, node);
                }
            }
            Action::StreamCreate { .. }
            | Action::StreamDestroy { .. }
            | Action::EventCreate { .. }
            | Action::Captured { .. }
            | Action::Other => {}
            other => unreachable!("not covered: {other:?}"),
        }
    }

    /// Copies, by the kinds of memory on either side.
    fn copy(&mut self, op: &Operation, entry: Node, exit: Option<OpSeq>, copy: Copy) {
        let (from_host, to_host) = (copy.source.is_host(), copy.destination.is_host());
        let is_source = |access: &Access| access.mode == Mode::Read;
        // A copy that says when its source is read is not staged as the driver likes.
        let may_stage = !op.api.contains("WithAttributes");
        let is_pageable =
            may_stage && [copy.source, copy.destination].contains(&MemoryKind::Pageable);
        let is_managed = [copy.source, copy.destination].contains(&MemoryKind::Managed);
        if may_stage && copy.source == MemoryKind::Pageable && !to_host {
            let before = self.all_of_stream(copy.stream);
            let write = self.issue(op.g, entry, copy.stream);
            self.touch(op, write, false, |access| !is_source(access));
            if copy.synchronous {
                // The host synchronises with the stream, then reads the source itself; the
                // transfer into device memory may still be under way when the call returns.
                let read = self.host_node(op.g, Moment::During);
                for done in before {
                    self.graph.edge(done, read);
                }
                self.touch(op, read, true, is_source);
                if is_managed || copy.bytes <= 64 << 10 {
                    self.host_may_learn(exit, [write]);
                }
            } else {
                // The source is read at any time from the call to the end of the copy.
                let read = self.graph.node();
                self.graph.edge(entry, read);
                self.graph.edge(read, write);
                let first = self.accesses.len();
                self.touch(op, read, false, is_source);
                for access in &mut self.accesses[first..] {
                    access.floating = Some(copy.stream);
                }
                self.host_may_learn(exit, [read]);
            }
            return;
        }
        let node = self.issue(op.g, entry, copy.stream);
        self.touch(op, node, false, |_| true);
        if from_host && to_host || copy.synchronous && (from_host || to_host) {
            self.host_learns(exit, &[node]);
        } else if copy.synchronous && is_managed || is_pageable {
            self.host_may_learn(exit, [node]);
        }
    }

    /// A node in a stream: behind the host's past, behind the stream's, and on either side of the
    /// barrier between the legacy stream and the blocking streams of its context.
    pub(super) fn issue(&mut self, g: OpSeq, entry: Node, stream: StreamId) -> Node {
        let node = self.put_behind(entry, stream);
        self.issued.entry(stream).or_default().push((g, node));
        node
    }

    /// A node behind what an operation of the stream is behind.
    pub(super) fn put_behind(&mut self, entry: Node, stream: StreamId) -> Node {
        let node = self.graph.node();
        self.graph.edge(entry, node);
        let this = self.entities.stream(stream).expect("declared");
        let parent = self.entities.context(this.context).and_then(|context| context.parent);
        let contexts = [Some(this.context), parent];
        let held_back = contexts.into_iter().flatten().filter_map(|c| self.held_back.get(&c));
        for &earlier in held_back.flatten() {
            self.graph.edge(earlier, node);
        }
        for other in self.entities.streams().filter(|other| other.context == this.context) {
            let issued = self.issued.get(&other.id).into_iter().flatten();
            if other.id == stream || (this.kind == StreamKind::Legacy && blocks(other.kind)) {
                for &(_, earlier) in issued {
                    self.graph.edge(earlier, node);
                }
            } else if blocks(this.kind) && other.kind == StreamKind::Legacy {
                // Streams that were made later too.
                for &(_, earlier) in issued {
                    self.graph.edge(earlier, node);
                }
            }
        }
        node
    }

    /// The work that an event stands for: none before its first record.
    pub(super) fn captured(&self, event: EventId) -> Vec<Node> {
        self.recorded.get(&event).cloned().unwrap_or_default()
    }

    /// The work that is complete when a stream is: the legacy stream stands for the blocking
    /// streams too.
    fn all_of_stream(&self, stream: StreamId) -> Vec<Node> {
        let this = self.entities.stream(stream).expect("declared");
        self.all_where(|other| {
            other.id == stream
                || (this.kind == StreamKind::Legacy
                    && blocks(other.kind)
                    && other.context == this.context)
        })
    }

    fn all_of_context(&self, context: ContextId) -> Vec<Node> {
        // A primary context includes its green contexts.
        let parent = |of| self.entities.context(of).and_then(|context| context.parent);
        self.all_where(|stream| {
            stream.context == context || parent(stream.context) == Some(context)
        })
    }

    fn all_where(&self, belongs: impl Fn(&streamsan_model::Stream) -> bool) -> Vec<Node> {
        let streams = self.entities.streams().filter(|stream| belongs(stream));
        let issued = streams.filter_map(|stream| self.issued.get(&stream.id));
        issued.flatten().map(|&(_, node)| node).collect()
    }

    /// A free outside of a stream may wait for the device; the stream-ordered allocator takes it that
    /// everything is complete already.
    fn may_wait_for_device(&mut self, node: Node, allocation: AllocationId) {
        let allocation = self.entities.allocation(allocation).expect("declared");
        if allocation.kind == MemoryKind::StreamOrdered {
            return;
        }
        let device = |context| Some(self.entities.context(context)?.device);
        let home = allocation.context.map(device);
        let done = self.all_where(|stream| home.is_none_or(|home| device(stream.context) == home));
        self.incidental_edges.extend(done.into_iter().map(|earlier| (earlier, node)));
    }

    /// The host knows from the call's exit on what was complete at the call's entry.
    fn host_learns(&mut self, exit: Option<OpSeq>, done: &[Node]) {
        if let Some(exit) = exit {
            let node = self.host_node(exit, Moment::Exit);
            for &earlier in done {
                self.graph.edge(earlier, node);
            }
        }
    }

    fn host_may_learn(&mut self, exit: Option<OpSeq>, done: impl IntoIterator<Item = Node>) {
        if let Some(exit) = exit {
            let node = self.host_node(exit, Moment::Exit);
            self.incidental_edges.extend(done.into_iter().map(|earlier| (earlier, node)));
        }
    }

    pub(super) fn host_node(&mut self, at: OpSeq, moment: Moment) -> Node {
        let node = self.graph.node();
        self.host.push((self.thread, at, moment, node));
        node
    }

    pub(super) fn touch(
        &mut self,
        op: &Operation,
        node: Node,
        on_host: bool,
        which: impl Fn(&Access) -> bool,
    ) {
        for access in op.accesses.iter().filter(|access| which(access)) {
            let access = access.clone();
            let (op, may, floating) = (op.g, false, None);
            self.accesses.push(PlacedAccess { op, node, on_host, access, may, floating });
        }
    }

    fn finish(mut self) -> Order {
        self.host.sort();
        for pair in self.host.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            self.graph.edge(pair[0].3, pair[1].3);
        }
        let documented = self.graph.closure();
        for (from, to) in self.incidental_edges {
            self.graph.edge(from, to);
        }
        let incidental = self.graph.closure();
        Order {
            entities: self.entities,
            accesses: self.accesses,
            issued: self.issued,
            documented,
            incidental,
            inside: self.graphs.inside,
            overlaps: self.overlaps.any,
        }
    }
}

/// Whether a stream of this kind waits for the legacy stream and is waited for by it.
fn blocks(kind: StreamKind) -> bool {
    matches!(kind, StreamKind::Blocking | StreamKind::PerThread)
}
