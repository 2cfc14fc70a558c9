//! Files that are not whole traces, and disks that are full.

use crate::common;
use std::fs;
use std::path::Path;
use streamsan_model::{IncompleteReason, OpSeq, Operation, TraceItem};
use streamsan_store::{Coverage, Error, Reader, TraceState, Writer};

fn finished(path: &Path) {
    let mut writer = Writer::create(path, &common::meta()).unwrap();
    common::items().iter().for_each(|item| writer.item(item).unwrap());
    writer.finalize().unwrap();
}

fn side_files(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn finished_trace_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    finished(&path);
    assert_eq!(side_files(&path), ["trace.db"]);
    drop(Reader::open(&path).unwrap());
    assert_eq!(side_files(&path), ["trace.db"]);
}

/// The writer is never closed, as if it had been killed; the files are taken from under it.
#[test]
fn killed_writer_leaves_what_it_committed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let items = common::items();
    let (committed, lost) = items.split_at(items.len() - 5);
    let mut writer = Writer::create(&path, &common::meta()).unwrap();
    committed.iter().for_each(|item| writer.item(item).unwrap());
    writer.commit().unwrap();
    lost.iter().for_each(|item| writer.item(item).unwrap());

    let elsewhere = tempfile::tempdir().unwrap();
    for side in ["trace.db", "trace.db-wal"] {
        fs::copy(folder.path().join(side), elsewhere.path().join(side)).unwrap();
    }
    let copy = elsewhere.path().join("trace.db");
    // Read live, read after the death, and read again: reading changes nothing.
    for path in [&path, &copy, &copy] {
        let reader = Reader::open(path).unwrap();
        assert_eq!(reader.state(), TraceState::Recording);
        let read: Vec<TraceItem> = reader.items().map(Result::unwrap).collect();
        assert_eq!(read, committed);
        assert_eq!(reader.incomplete_reasons().unwrap(), [IncompleteReason::TruncatedTrace]);
    }
    // The name can be used again.
    finished(&copy);
    assert_eq!(Reader::open(&copy).unwrap().items().count(), items.len());
}

#[test]
fn trace_limit_makes_the_trace_truncated_and_says_why_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut writer = Writer::create(&path, &common::meta()).unwrap();
    let reasons = vec![IncompleteReason::TraceLimit(7)];
    writer.set_coverage(&Coverage { reasons: reasons.clone(), ..Coverage::default() }).unwrap();
    writer.finalize().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.state(), TraceState::Truncated);
    assert_eq!(reader.incomplete_reasons().unwrap(), reasons);
}

fn operation_at(g: u64) -> Operation {
    let mut operation = common::operations().swap_remove(5);
    operation.g = OpSeq(g);
    operation.exit = Some(OpSeq(g));
    operation
}

#[test]
fn size_grows_with_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut writer = Writer::create(&path, &common::meta()).unwrap();
    let empty = writer.size_bytes();
    writer.item(&TraceItem::Operation(operation_at(0))).unwrap();
    assert!(writer.size_bytes() > empty, "what is gathered counts");
    (1..20_000).for_each(|g| writer.item(&TraceItem::Operation(operation_at(g))).unwrap());
    writer.commit().unwrap();
    let full = writer.size_bytes();
    writer.finalize().unwrap();
    assert!(empty > 0 && full > empty, "{empty} {full}");
    assert!(fs::metadata(&path).unwrap().len() >= full);
}

#[test]
fn newer_schema_is_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    finished(&path);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(connection);
    let error = Reader::open(&path).unwrap_err();
    assert!(matches!(error, Error::TooNew { found: 99, supported: 8, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("99") && !text.contains('\n'), "{text}");
    assert!(matches!(Writer::open(&path), Err(Error::TooNew { .. })));
}

#[test]
fn other_files_are_no_traces() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "stream s1\n").unwrap();
    let database = folder.path().join("other.db");
    rusqlite::Connection::open(&database).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let empty = folder.path().join("empty.db");
    fs::write(&empty, "").unwrap();
    for path in [&text, &database, &empty] {
        let error = Reader::open(path).unwrap_err();
        assert!(matches!(error, Error::NotATrace { .. }), "{error}");
    }
    for path in [&folder.path().join("absent.db"), &folder.path().to_owned()] {
        let error = Reader::open(path).unwrap_err();
        assert!(matches!(error, Error::Open { .. }), "{error}");
    }
    // A mistyped -o destroys nothing.
    for path in [&text, &database] {
        let before = fs::read(path).unwrap();
        let error = Writer::create(path, &common::meta()).unwrap_err();
        assert!(matches!(error, Error::Open { .. }), "{error}");
        assert_eq!(fs::read(path).unwrap(), before);
    }
}

#[test]
fn no_directory_for_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent").join("trace.db");
    let error = Writer::create(&path, &common::meta()).unwrap_err();
    assert!(matches!(error, Error::Open { .. }), "{error}");
}

