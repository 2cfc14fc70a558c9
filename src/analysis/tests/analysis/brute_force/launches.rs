//! Kernels that overlap others: programmatic dependent launch.
//!
//! A kernel has a node where it begins, one behind its wait, one at which its dependents may begin,
//! and one at its end. Each of its accesses has a node of its own between these.

use super::graph::{Graph, Node};
use super::rules::{PlacedAccess, Rules};
use std::collections::BTreeMap;
use streamsan_model::{
    EdgePort, EventId, GridControl, KernelId, LaunchEventKind, Mode, Operation, StreamId,
    StreamKind, Trigger,
};

/// The nodes of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    control: GridControl,
    pub(super) begin: Node,
    waited: Node,
    start: Node,
    pub(super) end: Node,
}

impl Kernel {
    /// A kernel behind `begin`, whose wait covers the ends of other kernels.
    pub(super) fn new(
        world: &mut Graph,
        control: GridControl,
        begin: Node,
        covered: &[Node],
    ) -> Self {
        let [waited, start, end] = [(); 3].map(|()| world.node());
        world.edge(begin, waited);
        for &other in covered.iter().filter(|_| control.waits) {
            world.edge(other, waited);
        }
        world.edge(begin, start);
        if control.trigger != Trigger::Early {
            world.edge(waited, start);
        }
        world.edge(waited, end);
        Self { control, begin, waited, start, end }
    }

    /// The node of one access.
    pub(super) fn access(&self, world: &mut Graph, position: usize, mode: Mode) -> Node {
        let node = world.node();
        let is_early = self.control.is_early(position);
        world.edge(if is_early { self.begin } else { self.waited }, node);
        world.edge(node, self.end);
        if mode.weak() == Mode::Read && self.control.trigger == Trigger::AtEnd {
            // All blocks have ended.
            world.edge(node, self.start);
        }
        node
    }

    /// From where on a dependent of this port may begin.
    pub(super) fn open(&self, port: EdgePort) -> Node {
        match port {
            EdgePort::End => self.end,
            EdgePort::Triggered => self.start,
            EdgePort::Begun | EdgePort::BegunOnly => self.begin,
        }
    }
}

/// State of the kernels that may be overlapped.
#[derive(Default)]
pub(super) struct Overlaps {
    /// The newest kernel of each stream, if nothing but events came behind it.
    newest: BTreeMap<StreamId, Kernel>,
    /// The operations that the stream has waited for since then.
    passed: BTreeMap<StreamId, Vec<Node>>,
    /// Kernels that the wait of the stream's next kernel covers.
    covered: BTreeMap<StreamId, Vec<Node>>,
    /// The same behind each event.
    behind_event: BTreeMap<EventId, Vec<Node>>,
    /// Whether any kernel begins early.
    pub(super) any: bool,
}

impl Rules {
    /// Anything else but a launch, the record of an event or a wait for one.
    pub(super) fn ordinary_operation(&mut self, stream: StreamId) {
        self.overlaps.newest.remove(&stream);
        self.overlaps.passed.remove(&stream);
        self.overlaps.covered.remove(&stream);
    }

    fn is_legacy(&self, stream: StreamId) -> bool {
        self.entities.stream(stream).is_some_and(|stream| stream.kind == StreamKind::Legacy)
    }

    pub(super) fn recorded_in_stream(&mut self, event: EventId, stream: StreamId, entry: Node) {
        self.overlaps.passed.entry(stream).or_default().push(entry);
        if self.is_legacy(stream) {
            self.ordinary_operation(stream);
        }
        let covered = self.overlaps.covered.get(&stream).cloned().unwrap_or_default();
        self.overlaps.behind_event.insert(event, covered);
    }

    pub(super) fn recorded_elsewhere(&mut self, event: EventId) {
        self.overlaps.behind_event.remove(&event);
    }

    pub(super) fn waited_in_stream(&mut self, event: EventId, stream: StreamId, node: &[Node]) {
        if self.is_legacy(stream) {
            self.ordinary_operation(stream);
        }
        let covered = self.overlaps.behind_event.get(&event).cloned().unwrap_or_default();
        self.overlaps.covered.entry(stream).or_default().extend(covered);
        self.overlaps.passed.entry(stream).or_default().extend(node);
    }

    pub(super) fn launch(
        &mut self,
        op: &Operation,
        entry: Node,
        stream: StreamId,
        _kernel: KernelId,
        (programmatic, control): (bool, GridControl),
        event: Option<(EventId, LaunchEventKind)>,
    ) {
        let primary = self.overlaps.newest.get(&stream).copied().filter(|_| programmatic);
        let mut covered = self.overlaps.covered.get(&stream).cloned().unwrap_or_default();
        let begin = match primary {
            None => self.put_behind(entry, stream),
            Some(primary) => {
                // Whatever the stream did before, only the primary tells of.
                let others = self.issued.remove(&stream).unwrap_or_default();
                let begin = self.put_behind(entry, stream);
                self.issued.insert(stream, others);
                self.graph.edge(primary.start, begin);
                for &node in self.overlaps.passed.get(&stream).into_iter().flatten() {
                    self.graph.edge(node, begin);
                }
                covered.push(primary.end);
                begin
            }
        };
        self.ordinary_operation(stream);
        self.overlaps.any |= primary.is_some() || !covered.is_empty();
        let kernel = Kernel::new(&mut self.graph, control, begin, &covered);
        self.overlaps.newest.insert(stream, kernel);
        self.issued.entry(stream).or_default().push((op.g, kernel.end));
        for (position, access) in op.accesses.iter().enumerate() {
            let node = kernel.access(&mut self.graph, position, access.mode);
            let (op, access) = (op.g, access.clone());
            let (on_host, may, floating) = (false, false, None);
            self.accesses.push(PlacedAccess { op, node, on_host, access, may, floating });
        }
        if let Some((event, kind)) = event {
            let port = EdgePort::from(kind);
            self.recorded.insert(event, vec![kernel.open(port)]);
            let covers = port != EdgePort::BegunOnly;
            let covered = covers.then_some(kernel.end).into_iter().collect();
            self.overlaps.behind_event.insert(event, covered);
        }
    }
}
