//! Stored traces of races, edited where their structure is known: bytes, pages, rows, columns,
//! tables. The edits come out of the input; SQL makes them, so that what comes is always a database.
//!
//! A trace that was edited must never be called clean. That is only claimed where the environment
//! says so ([`STRICT_VARIABLE`]): it needs a trace that carries the proof of its contents.

use crate::numbers::Numbers;
use crate::scratch;
use crate::trace_file::{check, racy};
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use streamsan_model::Verdict;

/// Edits and what they are made with: no more is needed.
pub(crate) const LONGEST: usize = 256;

/// With this variable in the environment, a clean verdict over an edited trace is a failure.
pub const STRICT_VARIABLE: &str = "STREAMSAN_FUZZ_NEVER_CLEAN";

/// Edits of one input.
const MOST: usize = 8;

struct Table {
    name: String,
    columns: Vec<String>,
}

struct Original {
    bytes: Vec<u8>,
    tables: Vec<Table>,
}

fn originals() -> &'static [Original] {
    static ORIGINALS: OnceLock<Vec<Original>> = OnceLock::new();
    ORIGINALS.get_or_init(|| racy().into_iter().map(Original::new).collect())
}

impl Original {
    fn new(bytes: Vec<u8>) -> Self {
        let path = scratch::file("original.db");
        fs::write(&path, &bytes).expect("there is room");
        let tables = || -> rusqlite::Result<Vec<Table>> {
            let connection = Connection::open(&path)?;
            let mut names = connection
                .prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")?;
            let names = names.query_map([], |row| row.get::<_, String>(0))?;
            let table = |name: rusqlite::Result<String>| {
                let name = name?;
                let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?)")?;
                let columns = columns.query_map([&name], |row| row.get::<_, String>(0))?;
                let columns: rusqlite::Result<Vec<String>> = columns.collect();
                Ok(Table { columns: columns?, name })
            };
            names.map(table).collect()
        };
        let tables = tables().expect("a database");
        Self { bytes, tables }
    }
}

/// A value that is rarely right.
fn value(numbers: &mut Numbers<'_>) -> String {
    let fixed = [
        "NULL",
        "0",
        "1",
        "-1",
        "255",
        "65536",
        "2147483647",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775807 - 1",
        "1e300",
        "''",
        "'text'",
        "x'00ff'",
    ];
    match usize::from(numbers.byte()) {
        at if at < fixed.len() => fixed[at].to_owned(),
        at if at % 2 == 0 => (numbers.half() as i16).to_string(),
        _ => (numbers.long() as i64).to_string(),
    }
}

/// One edit of a database, as SQL.
fn statement(original: &Original, numbers: &mut Numbers<'_>) -> String {
    let kind = numbers.byte() % 8;
    let table = &original.tables[usize::from(numbers.byte()) % original.tables.len()];
    let column = &table.columns[usize::from(numbers.byte()) % table.columns.len()];
    let (name, key) = (&table.name, &table.columns[0]);
    let (every, rest) = (1 + numbers.byte() % 5, numbers.byte());
    let rest = rest % every;
    let some = format!("WHERE abs(coalesce(\"{key}\" + 0, 0)) % {every} = {rest}");
    match kind {
        0 => format!("DELETE FROM \"{name}\" {some}"),
        1 => format!("DROP TABLE \"{name}\""),
        2 => format!(
            "UPDATE OR REPLACE \"{name}\" SET \"{column}\" = \"{column}\" + {} {some}",
            value(numbers)
        ),
        3 => {
            let columns = table.columns.iter().enumerate().map(|(at, column)| match at {
                0 => format!("\"{column}\" + {}", 1 + u32::from(rest) * 1000),
                _ => format!("\"{column}\""),
            });
            let columns: Vec<String> = columns.collect();
            format!(
                "INSERT OR IGNORE INTO \"{name}\" SELECT {} FROM \"{name}\"",
                columns.join(", ")
            )
        }
        4 => format!("ALTER TABLE \"{name}\" RENAME COLUMN \"{column}\" TO other"),
        _ => format!("UPDATE OR REPLACE \"{name}\" SET \"{column}\" = {} {some}", value(numbers)),
    }
}

/// Whether anything was changed.
fn edit(path: &Path, original: &Original, numbers: &mut Numbers<'_>) -> bool {
    fs::write(path, &original.bytes).expect("there is room");
    let (statements, bytes) = (numbers.byte(), numbers.byte());
    if statements > 0 {
        let connection = Connection::open(path).expect("a database");
        let ready = connection.execute_batch(
            "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; \
             PRAGMA ignore_check_constraints = ON; PRAGMA journal_mode = MEMORY; BEGIN",
        );
        ready.expect("a database");
        for _ in 0..usize::from(statements).min(MOST) {
            // An edit that the schema refuses is not done.
            let _ = connection.execute_batch(&statement(original, numbers));
        }
        connection.execute_batch("COMMIT").expect("there is room");
    }
    let mut file = fs::read(path).expect("the database");
    for _ in 0..usize::from(bytes).min(MOST) {
        if numbers.is_empty() || file.is_empty() {
            break;
        }
        let (kind, at) = (numbers.byte(), numbers.word() as usize % file.len());
        let page = |at: usize| at / 512 * 512;
        match kind % 4 {
            0 => file[at] = numbers.byte(),
            1 => file[at] ^= 1 << (numbers.byte() % 8),
            2 => {
                let from = page(numbers.word() as usize % file.len());
                let length = 512.min(file.len() - from).min(file.len() - page(at));
                file.copy_within(from..from + length, page(at));
            }
            _ => file.truncate(at),
        }
    }
    let changed = file != original.bytes;
    if bytes > 0 {
        fs::write(path, &file).expect("there is room");
    }
    changed
}

pub(crate) fn run(input: &[u8]) {
    static STRICT: OnceLock<bool> = OnceLock::new();
    let strict = *STRICT.get_or_init(|| std::env::var_os(STRICT_VARIABLE).is_some());
    let mut numbers = Numbers(input);
    let all = originals();
    let original = &all[usize::from(numbers.byte()) % all.len()];
    let path = scratch::file("edited.db");
    let changed = edit(&path, original, &mut numbers);
    if let Ok(verdict) = check(&path)
        && strict
        && changed
    {
        let clean = matches!(verdict, Verdict::Clean | Verdict::NoCuda);
        assert!(!clean, "an edited trace of a race is called clean");
    }
}

/// An edit of each kind.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let statements = (0..8).map(|kind| vec![0, 1, 0, kind, 20, 1, 2, 1, 7, 0, 0, 0]);
    let bytes = (0..4).map(|kind| vec![1, 0, 1, kind, 7, 20, 0, 0, 3, 9, 0, 0]);
    // A length that leads beyond the address space, and an operation of number 0: both ended the
    // analysis once.
    let found = [
        vec![0, 1, 0, 7, 0, 0x26, 0, 0, 0x32, 0x32, 0xff, 0],
        vec![1, 2, 0x51, 0xd5, 0x78, 0, 0x78, 0x78, 0x3d],
    ];
    statements.chain(bytes).chain(found).collect()
}
