//! A batch of rows, gathered before it is inserted, and its insertion.
//!
//! All columns but the texts of `string` and `meta` are whole numbers, so a batch is numbers.

use super::delta_rows::DeltaRows;
use super::sums::Sums;
use crate::proof::{Sum, hash_of};
use crate::row::{
    ACCESS_COLUMNS, ACCESS_WIDTH, AccessRow, EDGE_COLUMNS, EDGE_WIDTH, OP_COLUMNS, OP_WIDTH,
};
use rusqlite::{Connection, Statement, params, params_from_iter};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of one statement: finding the end of the table once for several rows saves a seventh.
const ROWS: usize = 16;

/// A call that was stored before it returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReturnRow {
    pub(super) g: i64,
    pub(super) exit_after: i64,
    pub(super) result: i64,
}

/// Rows in the order in which they are inserted: first the texts, then the statements, then edges,
/// calls that return and other changes of operations, operations and accesses, last what takes the
/// place of accesses that are there by then.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) meta: Vec<(String, String)>,
    pub(super) strings: Vec<(i64, Arc<str>)>,
    pub(super) statements: Vec<(&'static str, Vec<Option<i64>>)>,
    /// Edges and findings before this batch are forgotten, which a statement says too.
    pub(super) cleared: bool,
    /// Operations that findings speak of, and whether (1) or not (0) as one of their sides. They are
    /// in no row of their own.
    pub(super) sides: Vec<(i64, u64)>,
    pub(super) returns: Vec<ReturnRow>,
    pub(super) edges: DeltaRows<EDGE_WIDTH>,
    /// Changes of operations that are there; the last value is the operation's `g`.
    pub(super) updates: Vec<(&'static str, Vec<Option<i64>>)>,
    pub(super) operations: DeltaRows<OP_WIDTH>,
    pub(super) accesses: DeltaRows<ACCESS_WIDTH>,
    /// First ids and ends of accesses that others take the place of.
    pub(super) replaced: FxHashMap<i64, i64>,
    /// These others.
    pub(super) replacements: Vec<AccessRow>,
}

/// Batches that are done with, to be filled again: each batch is filled by one thread and emptied by
/// another, and fresh memory for it costs the filling one more than its rows do.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "batches go from thread to thread in their boxes")]
pub(super) struct Spares(Mutex<Vec<Box<Batch>>>);

impl Spares {
    /// Keeps an empty batch. There are as many as have ever waited, which is bounded.
    pub(super) fn put(&self, batch: Box<Batch>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
    }

    /// An empty batch.
    pub(super) fn take(&self) -> Box<Batch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }
}

impl Batch {
    /// Gathered rows from which on a batch is full.
    pub(super) const FULL: usize = 1024;

    /// About how many bytes operations come to in the file.
    pub(super) const fn estimated_bytes_of(operations: usize) -> u64 {
        50 * operations as u64
    }

    /// Empties it; its room stays.
    pub(super) fn clear(&mut self) {
        // None is forgotten: a field that is not named here does not compile.
        let Self {
            meta,
            strings,
            statements,
            cleared,
            sides,
            returns,
            edges,
            updates,
            operations,
            accesses,
            replaced,
            replacements,
        } = self;
        meta.clear();
        strings.clear();
        statements.clear();
        *cleared = false;
        sides.clear();
        returns.clear();
        edges.clear();
        updates.clear();
        operations.clear();
        accesses.clear();
        replaced.clear();
        replacements.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.accesses.len() >= 4 * Self::FULL
            || self.statements.len() + self.updates.len() >= Self::FULL
            || self.returns.len() >= Self::FULL
            || self.edges.len() >= 2 * Self::FULL
            || self.replaced.len() >= Self::FULL
            || self.replacements.len() >= 4 * Self::FULL
    }

    /// About how many bytes it comes to in the file.
    pub(super) fn estimated_bytes(&self) -> u64 {
        let texts: usize = self.strings.iter().map(|(_, text)| text.len() + 8).sum();
        let accesses = self.accesses.len() + self.replacements.len();
        let others = 20 * self.edges.len() + 32 * (self.statements.len() + self.updates.len());
        Self::estimated_bytes_of(self.operations.len()) + (texts + 32 * accesses + others) as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.meta.is_empty()
            && self.strings.is_empty()
            && self.statements.is_empty()
            && self.returns.is_empty()
            && self.edges.is_empty()
            && self.updates.is_empty()
            && self.operations.is_empty()
            && self.accesses.is_empty()
            && self.replaced.is_empty()
    }

    /// Inserts everything into the open transaction, and counts in and out what comes and goes.
    pub(super) fn insert(&self, connection: &Connection, sums: &mut Sums) -> rusqlite::Result<()> {
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
        if self.cleared {
            sums.edge = Sum::default();
        }
        insert_rows(connection, &EDGE, self.edges.iter(), &mut sums.edge)?;
        for row in &self.returns {
            sums.change_operation(connection, Some(row.g), || {
                connection
                    .prepare_cached("UPDATE op SET exit_after = ?, result = ? WHERE g = ?")?
                    .execute(params![row.exit_after, row.result, row.g])
                    .map(drop)
            })?;
        }
        for (sql, values) in &self.updates {
            let g = values.last().copied().flatten();
            sums.change_operation(connection, g, || {
                connection.prepare_cached(sql)?.execute(params_from_iter(values)).map(drop)
            })?;
        }
        insert_rows(connection, &OP, self.operations.iter(), &mut sums.op)?;
        insert_rows(connection, &ACCESS, self.accesses.iter(), &mut sums.access)?;
        for (&first, &end) in &self.replaced {
            sums.delete_accesses(connection, first..end)?;
        }
        let replacements = self.replacements.iter().map(AccessRow::numbers);
        insert_rows(connection, &ACCESS, replacements, &mut sums.access)
    }
}

/// A table to insert into.
struct Target {
    table: &'static str,
    columns: &'static str,
    width: usize,
}

const OP: Target = Target { table: "op", columns: OP_COLUMNS, width: OP_WIDTH };

const ACCESS: Target = Target { table: "access", columns: ACCESS_COLUMNS, width: ACCESS_WIDTH };

const EDGE: Target = Target { table: "edge", columns: EDGE_COLUMNS, width: EDGE_WIDTH };

impl Target {
    fn insert(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.width].join(", "));
        let rows = vec![row; rows].join(", ");
        format!("INSERT INTO {} ({}) VALUES {rows}", self.table, self.columns)
    }
}

/// Inserts rows and counts them in.
fn insert_rows<const WIDTH: usize>(
    connection: &Connection,
    target: &Target,
    mut rows: impl ExactSizeIterator<Item = [Option<i64>; WIDTH]>,
    sum: &mut Sum,
) -> rusqlite::Result<()> {
    for step in [ROWS, 1] {
        if rows.len() < step {
            continue;
        }
        let mut insert = connection.prepare_cached(&target.insert(step))?;
        while rows.len() >= step {
            for (position, columns) in rows.by_ref().take(step).enumerate() {
                sum.add(hash_of(&columns));
                bind(&mut insert, position * WIDTH, &columns)?;
            }
            insert.raw_execute()?;
        }
    }
    Ok(())
}

/// Binds the columns of a row behind the first `before` parameters.
fn bind(
    insert: &mut Statement<'_>,
    before: usize,
    columns: &[Option<i64>],
) -> rusqlite::Result<()> {
    let mut parameters = (before + 1..).zip(columns);
    parameters.try_for_each(|(parameter, value)| insert.raw_bind_parameter(parameter, value))
}
