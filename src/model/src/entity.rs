//! The objects that operations refer to: processes, threads, contexts, streams, events, allocations
//! and kernels.
//!
//! Invariant: an entity is declared before the first operation that names it.

mod named;

use crate::creation::Creations;
use crate::{
    AllocationId, BackingId, ByteRange, ContextId, Creation, DeviceId, EventId, Frame, FrameId,
    Graph, GraphId, KernelCode, KernelId, Module, ModuleId, OpSeq, ProcessId, Stack, StackId,
    StreamId, Table, ThreadId,
};
pub use named::Named;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A declaration in a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entity {
    /// See [`Process`].
    Process(Process),
    /// See [`Thread`].
    Thread(Thread),
    /// See [`Context`].
    Context(Context),
    /// See [`Stream`].
    Stream(Stream),
    /// See [`Event`].
    Event(Event),
    /// See [`Allocation`].
    Allocation(Allocation),
    /// See [`Kernel`].
    Kernel(Kernel),
    /// See [`Graph`].
    Graph(Arc<Graph>),
    /// See [`Module`].
    Module(Module),
    /// See [`KernelCode`].
    KernelCode(Arc<KernelCode>),
    /// See [`Frame`].
    Frame(Arc<Frame>),
    /// See [`Stack`]. Its frames are declared before it.
    Stack(Arc<Stack>),
}

/// A process of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id in the trace.
    pub id: ProcessId,
    /// The operating system's number.
    pub pid: u32,
    /// The operating system's number of its parent.
    pub parent_pid: u32,
    /// Path of the executable.
    pub executable: String,
    /// Its arguments, the program's own name first.
    pub arguments: Vec<String>,
}

/// A host thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its id in the trace.
    pub id: ThreadId,
    /// The process it belongs to.
    pub process: ProcessId,
    /// The operating system's number.
    pub tid: u32,
}

/// A CUDA context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Its id in the trace.
    pub id: ContextId,
    /// The process it belongs to.
    pub process: ProcessId,
    /// The device it runs on.
    pub device: DeviceId,
    /// Whether it is the device's primary context.
    pub primary: bool,
    /// The primary context that this green context belongs to; `None` for ordinary contexts.
    pub parent: Option<ContextId>,
    /// `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`: the host may touch managed memory while
    /// kernels run. Taken as true where unknown.
    pub concurrent_managed_access: bool,
    /// The driver's handle, for display.
    pub handle: u64,
}

/// How a stream relates to the legacy default stream of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StreamKind {
    /// Created without `CU_STREAM_NON_BLOCKING`: ordered with the legacy stream.
    Blocking,
    /// Created with `CU_STREAM_NON_BLOCKING`: not ordered with the legacy stream.
    NonBlocking,
    /// The legacy default stream of a context.
    Legacy,
    /// The default stream of one thread in one context; a blocking stream.
    PerThread,
}

impl StreamKind {
    /// All kinds, in the order of their stored codes.
    pub const ALL: [Self; 4] = [Self::Blocking, Self::NonBlocking, Self::Legacy, Self::PerThread];

    /// The word of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::NonBlocking => "non-blocking",
            Self::Legacy => "legacy default",
            Self::PerThread => "per-thread default",
        }
    }
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Its id in the trace.
    pub id: StreamId,
    /// The context it belongs to.
    pub context: ContextId,
    /// How it relates to the legacy stream.
    pub kind: StreamKind,
    /// The thread whose default stream it is ([`StreamKind::PerThread`] only).
    pub thread: Option<ThreadId>,
    /// Scheduling priority; orders nothing.
    pub priority: i32,
    /// The driver's handle, for display.
    pub handle: u64,
    /// `cuStreamGetId`, 0 where unknown.
    pub driver_id: u64,
    /// A name given by the program or a text trace.
    pub name: Option<String>,
}

/// An event object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its id in the trace.
    pub id: EventId,
    /// The context it was created in.
    pub context: ContextId,
    /// The driver's handle, for display.
    pub handle: u64,
    /// `CU_EVENT_*` creation flags.
    pub flags: u32,
    /// Whether a process outside of the run made the event. The work that such an event captures is
    /// not known.
    pub imported: bool,
    /// A name given by the program or a text trace.
    pub name: Option<String>,
}

