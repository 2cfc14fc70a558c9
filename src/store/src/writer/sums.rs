//! Checksums of the large tables, kept while they are written ([`crate::proof`]).
//!
//! An inserted row is added as it is handed over. A changed or deleted row is subtracted as it lies
//! in the file, so that a row that does not exist subtracts nothing.

use crate::proof::{Proof, Sum, hash_of, numbers, sum};
use crate::row::{ACCESS_COLUMNS, ACCESS_WIDTH, OP_COLUMNS, OP_WIDTH};
use crate::schema::TABLES;
use rusqlite::{Connection, params};
use std::ops::Range;

/// Numbers and checksums of the rows in `op`, `access` and `edge`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) op: Sum,
    pub(super) access: Sum,
    pub(super) edge: Sum,
}

impl Sums {
    /// The sums of a trace that was written before: those of its proof or, without a proof, of the
    /// rows that are there.
    pub(super) fn of(connection: &Connection, proof: Option<&Proof>) -> rusqlite::Result<Self> {
        let of = |name: &str| match proof.and_then(|proof| proof.get(name)) {
            Some(&known) => Ok(known),
            None => TABLES
                .iter()
                .find(|table| table.name == name)
                .map_or(Ok(Sum::default()), |table| sum(connection, table)),
        };
        Ok(Self { op: of("op")?, access: of("access")?, edge: of("edge")? })
    }

    pub(super) fn named(&self) -> [(&'static str, Sum); 3] {
        [("op", self.op), ("access", self.access), ("edge", self.edge)]
    }

    /// Changes operation `g`.
    pub(super) fn change_operation(
        &mut self,
        connection: &Connection,
        g: Option<i64>,
        change: impl FnOnce() -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let sql = format!("SELECT {OP_COLUMNS} FROM op WHERE g = ?");
        let mut find = connection.prepare_cached(&sql)?;
        let mut stored = || {
            let mut rows = find.query([g])?;
            let row = rows.next()?.map(numbers::<OP_WIDTH>).transpose();
            row.map(|row| row.map(|columns| hash_of(&columns)))
        };
        let before = stored()?;
        change()?;
        let after = stored()?;
        before.into_iter().for_each(|row| self.op.remove(row));
        after.into_iter().for_each(|row| self.op.add(row));
        Ok(())
    }

    /// Deletes the accesses of these ids.
    pub(super) fn delete_accesses(
        &mut self,
        connection: &Connection,
        ids: Range<i64>,
    ) -> rusqlite::Result<()> {
        let sql = format!("DELETE FROM access WHERE id >= ? AND id < ? RETURNING {ACCESS_COLUMNS}");
        let mut delete = connection.prepare_cached(&sql)?;
        let mut rows = delete.query(params![ids.start, ids.end])?;
        while let Some(row) = rows.next()? {
            self.access.remove(hash_of(&numbers::<ACCESS_WIDTH>(row)?));
        }
        Ok(())
    }
}
