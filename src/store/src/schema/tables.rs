//! Tables, columns and indexes of schema 8.
//!
//! A trace holds millions of rows in `op` and `access` and few anywhere else, so these two are
//! packed: integers of SQLite take as many bytes as their value needs, hence distances
//! (`exit_after`, `duration_ns`, `length`) in place of second positions, which come back as
//! generated columns that take no space.

mod derived;
mod findings;
mod operations;
mod program;

use super::column::{Column, Index, Table, Unit};

const ID: &str = "INTEGER PRIMARY KEY";
const INT: &str = "INTEGER NOT NULL";
const MAYBE: &str = "INTEGER";

const fn c(name: &'static str, declaration: &'static str, unit: Unit, doc: &'static str) -> Column {
    Column { name, declaration, unit, doc }
}

const fn t(name: &'static str, doc: &'static str, columns: &'static [Column]) -> Table {
    Table { name, doc, key: None, columns }
}
/// All tables, in the order in which a trace and `docs/schema.md` have them.
pub(crate) const TABLES: &[Table] = &joined::<TABLE_COUNT>();

const PARTS: [&[Table]; 4] =
    [program::TABLES, operations::TABLES, findings::TABLES, derived::TABLES];

const TABLE_COUNT: usize = PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len();

const fn joined<const COUNT: usize>() -> [Table; COUNT] {
    let mut all = [PARTS[0][0]; COUNT];
    let (mut part, mut at, mut filled) = (0, 0, 0);
    while part < PARTS.len() {
        if at == PARTS[part].len() {
            (part, at) = (part + 1, 0);
        } else {
            all[filled] = PARTS[part][at];
            (at, filled) = (at + 1, filled + 1);
        }
    }
    all
}

/// Made when a trace is finished: one index during the load would halve its speed. The large tables
/// have none, since sorting their rows holds up the end of a run: their keys find the accesses of an
/// operation and the edges that end at it, `lod` the operations of a stream, `lod_use` those on an
/// allocation and `lod_edge` the edges that begin at an operation.
pub(crate) const INDEXES: &[Index] =
    &[Index { name: "finding_by_fingerprint", on: "finding (fingerprint)" }];
