//! What a viewer asks of a trace.
//!
//! A row is `op.stream`, or `op.process` where that is NULL. The operations of a window are read
//! once, in issue order, and what is kept of them is bounded by the cells of the screen.

use crate::action::GROUPS;
use crate::reader::decode::{code, misfit};
use crate::{Error, Reader};
use rusqlite::Row;
use std::collections::BTreeMap;
use streamsan_model::{
    Bucket, Finding, Lane, LaneId, OpGroup, OpSeq, OpWindow, Operation, ProcessId, QueryError,
    StreamId, TraceQuery,
};

impl From<Error> for QueryError {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// An index as SQLite compares it.
fn signed(g: OpSeq) -> i64 {
    i64::try_from(g.0).unwrap_or(i64::MAX)
}

/// The row of an operation whose columns `stream` and `process` come from `column` on.
fn lane(row: &Row<'_>, column: usize) -> rusqlite::Result<LaneId> {
    Ok(match row.get(column)? {
        Some(stream) => LaneId::Stream(StreamId(stream)),
        None => LaneId::Host(ProcessId(row.get(column + 1)?)),
    })
}

/// A window cut into columns.
#[derive(Clone, Copy)]
struct Columns {
    first: u64,
    length: u64,
    count: u32,
}

impl Columns {
    fn of(&self, g: u64) -> u32 {
        let offset = u128::from(g.saturating_sub(self.first));
        let column = offset * u128::from(self.count) / u128::from(self.length);
        u32::try_from(column).unwrap_or(u32::MAX).min(self.count - 1)
    }
}

impl TraceQuery for Reader {
    fn span(&self) -> Result<Option<OpWindow>, QueryError> {
        let ends = self.rows("SELECT min(g), max(g) FROM op", [], |row| {
            let (first, last): (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
            let Some((first, last)) = first.zip(last) else { return Ok(None) };
            if first < 0 {
                return Err(misfit(0));
            }
            Ok(Some(OpWindow { first: OpSeq(first as u64), end: OpSeq(last as u64 + 1) }))
        })?;
        Ok(ends.into_iter().flatten().next())
    }

    fn lanes(&self) -> Result<Vec<Lane>, QueryError> {
        let mut streams: BTreeMap<StreamId, _> =
            self.streams()?.into_iter().map(|stream| (stream.id, stream)).collect();
        let mut lane = |row: &Row<'_>| {
            let id = lane(row, 0)?;
            let stream = match id {
                LaneId::Stream(id) => streams.remove(&id),
                LaneId::Host(_) => None,
            };
            Ok(Lane { id, stream, operations: row.get::<_, i64>(2)? as u64 })
        };
        let mut lanes = self.rows(
            "SELECT NULL, process, count(*) FROM op WHERE stream IS NULL GROUP BY process \
             ORDER BY process",
            [],
            &mut lane,
        )?;
        lanes.extend(self.rows(
            "SELECT stream, NULL, count(*) FROM op WHERE stream IS NOT NULL GROUP BY stream \
             ORDER BY stream",
            [],
            &mut lane,
        )?);
        Ok(lanes)
    }

    fn buckets(&self, window: OpWindow, columns: u32) -> Result<Vec<Bucket>, QueryError> {
        let length = window.end.0.saturating_sub(window.first.0);
        if length == 0 || columns == 0 {
            return Ok(Vec::new());
        }
        let columns = Columns { first: window.first.0, length, count: columns };
        let bounds = [signed(window.first), signed(window.end)];
        let mut buckets: BTreeMap<(LaneId, u32), Bucket> = BTreeMap::new();
        self.rows(
            "SELECT g, action, stream, process FROM op WHERE g >= ? AND g < ? ORDER BY g",
            bounds,
            |row| {
                let first = OpSeq(row.get::<_, i64>(0)? as u64);
                let group: OpGroup = code(row, 1, &GROUPS)?;
                let (lane, column) = (lane(row, 2)?, columns.of(first.0));
                let new = Bucket { lane, column, operations: 0, first, group, findings: 0 };
                let bucket = buckets.entry((lane, column)).or_insert(new);
                bucket.operations += 1;
                bucket.group = bucket.group.max(group);
                Ok(())
            },
        )?;
        // The two sides of a finding come one after the other.
        let mut last = None;
        self.rows(
            "SELECT side.finding, side.op, op.stream, op.process \
             FROM finding_access side JOIN op ON op.g = side.op \
             WHERE side.op >= ? AND side.op < ? ORDER BY side.finding, side.side",
            bounds,
            |row| {
                let key = (lane(row, 2)?, columns.of(row.get::<_, i64>(1)? as u64));
                let this = Some((row.get::<_, i64>(0)?, key));
                if last != this
                    && let Some(bucket) = buckets.get_mut(&key)
                {
                    bucket.findings += 1;
                }
                last = this;
                Ok(())
            },
        )?;
        Ok(buckets.into_values().collect())
    }

    fn operation(&self, g: OpSeq) -> Result<Option<Operation>, QueryError> {
        Ok(Reader::operation(self, g)?)
    }

    fn neighbour(
        &self,
        lane: LaneId,
        g: OpSeq,
        forward: bool,
    ) -> Result<Option<OpSeq>, QueryError> {
        let (row, id) = match lane {
            LaneId::Host(process) => ("stream IS NULL AND process = ?", process.0),
            LaneId::Stream(stream) => ("stream = ?", stream.0),
        };
        let (side, order) = if forward { ("g > ?", "ASC") } else { ("g < ?", "DESC") };
        let found = self.rows(
            &format!("SELECT g FROM op WHERE {row} AND {side} ORDER BY g {order} LIMIT 1"),
            [i64::from(id), signed(g)],
            |row| Ok(OpSeq(row.get::<_, i64>(0)? as u64)),
        )?;
        Ok(found.into_iter().next())
    }

    fn findings(&self) -> Result<Vec<Finding>, QueryError> {
        let mut findings = Reader::findings(self)?;
        findings.sort_by_key(|f| (f.second.op, f.first.op, f.allocation));
        Ok(findings)
    }
}
