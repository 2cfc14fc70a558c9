//! A trace in the making.

use std::sync::Arc;
use streamsan_model::{
    Access, Action, Allocation, AllocationId, Basis, ByteRange, Context, ContextId, Copy, DeviceId,
    Entity, Event, EventId, Extent, GridControl, Kernel, KernelId, MemoryKind, Mode, OpSeq,
    Operation, Process, ProcessId, SourceOrder, Status, Stream, StreamId, StreamKind, Thread,
    ThreadId, TraceItem,
};

const PROCESS: ProcessId = ProcessId(0);
const THREAD: ThreadId = ThreadId(0);
const CONTEXT: ContextId = ContextId(0);

/// One process, one thread, one context; every stream has an event of the same number.
pub(crate) struct Program {
    items: Vec<TraceItem>,
    operations: usize,
    now: u64,
    buffers: Vec<ByteRange>,
    launch: Arc<str>,
    record: Arc<str>,
    wait: Arc<str>,
    synchronize: Arc<str>,
}

impl Program {
    /// Non-blocking streams and one buffer of each size.
    pub(crate) fn new(streams: u32, buffers: impl IntoIterator<Item = u64>) -> Self {
        let mut program = Self {
            items: Vec::new(),
            operations: 0,
            now: 0,
            buffers: Vec::new(),
            launch: "cuLaunchKernel".into(),
            record: "cuEventRecord".into(),
            wait: "cuStreamWaitEvent".into(),
            synchronize: "cuCtxSynchronize".into(),
        };
        let process = Process {
            id: PROCESS,
            pid: 1,
            parent_pid: 0,
            executable: String::new(),
            arguments: Vec::new(),
        };
        let context = Context {
            id: CONTEXT,
            process: PROCESS,
            device: DeviceId(0),
            primary: true,
            parent: None,
            concurrent_managed_access: true,
            handle: 1,
        };
        let kernel = Kernel { id: KernelId(0), name: "kernel".into(), params: Vec::new() };
        program.declare(Entity::Process(process));
        program.declare(Entity::Thread(Thread { id: THREAD, process: PROCESS, tid: 1 }));
        program.declare(Entity::Context(context));
        program.declare(Entity::Kernel(kernel));
        for id in 0..streams {
            program.declare(Entity::Stream(Stream {
                id: StreamId(id),
                context: CONTEXT,
                kind: StreamKind::NonBlocking,
                thread: None,
                priority: 0,
                handle: u64::from(id) + 0x1000,
                driver_id: u64::from(id),
                name: None,
            }));
            program.declare(Entity::Event(Event {
                id: EventId(id),
                context: CONTEXT,
                handle: u64::from(id) + 0x1000,
                flags: 2,
                imported: false,
                name: None,
            }));
        }
        let mut address = 0x7f00_0000_0000;
        for (id, bytes) in (0..).zip(buffers) {
            let range = ByteRange::with_len(address, bytes);
            address = range.end.next_multiple_of(0x20_0000);
            program.buffers.push(range);
            program.declare(Entity::Allocation(Allocation {
                id: AllocationId(id),
                process: PROCESS,
                context: Some(CONTEXT),
                kind: MemoryKind::Device,
                range,
                api: "cuMemAlloc_v2".into(),
                backing: None,
                name: None,
                stack: None,
            }));
        }
        program
    }

    pub(super) fn declare(&mut self, entity: Entity) {
        self.items.push(TraceItem::Entity(entity));
    }

    pub(crate) fn items(&self) -> &[TraceItem] {
        &self.items
    }

    pub(crate) fn operations(&self) -> usize {
        self.operations
    }

    /// Whether the program has reached the given number of operations.
    pub(crate) fn has(&self, operations: u32) -> bool {
        self.operations >= operations as usize
    }

    pub(super) fn call(&mut self, api: &Arc<str>, action: Action, accesses: Vec<Access>) {
        self.now += 2;
        self.operations += 1;
        self.items.push(TraceItem::Operation(Operation {
            g: OpSeq(self.now),
            exit: Some(OpSeq(self.now + 1)),
            process: PROCESS,
            thread: THREAD,
            api: Arc::clone(api),
            time: None,
            status: Status::SUCCESS,
            action,
            accesses,
            stack: None,
        }));
    }

