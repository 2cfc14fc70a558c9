//! The operations of one row in their order, found by the buckets of the logical axis.

use super::cells::Lod;
use super::detail::{Packed, unpack};
use super::lane_code;
use rusqlite::{Connection, OptionalExtension, params};
use streamsan_model::{Axis, LaneId, OpSeq};

impl Lod {
    /// The depth of an operation: its bucket is found by its row's order.
    pub(super) fn depth(
        &self,
        connection: &Connection,
        lane: LaneId,
        g: OpSeq,
    ) -> rusqlite::Result<Option<u64>> {
        let Some((_, operations)) = self.bucket_of(connection, lane, g)? else { return Ok(None) };
        Ok(operations.iter().find(|op| op.g == g.0).map(|op| op.at))
    }

    /// The bucket of the logical axis, and its operations, in which an operation lies if it is one of
    /// the row: the last one that begins with this operation or an earlier one.
    fn bucket_of(
        &self,
        connection: &Connection,
        lane: LaneId,
        g: OpSeq,
    ) -> rusqlite::Result<Option<(u64, Vec<Packed>)>> {
        let Some(levels) = self.axis(Axis::Logical) else { return Ok(None) };
        let (mut low, mut high) = (0, levels.span.end >> levels.base);
        let mut found = None;
        while low <= high {
            let middle = low + (high - low) / 2;
            match self.bucket_near(connection, lane, middle, false)? {
                Some((at, operations)) if operations.first().is_some_and(|o| o.g <= g.0) => {
                    found = Some((at, operations));
                    low = middle + 1;
                }
                Some((at, _)) if at > 0 => high = at - 1,
                Some(_) => break,
                None => low = middle + 1,
            }
        }
        Ok(found)
    }

    /// The first bucket of a row on the logical axis from `bucket` on, or the last one up to it.
    fn bucket_near(
        &self,
        connection: &Connection,
        lane: LaneId,
        bucket: u64,
        forward: bool,
    ) -> rusqlite::Result<Option<(u64, Vec<Packed>)>> {
        let Some(levels) = self.axis(Axis::Logical) else { return Ok(None) };
        let (side, order) = if forward { (">=", "ASC") } else { ("<=", "DESC") };
        let mut statement = connection.prepare_cached(&format!(
            "SELECT bucket, first, detail FROM lod WHERE axis = ? AND shift = ? AND lane = ? \
             AND bucket {side} ? ORDER BY bucket {order} LIMIT 1"
        ))?;
        let key = params![Axis::Logical as i64, levels.base, lane_code(lane), bucket as i64];
        let found = statement.query_row(key, |row| {
            let at = row.get::<_, i64>(0)? as u64;
            let first = row.get::<_, i64>(1)? as u64;
            Ok((at, unpack(at << levels.base, first, row.get_ref(2)?.as_blob()?)))
        });
        found.optional()
    }

    /// See [`streamsan_model::TraceQuery::neighbour`].
    pub(crate) fn neighbour(
        &self,
        connection: &Connection,
        lane: LaneId,
        g: OpSeq,
        forward: bool,
    ) -> rusqlite::Result<Option<OpSeq>> {
        let around = self.bucket_of(connection, lane, g)?;
        let inside = around.as_ref().and_then(|(_, operations)| match forward {
            true => operations.iter().find(|op| op.g > g.0),
            false => operations.iter().rev().find(|op| op.g < g.0),
        });
        if let Some(op) = inside {
            return Ok(Some(OpSeq(op.g)));
        }
        let next = match (&around, forward) {
            (Some((at, _)), true) => self.bucket_near(connection, lane, at + 1, true)?,
            (Some((at, _)), false) if *at > 0 => {
                self.bucket_near(connection, lane, at - 1, false)?
            }
            // Everything is behind it.
            (None, true) => self.bucket_near(connection, lane, 0, true)?,
            _ => None,
        };
        let next = next.as_ref().and_then(|(_, operations)| match forward {
            true => operations.first(),
            false => operations.last(),
        });
        Ok(next.map(|op| OpSeq(op.g)))
    }

    /// The operation of a row that lies nearest to a depth.
    pub(crate) fn nearest_depth(
        &self,
        connection: &Connection,
        lane: LaneId,
        at: u64,
    ) -> rusqlite::Result<Option<OpSeq>> {
        let Some(levels) = self.axis(Axis::Logical) else { return Ok(None) };
        let bucket = at >> levels.base;
        let before = self.bucket_near(connection, lane, bucket, false)?;
        let after = self.bucket_near(connection, lane, bucket + 1, true)?;
        let operations: Vec<_> =
            [before, after].into_iter().flatten().flat_map(|(_, operations)| operations).collect();
        Ok(operations.iter().min_by_key(|op| (op.at.abs_diff(at), op.g)).map(|op| OpSeq(op.g)))
    }
}
