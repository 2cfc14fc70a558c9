//! From a recipe to the trace that recording such a program would give.

mod graphs;
mod steps;

use super::recipe::{Birth, Call, Recipe, Size};
use streamsan_model::{
    Access, Action, Allocation, AllocationId, ByteRange, Context, ContextId, DeviceId, Entity,
    Event, EventId, ExecutableId, GraphId, HostTime, Kernel, KernelId, MemoryKind, OpSeq,
    Operation, Process, ProcessId, Status, Stream, StreamId, StreamKind, Thread, ThreadId,
    TraceItem,
};

/// From one global index to the next, so that calls can be put between two others.
const SPACING: u64 = 8;

const PROCESS: ProcessId = ProcessId(0);
const FAILED: Status = Status(1);

/// The trace of a recipe.
pub(crate) fn build(recipe: &Recipe) -> Vec<TraceItem> {
    let mut builder = Builder::declare(recipe);
    for (call, step) in recipe.steps.iter().flatten() {
        builder.step(*call, step);
    }
    if !recipe.dies {
        for thread in 0..builder.running.len() {
            builder.end_call(thread);
        }
    }
    builder.items
}

#[derive(Clone, Copy)]
struct Running {
    item: usize,
    /// Calls of others that are still to come before it returns.
    lasts: u8,
}

struct Builder {
    items: Vec<TraceItem>,
    now: u64,
    exit_is_entry: bool,
    /// By thread: the call it is in.
    running: Vec<Option<Running>>,
    streams: Vec<(Stream, Exists)>,
    next_stream: u32,
    events: Vec<EventId>,
    next_event: u32,
    contexts: u32,
    /// The newest generation of each buffer.
    buffers: Vec<Allocation>,
    next_allocation: u32,
    next_address: u64,
    most_runs: u64,
    /// The snapshots that the executable graphs run now.
    executables: [Option<(ExecutableId, GraphId)>; 2],
    next_executable: u32,
    next_graph: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Exists {
    NotYet,
    Now,
    NoMore,
}

impl Builder {
    fn declare(recipe: &Recipe) -> Self {
        let mut builder = Self {
            items: Vec::new(),
            now: 0,
            exit_is_entry: recipe.exit_is_entry,
            running: vec![None; usize::from(recipe.threads)],
            streams: Vec::new(),
            next_stream: 0,
            events: Vec::new(),
            next_event: 0,
            contexts: u32::from(recipe.contexts),
            buffers: Vec::new(),
            next_allocation: 0,
            next_address: 0x7f00_0000_0000,
            most_runs: recipe.most_runs,
            executables: [None; 2],
            next_executable: 0,
            next_graph: 0,
        };
        builder.entity(Entity::Process(Process {
            id: PROCESS,
            pid: 100,
            parent_pid: 1,
            executable: "/bin/program".into(),
            arguments: vec!["program".into()],
        }));
        for thread in 0..u32::from(recipe.threads) {
            builder.entity(Entity::Thread(Thread {
                id: ThreadId(thread),
                process: PROCESS,
                tid: 100 + thread,
            }));
        }
        for context in 0..builder.contexts {
            builder.entity(Entity::Context(Context {
                id: ContextId(context),
                process: PROCESS,
                device: DeviceId(if recipe.one_device { 0 } else { context }),
                primary: context == 0 || !recipe.green,
                parent: (recipe.green && context > 0).then_some(ContextId(0)),
                concurrent_managed_access: true,
                handle: 0x1000 + u64::from(context),
            }));
        }
        for kernel in 0..3 {
            builder.entity(Entity::Kernel(Kernel {
                id: KernelId(kernel),
                name: format!("kernel_{kernel}"),
                params: Vec::new(),
            }));
        }
        for (index, &(context, kind, birth)) in recipe.streams.iter().enumerate() {
            let context = ContextId(u32::from(context) % builder.contexts);
            builder.add_stream(index as u32, context, kind, birth);
        }
        for _ in 0..recipe.events {
            let event = builder.new_event();
            builder.events.push(event);
        }
        for &(kind, size) in &recipe.buffers {
            let buffer = builder.new_allocation(kind, size, None, "");
            builder.buffers.push(buffer);
        }
        builder
    }

    fn entity(&mut self, entity: Entity) {
        self.items.push(TraceItem::Entity(entity));
    }

    /// Default streams are there from the beginning, once a context and thread.
    fn add_stream(&mut self, slot: u32, context: ContextId, kind: StreamKind, birth: Birth) {
        let threads = self.running.len() as u32;
        let thread = (kind == StreamKind::PerThread).then_some(ThreadId(slot % threads));
        let exists_already = self.streams.iter().any(|(other, _)| {
            other.context == context && other.kind == kind && other.thread == thread
        });
        let is_default = matches!(kind, StreamKind::Legacy | StreamKind::PerThread);
        let (kind, thread) = if is_default && exists_already {
            (StreamKind::Blocking, None)
        } else {
            (kind, thread)
        };
        let is_default = matches!(kind, StreamKind::Legacy | StreamKind::PerThread);
        let stream = Stream {
            id: StreamId(u32::MAX),
            context,
            kind,
            thread,
            priority: 0,
            handle: if is_default { 0 } else { 0x5000 + u64::from(slot) },
            driver_id: u64::from(slot) + 1,
            name: Some(format!("s{slot}")),
        };
        self.streams.push((stream, Exists::NotYet));
        if birth == Birth::BeforeTheTrace || is_default {
            self.declare_stream(slot as usize);
        }
    }

