//! Graphs as the runtime reads them back, in records beside the call that needs the graph.
//!
//! A graph that is about to become executable is described before the BEGIN of that call, on the
//! same thread: for each of its nodes a [`GraphPart::Node`], its edges in [`GraphPart::Edges`],
//! then a [`GraphPart::End`] with the counts, so that a lost record is noticed. Graph 0 is the one
//! that the call names; bodies of its nodes have numbers of their own. New contents of one node
//! of an executable come as a single `Node` without an `End`.
//!
//! [`GraphPart::Captured`] and [`GraphPart::Clones`] come before the END of their call and name it.

use crate::encode::Body;
use crate::record::{Blobs, Words, word_at};

/// Part of a graph.
#[derive(Debug, Clone, Copy)]
pub enum GraphPart<'a> {
    /// A node.
    Node {
        /// Number of the graph among those that are read for one call.
        graph: u32,
        /// Position of the node in `cuGraphGetNodes`.
        index: u32,
        /// `CUgraphNodeType`.
        kind: i32,
        /// Whether the driver told what the node does.
        readable: bool,
        /// Whether kernels may change the node (`CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`).
        updatable: bool,
        /// The node's handle.
        handle: u64,
        /// The parameters of the node, by the tags of [`NodeTag`].
        blobs: Blobs<'a>,
    },
    /// Some of the edges.
    Edges {
        /// Number of the graph.
        graph: u32,
        edges: GraphEdges<'a>,
    },
    /// The graph is complete.
    End {
        /// Number of the graph.
        graph: u32,
        /// Number of its nodes.
        nodes: u32,
        /// Number of its edges.
        edges: u32,
        /// Whether all of it could be read.
        complete: bool,
        /// `CUgraph`.
        handle: u64,
    },
    /// The call was issued to a capturing stream.
    Captured {
        /// `g` of the call's BEGIN.
        op: u64,
        /// The graph that is being made.
        graph: u64,
        /// The newest node of the stream: the only one that its next call depends on. 0 where
        /// there are several, or none.
        node: u64,
    },
    /// The call cloned a graph.
    Clones {
        /// `g` of the call's BEGIN.
        op: u64,
        /// Original and clone of each node, alternately.
        pairs: Words<'a>,
    },
}

/// `CUgraphNodeType`: the kinds of nodes whose parameters are recorded.
pub mod node_kind {
    /// `CUDA_KERNEL_NODE_PARAMS`
    pub const KERNEL: i32 = 0;
    /// `CUDA_MEMCPY3D`
    pub const MEMCPY: i32 = 1;
    /// `CUDA_MEMSET_NODE_PARAMS`
    pub const MEMSET: i32 = 2;
    /// `CUDA_HOST_NODE_PARAMS`
    pub const HOST: i32 = 3;
    /// A graph
    pub const CHILD: i32 = 4;
    /// Nothing
    pub const EMPTY: i32 = 5;
    /// An event
    pub const EVENT_WAIT: i32 = 6;
    /// An event
    pub const EVENT_RECORD: i32 = 7;
    /// `CUDA_EXT_SEM_SIGNAL_NODE_PARAMS`
    pub const SEMAPHORE_SIGNAL: i32 = 8;
    /// `CUDA_EXT_SEM_WAIT_NODE_PARAMS`
    pub const SEMAPHORE_WAIT: i32 = 9;
    /// `CUDA_MEM_ALLOC_NODE_PARAMS`
    pub const ALLOCATE: i32 = 10;
    /// An address
    pub const FREE: i32 = 11;
    /// `CUDA_BATCH_MEM_OP_NODE_PARAMS`
    pub const BATCH_MEM_OP: i32 = 12;
    /// `CUDA_CONDITIONAL_NODE_PARAMS`
    pub const CONDITIONAL: i32 = 13;

    /// Bytes of a kind's parameter structure, a multiple of 8: of `CUDA_KERNEL_NODE_PARAMS` the
    /// second version, of the others the first, whose fields the later ones keep. `None` for a
    /// kind that is not known.
    pub const fn params_bytes(kind: i32) -> Option<usize> {
        Some(match kind {
            KERNEL => 72,
            MEMCPY => 200,
            MEMSET => 40,
            HOST => 16,
            CHILD | EVENT_WAIT | EVENT_RECORD | FREE => 8,
            EMPTY => 0,
            SEMAPHORE_SIGNAL | SEMAPHORE_WAIT => 24,
            ALLOCATE => 120,
            BATCH_MEM_OP | CONDITIONAL => 32,
            _ => return None,
        })
    }

    /// Bytes of the first version of `CUDA_KERNEL_NODE_PARAMS`.
    pub const KERNEL_BYTES_1: usize = 56;
}

/// Tags of a node's blobs.
#[derive(Debug)]
pub struct NodeTag;

impl NodeTag {
    /// The parameter structure of its kind: `CUDA_KERNEL_NODE_PARAMS`, `CUDA_MEMCPY3D`,
    /// `CUDA_MEMSET_NODE_PARAMS`, `CUDA_HOST_NODE_PARAMS`, an event, an address,
    /// `CUDA_MEM_ALLOC_NODE_PARAMS`, `CUDA_CONDITIONAL_NODE_PARAMS`, ...
    pub const PARAMS: u32 = 0;
    /// The array that the structure points to: stream memory operations, semaphore parameters.
    pub const ITEMS: u32 = 1;
    /// A second array: semaphore handles.
    pub const HANDLES: u32 = 2;
    /// Numbers of its bodies (child graph, conditional), 8 bytes each.
    pub const BODIES: u32 = 3;
    /// A kernel's parameter bytes, packed at their layout offsets.
    pub const KERNEL_PARAMS: u32 = crate::encode::BlobTag::KERNEL_PARAMS;
}

