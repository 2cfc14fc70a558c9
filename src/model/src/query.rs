//! The queries of a viewer to a trace, so that the viewer knows neither SQL nor files.
//!
//! A screen shows a [`Grid`]: columns of equal width, a power of two of the axis's units, each
//! beginning at a multiple of it. Level-of-detail data is kept on the same grid, so that a column
//! is exact at every zoom.

use crate::{
    Access, Allocation, AllocationId, Edge, Entities, Event, Finding, Footprint, FootprintBy,
    Frame, GraphId, Hits, HostAccesses, IncompleteReason, NvtxRange, OpFilter, OpSeq, Operation,
    ProcessId, Stream, StreamId, ThreadId,
};
use std::sync::Arc;

/// A row of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneId {
    /// Calls of a host thread that are issued to no stream: allocation, events, synchronisation.
    Host(ThreadId),
    /// Calls issued to a stream, or about one.
    Stream(StreamId),
}

/// A row of the timeline with its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Which row.
    pub id: LaneId,
    /// The process whose calls the row holds (for a stream that several use: the first to use it).
    pub process: ProcessId,
    /// The stream, for stream rows.
    pub stream: Option<Stream>,
    /// Number of operations in the row.
    pub operations: u64,
    /// How many depths of NVTX ranges are drawn above the row, at most [`RangeSpan::DEPTHS`].
    pub ranges: u32,
}

/// The quantity that runs from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// Global issue index.
    Issue,
    /// Host time of the call, in ns from the begin of the recording. It does not tell when the GPU
    /// did the work.
    Time,
    /// Happens-before depth: length of the longest documented chain of operations that ends here.
    Logical,
}

impl Axis {
    /// All axes, in the order of their stored codes.
    pub const ALL: [Self; 3] = [Self::Issue, Self::Time, Self::Logical];

    /// The words on the axis.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Issue => "issue order",
            Self::Time => "host issue time",
            Self::Logical => "logical order",
        }
    }
}

/// Positions `start..end` of an axis, half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// First position.
    pub start: u64,
    /// One past the last position.
    pub end: u64,
}

impl Span {
    /// Number of positions; at least 1 where an axis is not empty.
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it holds no position.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// Columns over an axis. Column `i` holds the positions of `2^scale` from `start + i * 2^scale`;
/// below 0 a position is `2^-scale` columns wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    pub axis: Axis,
    /// First position; a multiple of a column's width.
    pub start: u64,
    /// Binary logarithm of the positions in a column.
    pub scale: i8,
    /// Number of columns.
    pub columns: u32,
}

impl Grid {
    /// The column of a position, if it is on the grid.
    pub fn column(&self, position: u64) -> Option<u32> {
        let offset = position.checked_sub(self.start)?;
        let column = if self.scale >= 0 {
            offset.checked_shr(self.scale.unsigned_abs().into()).unwrap_or(0)
        } else {
            let wide = u128::from(offset) << self.scale.unsigned_abs().min(63);
            u64::try_from(wide).unwrap_or(u64::MAX)
        };
        u32::try_from(column).ok().filter(|&column| column < self.columns)
    }

    /// The first position of a column.
    pub fn position(&self, column: u32) -> u64 {
        self.start.saturating_add(self.offset(u64::from(column)))
    }

    /// One past the last position that the grid shows.
    pub fn end(&self) -> u64 {
        let mut length = self.offset(u64::from(self.columns));
        if self.scale < 0 && self.offset_is_cut() {
            length += 1;
        }
        self.start.saturating_add(length)
    }

    /// Positions that the grid shows.
    pub fn span(&self) -> Span {
        Span { start: self.start, end: self.end() }
    }

    fn offset(&self, columns: u64) -> u64 {
        let shift = u32::from(self.scale.unsigned_abs()).min(63);
        if self.scale >= 0 {
            u64::try_from(u128::from(columns) << shift).unwrap_or(u64::MAX)
        } else {
            columns >> shift
        }
    }

    fn offset_is_cut(&self) -> bool {
        let shift = u32::from(self.scale.unsigned_abs()).min(63);
        u64::from(self.columns) & ((1 << shift) - 1) != 0
    }
}

/// The colour group of an operation. Where several operations share a cell, the greatest group
/// wins.
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
    /// Copies between device memories, or where the direction is open.
    Copy,
    /// Copies from host to device memory.
    Upload,
    /// Copies from device to host memory.
    Download,
    /// Kernel launches.
    Kernel,
}

impl OpGroup {
    /// All groups, the weakest first.
    pub const ALL: [Self; 9] = [
        Self::Other,
        Self::Memory,
        Self::Synchronisation,
        Self::Host,
        Self::Memset,
        Self::Copy,
        Self::Upload,
        Self::Download,
        Self::Kernel,
    ];

