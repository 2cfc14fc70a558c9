//! Rows of the two large tables, as plain numbers.

use crate::action::ActionColumns;
use crate::schema::{ACCESS_BITS, OPERATION_LIMIT};
use std::ops::Range;
use streamsan_model::{Access, ByteRange, Extent, OpSeq, StridedPattern};

/// One row of `op`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpRow {
    pub(crate) g: i64,
    pub(crate) exit_after: Option<i64>,
    pub(crate) process: i64,
    pub(crate) thread: i64,
    pub(crate) api: i64,
    pub(crate) action: ActionColumns,
    pub(crate) start_ns: Option<i64>,
    pub(crate) duration_ns: Option<i64>,
    pub(crate) result: i64,
    pub(crate) stack: Option<i64>,
}

/// One row of `access`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRow {
    pub(crate) id: i64,
    pub(crate) columns: AccessColumns,
}

/// One row of `edge`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeRow {
    pub(crate) id: i64,
    pub(crate) from: i64,
    pub(crate) kind: i64,
    pub(crate) tier: i64,
}

/// The columns that `access` and `finding_access` share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessColumns {
    pub(crate) allocation: i64,
    pub(crate) start: i64,
    pub(crate) length: i64,
    pub(crate) mode: i64,
    pub(crate) basis: i64,
    pub(crate) pattern: Option<i64>,
}

/// The shape of a strided pattern without its place: what `access_pattern` holds.
pub(crate) type Shape = [u64; 5];

pub(crate) fn shape(p: &StridedPattern) -> Shape {
    [p.width, p.pitch, p.rows, p.slice_pitch, p.slices]
}

impl AccessColumns {
    /// `pattern` gives the id of a shape.
    pub(crate) fn encode(access: &Access, pattern: impl FnOnce(Shape) -> i64) -> Self {
        // A pattern's own start is kept even where its hull would be cut at the end of the
        // address space.
        let (start, length, pattern) = match &access.extent {
            Extent::Range(range) => (range.start, range.end.wrapping_sub(range.start), None),
            Extent::Strided(p) => (p.start, p.hull().len(), Some(pattern(shape(p)))),
        };
        Self {
            allocation: i64::from(access.allocation.0),
            start: start as i64,
            length: length as i64,
            mode: access.mode as i64,
            basis: access.basis as i64,
            pattern,
        }
    }
}

/// The extent of a stored access.
pub(crate) fn extent(start: i64, length: i64, shape: Option<Shape>) -> Extent {
    let start = start as u64;
    match shape {
        None => Extent::Range(byte_range(start as i64, length)),
        Some([width, pitch, rows, slice_pitch, slices]) => {
            Extent::Strided(StridedPattern { start, width, pitch, rows, slice_pitch, slices })
        }
    }
}

pub(crate) fn byte_range(start: i64, length: i64) -> ByteRange {
    let start = start as u64;
    ByteRange { start, end: start.wrapping_add(length as u64) }
}

/// Ids of the accesses of an operation, `None` where its number is too large for them.
pub(crate) fn access_ids(g: OpSeq) -> Option<Range<i64>> {
    (g.0 < OPERATION_LIMIT).then(|| {
        let first = (g.0 as i64) << ACCESS_BITS;
        // The last operation's range would end one past the largest number.
        first..first.saturating_add(1 << ACCESS_BITS)
    })
}

/// Ids of the edges that end at an operation, as [`access_ids`].
pub(crate) fn edge_ids(to: OpSeq) -> Option<Range<i64>> {
    access_ids(to)
}
