//! "What if": the same trace with a proposed edge put in.
//!
//! The rules do not change; the trace does: an event is recorded behind the earlier operation and
//! waited for before the later one, as the program would do it. Issue indices are stretched to make
//! room, so that everything else keeps its order; nodes of a graph get an edge.
//!
//! Invariant: every operation of the old trace is in the new one, in the same order (`original`
//! maps it back).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::{
    Action, EdgePort, Entities, Entity, Event, EventId, FileBatchId, GraphEdge, HostTime, OpSeq,
    Operation, ProposedEdge, Status, StreamId, SyncObject, TraceItem,
};

/// An edge that is put into the trace.
#[derive(Clone, Copy, Debug)]
struct Added {
    edge: ProposedEdge,
    /// The number of the edge among all that are put in.
    number: u64,
    event: EventId,
}

/// A trace with additional edges, made item by item.
#[derive(Clone, Debug)]
pub struct WhatIf {
    /// Records of events, by the operation behind which they are made.
    records: BTreeMap<OpSeq, Vec<Added>>,
    /// Waits for events, by the operation before which they are made.
    waits: BTreeMap<OpSeq, Vec<Added>>,
    /// Number of new indices for each old index.
    stretch: u64,
    added: u64,
    events: BTreeMap<EventId, StreamId>,
    /// The context of each stream.
    contexts: BTreeMap<StreamId, streamsan_model::ContextId>,
    /// Batches of file transfers, by the operation that submitted them. The host learns of a
    /// batch's end only by a status query that sees it complete.
    batches: BTreeMap<OpSeq, FileBatchId>,
}

impl WhatIf {
    /// Puts edges into a trace that declares `entities`.
    pub fn new(entities: &Entities, edges: impl IntoIterator<Item = ProposedEdge>) -> Self {
        let key =
            |e: &ProposedEdge| (e.record_after_op, e.wait_before_op, e.on_stream, e.in_stream);
        let mut edges: Vec<ProposedEdge> = edges.into_iter().collect();
        edges.sort_by_key(key);
        edges.dedup_by_key(|edge| key(edge));
        let first = (0..).find(|&id| entities.event(EventId(id)).is_none()).unwrap_or(u32::MAX);
        let added = edges.len() as u64;
        let mut what_if = Self {
            records: BTreeMap::new(),
            waits: BTreeMap::new(),
            stretch: 2 * added + 2,
            added,
            events: BTreeMap::new(),
            batches: BTreeMap::new(),
            contexts: entities.streams().map(|stream| (stream.id, stream.context)).collect(),
        };
        for (edge, number) in edges.into_iter().zip(0..) {
            let event = EventId(first.saturating_add(number as u32));
            let added = Added { edge, number, event };
            what_if.records.entry(edge.record_after_op).or_default().push(added);
            what_if.waits.entry(edge.wait_before_op).or_default().push(added);
            if let Some(stream) = edge.on_stream {
                what_if.events.insert(event, stream);
            }
        }
        what_if
    }

    /// The operation of the old trace that an operation of the new trace stands for.
    pub fn original(&self, g: OpSeq) -> OpSeq {
        OpSeq(g.0 / self.stretch)
    }

    fn stretched(&self, g: OpSeq) -> OpSeq {
        OpSeq(g.0 * self.stretch)
    }

    /// Takes an item of the old trace and passes on the items of the new trace.
    pub fn feed(&mut self, item: &TraceItem, mut take: impl FnMut(&TraceItem)) {
        match item {
            TraceItem::Entity(entity) => take(&TraceItem::Entity(self.entity(entity).into_owned())),
            TraceItem::Returned { g, exit, status } => take(&TraceItem::Returned {
                g: self.stretched(*g),
                exit: self.stretched(*exit),
                status: *status,
            }),
            TraceItem::Operation(operation) => self.operation(operation, &mut take),
            TraceItem::Range(_) => {}
        }
    }