    /// The words of the legend.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Other => "other call",
            Self::Memory => "allocation, free",
            Self::Synchronisation => "synchronisation",
            Self::Host => "host function",
            Self::Memset => "memset",
            Self::Copy => "copy",
            Self::Upload => "copy to device",
            Self::Download => "copy to host",
            Self::Kernel => "kernel",
        }
    }
}

/// Operations of one row that share a column of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The column, from 0.
    pub column: u32,
    /// Number of operations.
    pub operations: u64,
    /// The first of them by issue order.
    pub first: OpSeq,
    /// The strongest group among them.
    pub group: OpGroup,
    /// Number of sides of findings among the operations; never summed away.
    pub findings: u64,
    /// The label of a lone operation with room behind it: the mangled name of its kernel, or the
    /// call as the program made it.
    pub name: Option<Arc<str>>,
}

/// A row's cells on a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strip {
    /// The row.
    pub lane: LaneId,
    /// Its cells, by column.
    pub cells: Vec<Cell>,
    /// The NVTX ranges of a host thread by depth, outermost first, each by column. Empty on the axis
    /// of the logical order.
    pub ranges: Vec<Vec<RangeSpan>>,
}

/// Columns in which a thread is in a range of one depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSpan {
    /// First column.
    pub start: u32,
    /// One past the last column.
    pub end: u32,
    /// Name of the range; `None` where one column holds several.
    pub name: Option<Arc<str>>,
}

impl RangeSpan {
    /// The most depths of ranges that are drawn: the outermost ones.
    pub const DEPTHS: u32 = 3;
}

/// The answer to the query that is asked once, when a trace is opened.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// All rows that hold operations.
    pub lanes: Vec<Lane>,
    /// The axes of the trace, each with the positions that hold operations. Empty for an empty
    /// trace.
    pub axes: Vec<(Axis, Span)>,
    /// Processes, threads, contexts, streams and kernels; no events or graphs. Of allocations those
    /// of findings; of stacks those of findings, of these allocations, and of the calls that created
    /// streams.
    pub entities: Entities,
    /// Number of operations.
    pub operations: u64,
    /// Number of driver calls, including those that are no operations. While a program is recorded:
    /// number of operations so far.
    pub calls: u64,
    /// Why the trace does not show the whole run.
    pub incomplete: Vec<IncompleteReason>,
    /// How far the host's own loads and stores were watched; `None` where nothing needed watching, or
    /// nobody knows.
    pub host_accesses: Option<HostAccesses>,
}

/// The place of an operation on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Its row.
    pub lane: LaneId,
    /// Its position on each axis, in the order of [`Axis::ALL`].
    pub at: [Option<u64>; 3],
}

impl Place {
    /// The position on an axis.
    pub fn on(&self, axis: Axis) -> Option<u64> {
        self.at[axis as usize]
    }
}

/// Everything about one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    pub operation: Operation,
    /// The place of the operation on the screen.
    pub place: Place,
    /// Edges that end at the operation, at most [`Detail::EDGES`].
    pub incoming: Vec<(Edge, Place)>,
    /// Edges that begin at the operation, at most [`Detail::EDGES`].
    pub outgoing: Vec<(Edge, Place)>,
    /// The allocations of the operation and of its accesses, each once.
    pub allocations: Vec<Allocation>,
    /// The event that the operation is about.
    pub event: Option<Event>,
    /// The NVTX ranges around the call, outermost first.
    pub ranges: Vec<NvtxRange>,
    /// The host stack of the call, innermost frame first. Empty where none was recorded.
    pub stack: Vec<Arc<Frame>>,
    /// Whether there are frames further out than the last one.
    pub stack_truncated: bool,
}

impl Detail {
    /// The most edges of one direction that are shown.
    pub const EDGES: usize = 32;
}

/// One use of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The operation.
    pub op: OpSeq,
    /// Its stream, if it has one.
    pub stream: Option<StreamId>,
    /// The call as the program made it, or the mangled name of its kernel.
    pub name: Arc<str>,
    pub access: Access,
    /// The graph whose node makes the access, where the operation launches that graph or a graph
    /// around it.
    pub graph: Option<GraphId>,
}

/// The history of one allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    pub allocation: Allocation,
    /// Its uses in issue order, at most [`History::USES`].
    pub uses: Vec<Use>,
    /// Whether there are more uses.
    pub more: bool,
}

impl History {
    /// The most uses of an allocation that are shown.
    pub const USES: usize = 2000;
}

/// The life of an allocation, as far as the trace shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub allocation: Allocation,
    /// The allocating call.
    pub allocated: Option<OpSeq>,
    /// The freeing call.
    pub freed: Option<OpSeq>,
}

/// A call among those of one name in a row: by this, calls of two runs of a program are matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallNumber {
    /// The mangled name of the kernel that is launched, or the entry point.
    pub name: Arc<str>,
    /// Whether it is a kernel's.
    pub is_kernel: bool,
    /// Which of them, from 1.
    pub number: u64,
}

