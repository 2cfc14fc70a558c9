//! Rows of the two large tables, as plain numbers.

use crate::action::ActionColumns;
use crate::schema::{ACCESS_BITS, OPERATION_LIMIT};
use std::ops::Range;
use streamsan_model::{Access, ByteRange, Extent, OpSeq, StridedPattern};

/// Columns of `op` that are stored, in the order of [`OpRow::numbers`].
pub(crate) const OP_COLUMNS: &str = "g, exit_after, process, thread, api, action, stream, context, event, \
                                     allocation, kernel, other, source, destination, bytes, flags, graph, \
                                     start_ns, duration_ns, result, stack";

/// Number of columns of `op`.
pub(crate) const OP_WIDTH: usize = 21;

/// Columns of `access` that are stored, in the order of [`AccessRow::numbers`].
pub(crate) const ACCESS_COLUMNS: &str = "id, allocation, start, length, mode, basis, pattern";

/// Number of columns of `access`.
pub(crate) const ACCESS_WIDTH: usize = 7;

/// The stored columns of `edge`, in the order of the table.
pub(crate) const EDGE_COLUMNS: &str = "id, from_op, kind, tier";

/// Number of columns of `edge`.
pub(crate) const EDGE_WIDTH: usize = 4;

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

impl OpRow {
    /// The columns as numbers, in the order of the table.
    pub(crate) fn numbers(&self) -> [Option<i64>; OP_WIDTH] {
        let action = &self.action;
        [
            Some(self.g),
            self.exit_after,
            Some(self.process),
            Some(self.thread),
            Some(self.api),
            Some(action.action),
            action.stream,
            action.context,
            action.event,
            action.allocation,
            action.kernel,
            action.other,
            action.source,
            action.destination,
            action.bytes,
            Some(action.flags),
            action.graph,
            self.start_ns,
            self.duration_ns,
            Some(self.result),
            self.stack,
        ]
    }

    /// The row of these numbers, or the column that is NULL and may not be.
    pub(crate) fn of_numbers(columns: &[Option<i64>; OP_WIDTH]) -> Result<Self, usize> {
        let required = |column: usize| columns[column].ok_or(column);
        Ok(Self {
            g: required(0)?,
            exit_after: columns[1],
            process: required(2)?,
            thread: required(3)?,
            api: required(4)?,
            action: ActionColumns {
                action: required(5)?,
                stream: columns[6],
                context: columns[7],
                event: columns[8],
                allocation: columns[9],
                kernel: columns[10],
                other: columns[11],
                source: columns[12],
                destination: columns[13],
                bytes: columns[14],
                flags: required(15)?,
                graph: columns[16],
            },
            start_ns: columns[17],
            duration_ns: columns[18],
            result: required(19)?,
            stack: columns[20],
        })
    }
}

impl EdgeRow {
    /// The columns as numbers, in the order of the table.
    pub(crate) fn numbers(&self) -> [Option<i64>; EDGE_WIDTH] {
        [self.id, self.from, self.kind, self.tier].map(Some)
    }

    /// The row of these numbers, or the column that is NULL and may not be.
    pub(crate) fn of_numbers(columns: &[Option<i64>; EDGE_WIDTH]) -> Result<Self, usize> {
        let required = |column: usize| columns[column].ok_or(column);
        Ok(Self { id: required(0)?, from: required(1)?, kind: required(2)?, tier: required(3)? })
    }
}

impl AccessRow {
    /// The columns as numbers, in the order of the table.
    pub(crate) fn numbers(&self) -> [Option<i64>; ACCESS_WIDTH] {
        let AccessColumns { allocation, start, length, mode, basis, pattern } = self.columns;
        let [id, allocation, start, length, mode, basis] =
            [self.id, allocation, start, length, mode, basis].map(Some);
        [id, allocation, start, length, mode, basis, pattern]
    }

    /// The row of these numbers, or the column that is NULL and may not be.
    pub(crate) fn of_numbers(columns: &[Option<i64>; ACCESS_WIDTH]) -> Result<Self, usize> {
        let required = |column: usize| columns[column].ok_or(column);
        Ok(Self {
            id: required(0)?,
            columns: AccessColumns {
                allocation: required(1)?,
                start: required(2)?,
                length: required(3)?,
                mode: required(4)?,
                basis: required(5)?,
                pattern: columns[6],
            },
        })
    }
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

/// The range of two columns. Whatever stands there, its end is not below its start.
pub(crate) fn byte_range(start: i64, length: i64) -> ByteRange {
    ByteRange::with_len(start as u64, length as u64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_beyond_the_address_space_is_cut() {
        let range = byte_range(-16, 4096);
        assert_eq!((range.start, range.end), (u64::MAX - 15, u64::MAX));
        assert_eq!(byte_range(1, -1).end, u64::MAX);
    }
}
