//! Graphs: the nodes that a launch of an executable graph runs, and their order.
//!
//! Invariant: a [`Graph`] is an immutable snapshot. Instantiating or updating an executable graph,
//! or setting the parameters of one of its nodes, makes a new snapshot, which is declared before
//! the operation that first refers to it.

use crate::{
    Access, AllocationId, Copy, EventId, GraphId, GridControl, KernelId, LaunchEventKind,
    MemoryKind, OpSeq, ProcessId, SignalOperation, StackId, StreamId,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The topology and the contents of a graph at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// Its id in the trace.
    pub id: GraphId,
    /// The process it belongs to.
    pub process: ProcessId,
    /// A name given by the program or a text trace.
    pub name: Option<String>,
    /// The nodes. Edges refer to a node by its position.
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNode {
    /// The call that made the node: `cuGraphAddKernelNode`, or the captured call. Where that call
    /// was not seen, the call that instantiated the graph.
    pub made_by: OpSeq,
    /// Exact entry point of that call.
    pub api: Arc<str>,
    /// The stream that was captured, for display.
    pub captured_from: Option<StreamId>,
    /// Whether the node runs; a disabled node only passes order on (`cuGraphNodeSetEnabled`).
    pub enabled: bool,
    /// The work of the node.
    pub action: NodeAction,
    /// The accesses of the node.
    pub accesses: Vec<Access>,
    /// The stack of the call that made the node, where recorded.
    pub stack: Option<StackId>,
}

/// The work of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeAction {
    /// Nothing: it passes order on.
    Empty,
    /// A kernel.
    Kernel {
        kernel: KernelId,
        /// How the kernel waits for earlier kernels and triggers later ones.
        control: GridControl,
    },
    /// A copy; its `stream` has no meaning.
    Copy(Copy),
    /// A memset.
    Memset { destination: MemoryKind },
    /// A host function.
    HostFunction,
    /// Each launch records the event, which captures the node's predecessors.
    EventRecord { event: EventId },
    /// Each launch waits for what the event had captured at the launch call.
    EventWait { event: EventId },
    /// The begin of the memory's life, at the same addresses in every launch.
    Allocate { allocation: AllocationId },
    /// The end of the memory's life.
    Free { allocation: AllocationId },
    /// A whole graph, cloned when the node was made.
    Child { graph: GraphId },
    /// Bodies of which at most one (`if`, `switch`) runs, or one that runs repeatedly (`while`).
    Conditional { kind: ConditionalKind, bodies: Vec<GraphId> },
    /// Stream memory operations, external semaphores.
    Signals { operations: Vec<SignalOperation> },
    /// A kind of node that this version does not know; it passes order on.
    Unknown {
        /// `CUgraphNodeType`.
        kind: i32,
    },
}

/// The kind of a conditional node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ConditionalKind {
    /// The body runs once or not at all; a second one is the other branch.
    If,
    /// The body runs as long as its condition holds, one iteration behind the other.
    While,
    /// At most one of the bodies runs.
    Switch,
}

impl ConditionalKind {
    /// All kinds, in the order of their stored codes.
    pub const ALL: [Self; 3] = [Self::If, Self::While, Self::Switch];

    /// The word of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::While => "while",
            Self::Switch => "switch",
        }
    }
}

/// `to` runs behind `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GraphEdge {
    /// Position of the node before.
    pub from: u32,
    /// Position of the node behind.
    pub to: u32,
    /// When the later node may begin.
    pub port: EdgePort,
}

/// When the later node of an edge may begin, and whether that node's wait covers the earlier node.
///
/// Driver API, `CUgraphEdgeData`: the outgoing port of a kernel node and the type of the
/// dependency.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum EdgePort {
    /// When the earlier node has ended.
    #[default]
    End,
    /// `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`: when all blocks of the earlier kernel have
    /// triggered or ended. The later kernel's wait covers the earlier kernel.
    Triggered,
    /// `CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER` of a programmatic dependency: when all blocks of
    /// the earlier kernel have begun. The later kernel's wait covers the earlier kernel.
    Begun,
    /// `CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER` of an ordinary dependency: when all blocks of the
    /// earlier kernel have begun. No wait covers the earlier kernel.
    BegunOnly,
}

impl EdgePort {
    /// All values, in the order of their stored codes.
    pub const ALL: [Self; 4] = [Self::End, Self::Triggered, Self::Begun, Self::BegunOnly];

    /// The word that text traces use.
    pub const fn description(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Triggered => "pdl",
            Self::Begun => "pdl_begun",
            Self::BegunOnly => "begun",
        }
    }
}

impl From<LaunchEventKind> for EdgePort {
    /// The edge that a wait for such an event becomes in a graph (Programming Guide, Programmatic
    /// Dependent Launch: use in CUDA graphs).
    fn from(kind: LaunchEventKind) -> Self {
        match kind {
            LaunchEventKind::Programmatic => Self::Triggered,
            LaunchEventKind::BlockStart => Self::Begun,
            LaunchEventKind::LaunchCompletion => Self::BegunOnly,
        }
    }
}