#[test]
fn cut_off_and_overwritten_traces_are_errors_and_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    finished(&path);
    let whole = fs::read(&path).unwrap();

    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = Reader::open(&path).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");

    let mut refused = 0;
    for page in 1..whole.len() / 4096 {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0x5a);
        fs::write(&path, &bytes).unwrap();
        let outcome = Reader::open(&path).and_then(|reader| {
            reader.items().collect::<Result<Vec<_>, _>>()?;
            reader.findings()?;
            reader.coverage().map(drop)
        });
        if let Err(error) = outcome {
            assert!(is_damage(&error), "page {page}: {error}");
            refused += 1;
        }
    }
    assert!(refused > 5, "{refused} pages matter");
}

#[test]
fn codes_that_mean_nothing_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    for sql in [
        "UPDATE op SET action = 99 WHERE g = 10",
        "UPDATE op SET stream = NULL WHERE action = 20",
        "UPDATE op SET api = 12345 WHERE g = 10",
        "UPDATE access SET mode = -1",
        "UPDATE access_pattern SET rows = 0",
        "UPDATE stream SET kind = 9 WHERE id = 1",
        "UPDATE op SET thread = -1 WHERE g = 10",
    ] {
        finished(&path);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
        // The values alone: a trace that is being recorded has no proof yet.
        connection
            .execute_batch("UPDATE meta SET value = 'recording' WHERE key = 'state'")
            .unwrap();
        drop(connection);
        let reader = Reader::open(&path).unwrap();
        let mut items = reader.items();
        let error = items.find_map(Result::err).expect(sql);
        assert!(matches!(error, Error::Corrupt { .. }), "{sql}: {error}");
        assert!(items.next().is_none());
    }
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::Damaged { .. })
}

/// Everything that commands ask a trace for.
fn read_all(path: &Path) -> Result<(), Error> {
    use streamsan_model::TraceQuery;
    let reader = Reader::open(path)?;
    reader.items().collect::<Result<Vec<_>, _>>()?;
    let _ = (reader.findings()?, reader.lints()?, reader.edges()?, reader.coverage()?);
    reader.each_range(drop)?;
    let overview = reader.overview();
    overview.map(drop).map_err(|error| Error::Corrupt { path: path.into(), detail: error.0 })
}

/// Tables with their columns, as the file has them.
fn tables(path: &Path) -> Vec<(String, Vec<String>)> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut names = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    names
        .map(|name| {
            let name = name.unwrap();
            let mut columns = connection.prepare(&format!("PRAGMA table_info({name})")).unwrap();
            let columns = columns.query_map([], |row| row.get(1)).unwrap();
            (name, columns.map(Result::unwrap).collect())
        })
        .collect()
}

/// A complete trace proves each of its tables: rows that go, and every column that changes, are seen.
#[test]
fn no_change_of_a_finished_trace_goes_unseen() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    common::write_everything(&whole);
    read_all(&whole).unwrap();
    let mut changes = Vec::new();
    for (table, columns) in tables(&whole) {
        changes.push(format!("DELETE FROM {table}"));
        let (first, all) = (&columns[0], columns.join(", "));
        changes.push(format!(
            "DELETE FROM {table} WHERE ({all}) = (SELECT {all} FROM {table} LIMIT 1)"
        ));
        changes.push(format!(
            "INSERT OR IGNORE INTO {table} SELECT {} FROM {table} LIMIT 1",
            columns
                .iter()
                .map(|column| if column == first {
                    format!("CASE typeof({first}) WHEN 'text' THEN {first} || 'x' ELSE {first} + 99999 END")
                } else {
                    column.clone()
                })
                .collect::<Vec<_>>()
                .join(", ")
        ));
        changes.extend(columns.iter().map(|column| {
            format!(
                "UPDATE OR IGNORE {table} SET {column} = \
                 CASE typeof({column}) WHEN 'text' THEN {column} || 'x' WHEN 'null' THEN 0 \
                 WHEN 'blob' THEN x'00' ELSE {column} + 77777 END \
                 WHERE {first} = (SELECT max({first}) FROM {table})"
            )
        }));
    }
    let path = folder.path().join("trace.db");
    let (mut changed, mut unseen) = (0, Vec::new());
    for sql in &changes {
        fs::copy(&whole, &path).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        // Computed columns cannot be changed; some inserts have no valid key.
        let done = connection.execute(sql, []);
        drop(connection);
        if !done.is_ok_and(|rows| rows > 0) {
            continue;
        }
        changed += 1;
        match read_all(&path) {
            Ok(()) => unseen.push(sql),
            Err(error) => assert!(is_damage(&error), "{sql}: {error}"),
        }
    }
    assert!(unseen.is_empty(), "{unseen:#?}");
    assert!(changed > 200, "{changed} changes");
}

