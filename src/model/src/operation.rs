//! Operations: driver calls that order or touch memory, with handles resolved to ids.
//!
//! Invariant: an operation states facts only (which call, which objects, which bytes). The rules in
//! `streamsan-analysis` decide what the operation orders, and where its accesses happen.

use crate::{
    Access, AllocationId, Attachment, Batch, CollectiveGroup, ContextId, Entity, EventId,
    ExecutableId, FileBatchId, GraphId, GridControl, KernelId, LaunchEventKind, MemoryKind,
    MultiDeviceLaunch, NvtxRange, OpSeq, ProcessId, Signals, SourceOrder, StackId, StreamId,
    SyncObject, ThreadId,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One element of a trace, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TraceItem {
    /// An entity that later operations refer to.
    Entity(Entity),
    /// A call. Operations come in ascending order of `g`.
    Operation(Operation),
    /// The return of a call that was handed over while it was still running. The item comes before
    /// every operation whose entry is later than `exit`. Only live recording produces it: in a
    /// stored trace the operation itself has its exit.
    Returned {
        /// The operation.
        g: OpSeq,
        /// Global issue index at its return.
        exit: OpSeq,
        /// The result of the call.
        status: Status,
    },
    /// A range or a mark, when it has ended or the recording has. Only live recording produces it:
    /// a stored trace is asked for the ranges of an operation.
    Range(NvtxRange),
}

/// Result of a driver call: a `CUresult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Status(pub i32);

impl Status {
    /// `CUDA_SUCCESS`.
    pub const SUCCESS: Self = Self(0);
    /// `CUDA_ERROR_NOT_READY`: a query's answer for work still running.
    pub const NOT_READY: Self = Self(600);

    /// Whether the call succeeded. A failed call enqueues nothing and orders nothing.
    pub const fn is_success(self) -> bool {
        self.0 == 0
    }
}

/// Host time of a call, `CLOCK_MONOTONIC` nanoseconds. Never a GPU duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTime {
    /// At entry.
    pub start_ns: u64,
    /// At return; equal to `start_ns` where the call never returned.
    pub end_ns: u64,
}

/// A driver call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Global issue index at entry; the identity of the operation.
    pub g: OpSeq,
    /// Global issue index at return. The work that a blocking call has waited for counts from here
    /// on. `None` while the call runs, or where the program died in it. In text traces equal to
    /// `g`.
    pub exit: Option<OpSeq>,
    /// The calling process.
    pub process: ProcessId,
    /// The calling thread.
    pub thread: ThreadId,
    /// Exact entry point, `cuMemcpyHtoDAsync_v2` for example.
    /// Shared, because a trace holds millions of operations and a few hundred names.
    pub api: Arc<str>,
    /// When the host made the call; `None` in text traces.
    pub time: Option<HostTime>,
    /// The result of the call; success while the call is still running.
    pub status: Status,
    /// The effect of the call.
    pub action: Action,
    /// The accesses of the call: at most one per allocation and extent (of each part, for calls
    /// that consist of several parts). Empty for graph launches: the graph holds the accesses.
    pub accesses: Vec<Access>,
    /// The stack of the calling thread, where recorded. `None` in text traces that do not state it.
    pub stack: Option<StackId>,
}

/// A copy between memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// The stream that carries the copy: the default stream for the synchronous forms.
    pub stream: StreamId,
    /// Whether the call is a synchronous form (no `Async` in its name).
    pub synchronous: bool,
    /// Kind of the source memory.
    pub source: MemoryKind,
    /// Kind of the destination memory.
    pub destination: MemoryKind,
    /// Source and destination context of the peer forms (`cuMemcpyPeer`, `cuMemcpy3DPeer`, ...).
    pub peer: Option<(ContextId, ContextId)>,
    /// Bytes moved.
    pub bytes: u64,
    /// When the source is read, for the forms that state it.
    pub source_order: SourceOrder,
    /// Whether `CU_CTX_SYNC_MEMOPS` or `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS` holds, so that a
    /// synchronous form waits.
    pub sync_memops: bool,
}

