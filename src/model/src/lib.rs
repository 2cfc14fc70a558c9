//! The vocabulary of streamsan: the elements of a trace, and the verdict.
//!
//! Every other room speaks in these types. A trace is an ordered sequence of
//! [`TraceItem`]s: entities are declared once, operations refer to them by id, and operations
//! come in the order of their global issue index.
//!
//! Invariants:
//! - Ids are dense, assigned by the producer of the trace, in order of first appearance; a handle
//!   of the driver is never an id, because handles are reused.
//! - Byte ranges are half-open. Times are host nanoseconds and never GPU durations.
//! - Enums own their wording: reports print their `description`.
//!
//! Deliberately absent: I/O, SQL, CUDA types, and any rule of CUDA's order (that is
//! `streamsan-analysis`).
#![forbid(unsafe_code)]

mod access;
mod batch;
mod call_stack;
mod called;
mod creation;
mod edge;
mod entity;
mod exit_code;
mod finding;
mod fingerprint;
mod footprint;
mod graph;
mod grid_control;
mod hits;
mod host_accesses;
mod ids;
mod kernel_code;
mod kernel_gap;
mod library;
mod lint;
mod number;
mod nvtx_range;
mod operation;
mod operator;
mod origin;
mod query;
mod range;
mod stack;
mod stream_names;
mod table;
mod tally;
#[cfg(test)]
mod test_support;
mod verdict;

pub use access::{Access, Basis, Extent, Mode, StridedPattern};
pub use batch::{
    Attachment, Batch, BatchEntry, CollectiveGroup, LaunchEventKind, MemberCollective,
    MemberLaunch, MultiDeviceLaunch, SignalObject, SignalOperation, Signals, SourceOrder,
    ValueCompare,
};
pub use call_stack::{CallFrame, CallStack, shown_path};
pub use called::without_version;
pub use creation::Creation;
pub use edge::{Edge, EdgeKind, Tier};
pub use entity::{
    Allocation, Backing, Context, Entities, Entity, Event, Kernel, KernelParam, MemoryKind, Named,
    Process, Stream, StreamKind, Thread,
};
pub use exit_code::{ExitCode, ProgramOutcome, check_exit_code, run_exit_code};
pub use finding::{
    Confidence, ConflictKind, Finding, FindingAccess, ProposedEdge, RaceClass, Severity, Threshold,
};
pub use fingerprint::Fingerprint;
pub use footprint::{Footprint, FootprintBy, FootprintSeries, Holder};
pub use graph::{ConditionalKind, EdgePort, Graph, GraphEdge, GraphNode, NodeAction};
pub use grid_control::{GridControl, Trigger};
pub use hits::{Hits, OpFilter};
pub use host_accesses::{HostAccesses, Unwatched};
pub use ids::{
    AllocationId, BackingId, ContextId, DeviceId, EventId, ExecutableId, FileBatchId, FrameId,
    GraphId, KernelId, ModuleId, OpSeq, ProcessId, SemaphoreId, StackId, StreamId, SyncObject,
    ThreadId,
};
pub use kernel_code::{
    CodeSource, FOLLOWS_POINTERS, KernelCode, KernelGlobal, KernelWord, Module, WordKind,
};
pub use kernel_gap::KernelGap;
pub use lint::Lint;
pub use number::{number, ordinal};
pub use nvtx_range::{NvtxKind, NvtxRange};
pub use operation::{Action, Copy, HostTime, Operation, Status, TraceItem};
pub use operator::TorchOperator;
pub use origin::Origin;
pub use query::{
    Axis, CallCount, CallNumber, Cell, Detail, Grid, History, Interrupt, Lane, LaneId, Lifetime,
    OpGroup, Overview, Place, QueryError, RangeSpan, Refreshed, Span, Strip, TraceQuery, Use,
};
pub use range::ByteRange;
pub use stack::{Frame, FramePlace, SourceFrame, Stack};
pub use stream_names::{ShownName, StreamNames};
pub use table::Table;
pub use tally::Tally;
pub use verdict::{IncompleteReason, Verdict, doubt_after_losses};