    /// Ids are given in the order of declaration.
    fn declare_stream(&mut self, slot: usize) -> StreamId {
        let id = StreamId(self.next_stream);
        self.next_stream += 1;
        let (stream, exists) = &mut self.streams[slot];
        stream.id = id;
        *exists = Exists::Now;
        let declaration = Entity::Stream(stream.clone());
        self.entity(declaration);
        id
    }

    fn new_event(&mut self) -> EventId {
        let id = EventId(self.next_event);
        self.next_event += 1;
        self.entity(Entity::Event(Event {
            id,
            context: ContextId(id.0 % self.contexts),
            handle: 0x9000 + u64::from(id.0),
            flags: 2,
            imported: false,
            name: Some(format!("e{id}")),
        }));
        id
    }

    fn new_allocation(
        &mut self,
        kind: MemoryKind,
        size: Size,
        at: Option<ByteRange>,
        api: &str,
    ) -> Allocation {
        let bytes = match size {
            Size::Small => 16,
            Size::Medium => 96,
            Size::Large => 256,
        };
        let range = at.unwrap_or_else(|| {
            let start = self.next_address;
            self.next_address += 0x1000;
            ByteRange::with_len(start, bytes)
        });
        let id = AllocationId(self.next_allocation);
        self.next_allocation += 1;
        let allocation = Allocation {
            id,
            process: PROCESS,
            context: (kind != MemoryKind::Pageable).then_some(ContextId(id.0 % self.contexts)),
            kind,
            range,
            api: api.into(),
            backing: None,
            name: Some(format!("buffer_{id}")),
            stack: None,
        };
        self.entity(Entity::Allocation(allocation.clone()));
        allocation
    }

    fn tick(&mut self) -> OpSeq {
        self.now += SPACING;
        OpSeq(self.now)
    }

    /// The thread that makes a call: the one asked for, or another while that one is in a call.
    /// Only its own thread calls on a per-thread default stream.
    fn caller(&mut self, wanted: u8, own: Option<ThreadId>) -> usize {
        let threads = self.running.len();
        let wanted = own.map_or(usize::from(wanted), ThreadId::index) % threads;
        if self.running[wanted].is_none() {
            return wanted;
        }
        if own.is_none()
            && let Some(other) = (0..threads).find(|&thread| self.running[thread].is_none())
        {
            return other;
        }
        self.end_call(wanted);
        wanted
    }

    fn end_call(&mut self, thread: usize) {
        if let Some(running) = self.running[thread].take() {
            let exit = self.tick();
            let TraceItem::Operation(operation) = &mut self.items[running.item] else {
                unreachable!("only operations run");
            };
            operation.exit = Some(exit);
        }
    }

    /// The index of the newest call.
    fn newest_call(&self) -> OpSeq {
        let calls = self.items.iter().rev().filter_map(|item| match item {
            TraceItem::Operation(op) => Some(op.g),
            _ => None,
        });
        calls.take(1).next().expect("a call was made")
    }

    fn call(&mut self, call: Call, api: &str, action: Action, accesses: Vec<Access>) {
        let status = if call.fails { FAILED } else { Status::SUCCESS };
        self.call_with(call, api, action, accesses, status);
    }

    fn call_with(
        &mut self,
        call: Call,
        api: &str,
        action: Action,
        accesses: Vec<Access>,
        status: Status,
    ) {
        let carrier = self.streams.iter().find(|(s, _)| action.stream() == Some(s.id));
        let own = carrier.and_then(|(stream, _)| stream.thread);
        let thread = self.caller(call.thread, own);
        let waits = matches!(
            action,
            Action::StreamSynchronize { .. }
                | Action::EventSynchronize { .. }
                | Action::ContextSynchronize { .. }
        );
        let g = self.tick();
        let lasts_longer = waits && call.lasts > 0 && self.running.len() > 1;
        let exit = if lasts_longer {
            None
        } else if self.exit_is_entry {
            Some(g)
        } else {
            Some(self.tick())
        };
        for other in 0..self.running.len() {
            match &mut self.running[other] {
                Some(running) if running.lasts > 0 => running.lasts -= 1,
                Some(_) => self.end_call(other),
                None => {}
            }
        }
        if lasts_longer {
            self.running[thread] = Some(Running { item: self.items.len(), lasts: call.lasts });
        }
        self.items.push(TraceItem::Operation(Operation {
            g,
            exit,
            process: PROCESS,
            thread: ThreadId(thread as u32),
            api: api.into(),
            time: Some(HostTime { start_ns: g.0 * 100, end_ns: g.0 * 100 + 50 }),
            status,
            action,
            accesses,
            stack: None,
        }));
    }
}