/// The number of calls of an entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCount {
    /// The entry point.
    pub api: Arc<str>,
    /// Number of calls.
    pub calls: u64,
    /// Host time between entry and return, ns, of all calls together.
    pub driver_ns: u64,
    /// Calls that did not answer success.
    pub failures: u64,
}

/// The news since the last look at a trace that is still being recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Whether operations, edges or findings have come.
    pub changed: bool,
    /// Whether findings have come or were replaced.
    pub findings: bool,
    /// Whether there is more that was not taken in yet.
    pub more: bool,
    /// Whether the recording has ended, so that nothing more will come.
    pub ended: bool,
}

/// Why a query failed; the text tells the user what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(pub String);

/// Stops the query that is running in another thread; the query then fails.
pub type Interrupt = Arc<dyn Fn() + Send + Sync>;

/// Read access to a trace, window by window. The size of every answer is bounded by the screen,
/// except for `overview`, `findings` and `calls`, which are asked once. `hits` and `footprint` go through
/// all operations and all allocations, `call_number` and `call_of_number` through the operations before
/// a call. Allocations have as their `api` the call as the program made
/// it.
pub trait TraceQuery {
    /// The function that interrupts queries to this trace.
    fn interrupt(&self) -> Interrupt;

    /// Takes in a bounded amount of what was recorded since the last call, and tells what has come
    /// since `overview` and `finding_places` were asked. Other queries answer from what was taken
    /// in. A trace that is not followed never changes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    fn refresh(&self) -> Result<Refreshed, QueryError> {
        Ok(Refreshed::default())
    }

    /// Rows, axes, entities and counts of the trace.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn overview(&self) -> Result<Overview, QueryError>;

    /// All findings, by the later operation.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn findings(&self) -> Result<Vec<Finding>, QueryError>;

    /// The places of the operations that findings name, by issue order.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn finding_places(&self) -> Result<Vec<(OpSeq, Place)>, QueryError>;

    /// The cells of the given rows, in the order of the rows.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn strips(&self, grid: Grid, lanes: &[LaneId]) -> Result<Vec<Strip>, QueryError>;

    /// All rows together over a whole axis, in about `columns` columns of equal width. The findings
    /// of a column are those of all rows.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn minimap(&self, axis: Axis, columns: u32) -> Result<Vec<Cell>, QueryError>;

    /// Everything about the operation issued at `g`.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn detail(&self, g: OpSeq) -> Result<Option<Detail>, QueryError>;

    /// The place of the operation issued at `g`.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn place(&self, g: OpSeq) -> Result<Option<Place>, QueryError>;

    /// The next operation of a row after `g`, or the previous one before `g`.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn neighbour(&self, lane: LaneId, g: OpSeq, forward: bool)
    -> Result<Option<OpSeq>, QueryError>;

    /// The operation of a row that lies nearest to a position.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn nearest(&self, lane: LaneId, axis: Axis, at: u64) -> Result<Option<OpSeq>, QueryError>;

    /// The next operation after `from` whose kernel or entry point contains `text` (ignoring case),
    /// or the previous one before `from`.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn search(&self, text: &str, from: OpSeq, forward: bool) -> Result<Option<OpSeq>, QueryError>;

    /// Which of the calls of its name in its row the operation issued at `g` is. Goes through the
    /// operations before it.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn call_number(&self, g: OpSeq) -> Result<Option<CallNumber>, QueryError>;

    /// The call of a row with a name and a number.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn call_of_number(&self, lane: LaneId, call: &CallNumber) -> Result<Option<OpSeq>, QueryError>;

    /// The history of an allocation.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn history(&self, allocation: AllocationId) -> Result<Option<History>, QueryError>;

    /// The largest allocations, at most `most`.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn allocations(&self, most: u32) -> Result<Vec<Lifetime>, QueryError>;

    /// The operations that a filter finds, and where they are.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn hits(&self, filter: &OpFilter) -> Result<Hits, QueryError>;

    /// Bytes of memory over the issue order, in `columns` columns.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn footprint(&self, by: FootprintBy, columns: u32) -> Result<Footprint, QueryError>;

    /// Calls by entry point, the most frequent first.
    ///
    /// # Errors
    /// When the trace cannot be read, or the query was interrupted.
    fn calls(&self) -> Result<Vec<CallCount>, QueryError>;
}

#[cfg(test)]
mod tests {
    use super::{Axis, Grid};

    #[test]
    fn columns_and_positions_fit_each_other() {
        for scale in [-4, -1, 0, 3, 20] {
            let grid = Grid { axis: Axis::Issue, start: 1 << 20, scale, columns: 100 };
            for column in 0..100 {
                let position = grid.position(column);
                let found = grid.column(position).expect("on the grid");
                assert_eq!(grid.position(found), position, "{scale} {column}");
            }
            assert_eq!(grid.column(grid.start - 1), None);
            assert!(grid.column(grid.end() - 1).is_some(), "{scale}");
            assert_eq!(grid.column(grid.end()), None, "{scale}");
        }
    }
}
