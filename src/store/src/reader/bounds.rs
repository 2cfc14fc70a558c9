//! Bounds of references: a trace may refer only to what it holds.
//!
//! Tables of the analysis are vectors by id, so that a damaged id would decide the size of an
//! allocation. Ids of a trace are dense, and each refers to an entity before it: an id beyond those
//! read so far is damage. A graph is damage too if its bodies, put in their places, have many times
//! the size of all graphs in the trace: bodies that stand in several places multiply.

use crate::Error;
use crate::reader::Reader;
use std::collections::HashMap;
use streamsan_model::{
    Access, Action, AllocationId, ContextId, Entity, EventId, Graph, GraphId, NodeAction,
    Operation, ProcessId, SignalObject, SignalOperation, Stack, StreamId, ThreadId, TraceItem,
};

/// Average number of places that a body may have in a graph.
const MOST_PLACES: u64 = 16;
/// Nodes that a graph may have in any case.
const FEW_NODES: u64 = 1024;

/// The bounds that follow from the entities read so far.
#[derive(Debug, Default)]
pub(super) struct Declared {
    processes: u32,
    threads: u32,
    contexts: u32,
    streams: u32,
    events: u32,
    allocations: u32,
    kernels: u32,
    modules: u32,
    frames: u32,
    stacks: u32,
    graphs: u32,
    /// Nodes of a graph with its bodies in their places.
    nodes: HashMap<GraphId, u64>,
    /// Nodes of all graphs.
    all_nodes: u64,
    /// Whether everything that the entities may refer to was read.
    is_whole: bool,
}

/// The word for the missing entity.
type Missing = &'static str;

/// The next id of a dense table.
fn next(count: &mut u32, id: u32, what: Missing) -> Result<(), Missing> {
    if id != *count {
        return Err(what);
    }
    *count = count.checked_add(1).ok_or(what)?;
    Ok(())
}

impl Declared {
    /// For all tables, in an order in which each refers only to those before it.
    pub(super) fn of_all() -> Self {
        Self { is_whole: true, ..Self::default() }
    }

    /// Takes an item in.
    ///
    /// # Errors
    /// When the id of an entity is not the next one, and when an item refers to what was not read.
    pub(super) fn admit(&mut self, reader: &Reader, item: &TraceItem) -> Result<(), Error> {
        match item {
            TraceItem::Entity(entity) => {
                let outcome = self.take(entity).and_then(|()| match self.is_whole {
                    true => self.refers_well(entity),
                    false => Ok(()),
                });
                outcome.map_err(|what| reader.corrupt(&format!("the number of {what}")))
            }
            TraceItem::Operation(operation) => {
                let g = operation.g.0;
                let tell = |what| format!("the number of {what} in operation {g}");
                self.operation(operation).map_err(|what| reader.corrupt(&tell(what)))
            }
            TraceItem::Returned { .. } | TraceItem::Range(_) => Ok(()),
        }
    }

    fn operation(&self, operation: &Operation) -> Result<(), Missing> {
        self.process(operation.process)?;
        self.thread(operation.thread)?;
        self.accesses(&operation.accesses)?;
        self.action(&operation.action)
    }

    fn take(&mut self, entity: &Entity) -> Result<(), Missing> {
        match entity {
            Entity::Process(x) => next(&mut self.processes, x.id.0, "a process"),
            Entity::Thread(x) => next(&mut self.threads, x.id.0, "a thread"),
            Entity::Context(x) => next(&mut self.contexts, x.id.0, "a context"),
            Entity::Stream(x) => next(&mut self.streams, x.id.0, "a stream"),
            Entity::Event(x) => next(&mut self.events, x.id.0, "an event"),
            Entity::Allocation(x) => next(&mut self.allocations, x.id.0, "an allocation"),
            Entity::Kernel(x) => next(&mut self.kernels, x.id.0, "a kernel"),
            Entity::Module(x) => next(&mut self.modules, x.id.0, "a module"),
            Entity::Frame(x) => next(&mut self.frames, x.id.0, "a frame"),
            Entity::Stack(x) => next(&mut self.stacks, x.id.0, "a stack"),
            Entity::Graph(x) => next(&mut self.graphs, x.id.0, "a graph"),
            // Only some kernels have code, each once.
            Entity::KernelCode(_) => Ok(()),
        }
    }

    fn refers_well(&mut self, entity: &Entity) -> Result<(), Missing> {
        match entity {
            Entity::Process(_) | Entity::Frame(_) | Entity::Kernel(_) => Ok(()),
            Entity::Thread(x) => self.process(x.process),
            Entity::Context(x) => {
                self.process(x.process)?;
                x.parent.map_or(Ok(()), |parent| self.context(parent))
            }
            Entity::Stream(x) => {
                self.context(x.context)?;
                x.thread.map_or(Ok(()), |thread| self.thread(thread))
            }
            Entity::Event(x) => self.context(x.context),
            Entity::Allocation(x) => {
                self.process(x.process)?;
                x.context.map_or(Ok(()), |context| self.context(context))
            }
            Entity::Module(x) => self.process(x.process),
            Entity::KernelCode(x) => below(x.kernel.0, self.kernels, "a kernel"),
            Entity::Stack(x) => self.stack(x),
            Entity::Graph(x) => self.graph(x),
        }
    }