/// The effect of a driver call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// A context is created or the primary context first retained.
    ContextCreate { context: ContextId },
    /// A context is destroyed, or the primary context reset or released for the last time.
    ContextDestroy { context: ContextId },
    /// `cuCtxSynchronize`.
    ContextSynchronize { context: ContextId },
    /// `cuCtxRecordEvent`.
    ContextRecordEvent { context: ContextId, event: EventId },
    /// `cuCtxWaitEvent`.
    ContextWaitEvent { context: ContextId, event: EventId },
    /// `cuStreamCreate`, `cuStreamCreateWithPriority`.
    StreamCreate { stream: StreamId },
    /// `cuStreamDestroy`.
    StreamDestroy { stream: StreamId },
    /// `cuStreamSynchronize`.
    StreamSynchronize { stream: StreamId },
    /// `cuStreamQuery`; complete when the status is success.
    StreamQuery { stream: StreamId },
    /// `cuStreamWaitEvent`.
    StreamWaitEvent { stream: StreamId, event: EventId },
    /// `cuEventCreate`.
    EventCreate { event: EventId },
    /// `cuEventDestroy`.
    EventDestroy { event: EventId },
    /// `cuEventRecord`, `cuEventRecordWithFlags`: a new version of the event.
    EventRecord { event: EventId, stream: StreamId },
    /// `cuEventSynchronize`.
    EventSynchronize { event: EventId },
    /// `cuEventQuery`; complete when the status is success.
    EventQuery { event: EventId },
    /// `cuEventElapsedTime`.
    EventElapsedTime { start: EventId, end: EventId },
    /// The begin of memory's life, in stream order when `stream` is given. Includes host
    /// registration.
    Allocate { allocation: AllocationId, stream: Option<StreamId> },
    /// The end of memory's life, in stream order when `stream` is given. Includes host
    /// unregistration.
    Free { allocation: AllocationId, stream: Option<StreamId> },
    /// A kernel launch.
    Launch {
        stream: StreamId,
        kernel: KernelId,
        /// Whether the launch has programmatic stream serialization: the kernel may begin before
        /// its predecessor has ended.
        programmatic: bool,
        /// How the kernel waits for earlier kernels and triggers later ones.
        control: GridControl,
        /// Whether the launch is cooperative.
        cooperative: bool,
        /// An event that the launch records by attribute.
        event: Option<(EventId, LaunchEventKind)>,
    },
    /// `cuLaunchCooperativeKernelMultiDevice`.
    LaunchMultiDevice(Arc<MultiDeviceLaunch>),
    /// A copy.
    Copy(Copy),
    /// A memset.
    Memset {
        stream: StreamId,
        synchronous: bool,
        destination: MemoryKind,
        /// As in [`Copy::sync_memops`].
        sync_memops: bool,
    },
    /// Copies without an order among themselves.
    Batch(Arc<Batch>),
    /// `cuMemPrefetchAsync`: moves managed memory, touches no data.
    Prefetch { stream: StreamId },
    /// `cuMemDiscardBatchAsync`, `cuMemDiscardAndPrefetchBatchAsync`.
    Discard { stream: StreamId },
    /// `cuStreamAttachMemAsync`.
    Attach { stream: StreamId, allocation: AllocationId, attachment: Attachment },
    /// Stream memory operations, external semaphores.
    Signals(Arc<Signals>),
    /// `cuGraphInstantiate`.
    GraphInstantiate { executable: ExecutableId, graph: GraphId },
    /// `cuGraphExecUpdate`: later launches run the new graph.
    GraphUpdate { executable: ExecutableId, graph: GraphId },
    /// `cuGraphLaunch`. The graph is the one that this launch runs, parameters set since the
    /// instantiation included.
    GraphLaunch { stream: StreamId, executable: ExecutableId, graph: GraphId },
    /// `cuGraphUpload`: ordered like a launch, touches no data.
    GraphUpload { stream: StreamId, executable: ExecutableId },
    /// `cuGraphExecDestroy`.
    GraphDestroy { executable: ExecutableId },
    /// A call that was captured into a graph: its work runs when the graph is launched, if ever.
    Captured { stream: StreamId },
    /// A stream pool of the program hands the stream out again, to another user than before.
    StreamHandedOut { stream: StreamId },
    /// `cuFileReadAsync`, `cuFileWriteAsync`.
    FileTransfer { stream: StreamId },
    /// A collective operation or a transfer between GPUs (`ncclAllReduce`, `ncclSend`, ...): it
    /// sends from and receives into the memory of this rank.
    Collective { stream: StreamId },
    /// Collective operations of one group in several streams.
    CollectiveGroup(Arc<CollectiveGroup>),
    /// `cuFileBatchIOSubmit`: transfers that run by themselves from here on.
    FileBatchSubmit { batch: FileBatchId },
    /// `cuFileBatchIOGetStatus` that saw the whole batch complete.
    FileBatchComplete { batch: FileBatchId },
    /// A host thread releases an object by which threads order themselves (`pthread_mutex_unlock`,
    /// `sem_post`, ...). Counts with `--strict-host-threads`.
    HostRelease { object: SyncObject },
    /// A host thread acquires such an object (`pthread_mutex_lock`, `pthread_join`, ...), at the
    /// call's exit.
    HostAcquire { object: SyncObject },
    /// `cuLaunchHostFunc`, `cuStreamAddCallback`: the host function is enqueued. Its accesses, if
    /// any, are those of the function.
    HostFunction { stream: StreamId },
    /// The host function that operation `enqueued` put into its stream begins to run on a host
    /// thread (its entry) and has ended (its exit).
    HostFunctionRun { enqueued: OpSeq },
    /// The issuing host thread touches memory itself.
    HostAccess,
    /// A call without ordering and without accesses, which the trace keeps (modules, push and pop).
    Other,
}

