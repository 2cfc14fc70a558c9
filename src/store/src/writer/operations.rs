//! Operations and their accesses.

use super::Writer;
use crate::action::ActionColumns;
use crate::row::{AccessColumns, AccessRow, OpRow, Shape, access_ids};
use crate::{Error, Meta};
use rusqlite::{Connection, Statement, params};
use std::collections::HashMap;
use streamsan_model::{Access, HostTime, OpSeq, Operation, Status};

/// Rows gathered before they are inserted.
const BATCH: usize = 1024;

const INSERT_OP: &str = "INSERT INTO op (g, exit_after, process, thread, api, action, stream, \
                         context, event, allocation, kernel, other, source, destination, bytes, \
                         flags, start_ns, duration_ns, result) \
                         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const INSERT_ACCESS: &str = "INSERT INTO access (id, allocation, start, length, mode, basis, \
                             pattern) VALUES (?, ?, ?, ?, ?, ?, ?)";

impl Writer {
    pub(super) fn put_operation(&mut self, operation: &Operation) -> Result<(), Error> {
        let rows = self.access_rows(operation.g, &operation.accesses)?;
        self.attempt(|w| {
            let (start_ns, duration_ns) = match operation.time {
                None => (None, None),
                Some(HostTime { start_ns, end_ns }) => {
                    let base = w.clock_base(start_ns)?;
                    (Some(start_ns.wrapping_sub(base)), Some(end_ns.wrapping_sub(start_ns)))
                }
            };
            w.begin()?;
            let api = w.intern(&operation.api)?;
            let g = operation.g.0;
            w.operations.push(OpRow {
                g: g as i64,
                exit_after: operation.exit.map(|exit| exit.0.wrapping_sub(g) as i64),
                process: i64::from(operation.process.0),
                thread: i64::from(operation.thread.0),
                api,
                action: ActionColumns::from(&operation.action),
                start_ns: start_ns.map(|t| t as i64),
                duration_ns: duration_ns.map(|t| t as i64),
                result: i64::from(operation.status.0),
            });
            w.accesses.extend(rows);
            if w.operations.len() >= BATCH || w.accesses.len() >= 4 * BATCH {
                w.flush()?;
            }
            Ok(())
        })
    }

    pub(super) fn put_return(
        &mut self,
        g: OpSeq,
        exit: OpSeq,
        status: Status,
    ) -> rusqlite::Result<()> {
        let exit_after = Some(exit.0.wrapping_sub(g.0) as i64);
        if let Ok(at) = self.operations.binary_search_by_key(&(g.0 as i64), |row| row.g) {
            self.operations[at].exit_after = exit_after;
            self.operations[at].result = i64::from(status.0);
            return Ok(());
        }
        self.flush()?;
        self.begin()?;
        self.connection
            .prepare_cached("UPDATE op SET exit_after = ?, result = ? WHERE g = ?")?
            .execute(params![exit_after, status.0, g.0 as i64])
            .map(drop)
    }

    pub(super) fn put_late_accesses(&mut self, g: OpSeq, list: &[Access]) -> Result<(), Error> {
        let rows = self.access_rows(g, list)?;
        let ids = access_ids(g).unwrap_or_default();
        self.attempt(|w| {
            w.flush()?;
            w.begin()?;
            w.connection
                .prepare_cached("DELETE FROM access WHERE id >= ? AND id < ?")?
                .execute([ids.start, ids.end])?;
            let mut insert = w.connection.prepare_cached(INSERT_ACCESS)?;
            rows.iter().try_for_each(|row| insert_access(&mut insert, row))
        })
    }

    /// Inserts the gathered rows.
    pub(super) fn flush(&mut self) -> rusqlite::Result<()> {
        if self.operations.is_empty() && self.accesses.is_empty() {
            return Ok(());
        }
        self.begin()?;
        let mut insert = self.connection.prepare_cached(INSERT_OP)?;
        for row in &self.operations {
            insert_operation(&mut insert, row)?;
        }
        let mut insert = self.connection.prepare_cached(INSERT_ACCESS)?;
        for row in &self.accesses {
            insert_access(&mut insert, row)?;
        }
        self.operations.clear();
        self.accesses.clear();
        Ok(())
    }