/// Edges of a graph.
#[derive(Debug, Clone, Copy)]
pub struct GraphEdges<'a>(Words<'a>);

/// One edge of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireEdge {
    /// Position of the node before.
    pub from: u32,
    /// Position of the node behind.
    pub to: u32,
    /// `CUgraphEdgeData`: the ports, then the type of the dependency, a byte each.
    pub data: [u8; 8],
}

impl WireEdge {
    /// Bytes of one in a record.
    pub const BYTES: usize = 16;

    /// `CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER`.
    pub const LAUNCH_ORDER: u8 = 2;

    /// From when on the node behind may begin: `from_port`.
    pub fn from_port(&self) -> u8 {
        self.data[0]
    }

    /// `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`.
    pub fn is_programmatic(&self) -> bool {
        self.data[2] == 1
    }
}

impl<'a> GraphEdges<'a> {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = WireEdge> + 'a {
        let words = self.0;
        (0..words.len() / 2).map(move |edge| {
            let ends = words.get(2 * edge);
            let data = words.get(2 * edge + 1).to_le_bytes();
            WireEdge { from: ends as u32, to: (ends >> 32) as u32, data }
        })
    }
}

const NODE: u32 = 0;
const EDGES: u32 = 1;
const END: u32 = 2;
const CAPTURED: u32 = 3;
const CLONES: u32 = 4;

/// How the producer writes the parts: the words before a part's blobs, edges or pairs.
impl GraphPart<'_> {
    /// Flags of [`GraphPart::node`].
    pub const READABLE: u64 = 1;
    /// See [`GraphPart::READABLE`].
    pub const UPDATABLE: u64 = 2;
    /// Bytes of [`GraphPart::node`].
    pub const NODE_BYTES: usize = 32;
    /// Bytes of [`GraphPart::edges`], [`WireEdge::BYTES`] for each edge come behind.
    pub const EDGES_BYTES: usize = 8;
    /// Bytes of [`GraphPart::end`].
    pub const END_BYTES: usize = 32;
    /// Bytes of [`GraphPart::captured`].
    pub const CAPTURED_BYTES: usize = 32;
    /// Bytes of [`GraphPart::clones`], 16 for each pair come behind.
    pub const CLONES_BYTES: usize = 16;

    /// The words of a node; its blobs follow.
    pub fn node(body: &mut Body, (graph, index): (u32, u32), kind: i32, flags: u64, node: u64) {
        body.word(u64::from(NODE) | u64::from(graph) << 32);
        body.word(u64::from(index) | u64::from(kind as u32) << 32);
        body.word(flags);
        body.word(node);
    }

    /// The word before edges.
    pub fn edges(body: &mut Body, graph: u32) {
        body.word(u64::from(EDGES) | u64::from(graph) << 32);
    }

    /// One edge.
    pub fn edge(body: &mut Body, edge: WireEdge) {
        body.word(u64::from(edge.from) | u64::from(edge.to) << 32);
        body.word(u64::from_le_bytes(edge.data));
    }

    /// The end of a graph.
    pub fn end(
        body: &mut Body,
        graph: u32,
        (nodes, edges): (u32, u32),
        complete: bool,
        handle: u64,
    ) {
        body.word(u64::from(END) | u64::from(graph) << 32);
        body.word(u64::from(nodes) | u64::from(edges) << 32);
        body.word(u64::from(complete));
        body.word(handle);
    }

    /// A captured call.
    pub fn captured(body: &mut Body, op: u64, graph: u64, node: u64) {
        body.word(u64::from(CAPTURED));
        body.word(op);
        body.word(graph);
        body.word(node);
    }

    /// The words before pairs of nodes.
    pub fn clones(body: &mut Body, op: u64) {
        body.word(u64::from(CLONES));
        body.word(op);
    }
}

impl<'a> GraphPart<'a> {
    /// Decodes what stands behind a record's leading words.
    pub(crate) fn decode(body: &'a [u8]) -> Option<Self> {
        let word = |index: usize| word_at(body, index * 8);
        let rest = |at: usize| body.get(at..);
        let (part, graph) = (word(0)? as u32, (word(0)? >> 32) as u32);
        let halves = |word: u64| (word as u32, (word >> 32) as u32);
        Some(match part {
            NODE => {
                let (index, kind) = halves(word(1)?);
                Self::Node {
                    graph,
                    index,
                    kind: kind as i32,
                    readable: word(2)? & Self::READABLE != 0,
                    updatable: word(2)? & Self::UPDATABLE != 0,
                    handle: word(3)?,
                    blobs: Blobs::new(rest(Self::NODE_BYTES)?),
                }
            }
            EDGES => {
                let edges = GraphEdges(Words::new(rest(Self::EDGES_BYTES)?));
                Self::Edges { graph, edges }
            }
            END => {
                let (nodes, edges) = halves(word(1)?);
                let complete = word(2)? != 0;
                Self::End { graph, nodes, edges, complete, handle: word(3)? }
            }
            CAPTURED => Self::Captured { op: word(1)?, graph: word(2)?, node: word(3)? },
            CLONES => Self::Clones { op: word(1)?, pairs: Words::new(rest(Self::CLONES_BYTES)?) },
            _ => return None,
        })
    }
}
