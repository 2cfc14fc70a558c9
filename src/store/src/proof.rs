//! The proof that a table holds exactly the rows that were written: their number and a checksum of
//! their values.
//!
//! The large tables change while a trace is written. Their checksum is therefore the sum of the
//! rows' checksums, from which the checksum of a removed row is subtracted again. The sum is kept
//! from the rows that are handed over, not from those that are found in the file. The checksum of
//! every other table covers its rows in their order, read back when the trace is finished.
//!
//! Invariants:
//! - A row's checksum covers each stored column, NULL and types included, and no computed column.
//! - The proof guards against damage and mistakes, not against an author of another proof.

use crate::row::{ACCESS_WIDTH, EDGE_WIDTH, OP_WIDTH};
use crate::schema::{PROOF, TABLES, Table};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Rows and checksum of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) rows: u64,
    pub(crate) checksum: u128,
}

impl Sum {
    /// Counts a row in, by its checksum.
    pub(crate) fn add(&mut self, row: u128) {
        self.rows = self.rows.wrapping_add(1);
        self.checksum = self.checksum.wrapping_add(row);
    }

    /// Counts a row out.
    pub(crate) fn remove(&mut self, row: u128) {
        self.rows = self.rows.wrapping_sub(1);
        self.checksum = self.checksum.wrapping_sub(row);
    }
}

/// Most columns of a row of whole numbers.
const MOST: usize = if OP_WIDTH > ACCESS_WIDTH { OP_WIDTH } else { ACCESS_WIDTH };

/// The checksum of a row of whole numbers.
pub(crate) fn hash_of<const WIDTH: usize>(columns: &[Option<i64>; WIDTH]) -> u128 {
    const { assert!(WIDTH <= MOST) };
    let mut bytes = [0; 8 * (MOST + 1)];
    let mut present = 0u64;
    for (position, column) in columns.iter().enumerate() {
        present |= u64::from(column.is_some()) << position;
        let at = 8 * (position + 1);
        bytes[at..at + 8].copy_from_slice(&column.unwrap_or(0).to_le_bytes());
    }
    bytes[..8].copy_from_slice(&present.to_le_bytes());
    xxh3_128(&bytes[..8 * (WIDTH + 1)])
}

/// The first columns of a row, which are whole numbers or NULL.
pub(crate) fn numbers<const WIDTH: usize>(row: &Row<'_>) -> rusqlite::Result<[Option<i64>; WIDTH]> {
    let mut columns = [None; WIDTH];
    for (position, column) in columns.iter_mut().enumerate() {
        *column = row.get(position)?;
    }
    Ok(columns)
}

/// The tables whose checksums are sums.
pub(crate) const SUMMED: [&str; 3] = ["op", "access", "edge"];

