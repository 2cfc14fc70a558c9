//! What a viewer asks of a trace, so that the viewer knows neither SQL nor files.

use crate::{Finding, OpSeq, Operation, ProcessId, Stream, StreamId};

/// A row of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneId {
    /// Calls of a process that are issued to no stream: allocation, events, synchronisation.
    Host(ProcessId),
    /// Calls issued to a stream.
    Stream(StreamId),
}

/// A row of the timeline and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Which row.
    pub id: LaneId,
    /// The stream, for stream rows.
    pub stream: Option<Stream>,
    /// How many operations it holds.
    pub operations: u64,
}

/// The colour group of an operation. Ordered by what should win where several share a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpGroup {
    /// Queries, creation and destruction, module calls.
    Other,
    /// Allocation and free.
    Memory,
    /// Event records, waits and host synchronisation.
    Synchronisation,
    /// Host functions and host accesses.
    Host,
    /// Memsets.
    Memset,
    /// Copies.
    Copy,
    /// Kernel launches.
    Kernel,
}

/// Operations of one lane that share a column of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The row.
    pub lane: LaneId,
    /// The column, from 0.
    pub column: u32,
    /// How many operations.
    pub operations: u64,
    /// The first of them.
    pub first: OpSeq,
    /// The strongest group among them.
    pub group: OpGroup,
    /// How many findings touch one of them; never summed away.
    pub findings: u64,
}

/// A window of the issue-order axis: `first..end`, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpWindow {
    /// First index shown.
    pub first: OpSeq,
    /// One past the last index shown.
    pub end: OpSeq,
}

/// Why a query failed; the text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(pub String);

/// Read access to a trace, window by window. Every answer is bounded by what a screen holds, but
/// for `lanes` and `findings`, which are asked once.
pub trait TraceQuery {
    /// The issue indices from the first operation to one past the last; `None` for an empty trace.
    fn span(&self) -> Result<Option<OpWindow>, QueryError>;

    /// All rows, host rows first, then streams by id.
    fn lanes(&self) -> Result<Vec<Lane>, QueryError>;

    /// What to draw in `columns` columns over `window`.
    fn buckets(&self, window: OpWindow, columns: u32) -> Result<Vec<Bucket>, QueryError>;

    /// The operation issued at `g`.
    fn operation(&self, g: OpSeq) -> Result<Option<Operation>, QueryError>;

    /// The next operation of a row after `g`, or the previous one before it.
    fn neighbour(&self, lane: LaneId, g: OpSeq, forward: bool)
    -> Result<Option<OpSeq>, QueryError>;

    /// All findings, by the later operation.
    fn findings(&self) -> Result<Vec<Finding>, QueryError>;
}