    /// Ordinary host memory, as an allocation behind all buffers.
    pub(super) fn pageable(&mut self) -> u32 {
        let id = self.buffers.len() as u32;
        let range = ByteRange::new(0, u64::MAX);
        self.buffers.push(range);
        self.declare(Entity::Allocation(Allocation {
            id: AllocationId(id),
            process: PROCESS,
            context: None,
            kind: MemoryKind::Pageable,
            range,
            api: String::new(),
            backing: None,
            name: None,
            stack: None,
        }));
        id
    }

    /// A new stream, of a kind and with a number of its own.
    pub(super) fn create(&mut self, stream: u32, kind: StreamKind) {
        self.declare(Entity::Stream(Stream {
            id: StreamId(stream),
            context: CONTEXT,
            kind,
            thread: None,
            priority: 0,
            handle: u64::from(stream) + 0x1000,
            driver_id: u64::from(stream),
            name: None,
        }));
        if kind != StreamKind::Legacy {
            let action = Action::StreamCreate { stream: StreamId(stream) };
            self.call(&"cuStreamCreate".into(), action, Vec::new());
        }
    }

    pub(super) fn destroy(&mut self, stream: u32) {
        let action = Action::StreamDestroy { stream: StreamId(stream) };
        self.call(&"cuStreamDestroy_v2".into(), action, Vec::new());
    }

    /// An asynchronous copy of all of a buffer, from ordinary host memory.
    pub(super) fn copy(&mut self, stream: u32, pageable: u32, buffer: u32) {
        let bytes = self.buffers[buffer as usize].len();
        let copy = Copy {
            stream: StreamId(stream),
            synchronous: false,
            source: MemoryKind::Pageable,
            destination: MemoryKind::Device,
            peer: None,
            bytes,
            source_order: SourceOrder::Stream,
            sync_memops: false,
        };
        let source = self.part(pageable, 0x1000, bytes, Mode::Read);
        let accesses = vec![source, self.whole(buffer, Mode::Write)];
        self.call(&"cuMemcpyHtoDAsync_v2".into(), Action::Copy(copy), accesses);
    }

    pub(super) fn synchronize_stream(&mut self, stream: u32) {
        let action = Action::StreamSynchronize { stream: StreamId(stream) };
        self.call(&"cuStreamSynchronize".into(), action, Vec::new());
    }

    /// An access to all of a buffer.
    pub(crate) fn whole(&self, buffer: u32, mode: Mode) -> Access {
        self.part(buffer, 0, self.buffers[buffer as usize].len(), mode)
    }

    /// An access to some bytes of a buffer.
    pub(crate) fn part(&self, buffer: u32, offset: u64, bytes: u64, mode: Mode) -> Access {
        let start = self.buffers[buffer as usize].start + offset;
        let extent = Extent::Range(ByteRange::with_len(start, bytes));
        Access { allocation: AllocationId(buffer), extent, mode, basis: Basis::Exact }
    }

    pub(crate) fn launch(&mut self, stream: u32, accesses: Vec<Access>) {
        let action = Action::Launch {
            stream: StreamId(stream),
            kernel: KernelId(0),
            programmatic: false,
            control: GridControl::default(),
            cooperative: false,
            event: None,
        };
        self.call(&Arc::clone(&self.launch), action, accesses);
    }

    /// Records the stream's event.
    pub(crate) fn record(&mut self, stream: u32) {
        let action = Action::EventRecord { event: EventId(stream), stream: StreamId(stream) };
        self.call(&Arc::clone(&self.record), action, Vec::new());
    }

    /// Makes a stream wait for the event of another.
    pub(crate) fn wait(&mut self, stream: u32, other: u32) {
        let action = Action::StreamWaitEvent { stream: StreamId(stream), event: EventId(other) };
        self.call(&Arc::clone(&self.wait), action, Vec::new());
    }

    pub(crate) fn synchronize(&mut self) {
        let action = Action::ContextSynchronize { context: CONTEXT };
        self.call(&Arc::clone(&self.synchronize), action, Vec::new());
    }
}
