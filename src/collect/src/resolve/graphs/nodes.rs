//! Nodes of a graph: from the driver's structures to what the model says of them.
//!
//! Structures and their byte offsets: CUDA driver API, "Data types used by CUDA driver".

use super::super::collectives;
use super::super::copies;
use super::super::global_pointers;
use super::super::kernels::{self, NodeHandles};
use super::super::launches;
use super::super::resolution::Resolution;
use super::super::signals;
use super::contents::{Contents, Node};
use super::lives;
use crate::launch::{ByWords, LaunchedWith, Resolved};
use std::collections::HashSet;
use streamsan_model::{
    Access, Basis, ConditionalKind, EdgePort, Extent, GraphEdge, GraphId, GraphNode, GridControl,
    Mode, NodeAction,
};
use streamsan_wire::node_kind::*;

/// Where `CUDA_KERNEL_NODE_PARAMS` keeps the function, blocks and threads, and since its second
/// version the kernel.
const NODE_FUNCTION: usize = 0;
const GRID: usize = 8;
const NODE_KERNEL: usize = 56;

/// The gap of a graph in which a kernel of unknown code overlaps the one before it.
pub(in super::super) const UNKNOWN_WAIT: &str = "cuGraphLaunch (programmatic edge)";

/// Stands for a graph that is declared later.
const LATER: GraphId = GraphId(u32::MAX);

/// A graph, resolved; the graphs inside it have no ids yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) nodes: Vec<GraphNode>,
    pub(super) edges: Vec<GraphEdge>,
    /// The graphs inside nodes, by position of the node.
    pub(super) bodies: Vec<(usize, Vec<Snapshot>)>,
    gaps: Vec<String>,
    /// The arguments of kernels whose code is not known yet, by position: their accesses
    /// do not tell them.
    unread: Vec<(usize, LaunchedWith)>,
    /// The positions of kernels with accesses that measuring does not see.
    pub(super) unseen: Vec<usize>,
    /// Launches that are looked at again when the code of their kernel is known, by position.
    by_words: Aside<Vec<(usize, ByWords)>>,
}

/// A part that makes no difference between two snapshots.
#[derive(Clone, Debug, Default)]
struct Aside<T>(T);

impl<T> PartialEq for Aside<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Aside<T> {}

impl Snapshot {
    /// The launches that are known by their words, by position of their node.
    pub(super) fn take_by_words(&mut self) -> Vec<(usize, ByWords)> {
        std::mem::take(&mut self.by_words.0)
    }

    /// The parts that a launch runs and that are not understood.
    pub(super) fn gaps(&self) -> impl Iterator<Item = &str> {
        let inner = self.bodies.iter().flat_map(|(_, bodies)| bodies);
        let inner: Vec<&str> =
            inner.flat_map(|body| body.gaps.iter().map(String::as_str)).collect();
        self.gaps.iter().map(String::as_str).chain(inner)
    }
}

/// Resolves a graph with the handles and the memory of now.
pub(super) fn resolve(resolution: &mut Resolution<'_>, contents: &Contents) -> Snapshot {
    let lives = lives::declare(resolution, contents);
    resolution.tables.memory.of_graph(lives);
    let snapshot = snapshot(resolution, contents);
    resolution.tables.memory.of_graph(None);
    snapshot
}

