//! Stored graphs, and the parts of operations.

use super::Reader;
use super::decode::{Patterns, Strings, bad_action, code, unsigned};
use crate::part::{NodeColumns, PartColumns};
use rusqlite::{Connection, Params, Row};
use std::sync::Arc;
use streamsan_model::{
    EdgePort, Entity, Graph, GraphEdge, GraphId, GraphNode, OpSeq, ProcessId, StackId, StreamId,
};

const PART: &str = "kind, stream, kernel, source, destination, bytes, flags, accesses, \
                    allocation, address, width, semaphore, value, compare";

fn parts(
    connection: &Connection,
    sql: &str,
    key: impl Params,
) -> rusqlite::Result<Vec<PartColumns>> {
    connection
        .prepare_cached(sql)?
        .query_map(key, |row| {
            let mut part = PartColumns::default();
            for (column, value) in part.0.iter_mut().enumerate() {
                *value = row.get(column)?;
            }
            Ok(part)
        })?
        .collect()
}

/// The parts of an operation.
pub(super) fn of_operation(
    connection: &Connection,
    g: OpSeq,
) -> rusqlite::Result<Vec<PartColumns>> {
    let sql = format!("SELECT {PART} FROM op_part WHERE op = ? ORDER BY ordinal");
    parts(connection, &sql, [g.0 as i64])
}

/// The graph of a row of `graph`.
pub(super) fn graph(
    reader: &Reader,
    strings: &mut Strings<'_>,
    row: &Row<'_>,
) -> rusqlite::Result<Entity> {
    let id: u32 = row.get(0)?;
    let mut graph = Graph {
        id: GraphId(id),
        process: ProcessId(row.get(1)?),
        name: strings.optional(row, 2)?,
        nodes: Vec::new(),
        edges: Vec::new(),
    };
    let connection = &reader.connection;
    let mut nodes = connection.prepare_cached(
        "SELECT made_by, api, captured_from, is_enabled, action, kernel, event, allocation, \
         source, destination, bytes, flags, other, stack FROM graph_node WHERE graph = ? ORDER BY node",
    )?;
    let mut rows = nodes.query([id])?;
    while let Some(row) = rows.next()? {
        graph.nodes.push(node(reader, strings, id, graph.nodes.len(), row)?);
    }
    graph.edges = connection
        .prepare_cached(
            "SELECT from_node, to_node, port FROM graph_edge WHERE graph = ? \
             ORDER BY ordinal",
        )?
        .query_map([id], |row| {
            Ok(GraphEdge {
                from: row.get(0)?,
                to: row.get(1)?,
                port: code(row, 2, &EdgePort::ALL)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut patterns = Patterns::new(connection);
    let mut accesses = connection.prepare_cached(
        "SELECT node, allocation, start, length, mode, basis, pattern FROM graph_access \
         WHERE graph = ? ORDER BY node, ordinal",
    )?;
    let mut rows = accesses.query([id])?;
    while let Some(row) = rows.next()? {
        // Accesses of a node that is not stored belong to nothing.
        if let Some(node) = graph.nodes.get_mut(row.get::<_, u32>(0)? as usize) {
            node.accesses.push(patterns.access(row, 1)?);
        }
    }
    Ok(Entity::Graph(Arc::new(graph)))
}

fn node(
    reader: &Reader,
    strings: &mut Strings<'_>,
    graph: u32,
    position: usize,
    row: &Row<'_>,
) -> rusqlite::Result<GraphNode> {
    let connection = &reader.connection;
    let key = (i64::from(graph), position as i64);
    let columns = NodeColumns {
        action: row.get(4)?,
        kernel: row.get(5)?,
        event: row.get(6)?,
        allocation: row.get(7)?,
        source: row.get(8)?,
        destination: row.get(9)?,
        bytes: row.get(10)?,
        flags: row.get(11)?,
        other: row.get(12)?,
        bodies: connection
            .prepare_cached(
                "SELECT body FROM graph_body WHERE graph = ? AND node = ? ORDER BY ordinal",
            )?
            .query_map(key, |row| row.get(0).map(GraphId))?
            .collect::<rusqlite::Result<_>>()?,
        parts: parts(
            connection,
            &format!("SELECT {PART} FROM graph_part WHERE graph = ? AND node = ? ORDER BY ordinal"),
            key,
        )?,
    };
    Ok(GraphNode {
        made_by: OpSeq(unsigned(row, 0)?),
        api: strings.get(row.get(1)?)?,
        captured_from: row.get::<_, Option<u32>>(2)?.map(StreamId),
        enabled: row.get(3)?,
        action: columns.decode().map_err(bad_action)?,
        accesses: Vec::new(),
        stack: row.get::<_, Option<u32>>(13)?.map(StackId),
    })
}
