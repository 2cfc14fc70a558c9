//! From a recipe to the trace that recording such a program would give.

use super::recipe::{Birth, Call, Recipe, Shape, Size, Step, Touch};
use streamsan_model::{
    Access, Action, Allocation, AllocationId, Basis, ByteRange, Context, ContextId, Copy, DeviceId,
    Entity, Event, EventId, Extent, HostTime, Kernel, KernelId, MemoryKind, Mode, OpSeq, Operation,
    Process, ProcessId, Status, Stream, StreamId, StreamKind, StridedPattern, Thread, ThreadId,
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
                primary: true,
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
            name: Some(format!("buffer_{id}")),
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
        }));
    }
}

/// One call for each step, where there is something to call it on.
impl Builder {
    fn step(&mut self, call: Call, step: &Step) {
        match *step {
            Step::Launch { stream, ref touches } => self.launch(call, stream, touches),
            Step::Copy { stream, synchronous, from, to, shape } => {
                self.copy(call, stream, synchronous, (from, to), shape);
            }
            Step::Memset { stream, synchronous, buffer, shape } => {
                self.memset(call, stream, synchronous, buffer, shape);
            }
            Step::Host { ref touches } => {
                let accesses = self.accesses(touches);
                self.call(Call { fails: false, ..call }, "host", Action::HostAccess, accesses);
            }
            Step::Record { event, stream } => {
                let (event, Some(stream)) = (self.event(event), self.stream(stream)) else {
                    return;
                };
                self.call(call, "cuEventRecord", Action::EventRecord { event, stream }, vec![]);
            }
            Step::Wait { stream, event } => {
                let (event, Some(stream)) = (self.event(event), self.stream(stream)) else {
                    return;
                };
                let action = Action::StreamWaitEvent { stream, event };
                self.call(call, "cuStreamWaitEvent", action, vec![]);
            }
            Step::DestroyEvent { event } => {
                let slot = usize::from(event) % self.events.len();
                let action = Action::EventDestroy { event: self.events[slot] };
                self.call(Call { fails: false, ..call }, "cuEventDestroy_v2", action, vec![]);
                let event = self.new_event();
                self.events[slot] = event;
                let action = Action::EventCreate { event };
                self.call(Call { fails: false, ..call }, "cuEventCreate", action, vec![]);
            }
            Step::SynchronizeStream { stream } => {
                let Some(stream) = self.stream(stream) else { return };
                let action = Action::StreamSynchronize { stream };
                self.call(call, "cuStreamSynchronize", action, vec![]);
            }
            Step::SynchronizeEvent { event } => {
                let action = Action::EventSynchronize { event: self.event(event) };
                self.call(call, "cuEventSynchronize", action, vec![]);
            }
            Step::SynchronizeContext { context } => {
                let context = ContextId(u32::from(context) % self.contexts);
                let action = Action::ContextSynchronize { context };
                self.call(call, "cuCtxSynchronize", action, vec![]);
            }
            Step::QueryStream { stream, is_complete } => {
                let Some(stream) = self.stream(stream) else { return };
                let action = Action::StreamQuery { stream };
                self.call_with(call, "cuStreamQuery", action, vec![], answer(is_complete));
            }
            Step::QueryEvent { event, is_complete } => {
                let action = Action::EventQuery { event: self.event(event) };
                self.call_with(call, "cuEventQuery", action, vec![], answer(is_complete));
            }
            Step::ElapsedTime { start, end } => {
                let (start, end) = (self.event(start), self.event(end));
                let action = Action::EventElapsedTime { start, end };
                self.call(call, "cuEventElapsedTime_v2", action, vec![]);
            }
            Step::CreateStream { stream } => {
                let _ = self.stream(stream);
            }
            Step::DestroyStream { stream } => {
                let slot = usize::from(stream) % self.streams.len();
                let (stream, exists) = self.streams[slot].clone();
                if exists == Exists::Now && stream.handle != 0 && self.streams.len() > 2 {
                    self.streams[slot].1 = Exists::NoMore;
                    let action = Action::StreamDestroy { stream: stream.id };
                    self.call(Call { fails: false, ..call }, "cuStreamDestroy_v2", action, vec![]);
                }
            }
            Step::Allocate { buffer, kind, stream, size, at_old_address } => {
                self.allocate(call, buffer, kind, stream, size, at_old_address);
            }
            Step::Free { buffer, stream } => self.free(call, buffer, stream),
        }
    }