/// The place of memory, and who manages its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MemoryKind {
    /// `cuMemAlloc`, `cuMemAllocPitch`.
    Device,
    /// `cuMemAllocAsync`: lifetime in stream order.
    StreamOrdered,
    /// `cuMemAllocManaged`.
    Managed,
    /// `cuMemAllocHost`, `cuMemHostAlloc`.
    Pinned,
    /// Ordinary host memory made page-locked by `cuMemHostRegister`.
    Registered,
    /// Ordinary host memory; never allocated or freed through the driver.
    Pageable,
    /// A `__device__` variable of a module.
    Global,
    /// A CUDA array or mipmapped array. Its bytes have no addresses; the range is synthetic, with
    /// elements row by row, slice by slice, level by level.
    Array,
    /// Addresses reserved and mapped by `cuMemMap`.
    Mapped,
    /// Memory made by another process or another interface (`cuIpcOpenMemHandle`,
    /// `cuMemPoolImportPointer`, `cuExternalMemoryGetMappedBuffer`).
    Imported,
    /// Memory of a graph's allocation node: lifetime in the order of the graph's launches.
    GraphOrdered,
    /// A part of other device memory that the program's own allocator has handed out, as NVTX tells
    /// it (`nvtxMemRegionsRegister`). The region's backing is that of the memory around it.
    Region,
}

impl MemoryKind {
    /// All kinds, in the order of their stored codes.
    pub const ALL: [Self; 12] = [
        Self::Device,
        Self::StreamOrdered,
        Self::Managed,
        Self::Pinned,
        Self::Registered,
        Self::Pageable,
        Self::Global,
        Self::Array,
        Self::Mapped,
        Self::Imported,
        Self::GraphOrdered,
        Self::Region,
    ];

    /// Whether the memory is on the host (`false` for managed memory, which is on neither side).
    pub const fn is_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Registered | Self::Pageable)
    }

    /// Whether the memory is page-locked host memory.
    pub const fn is_pinned(self) -> bool {
        matches!(self, Self::Pinned | Self::Registered)
    }

    /// Whether a region of a memory pool can be a part of the memory: linear device memory, whose
    /// rules the region shares.
    pub const fn holds_regions(self) -> bool {
        matches!(self, Self::Device | Self::StreamOrdered | Self::Mapped | Self::Imported)
    }

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Device => "device memory",
            Self::StreamOrdered => "stream-ordered device memory",
            Self::Managed => "managed memory",
            Self::Pinned => "pinned host memory",
            Self::Registered => "registered host memory",
            Self::Pageable => "pageable host memory",
            Self::Global => "module global",
            Self::Array => "CUDA array",
            Self::Mapped => "mapped device memory",
            Self::Imported => "imported memory",
            Self::GraphOrdered => "graph-ordered device memory",
            Self::Region => "region of a memory pool",
        }
    }
}

/// One generation of an address range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Its id in the trace.
    pub id: AllocationId,
    /// The process whose address space it lies in.
    pub process: ProcessId,
    /// The context that was current at the allocation, if there was one.
    pub context: Option<ContextId>,
    /// The place of the memory, and who manages its lifetime.
    pub kind: MemoryKind,
    /// The range of addresses. Pageable host memory that is only known from copies is one
    /// allocation over the whole address space of its process.
    pub range: ByteRange,
    /// The entry point that allocated the memory, for display and fingerprints; empty when the
    /// allocation is older than the trace.
    pub api: String,
    /// The physical memory behind the range, where other ranges may stand for the same memory.
    pub backing: Option<Backing>,
    /// A name given by the program, a module or a text trace.
    pub name: Option<String>,
    /// The stack of the allocating call, where recorded.
    pub stack: Option<StackId>,
}

/// The place of an address range in physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backing {
    /// The physical memory.
    pub memory: BackingId,
    /// Offset in bytes of the range's first byte in the physical memory.
    pub offset: u64,
}

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelParam {
    /// Offset in the parameter buffer, in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its id in the trace.
    pub id: KernelId,
    /// Mangled name.
    pub name: String,
    /// Parameter layout; empty where the driver could not tell it.
    pub params: Vec<KernelParam>,
}

/// All entities declared so far, by id.
///
/// Ids are dense, so a table is a vector; a gap (an id that was never declared) is `None`. A
/// program may have any number of streams, events and allocations one after another; those that
/// nothing refers to any more can be forgotten.
#[derive(Clone, Debug, Default)]
pub struct Entities {
    processes: Vec<Option<Process>>,
    threads: Vec<Option<Thread>>,
    contexts: Vec<Option<Context>>,
    streams: Table<Stream>,
    events: Table<Event>,
    allocations: Table<Allocation>,
    kernels: Vec<Option<Kernel>>,
    graphs: Vec<Option<Arc<Graph>>>,
    modules: Vec<Option<Module>>,
    codes: Vec<Option<Arc<KernelCode>>>,
    frames: Vec<Option<Arc<Frame>>>,
    stacks: Vec<Option<Arc<Stack>>>,
    creations: Creations,
}

fn put<T>(table: &mut Vec<Option<T>>, index: usize, value: T) {
    if table.len() <= index {
        table.resize_with(index + 1, || None);
    }
    table[index] = Some(value);
}

