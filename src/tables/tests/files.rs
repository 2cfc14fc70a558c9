//! What is written is what a reader of Parquet reads.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use streamsan_tables::{Column, Kind, Partition, ROWS_IN_A_GROUP, Table, Value};
use streamsan_testing::golden;

/// The file of the trace `t` in a table.
fn file(directory: &Path, table: Table) -> PathBuf {
    directory.join(table.name()).join("trace=t/part-0.parquet")
}

fn reader(directory: &Path, table: Table) -> SerializedFileReader<File> {
    let file = File::open(file(directory, table)).expect("it was written");
    SerializedFileReader::new(file).expect("a file of Parquet")
}

/// All rows as a reader has them.
fn rows(reader: &SerializedFileReader<File>) -> Vec<Vec<Field>> {
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| row.expect("a row").into_columns().into_iter().map(|(_, field)| field).collect())
        .collect()
}

/// A value of a column in the row `n`, and as a reader has it: every third one that may is null, and
/// the others are the ends of what the column holds.
fn value(column: &Column, n: usize, text: &'static str) -> (Value<'static>, Field) {
    match (column.kind, n % 3) {
        (_, 2) if column.nullable => (Value::Null, Field::Null),
        (Kind::Integer, 0) => (Value::Integer(i64::MIN), Field::Long(i64::MIN)),
        (Kind::Integer, _) => (Value::amount(u64::MAX), Field::Long(i64::MAX)),
        (Kind::Unsigned, 0) => (Value::Unsigned(u64::MAX), Field::ULong(u64::MAX)),
        (Kind::Unsigned, _) => (Value::Unsigned(0), Field::ULong(0)),
        (Kind::Text, 0) => (Value::Text(""), Field::Str(String::new())),
        (Kind::Text, _) => (Value::Text(text), Field::Str(text.to_owned())),
        (Kind::Flag, n) => (Value::Flag(n == 0), Field::Bool(n == 0)),
    }
}

fn write(directory: &Path, count: usize) {
    let mut partition = Partition::create(directory, "t").expect("room");
    for table in Table::ALL {
        for n in 0..count {
            let row: Vec<Value<'_>> =
                table.columns().iter().map(|column| value(column, n, "wört\n\"").0).collect();
            partition.row(table, &row).expect("room");
        }
    }
    partition.finish().expect("room");
}

#[test]
fn every_value_reads_back() {
    let folder = tempfile::tempdir().expect("a directory");
    write(folder.path(), 7);
    for table in Table::ALL {
        let reader = reader(folder.path(), table);
        let schema = reader.metadata().file_metadata().schema_descr();
        let names: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
        let declared: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
        assert_eq!(names, declared);
        let rows = rows(&reader);
        assert_eq!(rows.len(), 7);
        for (n, row) in rows.iter().enumerate() {
            for (column, field) in table.columns().iter().zip(row) {
                assert_eq!(*field, value(column, n, "wört\n\"").1, "{} {n}", column.name);
            }
        }
    }
}

/// A trace of any length is written in groups of rows, also where the rows are few and their texts
/// long.
#[test]
fn long_tables_are_written_in_groups() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut partition = Partition::create(folder.path(), "t").expect("room");
    let count = 2 * ROWS_IN_A_GROUP + 1;
    for n in 0..count {
        let op = Value::amount(n as u64);
        let edge = [op, op, Value::Text("event wait"), Value::Text("documented")];
        partition.row(Table::Edges, &edge).expect("room");
    }
    let long = "x".repeat(1 << 20);
    for _ in 0..40 {
        partition.row(Table::Reasons, &[Value::Text("kind"), Value::Text(&long)]).expect("room");
    }
    partition.finish().expect("room");
    let edges = reader(folder.path(), Table::Edges);
    assert_eq!(edges.num_row_groups(), 3);
    let last = rows(&edges).pop().expect("a row");
    assert_eq!(last[0], Field::Long(count as i64 - 1));
    let reasons = reader(folder.path(), Table::Reasons);
    assert!(reasons.num_row_groups() > 1);
    assert_eq!(rows(&reasons).len(), 40);
    // A table without a row has its columns.
    let ranges = reader(folder.path(), Table::Ranges);
    assert!(rows(&ranges).is_empty());
    let columns = ranges.metadata().file_metadata().schema_descr().num_columns();
    assert_eq!(columns, Table::Ranges.columns().len());
}

/// The names of all files below a directory, and their bytes.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).expect("readable");
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

#[test]
fn files_are_there_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a directory");
    // Given up in the middle.
    let mut partition = Partition::create(folder.path(), "t").expect("room");
    partition.row(Table::Reasons, &[Value::Text("kind"), Value::Text("why")]).expect("room");
    let named = |(path, _): &(PathBuf, Vec<u8>)| path.extension().is_some_and(|e| e == "parquet");
    assert!(!files(folder.path()).iter().any(named));
    drop(partition);
    assert_eq!(files(folder.path()), []);
    // A later export takes the place of an earlier one, once it is whole.
    write(folder.path(), 1);
    let before = files(folder.path());
    assert_eq!(before.len(), Table::ALL.len());
    let mut partition = Partition::create(folder.path(), "t").expect("room");
    partition.row(Table::Reasons, &[Value::Text("kind"), Value::Text("why")]).expect("room");
    drop(partition);
    assert_eq!(files(folder.path()), before);
    write(folder.path(), 2);
    let after = files(folder.path());
    assert_eq!(after.len(), before.len());
    assert!(after != before);
}

#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
    golden::check(&path, &streamsan_tables::tables_document());
}

#[test]
fn a_directory_that_cannot_be_made_is_told_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a directory");
    let taken = folder.path().join("tables");
    fs::write(&taken, "a file").expect("room");
    let refused = Partition::create(&taken, "t").expect_err("no directory").to_string();
    assert!(refused.contains("tables/traces/trace=t") && refused.contains("-o"), "{refused}");
}