impl Action {
    /// The stream of the call, if the call is issued to one.
    pub fn stream(&self) -> Option<StreamId> {
        match self {
            Self::StreamCreate { stream }
            | Self::StreamDestroy { stream }
            | Self::StreamSynchronize { stream }
            | Self::StreamQuery { stream }
            | Self::StreamWaitEvent { stream, .. }
            | Self::EventRecord { stream, .. }
            | Self::Launch { stream, .. }
            | Self::Copy(Copy { stream, .. })
            | Self::Memset { stream, .. }
            | Self::Prefetch { stream }
            | Self::Discard { stream }
            | Self::Attach { stream, .. }
            | Self::GraphLaunch { stream, .. }
            | Self::GraphUpload { stream, .. }
            | Self::Captured { stream }
            | Self::StreamHandedOut { stream }
            | Self::FileTransfer { stream }
            | Self::Collective { stream }
            | Self::HostFunction { stream } => Some(*stream),
            Self::Batch(batch) => Some(batch.stream),
            Self::Signals(signals) => Some(signals.stream),
            Self::Allocate { stream, .. } | Self::Free { stream, .. } => *stream,
            _ => None,
        }
    }

    /// The words for reports and statistics.
    pub const fn description(&self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::ContextCreate { .. } => "context create",
            Self::ContextDestroy { .. } => "context destroy",
            Self::ContextSynchronize { .. } => "context synchronize",
            Self::ContextRecordEvent { .. } => "context record event",
            Self::ContextWaitEvent { .. } => "context wait event",
            Self::StreamCreate { .. } => "stream create",
            Self::StreamDestroy { .. } => "stream destroy",
            Self::StreamSynchronize { .. } => "stream synchronize",
            Self::StreamQuery { .. } => "stream query",
            Self::StreamWaitEvent { .. } => "stream wait event",
            Self::EventCreate { .. } => "event create",
            Self::EventDestroy { .. } => "event destroy",
            Self::EventRecord { .. } => "event record",
            Self::EventSynchronize { .. } => "event synchronize",
            Self::EventQuery { .. } => "event query",
            Self::EventElapsedTime { .. } => "event elapsed time",
            Self::Allocate { .. } => "allocate",
            Self::Free { .. } => "free",
            Self::Launch { .. } => "launch",
            Self::Copy(_) => "copy",
            Self::Memset { .. } => "memset",
            Self::HostFunction { .. } => "host function",
            Self::HostFunctionRun { .. } => "host function run",
            Self::HostAccess => "host access",
            Self::LaunchMultiDevice(_) => "launch on several devices",
            Self::Batch(_) => "batch of copies",
            Self::Prefetch { .. } => "prefetch",
            Self::Discard { .. } => "discard",
            Self::Attach { .. } => "attach",
            Self::Signals(_) => "signals",
            Self::GraphInstantiate { .. } => "graph instantiate",
            Self::GraphUpdate { .. } => "graph update",
            Self::GraphLaunch { .. } => "graph launch",
            Self::GraphUpload { .. } => "graph upload",
            Self::GraphDestroy { .. } => "graph destroy",
            Self::Captured { .. } => "captured",
            Self::StreamHandedOut { .. } => "stream handed out",
            Self::FileTransfer { .. } => "file transfer",
            Self::Collective { .. } => "collective",
            Self::CollectiveGroup(_) => "collective group",
            Self::FileBatchSubmit { .. } => "file batch submit",
            Self::FileBatchComplete { .. } => "file batch complete",
            Self::HostRelease { .. } => "host release",
            Self::HostAcquire { .. } => "host acquire",
        }
    }

    /// The colour group of the viewer.
    pub fn group(&self) -> crate::OpGroup {
        use crate::OpGroup;
        match self {
            Self::Launch { .. }
            | Self::LaunchMultiDevice(_)
            | Self::GraphLaunch { .. }
            | Self::Collective { .. }
            | Self::CollectiveGroup(_) => OpGroup::Kernel,
            Self::Copy(copy) => match (copy.source.is_host(), copy.destination.is_host()) {
                (true, false) => OpGroup::Upload,
                (false, true) => OpGroup::Download,
                _ => OpGroup::Copy,
            },
            Self::Batch(_) | Self::FileTransfer { .. } => OpGroup::Copy,
            Self::Memset { .. } => OpGroup::Memset,
            Self::HostFunction { .. }
            | Self::HostFunctionRun { .. }
            | Self::HostAccess
            | Self::FileBatchSubmit { .. } => OpGroup::Host,
            Self::ContextSynchronize { .. }
            | Self::ContextRecordEvent { .. }
            | Self::ContextWaitEvent { .. }
            | Self::StreamSynchronize { .. }
            | Self::StreamWaitEvent { .. }
            | Self::EventRecord { .. }
            | Self::EventSynchronize { .. }
            | Self::Signals(_)
            | Self::FileBatchComplete { .. }
            | Self::HostRelease { .. }
            | Self::HostAcquire { .. } => OpGroup::Synchronisation,
            Self::Allocate { .. }
            | Self::Free { .. }
            | Self::Prefetch { .. }
            | Self::Discard { .. }
            | Self::Attach { .. } => OpGroup::Memory,
            _ => OpGroup::Other,
        }
    }
}