fn snapshot(resolution: &mut Resolution<'_>, contents: &Contents) -> Snapshot {
    let mut gaps = Vec::new();
    if !contents.complete {
        gaps.push("cuGraphLaunch (graph not read back)".to_owned());
    }
    let programmatic: HashSet<u32> =
        contents.edges.iter().filter(|e| e.port != EdgePort::End).map(|edge| edge.to).collect();
    let (mut nodes, mut bodies) = (Vec::with_capacity(contents.nodes.len()), Vec::new());
    let (mut unread, mut by_words, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
    for (position, node) in contents.nodes.iter().enumerate() {
        if node.updatable {
            gaps.push("cuGraphLaunch (kernel node that kernels may change)".to_owned());
        }
        let overlaps = programmatic.contains(&(position as u32));
        if let Some(lives) = resolution.tables.memory.graph_mut() {
            lives.next_node();
        }
        let mut launch = None;
        resolution.launch.unseen = false;
        let (action, accesses) = resolve_node(resolution, node, overlaps, &mut gaps, &mut launch);
        if resolution.launch.unseen {
            unseen.push(position);
        }
        if let Some(launch) = launch {
            unread.push((position, launch.launched_with()));
            by_words.push((position, launch));
        }
        if matches!(action, NodeAction::Child { .. } | NodeAction::Conditional { .. }) {
            let inner = node.bodies.iter().map(|body| snapshot(resolution, body)).collect();
            bodies.push((position, inner));
        }
        nodes.push(GraphNode {
            made_by: node.maker.g,
            api: node.maker.api.clone(),
            captured_from: node.maker.stream,
            enabled: node.enabled,
            action,
            accesses,
            stack: node.maker.stack,
        });
    }
    gaps.sort();
    gaps.dedup();
    let edges = contents.edges.clone();
    Snapshot { nodes, edges, bodies, gaps, unread, unseen, by_words: Aside(by_words) }
}

/// The action of a node and its accesses. A kernel that is known by its words goes to `by_words`.
fn resolve_node(
    resolution: &mut Resolution<'_>,
    node: &Node,
    overlaps: bool,
    gaps: &mut Vec<String>,
    by_words: &mut Option<ByWords>,
) -> (NodeAction, Vec<Access>) {
    // The list is the call's; what comes behind `start` is this node's.
    let start = resolution.accesses.len();
    let outer = std::mem::replace(&mut resolution.part, start);
    let action = node.readable.then(|| act(resolution, node, overlaps, gaps, by_words)).flatten();
    let accesses = resolution.accesses.split_off(start);
    global_pointers::unseen(resolution, &accesses);
    resolution.part = outer;
    let action = action.unwrap_or_else(|| {
        gaps.push(format!("cuGraphLaunch ({})", describe(node.kind)));
        NodeAction::Unknown { kind: node.kind }
    });
    (action, accesses)
}

/// `None` for a kind of node that is not understood.
fn act(
    resolution: &mut Resolution<'_>,
    node: &Node,
    overlaps: bool,
    gaps: &mut Vec<String>,
    by_words: &mut Option<ByWords>,
) -> Option<NodeAction> {
    if overlaps && node.kind != KERNEL {
        gaps.push(UNKNOWN_WAIT.to_owned());
    }
    Some(match node.kind {
        KERNEL => {
            let handles = NodeHandles {
                function: node.word(NODE_FUNCTION)?,
                kernel: node.word(NODE_KERNEL).unwrap_or(0),
                captured: node.maker.launched,
            };
            let (function, known) = kernels::of_node(resolution, handles)?;
            if let Some(touched) = &node.maker.collective {
                // The accesses of the operation are known from itself.
                collectives::touch(resolution, touched);
                let control = if overlaps {
                    gaps.push(UNKNOWN_WAIT.to_owned());
                    GridControl::UNKNOWN
                } else {
                    GridControl::default()
                };
                return Some(NodeAction::Kernel { kernel: known.id, control });
            }
            let geometry = launches::geometry(&node.contents.params, GRID);
            let params = node.contents.kernel_params.as_deref();
            // The kernel's waits and triggers stand in its code, as in launches.
            let resolved =
                launches::parameters(resolution, function, &known, params, geometry, false);
            let control = resolved.control();
            match resolved {
                Resolved::ByWords(launch) => {
                    *by_words = Some(ByWords { programmatic: overlaps, ..*launch });
                }
                Resolved::WithoutCode if overlaps => gaps.push(UNKNOWN_WAIT.to_owned()),
                Resolved::WithoutCode | Resolved::ByCode(_) => {}
            }
            let unknown = if overlaps { GridControl::UNKNOWN } else { GridControl::default() };
            NodeAction::Kernel { kernel: known.id, control: control.unwrap_or(unknown) }
        }
        MEMCPY => NodeAction::Copy(copies::node(resolution, &node.contents.params)?),
        MEMSET => {
            let (element, width) = ((node.word(16)? >> 32), node.word(24)?);
            let bytes = width.saturating_mul(element);
            let (start, pitch, rows) = (node.word(0)?, node.word(8)?, node.word(32)?);
            NodeAction::Memset {
                destination: copies::memset_node(resolution, start, pitch, bytes, rows),
            }
        }
        HOST => NodeAction::HostFunction,
        CHILD if node.bodies.len() == 1 => NodeAction::Child { graph: LATER },
        EMPTY => NodeAction::Empty,
        EVENT_WAIT => NodeAction::EventWait { event: resolution.event(node.word(0)?)? },
        EVENT_RECORD => NodeAction::EventRecord { event: resolution.event(node.word(0)?)? },
        ALLOCATE => {
            let block = lives::begun(resolution, node)?;
            resolution.touch(block.id, Extent::Range(block.range), Mode::Allocate, Basis::Exact);
            NodeAction::Allocate { allocation: block.id }
        }
        FREE => {
            let block = *resolution.tables.memory.find(node.word(0)?)?;
            resolution.touch(block.id, Extent::Range(block.range), Mode::Free, Basis::Exact);
            NodeAction::Free { allocation: block.id }
        }
        CONDITIONAL if !node.bodies.is_empty() => {
            let kind = *ConditionalKind::ALL.get(node.word(8)? as u32 as usize)?;
            NodeAction::Conditional { kind, bodies: Vec::new() }
        }
        BATCH_MEM_OP => NodeAction::Signals {
            operations: signals::batch_operations(resolution, &node.contents.items),
        },
        SEMAPHORE_SIGNAL | SEMAPHORE_WAIT => {
            let handles = node.contents.handles.chunks_exact(8);
            let handles: Vec<u64> =
                handles.filter_map(|h| Some(u64::from_le_bytes(h.try_into().ok()?))).collect();
            let (params, signals) = (&node.contents.items, node.kind == SEMAPHORE_SIGNAL);
            let operations = signals::semaphore_operations(resolution, &handles, params, signals);
            NodeAction::Signals { operations }
        }
        _ => return None,
    })
}

/// A kind of node in the words of a gap.
fn describe(kind: i32) -> String {
    match kind {
        KERNEL => "kernel node that could not be read".to_owned(),
        MEMCPY => "copy node that could not be read".to_owned(),
        MEMSET => "memset node that could not be read".to_owned(),
        HOST => "host node that could not be read".to_owned(),
        CHILD => "child graph that could not be read".to_owned(),
        EVENT_WAIT | EVENT_RECORD => "event node that could not be read".to_owned(),
        SEMAPHORE_SIGNAL | SEMAPHORE_WAIT => "semaphore node that could not be read".to_owned(),
        ALLOCATE | FREE => "memory node that could not be read".to_owned(),
        BATCH_MEM_OP => "memory operation node that could not be read".to_owned(),
        CONDITIONAL => "conditional node that could not be read".to_owned(),
        -1 => "node that could not be read".to_owned(),
        kind => format!("node of type {kind}"),
    }
}
