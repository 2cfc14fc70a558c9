//! The graphs that the runtime read back for one call, owned.

use std::collections::HashMap;
use streamsan_wire::{GraphPart, NodeTag, WireEdge};

/// A node as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadNode {
    /// Its position in its graph.
    pub(crate) index: u32,
    /// `CUgraphNodeType`.
    pub(crate) kind: i32,
    /// Whether all of it could be read.
    pub(crate) readable: bool,
    /// Whether kernels may change it.
    pub(crate) updatable: bool,
    pub(crate) handle: u64,
    pub(crate) contents: NodeContents,
    /// Numbers of its bodies.
    pub(crate) bodies: Vec<u32>,
}

/// The parameters of a node, in the driver's own structures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeContents {
    /// The parameter structure of its kind.
    pub(crate) params: Box<[u8]>,
    /// The array that the structure points to.
    pub(crate) items: Box<[u8]>,
    /// A second array: handles of semaphores.
    pub(crate) handles: Box<[u8]>,
    /// A kernel's parameters at their offsets.
    pub(crate) kernel_params: Option<Box<[u8]>>,
}

/// A graph as it was read, its bodies apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadGraph {
    pub(crate) nodes: Vec<ReadNode>,
    pub(crate) edges: Vec<WireEdge>,
    /// Number of nodes, number of edges, and whether all could be read; `None` if the record that
    /// says it is missing.
    pub(crate) end: Option<(u32, u32, bool)>,
}

/// Everything that was read for a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadBack {
    /// By number; 0 is the graph that the call names.
    pub(crate) graphs: HashMap<u32, ReadGraph>,
    /// The call was captured: as this node, 0 if it made none, or not it alone.
    pub(crate) captured: Option<u64>,
    /// Nodes and their clones.
    pub(crate) clones: Vec<(u64, u64)>,
}

impl ReadBack {
    /// The call that a part names; the others belong to the thread's next call.
    pub(crate) fn call_of(part: &GraphPart<'_>) -> Option<u64> {
        match part {
            GraphPart::Captured { op, .. } | GraphPart::Clones { op, .. } => Some(*op),
            _ => None,
        }
    }

    /// Takes a part.
    pub(crate) fn add(&mut self, part: &GraphPart<'_>) {
        match *part {
            GraphPart::Node { graph, index, kind, readable, updatable, handle, blobs } => {
                let mut contents = NodeContents::default();
                let mut bodies = Vec::new();
                for (tag, bytes) in blobs.iter() {
                    match tag {
                        NodeTag::PARAMS => contents.params = bytes.into(),
                        NodeTag::ITEMS => contents.items = bytes.into(),
                        NodeTag::HANDLES => contents.handles = bytes.into(),
                        NodeTag::KERNEL_PARAMS => contents.kernel_params = Some(bytes.into()),
                        NodeTag::BODIES => bodies = bytes.chunks_exact(8).map(number).collect(),
                        _ => {}
                    }
                }
                let node = ReadNode { index, kind, readable, updatable, handle, contents, bodies };
                self.graphs.entry(graph).or_default().nodes.push(node);
            }
            GraphPart::Edges { graph, edges } => {
                self.graphs.entry(graph).or_default().edges.extend(edges.iter());
            }
            GraphPart::End { graph, nodes, edges, complete, handle: _ } => {
                self.graphs.entry(graph).or_default().end = Some((nodes, edges, complete));
            }
            GraphPart::Captured { op: _, graph: _, node } => self.captured = Some(node),
            GraphPart::Clones { op: _, pairs } => {
                let pairs = (0..pairs.len() / 2).map(|i| (pairs.get(2 * i), pairs.get(2 * i + 1)));
                self.clones.extend(pairs);
            }
        }
    }
}

/// The number of a body, which the runtime writes as a word.
fn number(word: &[u8]) -> u32 {
    word.iter().take(4).rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}