impl Entities {
    /// Adds a declaration. A second declaration of an id replaces the first (for example when a
    /// name is learnt late).
    pub fn declare(&mut self, entity: Entity) {
        match entity {
            Entity::Process(x) => put(&mut self.processes, x.id.index(), x),
            Entity::Thread(x) => put(&mut self.threads, x.id.index(), x),
            Entity::Context(x) => put(&mut self.contexts, x.id.index(), x),
            Entity::Stream(x) => {
                self.streams.insert(x.id.index(), x);
            }
            Entity::Event(x) => {
                self.events.insert(x.id.index(), x);
            }
            Entity::Allocation(x) => {
                self.allocations.insert(x.id.index(), x);
            }
            Entity::Kernel(x) => put(&mut self.kernels, x.id.index(), x),
            Entity::Graph(x) => put(&mut self.graphs, x.id.index(), x),
            Entity::Module(x) => put(&mut self.modules, x.id.index(), x),
            Entity::KernelCode(x) => put(&mut self.codes, x.kernel.index(), x),
            Entity::Frame(x) => put(&mut self.frames, x.id.index(), x),
            Entity::Stack(x) => put(&mut self.stacks, x.id.index(), x),
        }
    }

    /// Notes the call that created a stream. Creations are not declared: they follow from the
    /// operations, and only those who read operations know them.
    pub fn note_creation(&mut self, id: StreamId, op: OpSeq, stack: Option<StackId>) {
        self.creations.note(id, op, stack);
    }

    /// The call that created a stream, where it was seen.
    pub fn creation(&self, id: StreamId) -> Option<Creation> {
        self.creations.of(id)
    }

    /// Number of streams that calls with the same stack have created.
    pub fn created_alike(&self, creation: Creation) -> u32 {
        self.creations.alike(creation)
    }

    /// Forgets a stream that nothing refers to any more.
    pub fn forget_stream(&mut self, id: StreamId) {
        self.streams.remove(id.index());
        self.creations.forget(id);
    }

    /// Forgets an event that nothing refers to any more.
    pub fn forget_event(&mut self, id: EventId) {
        self.events.remove(id.index());
    }

    /// Forgets an allocation that nothing refers to any more.
    pub fn forget_allocation(&mut self, id: AllocationId) {
        self.allocations.remove(id.index());
    }

    /// Number of streams, events and allocations that are known.
    pub const fn held(&self) -> usize {
        self.streams.len() + self.events.len() + self.allocations.len()
    }

    /// The process of this id, if declared.
    #[inline]
    pub fn process(&self, id: ProcessId) -> Option<&Process> {
        self.processes.get(id.index())?.as_ref()
    }

    /// The thread of this id, if declared.
    #[inline]
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(id.index())?.as_ref()
    }

    /// The context of this id, if declared.
    #[inline]
    pub fn context(&self, id: ContextId) -> Option<&Context> {
        self.contexts.get(id.index())?.as_ref()
    }

    /// The stream of this id, if declared.
    #[inline]
    pub fn stream(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(id.index())
    }

    /// The event of this id, if declared.
    #[inline]
    pub fn event(&self, id: EventId) -> Option<&Event> {
        self.events.get(id.index())
    }

    /// The allocation of this id, if declared.
    #[inline]
    pub fn allocation(&self, id: AllocationId) -> Option<&Allocation> {
        self.allocations.get(id.index())
    }

    /// The kernel of this id, if declared.
    #[inline]
    pub fn kernel(&self, id: KernelId) -> Option<&Kernel> {
        self.kernels.get(id.index())?.as_ref()
    }

    /// The graph of this id, if declared.
    #[inline]
    pub fn graph(&self, id: GraphId) -> Option<&Arc<Graph>> {
        self.graphs.get(id.index())?.as_ref()
    }

    /// The code image of this id, if declared.
    pub fn module(&self, id: ModuleId) -> Option<&Module> {
        self.modules.get(id.index())?.as_ref()
    }

    /// The knowledge from the kernel's code, if the code was analysed.
    pub fn kernel_code(&self, id: KernelId) -> Option<&Arc<KernelCode>> {
        self.codes.get(id.index())?.as_ref()
    }

    /// The frame of this id, if declared.
    pub fn frame(&self, id: FrameId) -> Option<&Arc<Frame>> {
        self.frames.get(id.index())?.as_ref()
    }

    /// The stack of this id, if declared.
    pub fn stack(&self, id: StackId) -> Option<&Arc<Stack>> {
        self.stacks.get(id.index())?.as_ref()
    }

    /// All declared frames, by id.
    pub fn frames(&self) -> impl Iterator<Item = &Arc<Frame>> {
        self.frames.iter().flatten()
    }

    /// All declared kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter().flatten()
    }

    /// All declared graphs.
    pub fn graphs(&self) -> impl Iterator<Item = &Arc<Graph>> {
        self.graphs.iter().flatten()
    }

    /// All declared streams.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values()
    }

    /// All declared allocations.
    pub fn allocations(&self) -> impl Iterator<Item = &Allocation> {
        self.allocations.values()
    }

    /// All declared host threads.
    pub fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.iter().flatten()
    }

    /// All declared processes.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().flatten()
    }
}
