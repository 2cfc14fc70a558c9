//! Facts about a trace that must be known before its first line is written.

use crate::scope::MAX_SIZE;
use std::collections::{HashMap, HashSet};
use streamsan_model::{
    Access, Action, Allocation, AllocationId, ByteRange, ContextId, Entity, EventId, Graph,
    NodeAction, OpSeq, Operation, ProcessId, StreamId, TraceItem,
};

/// Which objects are made inside the trace, and where the touched bytes of huge buffers lie.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Processes in the order of their first call.
    processes: Vec<ProcessId>,
    /// Calls that make a node of a graph and do nothing else.
    node_calls: HashSet<OpSeq>,
    contexts: HashSet<ContextId>,
    /// Contexts whose lines are written.
    made: HashSet<ContextId>,
    streams: HashSet<StreamId>,
    events: HashSet<EventId>,
    buffers: HashSet<AllocationId>,
    touched: HashMap<AllocationId, ByteRange>,
    /// The context that an event's first use says; none where it says nothing.
    event_contexts: HashMap<EventId, Option<ContextId>>,
    /// Objects that the call right behind their declaration uses: reading that call declares them.
    prompt: HashSet<Object>,
}

/// Objects that can be declared by their first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Object {
    Stream(StreamId),
    Event(EventId),
    Buffer(AllocationId),
}

impl Object {
    fn of(entity: &Entity) -> Option<Self> {
        match entity {
            Entity::Stream(x) => Some(Self::Stream(x.id)),
            Entity::Event(x) => Some(Self::Event(x.id)),
            Entity::Allocation(x) => Some(Self::Buffer(x.id)),
            _ => None,
        }
    }
}

impl Plan {
    pub(super) fn of(items: &[TraceItem]) -> Self {
        let mut plan = Self::default();
        let mut stream_contexts = HashMap::new();
        let mut declared = HashSet::new();
        for item in items {
            if let TraceItem::Entity(entity) = item {
                declared.extend(Object::of(entity));
            }
            if let TraceItem::Entity(Entity::Graph(graph)) = item {
                plan.graph(graph);
            }
            if let TraceItem::Entity(Entity::Stream(stream)) = item {
                stream_contexts.insert(stream.id, stream.context);
            }
            let TraceItem::Operation(operation) = item else { continue };
            for (event, of) in event_uses(&operation.action) {
                let context = match of {
                    Use::Stream(stream) => stream_contexts.get(&stream).copied(),
                    Use::Context(context) => Some(context),
                    Use::Bare => None,
                };
                plan.event_contexts.entry(event).or_insert(context);
            }
            if !plan.processes.contains(&operation.process) {
                plan.processes.push(operation.process);
            }
            if matches!(operation.action, Action::Captured { .. } | Action::Other) {
                continue;
            }
            let streams = operation.action.stream().map(Object::Stream);
            let events = event_uses(&operation.action).into_iter().map(|(e, _)| Object::Event(e));
            let buffers = operation.accesses.iter().map(|a| Object::Buffer(a.allocation));
            let used = streams.into_iter().chain(events).chain(buffers);
            plan.prompt.extend(used.filter(|object| declared.contains(object)));
            declared.clear();
            match operation.action {
                Action::ContextCreate { context } => drop(plan.contexts.insert(context)),
                Action::StreamCreate { stream } => drop(plan.streams.insert(stream)),
                Action::EventCreate { event } => drop(plan.events.insert(event)),
                Action::Allocate { allocation, .. } => drop(plan.buffers.insert(allocation)),
                _ => {}
            }
            plan.touch(&operation.accesses);
        }
        plan
    }

    fn touch(&mut self, accesses: &[Access]) {
        for access in accesses {
            let hull = access.extent.hull();
            let touched = self.touched.entry(access.allocation).or_insert(hull);
            *touched = ByteRange::new(touched.start.min(hull.start), touched.end.max(hull.end));
        }
    }

