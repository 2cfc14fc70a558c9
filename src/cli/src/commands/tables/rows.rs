//! The rows of a trace, as its items and edges come.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use streamsan_model::{
    Access, Action, Allocation, CallStack, ContextId, Copy, Edge, Entities, Entity, EventId,
    Extent, GraphId, NvtxRange, Operation, Process, StackId, Stream, TraceItem,
};
use streamsan_tables::{Error, Partition, Table, Value};

use super::super::trace::Watch;
use Value::{Flag, Integer, Null, Text, Unsigned};

/// Names of calls that are remembered.
const CALLS: usize = 1 << 16;

/// Writes rows. After a failure nothing more is written.
pub(super) struct Rows {
    partition: Partition,
    /// Contexts, stacks and frames: what rows need of earlier items.
    known: Entities,
    stacks: Vec<StackId>,
    /// The names of calls in the program's language, by entry point and stack.
    called: HashMap<(Arc<str>, Option<StackId>), Arc<str>>,
    pub(super) operations: u64,
    failure: Option<Error>,
}

impl Rows {
    pub(super) fn new(partition: Partition) -> Self {
        Self {
            partition,
            known: Entities::default(),
            stacks: Vec::new(),
            called: HashMap::new(),
            operations: 0,
            failure: None,
        }
    }

    /// Adds a row, unless one has failed.
    pub(super) fn row(&mut self, table: Table, row: &[Value<'_>]) {
        if self.failure.is_none() {
            self.failure = self.partition.row(table, row).err();
        }
    }

    /// Whether every row so far is written.
    ///
    /// # Errors
    /// One could not be.
    pub(super) fn so_far(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Completes the files.
    ///
    /// # Errors
    /// Something could not be written.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.so_far()?;
        self.partition.finish()
    }

    fn entity(&mut self, entity: &Entity) {
        match entity {
            Entity::Process(process) => self.process(process),
            Entity::Stream(stream) => self.stream(stream),
            Entity::Allocation(allocation) => self.allocation(allocation),
            Entity::Kernel(kernel) => {
                let (id, name) = (Value::amount(kernel.id.0), &kernel.name);
                let readable = streamsan_names::kernel(name);
                self.row(Table::Kernels, &[id, Text(name), Text(&readable)]);
            }
            Entity::Stack(stack) => {
                self.stacks.push(stack.id);
                self.known.declare(entity.clone());
            }
            Entity::Context(_) | Entity::Frame(_) => self.known.declare(entity.clone()),
            Entity::Thread(_)
            | Entity::Event(_)
            | Entity::Graph(_)
            | Entity::Module(_)
            | Entity::KernelCode(_) => {}
        }
    }

    fn process(&mut self, process: &Process) {
        self.row(
            Table::Processes,
            &[
                Value::amount(process.id.0),
                Value::amount(process.pid),
                Value::amount(process.parent_pid),
                Text(&process.executable),
                Text(&process.arguments.join(" ")),
            ],
        );
    }

    fn device(&self, context: ContextId) -> Value<'static> {
        Value::of(self.known.context(context), |context| Value::amount(context.device.0))
    }

    fn stream(&mut self, stream: &Stream) {
        let context = self.known.context(stream.context);
        let process = Value::of(context, |context| Value::amount(context.process.0));
        self.row(
            Table::Streams,
            &[
                Value::amount(stream.id.0),
                Value::amount(stream.context.0),
                process,
                self.device(stream.context),
                Text(stream.kind.description()),
                Integer(stream.priority.into()),
                Unsigned(stream.handle),
                Value::of(stream.name.as_deref(), Text),
            ],
        );
    }

    fn allocation(&mut self, allocation: &Allocation) {
        let backing = allocation.backing;
        self.row(
            Table::Allocations,
            &[
                Value::amount(allocation.id.0),
                Value::amount(allocation.process.0),
                Value::of(allocation.context, |context| Value::amount(context.0)),
                allocation.context.map_or(Null, |context| self.device(context)),
                Text(allocation.kind.description()),
                Unsigned(allocation.range.start),
                Value::amount(allocation.range.len()),
                Text(&allocation.api),
                Value::of(allocation.name.as_deref(), Text),
                Value::of(backing, |backing| Value::amount(backing.memory.0)),
                Value::of(backing, |backing| Value::amount(backing.offset)),
                Value::of(allocation.stack, |stack| Value::amount(stack.0)),
            ],
        );
    }

    /// The name of a call in the program's language.
    fn called(&mut self, api: &Arc<str>, stack: Option<StackId>) -> Arc<str> {
        let key = (api.clone(), stack);
        if let Some(called) = self.called.get(&key) {
            return called.clone();
        }
        let called: Arc<str> = self.known.called(api, stack).into();
        if self.called.len() >= CALLS {
            self.called.clear();
        }
        self.called.insert(key, called.clone());
        called
    }

    fn operation(&mut self, operation: &Operation) {
        self.operations += 1;
        let op = Value::amount(operation.g.0);
        let action = &operation.action;
        let about = About::of(action);
        let called = self.called(&operation.api, operation.stack);
        // A call that never returned has no length.
        let time = operation.time.filter(|_| operation.exit.is_some());
        let length = time.map(|time| time.end_ns.saturating_sub(time.start_ns));
        self.row(
            Table::Operations,
            &[
                op,
                Value::of(operation.exit, |exit| Value::amount(exit.0)),
                Value::amount(operation.process.0),
                Value::amount(operation.thread.0),
                Text(&operation.api),
                Text(&called),
                Text(action.description()),
                Value::of(action.stream(), |stream| Value::amount(stream.0)),
                Value::of(about.context, |context| Value::amount(context.0)),
                Value::of(about.event, |event| Value::amount(event.0)),
                about.allocation,
                about.kernel,
                Value::of(about.graph, |graph| Value::amount(graph.0)),
                Value::of(about.source, Text),
                Value::of(about.destination, Text),
                Value::of(about.bytes, Value::amount),
                Value::of(operation.time, |time| Value::amount(time.start_ns)),
                Value::of(length, Value::amount),
                Integer(operation.status.0.into()),
                Value::of(operation.stack, |stack| Value::amount(stack.0)),
            ],
        );
        for (position, access) in operation.accesses.iter().enumerate() {
            self.access(op, position, access);
        }
    }

