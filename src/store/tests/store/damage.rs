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
    assert!(matches!(error, Error::TooNew { found: 99, supported: 6, .. }), "{error}");
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
            assert!(matches!(error, Error::Corrupt { .. }), "page {page}: {error}");
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
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let reader = Reader::open(&path).unwrap();
        let mut items = reader.items();
        let error = items.find_map(Result::err).expect(sql);
        assert!(matches!(error, Error::Corrupt { .. }), "{sql}: {error}");
        assert!(items.next().is_none());
    }
}