    fn graph(&mut self, graph: &Graph) {
        for node in &graph.nodes {
            self.node_calls.insert(node.made_by);
            self.touch(&node.accesses);
            if let NodeAction::Allocate { allocation } = node.action {
                self.buffers.insert(allocation);
            }
        }
    }

    /// The number of a process, from 1.
    pub(super) fn process_number(&self, process: ProcessId) -> u32 {
        let position = self.processes.iter().position(|&other| other == process);
        // One without a call comes behind all that have some.
        position.map_or(self.processes.len() as u32 + process.0, |at| at as u32) + 1
    }

    /// Whether the lines of a graph say what the call does.
    pub(super) fn is_in_graph(&self, operation: &Operation) -> bool {
        let builds = ["cuGraphCreate", "cuGraphAddDependencies", "cuStreamBeginCapture"];
        let changes = ["cuStreamEndCapture", "cuGraphNodeSetEnabled", "cuGraphExec"];
        match operation.action {
            Action::Captured { .. } => self.node_calls.contains(&operation.g),
            Action::Other => {
                self.node_calls.contains(&operation.g)
                    || builds.iter().chain(&changes).any(|stem| operation.api.starts_with(stem))
            }
            _ => false,
        }
    }

    /// Whether a call of the trace makes the object.
    pub(super) fn is_created(&self, entity: &Entity) -> bool {
        match entity {
            Entity::Context(x) => self.contexts.contains(&x.id),
            Entity::Stream(x) => self.streams.contains(&x.id),
            Entity::Event(x) => self.events.contains(&x.id),
            Entity::Allocation(x) => self.buffers.contains(&x.id),
            Entity::Process(_)
            | Entity::Thread(_)
            | Entity::Kernel(_)
            | Entity::KernelCode(_)
            | Entity::Module(_)
            | Entity::Frame(_)
            | Entity::Stack(_)
            | Entity::Graph(_) => true,
        }
    }

    /// Whether a call that is not written yet makes the context.
    pub(super) fn is_yet_to_come(&self, context: ContextId) -> bool {
        self.contexts.contains(&context) && !self.made.contains(&context)
    }

    /// The call that makes the context is written.
    pub(super) fn context_made(&mut self, context: ContextId) {
        self.made.insert(context);
    }

    /// Whether the next call uses the object, and so declares it by its first use.
    pub(super) fn is_used_at_once(&self, entity: &Entity) -> bool {
        Object::of(entity).is_some_and(|object| self.prompt.contains(&object))
    }

    /// The context that reading the written trace would give to an event that no line declares;
    /// `None` for the default one.
    pub(super) fn event_context(&self, event: EventId) -> Option<ContextId> {
        self.event_contexts.get(&event).copied().flatten()
    }

    /// The bytes of a buffer that are written down: all of them, or the touched ones of a buffer
    /// that stands for the whole address space of its process.
    pub(super) fn window(&self, buffer: &Allocation) -> ByteRange {
        if buffer.range.len() <= MAX_SIZE {
            return buffer.range;
        }
        match self.touched.get(&buffer.id) {
            Some(touched) if touched.len() <= MAX_SIZE && !touched.is_empty() => *touched,
            _ => ByteRange::with_len(buffer.range.start, MAX_SIZE),
        }
    }
}

/// The place of an event in a call.
enum Use {
    Stream(StreamId),
    Context(ContextId),
    Bare,
}

fn event_uses(action: &Action) -> Vec<(EventId, Use)> {
    match *action {
        Action::EventRecord { event, stream } | Action::StreamWaitEvent { stream, event } => {
            vec![(event, Use::Stream(stream))]
        }
        Action::ContextRecordEvent { context, event }
        | Action::ContextWaitEvent { context, event } => vec![(event, Use::Context(context))],
        Action::EventDestroy { event }
        | Action::EventSynchronize { event }
        | Action::EventQuery { event } => vec![(event, Use::Bare)],
        Action::Launch { stream, event: Some((event, _)), .. } => {
            vec![(event, Use::Stream(stream))]
        }
        Action::EventElapsedTime { start, end } => vec![(start, Use::Bare), (end, Use::Bare)],
        _ => Vec::new(),
    }
}
