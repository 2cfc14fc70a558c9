//! The same trace without some of its synchronisation, to find out whether any order depends on it.
//!
//! A trace does not hold the host's own uses of memory between two calls. Behind every call by
//! which the host learns that work is done, the host is therefore taken to use all host memory that
//! was touched before (a *probe*). Where a probe would be a race already, the program does not make
//! that use, and the probe is left out. All other probes must stay in order when synchronisation is
//! taken away.
//!
//! Invariant: apart from removed calls and added probes, the new trace has the operations of the
//! old one in the same order.

use std::collections::{BTreeMap, BTreeSet};
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, Entities, Extent, Graph, MemoryKind, Mode,
    OpSeq, Operation, ProcessId, TraceItem,
};

/// Number of ranges that a probe uses: the newest ones.
const RANGES: usize = 64;

/// A trace with probes and without the removed calls, made item by item.
#[derive(Clone, Debug)]
pub struct Without<'a> {
    entities: &'a Entities,
    removed: BTreeSet<OpSeq>,
    /// Probes that are left out, by the call in front of them and the memory.
    left_out: BTreeSet<(OpSeq, AllocationId)>,
    /// Touched host memory, with the newest operation that touched each range.
    touched: BTreeMap<(ProcessId, AllocationId, ByteRange), OpSeq>,
    /// Probes by their index, with the call in front of each.
    pending: BTreeMap<u64, Operation>,
}

impl<'a> Without<'a> {
    /// Removes the operations `removed` from a trace that declares `entities`.
    pub fn new(
        entities: &'a Entities,
        removed: BTreeSet<OpSeq>,
        left_out: BTreeSet<(OpSeq, AllocationId)>,
    ) -> Self {
        let (touched, pending) = (BTreeMap::new(), BTreeMap::new());
        Self { entities, removed, left_out, touched, pending }
    }

    /// Whether an operation of the new trace is a probe. [`Without::original`] then returns the
    /// call in front of the probe.
    pub const fn is_probe(g: OpSeq) -> bool {
        g.0 % 2 == 1
    }

    /// The index in the old trace.
    pub const fn original(g: OpSeq) -> OpSeq {
        OpSeq(g.0 / 2)
    }

    /// Takes an item of the old trace and passes on the items of the new trace.
    pub fn feed(&mut self, item: &TraceItem, mut take: impl FnMut(&TraceItem)) {
        match item {
            TraceItem::Entity(streamsan_model::Entity::Graph(graph)) => {
                let mut graph = Graph::clone(graph);
                graph.nodes.iter_mut().for_each(|node| node.made_by.0 *= 2);
                take(&TraceItem::Entity(streamsan_model::Entity::Graph(graph.into())));
            }
            TraceItem::Entity(_) => take(item),
            TraceItem::Returned { g, exit, status } => take(&TraceItem::Returned {
                g: OpSeq(g.0 * 2),
                exit: OpSeq(exit.0 * 2),
                status: *status,
            }),
            TraceItem::Operation(operation) => self.operation(operation, &mut take),
            TraceItem::Range(_) => {}
        }
    }

    fn operation(&mut self, operation: &Operation, take: &mut impl FnMut(&TraceItem)) {
        let g = OpSeq(operation.g.0 * 2);
        while let Some(entry) = self.pending.first_entry()
            && *entry.key() < g.0
        {
            take(&TraceItem::Operation(entry.remove()));
        }
        self.note(operation);
        if let Some(exit) = operation.exit.filter(|_| tells_the_host(operation)) {
            self.probe(operation, OpSeq(exit.0 * 2 + 1));
        }
        if self.removed.contains(&operation.g) {
            return;
        }
        let mut copy = operation.clone();
        copy.g = g;
        copy.exit = operation.exit.map(|exit| OpSeq(exit.0 * 2));
        if let Action::HostFunctionRun { enqueued } = &mut copy.action {
            enqueued.0 *= 2;
        }
        take(&TraceItem::Operation(copy));
    }

    fn is_for_the_host(&self, allocation: AllocationId) -> bool {
        let kind = self.entities.allocation(allocation).map(|allocation| allocation.kind);
        // Memory of an unknown kind may be host memory.
        kind.is_none_or(|kind| kind.is_host() || kind == MemoryKind::Managed)
    }

    /// Remembers the host memory that an operation touches.
    fn note(&mut self, operation: &Operation) {
        let graph = match operation.action {
            Action::GraphLaunch { graph, .. } => self.entities.graph(graph),
            _ => None,
        };
        let of_graph = graph.into_iter().flat_map(|graph| &graph.nodes);
        let of_graph = of_graph.flat_map(|node| &node.accesses);
        let accesses: Vec<(AllocationId, ByteRange)> = operation
            .accesses
            .iter()
            .chain(of_graph)
            .filter(|access| self.is_for_the_host(access.allocation))
            .map(|access| (access.allocation, access.extent.hull()))
            .collect();
        if let Action::Free { allocation, .. } = operation.action {
            self.touched.retain(|(_, of, _), _| *of != allocation);
            return;
        }
        for (allocation, range) in accesses {
            self.touched.insert((operation.process, allocation, range), operation.g);
        }
        while self.touched.len() > 4 * RANGES {
            let oldest = self.touched.iter().min_by_key(|(_, g)| **g).map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                self.touched.remove(&oldest);
            }
        }
    }

    /// Adds the host's use of touched memory behind the call's return.
    fn probe(&mut self, after: &Operation, at: OpSeq) {
        let returned = Self::original(at);
        let mut newest: Vec<_> =
            self.touched.iter().filter(|((process, ..), _)| *process == after.process).collect();
        newest.sort_by_key(|(key, g)| (std::cmp::Reverse(**g), **key));
        let accesses: Vec<Access> = newest
            .into_iter()
            .take(RANGES)
            .map(|((_, allocation, range), _)| (*allocation, *range))
            .filter(|(allocation, _)| !self.left_out.contains(&(returned, *allocation)))
            .map(|(allocation, range)| Access {
                allocation,
                extent: Extent::Range(range),
                mode: Mode::ReadWrite,
                basis: Basis::Exact,
            })
            .collect();
        if accesses.is_empty() {
            return;
        }
        let probe = Operation {
            g: at,
            exit: Some(at),
            api: "host".into(),
            action: Action::HostAccess,
            accesses,
            ..after.clone()
        };
        self.pending.insert(at.0, probe);
    }

    /// Ends the trace: passes on the remaining probes.
    pub fn finish(&mut self, mut take: impl FnMut(&TraceItem)) {
        for probe in std::mem::take(&mut self.pending).into_values() {
            take(&TraceItem::Operation(probe));
        }
    }
}

/// Whether the host knows more after the call; only then may it use what it waited for.
fn tells_the_host(operation: &Operation) -> bool {
    operation.status.is_success()
        && match &operation.action {
            Action::StreamSynchronize { .. }
            | Action::StreamQuery { .. }
            | Action::EventSynchronize { .. }
            | Action::EventQuery { .. }
            | Action::ContextSynchronize { .. } => true,
            Action::Copy(copy) => copy.synchronous,
            _ => false,
        }
}