#[test]
fn what_does_not_fit_is_said_in_one_paragraph() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    common::write_everything(&path);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("DELETE FROM access WHERE id = (SELECT max(id) FROM access)").unwrap();
    let rows: u64 = connection
        .query_row("SELECT count(*) FROM access", [], |row| Ok(row.get::<_, i64>(0)? as u64))
        .unwrap();
    drop(connection);
    let text = read_all(&path).unwrap_err().to_string();
    for words in ["`access`", "trace.db", "record it again", ".recover"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains(&format!("{} rows were written", rows + 1)), "{text}");
    assert!(text.contains(&format!("{rows} found")) && !text.contains('\n'), "{text}");
}

/// SQLite runs what a file says; one that says something else than a trace is not read.
#[test]
fn file_with_something_in_place_of_a_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    for sql in [
        "ALTER TABLE op RENAME TO other; CREATE VIEW op AS SELECT * FROM other WHERE g < 10",
        "DROP TABLE coverage; CREATE VIEW coverage AS SELECT 1 AS id, 0 AS kind, NULL AS name, \
         1 AS count",
        "CREATE TRIGGER more AFTER INSERT ON op BEGIN DELETE FROM op; END",
        "CREATE VIRTUAL TABLE more USING fts5(x)",
        "ALTER TABLE op ADD COLUMN more INTEGER",
        "DROP TABLE lint",
        "DROP VIEW StringIds; CREATE VIEW StringIds AS SELECT id, 'x' AS value FROM string",
        "DROP TABLE proof",
        "PRAGMA user_version = 5",
        "PRAGMA user_version = 4",
        "PRAGMA user_version = 1",
    ] {
        common::write_everything(&path);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        drop(connection);
        let error = Reader::open(&path).expect_err(sql);
        assert!(matches!(error, Error::Damaged { .. }), "{sql}: {error}");
    }
}

/// People put views and indexes of their own beside the tables, and let SQLite tidy up.
#[test]
fn what_harms_nothing_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    common::write_everything(&path);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE VIEW launches AS SELECT g FROM op WHERE action = 19; \
             CREATE INDEX op_by_api ON op (api); CREATE TABLE notes (text); \
             DROP INDEX finding_by_fingerprint; ANALYZE; VACUUM",
        )
        .unwrap();
    drop(connection);
    read_all(&path).unwrap();
}

/// An analysis in an unfinished trace does not make the trace complete.
#[test]
fn unfinished_trace_stays_unfinished_whatever_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    common::write_everything(&path);
    // Changing it begins a recording: killed now, it is not complete.
    let mut writer = Writer::open(&path).unwrap();
    writer.set_meta("driver", "other").unwrap();
    writer.commit().unwrap();
    drop(writer);
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.state(), TraceState::Recording);
    assert!(reader.incomplete_reasons().unwrap().contains(&IncompleteReason::TruncatedTrace));
    assert_eq!(reader.findings().unwrap(), common::findings());
    drop(reader);
    // The word alone makes it no complete one.
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE meta SET value = 'complete' WHERE key = 'state'").unwrap();
    drop(connection);
    assert!(matches!(Reader::open(&path), Err(Error::Damaged { .. })));
}

/// Columns by which rows are found and put into an order: a row with another value belongs to nothing.
fn is_key(table: &str, column: &str) -> bool {
    ["ordinal", "depth", "side"].contains(&column)
        || table == "process_argument" && column == "process"
        || ["kernel_global", "kernel_param", "kernel_word"].contains(&table) && column == "kernel"
        || ["graph_edge", "graph_part"].contains(&table) && ["graph", "node"].contains(&column)
}

/// Every column is decoded by its own type. A trace without a proof (of a killed recording) is read
/// with the same care.
#[test]
fn values_of_a_wrong_type_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    common::write_everything(&whole);
    let connection = rusqlite::Connection::open(&whole).unwrap();
    connection
        .execute_batch("UPDATE meta SET value = 'recording' WHERE key = 'state'; DELETE FROM proof")
        .unwrap();
    drop(connection);
    let path = folder.path().join("trace.db");
    let (mut changed, mut unseen) = (0, Vec::new());
    for (table, columns) in tables(&whole) {
        if table.starts_with("lod") || ["meta", "enumeration", "proof"].contains(&&*table) {
            continue;
        }
        for column in columns.iter().filter(|column| !is_key(&table, column)) {
            let value = if table == "string" { "x'ff'" } else { "'x'" };
            fs::copy(&whole, &path).unwrap();
            let connection = rusqlite::Connection::open(&path).unwrap();
            let sql = format!("UPDATE {table} SET {column} = {value}");
            // A row's number cannot be a text.
            if connection.execute_batch(&sql).is_err() {
                continue;
            }
            drop(connection);
            changed += 1;
            match read_all(&path) {
                Ok(()) => unseen.push(sql),
                Err(error) => assert!(is_damage(&error), "{sql}: {error}"),
            }
        }
    }
    assert!(unseen.is_empty(), "{unseen:#?}");
    assert!(changed > 120, "{changed} columns");
}
