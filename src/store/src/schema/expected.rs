//! The tables that a file of each schema must have.
//!
//! A file with anything else in place of a table, or with anything that runs by itself (a trigger),
//! is not read: SQLite would execute it.

use super::{FIRST_PROVEN, INDEXES, PROOF, VIEWS, table_statement};
use crate::SCHEMA_VERSION;
use rusqlite::Connection;

/// The statements of earlier schemas, one in a line, as their traces hold them.
const OLDER: [&str; 7] = [
    include_str!("older/schema-1.sql"),
    include_str!("older/schema-2.sql"),
    include_str!("older/schema-3.sql"),
    include_str!("older/schema-4.sql"),
    include_str!("older/schema-5.sql"),
    include_str!("older/schema-6.sql"),
    include_str!("older/schema-7.sql"),
];

/// Tables, views and indexes of a schema, as the statements that make them.
pub(crate) fn statements(schema: i32) -> Option<Vec<String>> {
    if schema == SCHEMA_VERSION {
        let tables = super::TABLES.iter().map(table_statement);
        let views = VIEWS.iter().map(|view| format!("CREATE VIEW {} AS {}", view.name, view.sql));
        let indexes = INDEXES.iter().map(|i| format!("CREATE INDEX {} ON {}", i.name, i.on));
        return Some(tables.chain(views).chain(indexes).collect());
    }
    let text = OLDER.get(usize::try_from(schema).ok()?.checked_sub(1)?)?;
    Some(text.lines().map(str::to_owned).collect())
}

/// The first part of the schema that the file lacks or contradicts; `None` for a file that fits.
///
/// Tables, views and indexes of other names do no harm: users add them for queries of their own.
pub(crate) fn misfit(connection: &Connection, schema: i32) -> rusqlite::Result<Option<String>> {
    let Some(expected) = statements(schema) else { return Ok(None) };
    let mut statement = connection
        .prepare("SELECT type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    })?;
    let found: Vec<(String, String, String)> = rows.collect::<rusqlite::Result<_>>()?;
    let runs = |(kind, _, sql): &&(String, String, String)| {
        kind == "trigger" || is_made_by(sql, "CREATE VIRTUAL") || is_made_by(sql, "CREATE TRIGGER")
    };
    if let Some((_, name, _)) = found.iter().find(runs) {
        return Ok(Some(format!("`{name}` is a trigger or a virtual table, which no trace has")));
    }
    if schema < FIRST_PROVEN && found.iter().any(|(_, name, _)| name == PROOF) {
        return Ok(Some(format!(
            "it has a newer table than schema {schema}, which it says it is of"
        )));
    }
    let lacks = |sql: &&String| {
        // Indexes come when a trace is finished, and answers do not rest on them. What timelines are
        // drawn from came in the middle of an early schema, and is made where it is missing.
        let may_be_missing = is_made_by(sql, "CREATE INDEX")
            || schema < FIRST_PROVEN && name_of(sql).starts_with("lod");
        !may_be_missing
            && !found.iter().any(|(kind, name, found)| {
                found == *sql && name == name_of(sql) && is_made_by(sql, &format!("CREATE {kind}"))
            })
    };
    Ok(expected.iter().find(lacks).map(|sql| {
        let (kind, name) = (sql.split(' ').nth(1).unwrap_or_default().to_lowercase(), name_of(sql));
        format!("its {kind} `{name}` is missing or is not that of schema {schema}")
    }))
}

fn is_made_by(sql: &str, with: &str) -> bool {
    sql.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
}

/// The name in `CREATE KIND NAME ...`.
fn name_of(sql: &str) -> &str {
    sql.split(' ').nth(2).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::OpenFlags;
    use std::path::Path;

    /// The lists of earlier schemas are those of their golden traces.
    #[test]
    fn golden_traces_are_as_expected() {
        for schema in 1..=OLDER.len() as i32 {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("tests/golden/schema-{schema}.db"));
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let connection = Connection::open_with_flags(path, flags).unwrap();
            assert_eq!(misfit(&connection, schema).unwrap(), None, "schema {schema}");
            let count = "SELECT count(*) FROM sqlite_schema WHERE sql IS NOT NULL";
            let count: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
            assert_eq!(statements(schema).unwrap().len() as i64, count, "schema {schema}");
        }
    }
}