/// The number of rows and the checksum of a table in the file, read from its first row to its last.
pub(crate) fn sum(connection: &Connection, table: &Table) -> rusqlite::Result<Sum> {
    let stored = table.columns.iter().filter(|column| column.is_stored());
    let columns: Vec<&str> = stored.map(|column| column.name).collect();
    let key = table.key.unwrap_or("rowid");
    let sql = format!(
        "SELECT {} FROM main.{} NOT INDEXED ORDER BY {key}",
        columns.join(", "),
        table.name
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut sum = Sum::default();
    if table.name == SUMMED[0] {
        while let Some(row) = rows.next()? {
            sum.add(hash_of(&numbers::<OP_WIDTH>(row)?));
        }
        return Ok(sum);
    }
    if table.name == SUMMED[1] {
        while let Some(row) = rows.next()? {
            sum.add(hash_of(&numbers::<ACCESS_WIDTH>(row)?));
        }
        return Ok(sum);
    }
    if table.name == SUMMED[2] {
        while let Some(row) = rows.next()? {
            sum.add(hash_of(&numbers::<EDGE_WIDTH>(row)?));
        }
        return Ok(sum);
    }
    let (mut hash, mut bytes) = (Xxh3::new(), Vec::new());
    while let Some(row) = rows.next()? {
        bytes.clear();
        for column in 0..columns.len() {
            put(&mut bytes, row.get_ref(column)?);
        }
        sum.rows += 1;
        hash.update(&bytes);
    }
    sum.checksum = hash.digest128();
    Ok(sum)
}

/// A value such that no two lists of values make the same bytes.
fn put(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    let (kind, number, text): (u8, u64, &[u8]) = match value {
        ValueRef::Null => (0, 0, &[]),
        ValueRef::Integer(number) => (1, number as u64, &[]),
        ValueRef::Real(number) => (2, number.to_bits(), &[]),
        ValueRef::Text(text) => (3, text.len() as u64, text),
        ValueRef::Blob(blob) => (4, blob.len() as u64, blob),
    };
    bytes.push(kind);
    bytes.extend(number.to_le_bytes());
    bytes.extend(text);
}

/// Number of rows and checksum of each table, by its name.
pub(crate) type Proof = BTreeMap<String, Sum>;

/// Writes the proof into the file: `known` for the tables that it names, and the present rows for
/// all others.
pub(crate) fn write(connection: &Connection, known: [(&str, Sum); 3]) -> rusqlite::Result<()> {
    erase(connection)?;
    let mut insert = connection.prepare("INSERT INTO proof VALUES (?, ?, ?)")?;
    for table in TABLES.iter().filter(|table| table.name != PROOF) {
        let known = known.iter().find(|(name, _)| *name == table.name);
        let Sum { rows, checksum } = match known {
            Some(&(_, known)) => known,
            None => sum(connection, table)?,
        };
        insert.execute(params![table.name, rows as i64, format!("{checksum:032x}")])?;
    }
    Ok(())
}

/// Takes the proof out of the file.
pub(crate) fn erase(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM proof", []).map(drop)
}

/// The proof in the file; `None` where there is none. A row that makes no sense proves nothing.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Option<Proof>> {
    let mut statement = connection.prepare("SELECT name, rows, checksum FROM main.proof")?;
    let rows = statement.query_map([], |row| {
        let checksum: String = row.get(2)?;
        let checksum =
            u128::from_str_radix(&checksum, 16).map_err(|_| crate::reader::decode::misfit(2))?;
        Ok((row.get(0)?, Sum { rows: row.get::<_, i64>(1)? as u64, checksum }))
    })?;
    let proof: Proof = rows.collect::<rusqlite::Result<_>>()?;
    Ok((!proof.is_empty()).then_some(proof))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_went_leaves_nothing() {
        let rows = [[Some(1), None, Some(3)], [Some(1), Some(0), Some(3)], [None; 3]];
        let [a, b, c] = rows.map(|row| hash_of(&row));
        assert!(a != b && b != c && a != c, "NULL is not 0");
        let mut sum = Sum::default();
        [a, b, c].into_iter().for_each(|row| sum.add(row));
        let mut other = Sum::default();
        [c, a].into_iter().for_each(|row| other.add(row));
        sum.remove(b);
        assert_eq!(sum, other);
    }

    #[test]
    fn values_do_not_run_into_each_other() {
        let bytes = |values: &[ValueRef<'_>]| {
            let mut bytes = Vec::new();
            values.iter().for_each(|&value| put(&mut bytes, value));
            bytes
        };
        let text = ValueRef::Text;
        assert_ne!(bytes(&[text(b"ab"), text(b"c")]), bytes(&[text(b"a"), text(b"bc")]));
        assert_ne!(bytes(&[text(b"")]), bytes(&[ValueRef::Null]));
        assert_ne!(bytes(&[ValueRef::Integer(0)]), bytes(&[ValueRef::Null]));
        assert_ne!(bytes(&[ValueRef::Blob(b"a")]), bytes(&[text(b"a")]));
    }
}