    fn access(&mut self, op: Value<'_>, position: usize, access: &Access) {
        let hull = access.extent.hull();
        let pattern = match access.extent {
            Extent::Range(_) => [Null; 5],
            Extent::Strided(p) => {
                [p.width, p.pitch, p.rows, p.slice_pitch, p.slices].map(Value::amount)
            }
        };
        let [width, pitch, rows, slice_pitch, slices] = pattern;
        self.row(
            Table::Accesses,
            &[
                op,
                Value::amount(position as u64),
                Value::amount(access.allocation.0),
                Text(access.mode.description()),
                Text(access.basis.description()),
                Unsigned(hull.start),
                Value::amount(hull.len()),
                width,
                pitch,
                rows,
                slice_pitch,
                slices,
            ],
        );
    }

    /// The stacks, with the lines that are known at the end.
    pub(super) fn stacks(&mut self, entities: &Entities) {
        for id in std::mem::take(&mut self.stacks) {
            let Some(stack) = CallStack::of(entities, Some(id)) else { continue };
            for (depth, frame) in stack.frames.iter().enumerate() {
                let source = frame.source;
                self.row(
                    Table::Stacks,
                    &[
                        Value::amount(id.0),
                        Value::amount(depth as u64),
                        Value::of(frame.function(), Text),
                        Value::of(source.and_then(|source| source.file.as_deref()), Text),
                        Value::of(source.and_then(|source| source.line), Value::amount),
                        Flag(source.is_some_and(|source| source.inlined)),
                        Text(frame.origin.description()),
                        Value::of(frame.image, |(image, _)| Text(image)),
                        Value::of(frame.image, |(_, offset)| Unsigned(offset)),
                    ],
                );
            }
        }
    }

    pub(super) fn range(&mut self, range: &NvtxRange) {
        let length = range.end.map(|_| range.time.end_ns.saturating_sub(range.time.start_ns));
        self.row(
            Table::Ranges,
            &[
                Text(range.kind.description()),
                Value::amount(range.process.0),
                Value::amount(range.thread.0),
                Value::amount(range.depth),
                Value::amount(range.begin.0),
                Value::of(range.end, |end| Value::amount(end.0)),
                Value::of(range.domain.as_deref(), Text),
                Text(&range.name),
                Value::amount(range.time.start_ns),
                Value::of(length, Value::amount),
            ],
        );
    }
}

impl Watch for Rows {
    fn item(&mut self, item: &TraceItem) -> ControlFlow<()> {
        match item {
            TraceItem::Entity(entity) => self.entity(entity),
            TraceItem::Operation(operation) => self.operation(operation),
            TraceItem::Returned { .. } | TraceItem::Range(_) => {}
        }
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn edge(&mut self, edge: &Edge) {
        self.row(
            Table::Edges,
            &[
                Value::amount(edge.from.0),
                Value::amount(edge.to.0),
                Text(edge.kind.description()),
                Text(edge.tier.description()),
            ],
        );
    }
}

/// The objects that a call is about, beside its stream.
struct About {
    context: Option<ContextId>,
    event: Option<EventId>,
    allocation: Value<'static>,
    kernel: Value<'static>,
    graph: Option<GraphId>,
    source: Option<&'static str>,
    destination: Option<&'static str>,
    bytes: Option<u64>,
}

impl About {
    fn of(action: &Action) -> Self {
        let mut about = Self {
            context: None,
            event: None,
            allocation: Null,
            kernel: Null,
            graph: None,
            source: None,
            destination: None,
            bytes: None,
        };
        match *action {
            Action::ContextCreate { context }
            | Action::ContextDestroy { context }
            | Action::ContextSynchronize { context } => about.context = Some(context),
            Action::ContextRecordEvent { context, event }
            | Action::ContextWaitEvent { context, event } => {
                (about.context, about.event) = (Some(context), Some(event));
            }
            Action::StreamWaitEvent { event, .. }
            | Action::EventCreate { event }
            | Action::EventDestroy { event }
            | Action::EventRecord { event, .. }
            | Action::EventSynchronize { event }
            | Action::EventQuery { event }
            | Action::EventElapsedTime { start: event, .. } => about.event = Some(event),
            Action::Allocate { allocation, .. }
            | Action::Free { allocation, .. }
            | Action::Attach { allocation, .. } => about.allocation = Value::amount(allocation.0),
            Action::Launch { kernel, event, .. } => {
                about.kernel = Value::amount(kernel.0);
                about.event = event.map(|(event, _)| event);
            }
            Action::Copy(Copy { source, destination, bytes, .. }) => {
                about.source = Some(source.description());
                about.destination = Some(destination.description());
                about.bytes = Some(bytes);
            }
            Action::Memset { destination, .. } => {
                about.destination = Some(destination.description());
            }
            Action::GraphInstantiate { graph, .. }
            | Action::GraphUpdate { graph, .. }
            | Action::GraphLaunch { graph, .. } => about.graph = Some(graph),
            _ => {}
        }
        about
    }
}
