//! The contents of a graph as the driver told them.

use crate::read_back::{NodeContents, ReadBack, ReadGraph};
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{ByteRange, EdgePort, GraphEdge, Mode, OpSeq, StackId, StreamId};

/// `CUgraphNodeType` of nodes of which nothing is known.
const UNKNOWN_KIND: i32 = -1;
/// Most levels of graphs inside each other; the runtime follows fewer.
const MOST_LEVELS: usize = 64;

/// The call that made a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Maker {
    pub(in super::super) g: OpSeq,
    pub(in super::super) api: Arc<str>,
    /// The stream that was captured.
    pub(in super::super) stream: Option<StreamId>,
    pub(in super::super) stack: Option<StackId>,
    /// The handle of the kernel that it launches.
    pub(in super::super) launched: Option<u64>,
    /// The call was made by a library for a collective operation: what that touches.
    pub(in super::super) collective: Option<Arc<[(ByteRange, Mode)]>>,
}

/// Who made which node, by handle. A handle that is used again gets its new maker by the call that
/// makes the new node.
pub(in super::super) type Makers = HashMap<u64, Maker>;

/// A graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<GraphEdge>,
    /// Whether all of it is known, its bodies apart.
    pub(super) complete: bool,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its handle in the graph that was instantiated.
    pub(super) handle: u64,
    /// `CUgraphNodeType`.
    pub(super) kind: i32,
    pub(super) readable: bool,
    /// Whether kernels may change it.
    pub(super) updatable: bool,
    pub(super) enabled: bool,
    pub(super) contents: NodeContents,
    /// The graphs inside it.
    pub(super) bodies: Vec<Contents>,
    pub(super) maker: Maker,
}

impl Contents {
    /// The graph with this number. `fallback` made the nodes of which nobody knows who did.
    pub(super) fn new(read: &ReadBack, number: u32, makers: &Makers, fallback: &Maker) -> Self {
        let mut graphs: HashMap<u32, &ReadGraph> =
            read.graphs.iter().map(|(number, graph)| (*number, graph)).collect();
        Self::take(&mut graphs, number, makers, fallback, 0)
    }

    /// Takes a graph out of `graphs`: one that damaged records name twice is not copied twice.
    fn take(
        graphs: &mut HashMap<u32, &ReadGraph>,
        number: u32,
        makers: &Makers,
        fallback: &Maker,
        level: usize,
    ) -> Self {
        let graph = graphs.remove(&number).filter(|_| level < MOST_LEVELS);
        let Some(graph) = graph else { return Self::default() };
        let mut nodes: Vec<Node> = Vec::new();
        let mut read_nodes: Vec<_> = graph.nodes.iter().collect();
        read_nodes.sort_by_key(|node| node.index);
        let mut complete = is_whole(graph);
        for node in read_nodes {
            let maker = makers.get(&node.handle).unwrap_or(fallback).clone();
            let bodies = node.bodies.iter();
            let bodies = bodies.map(|&body| Self::take(graphs, body, makers, &maker, level + 1));
            let bodies: Vec<Contents> = bodies.collect();
            while nodes.len() < node.index as usize && nodes.len() < graph.nodes.len() {
                complete = false;
                nodes.push(Node::unknown(fallback.clone()));
            }
            nodes.push(Node {
                handle: node.handle,
                kind: node.kind,
                readable: node.readable,
                updatable: node.updatable,
                enabled: true,
                contents: node.contents.clone(),
                bodies,
                maker,
            });
        }
        let count = nodes.len() as u32;
        let edges = graph.edges.iter().filter(|edge| edge.from < count && edge.to < count);
        let edges = edges.map(|edge| GraphEdge {
            from: edge.from,
            to: edge.to,
            port: match (edge.from_port(), edge.is_programmatic()) {
                (streamsan_wire::WireEdge::LAUNCH_ORDER, true) => EdgePort::Begun,
                (streamsan_wire::WireEdge::LAUNCH_ORDER, false) => EdgePort::BegunOnly,
                (_, true) => EdgePort::Triggered,
                (_, false) => EdgePort::End,
            },
        });
        Self { edges: edges.collect(), nodes, complete }
    }

    /// The node with this handle, in the graph or in a graph inside it.
    pub(super) fn find(&mut self, handle: u64) -> Option<&mut Node> {
        for node in &mut self.nodes {
            if node.handle == handle {
                return Some(node);
            }
            if let Some(inner) = node.bodies.iter_mut().find_map(|body| body.find(handle)) {
                return Some(inner);
            }
        }
        None
    }

    /// These contents replace `former` ones of an executable: its nodes keep the handles by which
    /// the program names them, and stay disabled.
    ///
    /// `cuGraphExecUpdate` pairs the nodes of two graphs of the same shape, in the order in which
    /// they were made.
    pub(super) fn take_the_place_of(&mut self, former: &Self) {
        if self.nodes.len() != former.nodes.len() {
            return;
        }
        for (node, former) in self.nodes.iter_mut().zip(&former.nodes) {
            node.handle = former.handle;
            node.enabled = former.enabled;
            for (body, former) in node.bodies.iter_mut().zip(&former.bodies) {
                body.take_the_place_of(former);
            }
        }
    }
}

impl Node {
    /// The word at byte `at` of its structure.
    pub(super) fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.contents.params.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn unknown(maker: Maker) -> Self {
        Self {
            handle: 0,
            kind: UNKNOWN_KIND,
            readable: false,
            updatable: false,
            enabled: true,
            contents: NodeContents::default(),
            bodies: Vec::new(),
            maker,
        }
    }
}

/// Whether every record of the graph has come.
fn is_whole(graph: &ReadGraph) -> bool {
    graph.end.is_some_and(|(nodes, edges, complete)| {
        complete && graph.nodes.len() == nodes as usize && graph.edges.len() == edges as usize
    })
}
