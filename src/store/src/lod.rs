//! Level-of-detail data, from which a viewer shows a window without reading its operations.
//!
//! For each axis of the model ([`streamsan_model::Axis`]) and each row, `lod` counts the operations in buckets of
//! `2^shift` positions. The finest level has about one row for 32 operations; each further level is
//! four times as coarse. A zoom beyond the finest level reads the operations themselves, of which a
//! screen then holds few. The logical axis has no column in `op`: its finest buckets hold the
//! operations in them ([`detail`]).
//!
//! Everything here is derived. In a finished trace the writer has made the tables from the batches
//! that it inserted ([`feed`]). For an unfinished trace, or one of an earlier schema, the reader
//! builds them from the raw tables in its own temporary database ([`build`]); for a trace that it
//! follows it keeps them up to date there ([`live`]).

pub(crate) mod build;
pub(crate) mod cells;
mod counts;
mod depth;
mod depth_log;
pub(crate) mod detail;
pub(crate) mod edges;
pub(crate) mod feed;
mod feed_axes;
pub(crate) mod live;
mod order;
pub(crate) mod pyramid;
pub(crate) mod scan;
mod spool;
pub(crate) mod uses;

use streamsan_model::{LaneId, StreamId, ThreadId};

/// Levels are this many powers of two apart.
pub(crate) const STEP: u8 = 2;

/// The row that stands for all rows together; kept at one coarse level only.
pub(crate) const ALL_LANES: i64 = -1;

/// The stored number of a row.
pub(crate) fn lane_code(lane: LaneId) -> i64 {
    match lane {
        LaneId::Stream(stream) => i64::from(stream.0) * 2,
        LaneId::Host(thread) => i64::from(thread.0) * 2 + 1,
    }
}

/// The row of a stored number.
pub(crate) fn lane_of(code: i64) -> Option<LaneId> {
    let id = u32::try_from(code / 2).ok()?;
    match code {
        ..0 => None,
        _ if code % 2 == 0 => Some(LaneId::Stream(StreamId(id))),
        _ => Some(LaneId::Host(ThreadId(id))),
    }
}

/// The statements that make the tables, empty: `database` is `main` or `temp`.
pub(crate) const TEMPORARY: &str = "
    CREATE TEMP TABLE lod_axis (axis INTEGER PRIMARY KEY, shift INTEGER, top INTEGER,
        overall INTEGER, first INTEGER, end INTEGER);
    CREATE TEMP TABLE lod_lane (lane INTEGER PRIMARY KEY, process INTEGER, operations INTEGER,
        first INTEGER, last INTEGER);
    CREATE TEMP TABLE lod (axis INTEGER, shift INTEGER, lane INTEGER, bucket INTEGER,
        operations INTEGER, first INTEGER, groups INTEGER, findings INTEGER, detail BLOB,
        PRIMARY KEY (axis, shift, lane, bucket)) WITHOUT ROWID;
    CREATE TEMP TABLE lod_finding (op INTEGER PRIMARY KEY, sides INTEGER, lane INTEGER,
        start_ns INTEGER, depth INTEGER);
    CREATE TEMP TABLE lod_lifetime (allocation INTEGER PRIMARY KEY, allocated INTEGER,
        freed INTEGER);
    CREATE TEMP TABLE lod_call (api INTEGER PRIMARY KEY, calls INTEGER, driver_ns INTEGER,
        failures INTEGER);
    CREATE TEMP TABLE lod_use (kind INTEGER, id INTEGER, first INTEGER, numbers BLOB,
        PRIMARY KEY (kind, id, first)) WITHOUT ROWID;
    CREATE TEMP TABLE lod_edge (block INTEGER PRIMARY KEY, edges BLOB);
";

/// The edges of a trace that is followed, which has no list of them by where they begin.
pub(crate) const EDGES: &str = "
    CREATE TEMP TABLE edge (id INTEGER PRIMARY KEY, from_op INTEGER, to_op INTEGER, kind INTEGER,
        tier INTEGER);
    CREATE INDEX temp.edge_of_from ON edge (from_op);
    CREATE INDEX temp.edge_of_to ON edge (to_op);
";

#[cfg(test)]
mod tests {
    use super::{ALL_LANES, lane_code, lane_of};
    use streamsan_model::{LaneId, StreamId, ThreadId};

    #[test]
    fn rows_and_their_numbers() {
        for lane in [LaneId::Host(ThreadId(0)), LaneId::Stream(StreamId(u32::MAX))] {
            assert_eq!(lane_of(lane_code(lane)), Some(lane));
        }
        assert_eq!(lane_of(ALL_LANES), None);
    }
}
