//! What is gathered before it is inserted, and its insertion.
//!
//! All columns but the texts of `string` and `meta` are whole numbers, so a batch is numbers.

use crate::row::{AccessRow, EdgeRow, OpRow};
use rusqlite::{Connection, Statement, params, params_from_iter};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Rows of one statement: finding the end of the table once for several rows saves a seventh.
const ROWS: usize = 16;

/// Rows in the order in which they are inserted: first the texts, then the statements, then
/// edges, operations and accesses, last what takes the place of accesses that are there by then.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) meta: Vec<(String, String)>,
    pub(super) strings: Vec<(i64, Arc<str>)>,
    pub(super) statements: Vec<(&'static str, Vec<Option<i64>>)>,
    pub(super) edges: Vec<EdgeRow>,
    pub(super) operations: Vec<OpRow>,
    pub(super) accesses: Vec<AccessRow>,
    /// First ids and ends of accesses that others take the place of.
    pub(super) replaced: FxHashMap<i64, i64>,
    /// These others.
    pub(super) replacements: Vec<AccessRow>,
}

impl Batch {
    /// Gathered rows from which on a batch is full.
    const FULL: usize = 1024;

    pub(super) fn is_full(&self) -> bool {
        self.operations.len() >= Self::FULL
            || self.accesses.len() >= 4 * Self::FULL
            || self.statements.len() >= Self::FULL
            || self.edges.len() >= 2 * Self::FULL
            || self.replaced.len() >= Self::FULL
            || self.replacements.len() >= 4 * Self::FULL
    }

    /// About how many bytes it comes to in the file.
    pub(super) fn estimated_bytes(&self) -> u64 {
        let texts: usize = self.strings.iter().map(|(_, text)| text.len() + 8).sum();
        let accesses = self.accesses.len() + self.replacements.len();
        let numbers = 50 * self.operations.len() + 32 * accesses;
        let edges = 20 * self.edges.len();
        (texts + numbers + edges + 32 * self.statements.len()) as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.meta.is_empty()
            && self.strings.is_empty()
            && self.statements.is_empty()
            && self.edges.is_empty()
            && self.operations.is_empty()
            && self.accesses.is_empty()
            && self.replaced.is_empty()
    }

    /// Inserts everything into the open transaction.
    pub(super) fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        for (key, value) in &self.meta {
            connection
                .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?, ?)")?
                .execute(params![key, value])?;
        }
        for (id, text) in &self.strings {
            connection
                .prepare_cached("INSERT INTO string VALUES (?, ?)")?
                .execute(params![id, text])?;
        }
        for (sql, values) in &self.statements {
            connection.prepare_cached(sql)?.execute(params_from_iter(values))?;
        }
        insert_rows(connection, &EDGE, &self.edges, bind_edge)?;
        insert_rows(connection, &OP, &self.operations, bind_operation)?;
        insert_rows(connection, &ACCESS, &self.accesses, bind_access)?;
        for (first, end) in &self.replaced {
            connection
                .prepare_cached("DELETE FROM access WHERE id >= ? AND id < ?")?
                .execute(params![first, end])?;
        }
        insert_rows(connection, &ACCESS, &self.replacements, bind_access)
    }
}

/// A table to insert into.
struct Target {
    columns: &'static str,
    width: usize,
}

const OP: Target = Target {
    columns: "op (g, exit_after, process, thread, api, action, stream, context, event, allocation, \
              kernel, other, source, destination, bytes, flags, start_ns, duration_ns, result, \
              graph, stack)",
    width: 21,
};

const ACCESS: Target =
    Target { columns: "access (id, allocation, start, length, mode, basis, pattern)", width: 7 };

const EDGE: Target = Target { columns: "edge (id, from_op, kind, tier)", width: 4 };

impl Target {
    fn insert(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.width].join(", "));
        format!("INSERT INTO {} VALUES {}", self.columns, vec![row; rows].join(", "))
    }
}

fn insert_rows<T>(
    connection: &Connection,
    target: &Target,
    rows: &[T],
    bind: impl Fn(&mut Statement<'_>, usize, &T) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let (full, rest) = rows.split_at(rows.len() - rows.len() % ROWS);
    for (rows, step) in [(full, ROWS), (rest, 1)] {
        if rows.is_empty() {
            continue;
        }
        let mut insert = connection.prepare_cached(&target.insert(step))?;
        for chunk in rows.chunks(step) {
            for (position, row) in chunk.iter().enumerate() {
                bind(&mut insert, position * target.width, row)?;
            }
            insert.raw_execute()?;
        }
    }
    Ok(())
}

/// Binds the columns of a row behind the first `before` parameters.
fn bind_operation(insert: &mut Statement<'_>, before: usize, row: &OpRow) -> rusqlite::Result<()> {
    let action = &row.action;
    insert.raw_bind_parameter(before + 1, row.g)?;
    insert.raw_bind_parameter(before + 2, row.exit_after)?;
    insert.raw_bind_parameter(before + 3, row.process)?;
    insert.raw_bind_parameter(before + 4, row.thread)?;
    insert.raw_bind_parameter(before + 5, row.api)?;
    insert.raw_bind_parameter(before + 6, action.action)?;
    insert.raw_bind_parameter(before + 7, action.stream)?;
    insert.raw_bind_parameter(before + 8, action.context)?;
    insert.raw_bind_parameter(before + 9, action.event)?;
    insert.raw_bind_parameter(before + 10, action.allocation)?;
    insert.raw_bind_parameter(before + 11, action.kernel)?;
    insert.raw_bind_parameter(before + 12, action.other)?;
    insert.raw_bind_parameter(before + 13, action.source)?;
    insert.raw_bind_parameter(before + 14, action.destination)?;
    insert.raw_bind_parameter(before + 15, action.bytes)?;
    insert.raw_bind_parameter(before + 16, action.flags)?;
    insert.raw_bind_parameter(before + 17, row.start_ns)?;
    insert.raw_bind_parameter(before + 18, row.duration_ns)?;
    insert.raw_bind_parameter(before + 19, row.result)?;
    insert.raw_bind_parameter(before + 20, action.graph)?;
    insert.raw_bind_parameter(before + 21, row.stack)
}

fn bind_access(insert: &mut Statement<'_>, before: usize, row: &AccessRow) -> rusqlite::Result<()> {
    let columns = &row.columns;
    insert.raw_bind_parameter(before + 1, row.id)?;
    insert.raw_bind_parameter(before + 2, columns.allocation)?;
    insert.raw_bind_parameter(before + 3, columns.start)?;
    insert.raw_bind_parameter(before + 4, columns.length)?;
    insert.raw_bind_parameter(before + 5, columns.mode)?;
    insert.raw_bind_parameter(before + 6, columns.basis)?;
    insert.raw_bind_parameter(before + 7, columns.pattern)
}

fn bind_edge(insert: &mut Statement<'_>, before: usize, row: &EdgeRow) -> rusqlite::Result<()> {
    insert.raw_bind_parameter(before + 1, row.id)?;
    insert.raw_bind_parameter(before + 2, row.from)?;
    insert.raw_bind_parameter(before + 3, row.kind)?;
    insert.raw_bind_parameter(before + 4, row.tier)
}