    /// A graph names the operations that made its nodes. A graph in which both ends of an edge are
    /// nodes gets the edge.
    fn entity<'a>(&self, entity: &'a Entity) -> Cow<'a, Entity> {
        let Entity::Graph(graph) = entity else { return Cow::Borrowed(entity) };
        let mut graph = (**graph).clone();
        let node_of = |g: OpSeq| {
            let mut made = (0..).zip(&graph.nodes).filter(|(_, node)| node.made_by == g);
            let node = made.next().map(|(position, _)| position);
            node.filter(|_| made.next().is_none())
        };
        let added = self.records.values().flatten().filter_map(|added| {
            let from = node_of(added.edge.record_after_op)?;
            let to = node_of(added.edge.wait_before_op)?;
            (from != to).then_some(GraphEdge { from, to, port: EdgePort::End })
        });
        let added: Vec<GraphEdge> = added.collect();
        graph.edges.extend(added);
        graph.edges.sort_unstable();
        graph.edges.dedup();
        for node in &mut graph.nodes {
            node.made_by = self.stretched(node.made_by);
        }
        Cow::Owned(Entity::Graph(Arc::new(graph)))
    }

    fn operation(&mut self, operation: &Operation, take: &mut impl FnMut(&TraceItem)) {
        let g = operation.g;
        if let (Action::FileBatchSubmit { batch }, true) =
            (&operation.action, self.records.contains_key(&g))
        {
            self.batches.insert(g, *batch);
        }
        // A captured call runs in its graph, and the graph has got the edge.
        let is_captured = matches!(operation.action, Action::Captured { .. });
        let of = |added: &'_ BTreeMap<OpSeq, Vec<Added>>| -> Vec<Added> {
            added.get(&g).filter(|_| !is_captured).cloned().unwrap_or_default()
        };
        for added in of(&self.waits) {
            // Counted down from the operation.
            let at = self.stretched(g).0 - self.added + added.number;
            take(&self.wait(operation, OpSeq(at), added));
        }
        let mut copy = operation.clone();
        copy.g = self.stretched(g);
        copy.exit = operation.exit.map(|exit| self.stretched(exit));
        if let Action::HostFunctionRun { enqueued } = &mut copy.action {
            *enqueued = self.stretched(*enqueued);
        }
        let records = of(&self.records);
        for added in records.iter().filter(|added| added.edge.on_stream.is_none()) {
            // A call of the host that must be finished ends before the other call begins.
            let latest = OpSeq(self.stretched(added.edge.wait_before_op).0 - self.added - 1);
            copy.exit = Some(copy.exit.map_or(latest, |exit| exit.min(latest)).max(copy.g));
        }
        take(&TraceItem::Operation(copy));
        for added in records {
            let at = OpSeq(self.stretched(g).0 + 1 + added.number);
            if let Some(event) = self.event(added) {
                take(&TraceItem::Entity(event));
            }
            take(&self.record(operation, at, added));
        }
    }

    fn event(&self, added: Added) -> Option<Entity> {
        let context = *self.contexts.get(self.events.get(&added.event)?)?;
        Some(Entity::Event(Event {
            id: added.event,
            context,
            handle: 0,
            flags: 0,
            imported: false,
            name: None,
        }))
    }

    fn record(&self, by: &Operation, at: OpSeq, added: Added) -> TraceItem {
        match added.edge.on_stream {
            Some(stream) => {
                let action = Action::EventRecord { event: added.event, stream };
                call(by, at, "cuEventRecord", action)
            }
            None => {
                let object = SyncObject(u64::MAX - added.number);
                call(by, at, "host", Action::HostRelease { object })
            }
        }
    }

    fn wait(&self, by: &Operation, at: OpSeq, added: Added) -> TraceItem {
        let event = added.event;
        match (added.edge.on_stream, added.edge.in_stream) {
            (Some(_), Some(stream)) => {
                call(by, at, "cuStreamWaitEvent", Action::StreamWaitEvent { stream, event })
            }
            (Some(_), None) => {
                call(by, at, "cuEventSynchronize", Action::EventSynchronize { event })
            }
            (None, _) => match self.batches.get(&added.edge.record_after_op) {
                Some(&batch) => {
                    let action = Action::FileBatchComplete { batch };
                    call(by, at, "cuFileBatchIOGetStatus", action)
                }
                None => {
                    let object = SyncObject(u64::MAX - added.number);
                    call(by, at, "host", Action::HostAcquire { object })
                }
            },
        }
    }
}

/// A call beside another call, by the same thread.
fn call(beside: &Operation, g: OpSeq, api: &str, action: Action) -> TraceItem {
    TraceItem::Operation(Operation {
        g,
        exit: Some(g),
        process: beside.process,
        thread: beside.thread,
        api: api.into(),
        time: beside.time.map(|time| HostTime { end_ns: time.start_ns, ..time }),
        status: Status::SUCCESS,
        action,
        accesses: Vec::new(),
        stack: None,
    })
}
