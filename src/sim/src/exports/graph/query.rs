//! Queries of a graph's content.

use super::super::args::{Out, OutList};
use super::super::enter::api;
use crate::driver::{Edge, EdgeData, all_plain};
use crate::errors::{CuError, Outcome};

/// Reads how many entries the program has room for.
fn room(count: Out<u64>) -> Outcome<u64> {
    count.check()?;
    count.get()
}

/// Answers a list: its length where the program passes no room, else as many entries as there is
/// room for, zeros in the room that is left, and the number of entries written.
fn answer(list: OutList<u64>, count: Out<u64>, values: &[u64]) -> Outcome {
    let room = room(count)?;
    if list.is_null() {
        return count.set(values.len() as u64);
    }
    let mut padded = values.to_vec();
    padded.resize(padded.len().max(room as usize), 0);
    list.fill(&padded, room as usize)?;
    count.set(room.min(values.len() as u64))
}

/// Answers edges as up to three lists, any of which may be left out.
fn answer_edges(
    from: OutList<u64>,
    to: OutList<u64>,
    data: OutList<EdgeData>,
    count: Out<u64>,
    edges: &[Edge],
) -> Outcome {
    let room = room(count)? as usize;
    if from.is_null() && to.is_null() {
        return count.set(edges.len() as u64);
    }
    if data.is_null() && !all_plain(&edges[..edges.len().min(room)]) {
        return Err(CuError::LOSSY_QUERY);
    }
    let pad = |mut list: Vec<u64>| {
        list.resize(list.len().max(room), 0);
        list
    };
    if !from.is_null() {
        from.fill(&pad(edges.iter().map(|edge| edge.from).collect()), room)?;
    }
    if !to.is_null() {
        to.fill(&pad(edges.iter().map(|edge| edge.to).collect()), room)?;
    }
    if !data.is_null() {
        let list: Vec<EdgeData> = edges.iter().map(|edge| edge.data).collect();
        data.fill(&list, room)?;
    }
    count.set(edges.len().min(room) as u64)
}

const NO_DATA: OutList<EdgeData> = OutList::NULL;
const NO_NODES: OutList<u64> = OutList::NULL;

api! { TABLE;
    fn cuGraphGetNodes(graph: u64, nodes: OutList<u64>, count: Out<u64>) |call| {
        answer(nodes, count, &call.graph_nodes(graph)?)
    }
    fn cuGraphGetRootNodes(graph: u64, nodes: OutList<u64>, count: Out<u64>) |call| {
        answer(nodes, count, &call.graph_root_nodes(graph)?)
    }
    fn cuGraphGetEdges(
        graph: u64,
        from: OutList<u64>,
        to: OutList<u64>,
        count: Out<u64>,
    ) |call| { answer_edges(from, to, NO_DATA, count, &call.graph_edges(graph)?) }
    fn cuGraphGetEdges_v2(
        graph: u64,
        from: OutList<u64>,
        to: OutList<u64>,
        data: OutList<EdgeData>,
        count: Out<u64>,
    ) |call| { answer_edges(from, to, data, count, &call.graph_edges(graph)?) }
    fn cuGraphNodeGetDependencies(node: u64, nodes: OutList<u64>, count: Out<u64>) |call| {
        answer_edges(nodes, NO_NODES, NO_DATA, count, &call.node_edges(node, false)?)
    }
    fn cuGraphNodeGetDependencies_v2(
        node: u64,
        nodes: OutList<u64>,
        data: OutList<EdgeData>,
        count: Out<u64>,
    ) |call| { answer_edges(nodes, NO_NODES, data, count, &call.node_edges(node, false)?) }
    fn cuGraphNodeGetDependentNodes(node: u64, nodes: OutList<u64>, count: Out<u64>) |call| {
        answer_edges(NO_NODES, nodes, NO_DATA, count, &call.node_edges(node, true)?)
    }
    fn cuGraphNodeGetDependentNodes_v2(
        node: u64,
        nodes: OutList<u64>,
        data: OutList<EdgeData>,
        count: Out<u64>,
    ) |call| { answer_edges(NO_NODES, nodes, data, count, &call.node_edges(node, true)?) }
    fn cuGraphNodeGetType(node: u64, kind: Out<u32>) |call| {
        kind.check()?;
        kind.set(call.node_type(node)?)
    }
    fn cuGraphNodeFindInClone(node: Out<u64>, original: u64, clone: u64) |call| {
        node.check()?;
        node.set(call.graph_find_in_clone(original, clone)?)
    }
    fn cuGraphNodeGetContainingGraph(node: u64, graph: Out<u64>) |call| {
        graph.check()?;
        graph.set(call.node_graph(node)?)
    }
}