    fn stack(&self, stack: &Stack) -> Result<(), Missing> {
        stack.frames.iter().try_for_each(|frame| below(frame.0, self.frames, "a frame"))
    }

    fn graph(&mut self, graph: &Graph) -> Result<(), Missing> {
        self.process(graph.process)?;
        let mut nodes = graph.nodes.len() as u64;
        self.all_nodes = self.all_nodes.saturating_add(nodes);
        for node in &graph.nodes {
            self.accesses(&node.accesses)?;
            let bodies = match &node.action {
                NodeAction::EventRecord { event } | NodeAction::EventWait { event } => {
                    self.event(*event)?;
                    &[][..]
                }
                NodeAction::Allocate { allocation } | NodeAction::Free { allocation } => {
                    self.allocation(*allocation)?;
                    &[][..]
                }
                NodeAction::Signals { operations } => {
                    self.signals(operations)?;
                    &[][..]
                }
                NodeAction::Child { graph } => std::slice::from_ref(graph),
                NodeAction::Conditional { bodies, .. } => bodies,
                _ => &[][..],
            };
            for body in bodies {
                nodes = nodes.saturating_add(*self.nodes.get(body).ok_or("a body of a graph")?);
            }
        }
        if nodes > FEW_NODES.max(self.all_nodes.saturating_mul(MOST_PLACES)) {
            return Err("the nodes of a graph");
        }
        self.nodes.insert(graph.id, nodes);
        Ok(())
    }

    fn action(&self, action: &Action) -> Result<(), Missing> {
        action.stream().map_or(Ok(()), |stream| self.stream(stream))?;
        match action {
            Action::ContextCreate { context }
            | Action::ContextDestroy { context }
            | Action::ContextSynchronize { context } => self.context(*context),
            Action::ContextRecordEvent { context, event }
            | Action::ContextWaitEvent { context, event } => {
                self.context(*context)?;
                self.event(*event)
            }
            Action::StreamWaitEvent { event, .. }
            | Action::EventCreate { event }
            | Action::EventDestroy { event }
            | Action::EventRecord { event, .. }
            | Action::EventSynchronize { event }
            | Action::EventQuery { event } => self.event(*event),
            Action::EventElapsedTime { start, end } => {
                self.event(*start)?;
                self.event(*end)
            }
            Action::Allocate { allocation, .. }
            | Action::Free { allocation, .. }
            | Action::Attach { allocation, .. } => self.allocation(*allocation),
            Action::Launch { event: Some((event, _)), .. } => self.event(*event),
            Action::LaunchMultiDevice(launch) => {
                launch.launches.iter().try_for_each(|member| self.stream(member.stream))
            }
            Action::CollectiveGroup(group) => {
                group.members.iter().try_for_each(|member| self.stream(member.stream))
            }
            Action::Copy(copy) => copy.peer.map_or(Ok(()), |(from, to)| {
                self.context(from)?;
                self.context(to)
            }),
            Action::Batch(batch) => {
                batch.entries.iter().try_for_each(|entry| self.stream(entry.copy.stream))
            }
            Action::Signals(signals) => self.signals(&signals.operations),
            _ => Ok(()),
        }
    }

    fn signals(&self, operations: &[SignalOperation]) -> Result<(), Missing> {
        operations.iter().try_for_each(|operation| {
            let (SignalOperation::Signal { object, .. } | SignalOperation::Wait { object, .. }) =
                operation;
            match object {
                SignalObject::Memory { allocation, .. } => self.allocation(*allocation),
                SignalObject::Semaphore(_) => Ok(()),
            }
        })
    }

    fn accesses(&self, accesses: &[Access]) -> Result<(), Missing> {
        accesses.iter().try_for_each(|access| self.allocation(access.allocation))
    }

    fn process(&self, id: ProcessId) -> Result<(), Missing> {
        below(id.0, self.processes, "a process")
    }

    fn thread(&self, id: ThreadId) -> Result<(), Missing> {
        below(id.0, self.threads, "a thread")
    }

    fn context(&self, id: ContextId) -> Result<(), Missing> {
        below(id.0, self.contexts, "a context")
    }

    fn stream(&self, id: StreamId) -> Result<(), Missing> {
        below(id.0, self.streams, "a stream")
    }

    fn event(&self, id: EventId) -> Result<(), Missing> {
        below(id.0, self.events, "an event")
    }

    fn allocation(&self, id: AllocationId) -> Result<(), Missing> {
        below(id.0, self.allocations, "an allocation")
    }
}

fn below(id: u32, count: u32, what: Missing) -> Result<(), Missing> {
    if id < count { Ok(()) } else { Err(what) }
}