    fn access_rows(&mut self, g: OpSeq, list: &[Access]) -> Result<Vec<AccessRow>, Error> {
        if list.is_empty() {
            return Ok(Vec::new());
        }
        let unstorable = |reason| Error::Unstorable { op: g.0, reason };
        let Some(ids) = access_ids(g) else {
            self.stop();
            return Err(unstorable("its number is too large"));
        };
        if list.len() as u64 > (ids.end - ids.start) as u64 {
            self.stop();
            return Err(unstorable("it touches too many separate ranges"));
        }
        self.attempt(|w| {
            ids.zip(list)
                .map(|(id, access)| {
                    let columns = AccessColumns::encode(access, |shape| w.pattern(shape))?;
                    Ok(AccessRow { id, columns })
                })
                .collect()
        })
    }

    /// The id of a pattern's shape, stored now if it is new.
    pub(super) fn pattern(&mut self, shape: Shape) -> rusqlite::Result<i64> {
        if let Some(&id) = self.patterns.get(&shape) {
            return Ok(id);
        }
        self.begin()?;
        insert_pattern(&self.connection, &mut self.patterns, shape)
    }

    fn clock_base(&mut self, first: u64) -> rusqlite::Result<u64> {
        if let Some(base) = self.clock_base {
            return Ok(base);
        }
        self.put_meta(Meta::CLOCK_BASE, &first.to_string())?;
        self.clock_base = Some(first);
        Ok(first)
    }
}

fn insert_pattern(
    connection: &Connection,
    patterns: &mut HashMap<Shape, i64>,
    shape: Shape,
) -> rusqlite::Result<i64> {
    let id = patterns.len() as i64 + 1;
    let [width, pitch, rows, slice_pitch, slices] = shape.map(|n| n as i64);
    connection
        .prepare_cached("INSERT INTO access_pattern VALUES (?, ?, ?, ?, ?, ?)")?
        .execute([id, width, pitch, rows, slice_pitch, slices])?;
    patterns.insert(shape, id);
    Ok(id)
}

fn insert_operation(insert: &mut Statement<'_>, row: &OpRow) -> rusqlite::Result<()> {
    let action = &row.action;
    insert.raw_bind_parameter(1, row.g)?;
    insert.raw_bind_parameter(2, row.exit_after)?;
    insert.raw_bind_parameter(3, row.process)?;
    insert.raw_bind_parameter(4, row.thread)?;
    insert.raw_bind_parameter(5, row.api)?;
    insert.raw_bind_parameter(6, action.action)?;
    insert.raw_bind_parameter(7, action.stream)?;
    insert.raw_bind_parameter(8, action.context)?;
    insert.raw_bind_parameter(9, action.event)?;
    insert.raw_bind_parameter(10, action.allocation)?;
    insert.raw_bind_parameter(11, action.kernel)?;
    insert.raw_bind_parameter(12, action.other)?;
    insert.raw_bind_parameter(13, action.source)?;
    insert.raw_bind_parameter(14, action.destination)?;
    insert.raw_bind_parameter(15, action.bytes)?;
    insert.raw_bind_parameter(16, action.flags)?;
    insert.raw_bind_parameter(17, row.start_ns)?;
    insert.raw_bind_parameter(18, row.duration_ns)?;
    insert.raw_bind_parameter(19, row.result)?;
    insert.raw_execute().map(drop)
}

fn insert_access(insert: &mut Statement<'_>, row: &AccessRow) -> rusqlite::Result<()> {
    let columns = &row.columns;
    insert.raw_bind_parameter(1, row.id)?;
    insert.raw_bind_parameter(2, columns.allocation)?;
    insert.raw_bind_parameter(3, columns.start)?;
    insert.raw_bind_parameter(4, columns.length)?;
    insert.raw_bind_parameter(5, columns.mode)?;
    insert.raw_bind_parameter(6, columns.basis)?;
    insert.raw_bind_parameter(7, columns.pattern)?;
    insert.raw_execute().map(drop)
}
