//! Traces that refer to what they do not hold: an error, whatever the numbers are.

use crate::common;
use rusqlite::Connection;
use std::path::Path;
use streamsan_model::TraceQuery;
use streamsan_store::{Error, Reader, Writer};

/// A trace without a proof of what its tables hold, as one of an interrupted recording, changed by
/// SQL.
fn changed(path: &Path, sql: &str) -> Option<Error> {
    let _ = std::fs::remove_file(path);
    let mut writer = Writer::create(path, &common::meta()).unwrap();
    common::items().iter().for_each(|item| writer.item(item).unwrap());
    writer.finalize().unwrap();
    let connection = Connection::open(path).unwrap();
    let prepared = "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;
        UPDATE meta SET value = 'truncated' WHERE key = 'state'; DELETE FROM proof;";
    connection.execute_batch(&format!("{prepared} {sql}")).unwrap();
    drop(connection);
    match Reader::open(path) {
        Ok(reader) => reader.items().find_map(Result::err),
        Err(error) => Some(error),
    }
}

#[test]
fn an_id_beyond_what_was_declared_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    assert!(changed(&path, "").is_none());
    for (table, column) in [
        ("process", "id"),
        ("thread", "id"),
        ("context", "id"),
        ("stream", "id"),
        ("event", "id"),
        ("allocation", "id"),
        ("kernel", "id"),
        ("module", "id"),
        ("frame", "id"),
        ("graph", "id"),
        ("thread", "process"),
        ("context", "parent"),
        ("stream", "context"),
        ("event", "context"),
        ("allocation", "context"),
        ("op", "process"),
        ("op", "thread"),
        ("access", "allocation"),
        ("graph_access", "allocation"),
    ] {
        let sql = format!(
            "UPDATE {table} SET {column} = 4294967295 WHERE rowid = (SELECT max(rowid) FROM {table})"
        );
        let sql = match table {
            "graph_access" => format!("UPDATE {table} SET {column} = 4294967295"),
            _ => sql,
        };
        let error = changed(&path, &sql).unwrap_or_else(|| panic!("{table}.{column} is taken"));
        let text = error.to_string();
        assert!(matches!(error, Error::Corrupt { .. }), "{table}.{column}: {text}");
    }
    for column in ["stream", "event", "allocation", "context"] {
        let sql = format!("UPDATE op SET {column} = 4294967295 WHERE {column} IS NOT NULL");
        assert!(changed(&path, &sql).is_some(), "op.{column} is taken");
    }
}

/// Two bodies that are the graph before, again and again: the graphs take a few rows, what they come
/// to when each body is put in its place has no number.
#[test]
fn bodies_that_multiply_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let double = "
        WITH RECURSIVE n(id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM n WHERE id < 60)
        INSERT INTO graph(id, process, name) SELECT id, 0, NULL FROM n;
        INSERT INTO graph_node(graph, node, made_by, api, is_enabled, action, flags)
            SELECT id, node, 1, (SELECT min(id) FROM string), 1, 9, 0
            FROM graph, (SELECT 0 AS node UNION ALL SELECT 1) WHERE id > 1;
        INSERT INTO graph_body(graph, node, ordinal, body)
            SELECT id, node, 0, id - 1 FROM graph, (SELECT 0 AS node UNION ALL SELECT 1)
            WHERE id > 1;";
    let error = changed(&path, double).expect("the graphs are taken");
    assert!(error.to_string().contains("the nodes of a graph"), "{error}");
    let circle = "UPDATE graph_body SET body = graph";
    let error = changed(&path, circle).expect("the circle is taken");
    assert!(error.to_string().contains("a body of a graph"), "{error}");
}

/// The overview of the viewer has some stacks and allocations, by the same rule.
#[test]
fn an_id_beyond_what_was_declared_is_damage_for_the_overview() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let overview = |sql: &str| {
        common::write_everything(&path);
        let connection = Connection::open(&path).unwrap();
        let prepared = "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;
            UPDATE meta SET value = 'truncated' WHERE key = 'state'; DELETE FROM proof;";
        connection.execute_batch(&format!("{prepared} {sql}")).unwrap();
        drop(connection);
        let overview = Reader::open(&path).unwrap().overview();
        std::fs::remove_file(&path).unwrap();
        overview
    };
    let whole = overview("").unwrap();
    assert!(whole.entities.frames().next().is_some());
    for column in ["stack", "allocation"] {
        let sql = format!("UPDATE finding_access SET {column} = 4294967295");
        let error = overview(&sql).expect_err(column);
        assert!(error.to_string().contains("4294967295"), "{column}: {error}");
    }
    let sql = "UPDATE stack SET frame = 4294967295 WHERE frame IS NOT NULL; \
               UPDATE frame SET id = 4294967295 WHERE id = 0";
    let error = overview(sql).expect_err("frame.id");
    assert!(error.to_string().contains("4294967295 of frame"), "{error}");
}