    fn launch(&mut self, call: Call, stream: u8, touches: &[Touch]) {
        let Some(stream) = self.stream(stream) else { return };
        let accesses = self.accesses(touches);
        let action = Action::Launch {
            stream,
            kernel: KernelId(touches.len() as u32 - 1),
            programmatic: false,
            waits_for_programmatic: false,
            cooperative: false,
        };
        self.call(call, "cuLaunchKernel", action, accesses);
    }

    fn copy(&mut self, call: Call, stream: u8, sync: bool, (from, to): (u8, u8), shape: Shape) {
        let (from, to) = (self.buffer(from).clone(), self.buffer(to).clone());
        if from.id == to.id {
            return;
        }
        let Some((stream, synchronous)) = self.carrier(stream, sync) else { return };
        let common = from.range.len().min(to.range.len());
        let access = |buffer: &Allocation, mode| Access {
            allocation: buffer.id,
            extent: self.extent(ByteRange::with_len(buffer.range.start, common), shape),
            mode,
            basis: Basis::Exact,
        };
        let accesses = vec![access(&from, Mode::Read), access(&to, Mode::Write)];
        let action = Action::Copy(Copy {
            stream,
            synchronous,
            source: from.kind,
            destination: to.kind,
            peer: None,
            bytes: common,
        });
        let api = match (synchronous, from.kind.is_host(), to.kind.is_host()) {
            (true, true, false) => "cuMemcpyHtoD_v2",
            (true, false, true) => "cuMemcpyDtoH_v2",
            (true, false, false) => "cuMemcpyDtoD_v2",
            (true, true, true) => "cuMemcpy",
            (false, true, false) => "cuMemcpyHtoDAsync_v2",
            (false, false, true) => "cuMemcpyDtoHAsync_v2",
            (false, false, false) => "cuMemcpyDtoDAsync_v2",
            (false, true, true) => "cuMemcpyAsync",
        };
        self.call(call, api, action, accesses);
    }

    fn memset(&mut self, call: Call, stream: u8, synchronous: bool, buffer: u8, shape: Shape) {
        let buffer = self.buffer(buffer).clone();
        if buffer.kind == MemoryKind::Pageable {
            return; // The driver would refuse it.
        }
        let Some((stream, synchronous)) = self.carrier(stream, synchronous) else { return };
        let access = Access {
            allocation: buffer.id,
            extent: self.extent(buffer.range, shape),
            mode: Mode::Write,
            basis: Basis::Exact,
        };
        let action = Action::Memset { stream, synchronous, destination: buffer.kind };
        let api = if synchronous { "cuMemsetD8_v2" } else { "cuMemsetD8Async" };
        self.call(call, api, action, vec![access]);
    }

    fn allocate(
        &mut self,
        call: Call,
        slot: u8,
        kind: MemoryKind,
        stream: u8,
        size: Size,
        at_old_address: bool,
    ) {
        let stream = match kind {
            MemoryKind::StreamOrdered => match self.stream(stream) {
                Some(stream) => Some(stream),
                None => return,
            },
            _ => None,
        };
        let old = at_old_address.then(|| self.buffer(slot).range);
        let api = match kind {
            MemoryKind::StreamOrdered => "cuMemAllocAsync",
            MemoryKind::Pinned => "cuMemAllocHost_v2",
            MemoryKind::Managed => "cuMemAllocManaged",
            _ => "cuMemAlloc_v2",
        };
        let buffer = self.new_allocation(kind, size, old, api);
        let access = whole(&buffer, Mode::Allocate);
        let action = Action::Allocate { allocation: buffer.id, stream };
        let index = usize::from(slot) % self.buffers.len();
        self.buffers[index] = buffer;
        self.call(Call { fails: false, ..call }, api, action, vec![access]);
    }

