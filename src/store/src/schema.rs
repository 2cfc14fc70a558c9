//! The schema: one table in the code, from which the SQL, `docs/schema.md` and the stored list of
//! codes are made.

mod codes;
mod column;
mod document;
pub(crate) mod expected;
mod tables;
mod views;

pub(crate) use codes::{COVERAGE_KINDS, enumerations};
pub(crate) use column::Table;
pub use document::schema_document;
pub(crate) use tables::{INDEXES, TABLES};
pub(crate) use views::VIEWS;

/// The first schema whose traces prove what they hold.
pub(crate) const FIRST_PROVEN: i32 = 6;

/// The table of ranges and marks, and the first schema that has it.
pub(crate) const RANGES: (&str, i32) = ("nvtx_range", 8);

/// The table that says what the others hold.
pub(crate) const PROOF: &str = "proof";

/// `application_id` of a trace: "SSAN".
pub(crate) const APPLICATION_ID: i32 = 0x5353_414e;

/// Low bits of the ids of accesses and edges: they number those of one operation.
pub(crate) const ACCESS_BITS: u32 = 24;

/// First operation number that the id of an access or an edge cannot hold.
pub(crate) const OPERATION_LIMIT: u64 = 1 << (63 - ACCESS_BITS);

/// Bits of `op.flags`.
pub(crate) mod flag {
    pub(crate) const SYNCHRONOUS: i64 = 1;
    pub(crate) const PROGRAMMATIC: i64 = 2;
    pub(crate) const WAITS_FOR_PROGRAMMATIC: i64 = 4;
    pub(crate) const COOPERATIVE: i64 = 8;
    pub(crate) const PROGRAMMATIC_EVENT: i64 = 16;
    pub(crate) const COMPLETION_EVENT: i64 = 32;
    pub(crate) const SYNC_MEMOPS: i64 = 64;
    pub(crate) const SOURCE_DURING_CALL: i64 = 128;
    pub(crate) const SOURCE_ANY_TIME: i64 = 256;
    pub(crate) const WAITS_BEFORE: i64 = 512;
    pub(crate) const HOLDS_BACK_AFTER: i64 = 1024;
    pub(crate) const TRIGGERS_BEHIND_WAIT: i64 = 2048;
    pub(crate) const TRIGGERS_EARLY: i64 = 4096;
    pub(crate) const BLOCK_START_EVENT: i64 = 8192;
    /// From this bit on: how many accesses may come before the kernel's wait.
    pub(crate) const EARLY_ACCESSES: u32 = 16;
}

/// The statements that make an empty trace.
pub(crate) fn create_statements() -> String {
    let mut sql = format!("PRAGMA user_version = {};\n", crate::SCHEMA_VERSION);
    for table in TABLES {
        sql += &format!("{};\n", table_statement(table));
    }
    for view in VIEWS {
        sql += &format!("CREATE VIEW {} AS {};\n", view.name, view.sql);
    }
    sql
}

/// The statement that makes a table.
fn table_statement(table: &Table) -> String {
    let mut parts: Vec<String> =
        table.columns.iter().map(|c| format!("{} {}", c.name, c.declaration)).collect();
    if let Some(key) = table.key {
        parts.push(format!("PRIMARY KEY ({key})"));
    }
    let suffix = if table.key.is_some() { " WITHOUT ROWID" } else { "" };
    format!("CREATE TABLE {} ({}){suffix}", table.name, parts.join(", "))
}

/// The statements that make the secondary indexes.
pub(crate) fn index_statements() -> String {
    INDEXES
        .iter()
        .map(|i| format!("CREATE INDEX IF NOT EXISTS {} ON {};\n", i.name, i.on))
        .collect()
}