    /// The buffer stays in use afterwards, now and then: that is what the hazards are about.
    fn free(&mut self, call: Call, slot: u8, stream: Option<u8>) {
        let buffer = self.buffer(slot).clone();
        let stream = stream.and_then(|stream| self.stream(stream));
        let (api, stream) = match buffer.kind {
            MemoryKind::Pageable => return,
            MemoryKind::Pinned => ("cuMemFreeHost", None),
            _ if stream.is_some() => ("cuMemFreeAsync", stream),
            _ => ("cuMemFree_v2", None),
        };
        let action = Action::Free { allocation: buffer.id, stream };
        self.call(call, api, action, vec![whole(&buffer, Mode::Free)]);
    }

    /// A stream that exists, or exists from now on.
    fn stream(&mut self, wanted: u8) -> Option<StreamId> {
        let count = self.streams.len();
        let slot = (0..count)
            .map(|step| (usize::from(wanted) + step) % count)
            .find(|&slot| self.streams[slot].1 != Exists::NoMore)?;
        if self.streams[slot].1 == Exists::NotYet {
            let stream = self.declare_stream(slot);
            let call = Call { thread: 0, fails: false, lasts: 0 };
            self.call(call, "cuStreamCreate", Action::StreamCreate { stream }, vec![]);
        }
        Some(self.streams[slot].0.id)
    }

    /// The stream of a copy or memset: synchronous forms are issued to a default stream, and
    /// become asynchronous where the program has none.
    fn carrier(&mut self, wanted: u8, synchronous: bool) -> Option<(StreamId, bool)> {
        let default_streams: Vec<_> = self
            .streams
            .iter()
            .filter(|(s, _)| matches!(s.kind, StreamKind::Legacy | StreamKind::PerThread))
            .map(|(s, _)| s.id)
            .collect();
        if synchronous && !default_streams.is_empty() {
            Some((default_streams[usize::from(wanted) % default_streams.len()], true))
        } else {
            self.stream(wanted).map(|stream| (stream, false))
        }
    }

    fn event(&self, wanted: u8) -> EventId {
        self.events[usize::from(wanted) % self.events.len()]
    }

    fn buffer(&self, wanted: u8) -> &Allocation {
        &self.buffers[usize::from(wanted) % self.buffers.len()]
    }

    /// The part of a buffer that a shape stands for; never empty, never outside.
    fn extent(&self, buffer: ByteRange, shape: Shape) -> Extent {
        let size = buffer.len();
        let part = |start: u64, len: u64| {
            let start = buffer.start + start % size;
            let end = buffer.end.min(start + len.max(1));
            Extent::Range(ByteRange::new(start, end))
        };
        match shape {
            Shape::Whole => Extent::Range(buffer),
            Shape::Part { start, len } => {
                part(u64::from(start) * size / 16, u64::from(len) * size / 16)
            }
            Shape::Bytes { start, len } => part(u64::from(start), u64::from(len)),
            Shape::Rows { start, width, gap, rows, slices } => {
                let (width, pitch) = (u64::from(width), u64::from(width + gap));
                let start = u64::from(start) % (size - width);
                let room = (size - start - width) / pitch + 1;
                let rows = u64::from(rows).min(room).min(self.most_runs / u64::from(slices));
                let slice_pitch = rows * pitch + u64::from(gap);
                let fits = start + slice_pitch + (rows - 1) * pitch + width <= size;
                let slices = if slices == 2 && fits { 2 } else { 1 };
                let start = buffer.start + start;
                Extent::strided(StridedPattern { start, width, pitch, rows, slice_pitch, slices })
                    .expect("holds a byte")
            }
        }
    }

    /// At most one access for each allocation and extent.
    fn accesses(&self, touches: &[Touch]) -> Vec<Access> {
        let mut accesses: Vec<Access> = Vec::new();
        for touch in touches {
            let buffer = self.buffer(touch.buffer);
            let extent = self.extent(buffer.range, touch.shape);
            if !accesses.iter().any(|a| a.allocation == buffer.id && a.extent == extent) {
                let (mode, basis) = (touch.mode, touch.basis);
                accesses.push(Access { allocation: buffer.id, extent, mode, basis });
            }
        }
        accesses
    }
}

fn answer(is_complete: bool) -> Status {
    if is_complete { Status::SUCCESS } else { Status::NOT_READY }
}

fn whole(buffer: &Allocation, mode: Mode) -> Access {
    let extent = Extent::Range(buffer.range);
    Access { allocation: buffer.id, extent, mode, basis: Basis::Exact }
}
