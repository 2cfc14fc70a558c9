//! A graph with its child graphs and conditional bodies in place.
//!
//! A child graph or a body stands between two empty nodes, its begin and its end, so that the edges
//! to and from it need not be multiplied.
//!
//! Invariant: an order between two nodes of the flat graph is an order of every launch that runs
//! both.

use crate::record::Role;
use crate::rules::catalogue::Rule;
use crate::rules::signals;
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::{
    Access, ConditionalKind, EdgePort, Entities, Graph, GraphId, GraphNode, GridControl,
    NodeAction, OpSeq,
};

/// A node of the flat graph: a node of a graph, or the begin or end of a child graph or body.
#[derive(Debug)]
pub(crate) struct FlatNode {
    /// The node of the graph; `None` for a begin or an end.
    place: Option<(Arc<Graph>, usize)>,
    /// The call that made the node.
    pub(crate) made_by: OpSeq,
    /// Whether the node stands in the body of a conditional node and may not run.
    pub(crate) may: bool,
    /// The edges to this node.
    pub(crate) before: SmallVec<[Before; 2]>,
    /// The bodies around the node, of conditional nodes that run at most one of several bodies.
    branches: SmallVec<[Branch; 1]>,
}

/// One of several bodies.
#[derive(Clone, Copy, Debug)]
struct Branch {
    /// Index of the conditional node.
    of: usize,
    body: usize,
}

/// An edge, seen from the later node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) node: usize,
    /// When the later node may begin.
    pub(crate) port: EdgePort,
    /// Whether the later node's wait covers the earlier one, if the later node is a kernel that
    /// waits.
    pub(crate) is_covered: bool,
}

impl Before {
    fn end_of(node: usize) -> Self {
        Self { node, port: EdgePort::End, is_covered: false }
    }
}

impl FlatNode {
    /// The role of an access of the node.
    pub(crate) fn role(&self, access: &Access) -> Role {
        match self.node().map(|node| &node.action) {
            _ if self.may => Role::Conditional,
            Some(NodeAction::Signals { operations }) => signals::role(operations, access),
            _ => Role::Ordinary,
        }
    }

    /// Whether a launch that runs one of the two nodes cannot run the other one, except in another
    /// iteration of a loop around both, which is behind.
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        let apart = |a: &Branch, b: &Branch| a.of == b.of && a.body != b.body;
        self.branches.iter().any(|a| other.branches.iter().any(|b| apart(a, b)))
    }

    /// The graph's node; `None` for a begin or an end.
    pub(crate) fn node(&self) -> Option<&GraphNode> {
        self.place.as_ref().map(|(graph, index)| &graph.nodes[*index])
    }
}

/// The nodes of a graph and of all graphs in it.
pub(crate) fn flatten(
    entities: &Entities,
    graph: &Arc<Graph>,
    applies: &dyn Fn(Rule) -> bool,
) -> Vec<FlatNode> {
    let mut flat = Flat {
        entities,
        applies,
        nodes: Vec::new(),
        within: Vec::new(),
        branches: SmallVec::new(),
    };
    flat.add(graph, None, false);
    flat.nodes
}

struct Flat<'a> {
    entities: &'a Entities,
    applies: &'a dyn Fn(Rule) -> bool,
    nodes: Vec<FlatNode>,
    /// The graphs around the current one, so that a malformed trace cannot cause an endless
    /// recursion.
    within: Vec<GraphId>,
    /// The bodies around the current graph.
    branches: SmallVec<[Branch; 1]>,
}

impl Flat<'_> {
    /// Adds a graph whose roots are behind `begin`; returns the nodes that its end must be behind.
    fn add(&mut self, graph: &Arc<Graph>, begin: Option<usize>, may: bool) -> Vec<usize> {
        self.within.push(graph.id);
        let ends: Vec<(usize, usize)> =
            (0..graph.nodes.len()).map(|index| self.add_node(graph, index, may)).collect();
        let mut is_root = vec![true; ends.len()];
        let mut is_leaf = vec![true; ends.len()];
        for edge in &graph.edges {
            let (from, to) = (edge.from as usize, edge.to as usize);
            if from >= ends.len() || to >= ends.len() {
                continue;
            }
            let control = begins_early(&graph.nodes[to]).filter(|_| edge.port != EdgePort::End);
            if control.is_none() && !(self.applies)(Rule::GraphEdge) {
                continue;
            }
            let before = match control {
                Some(_) => Before {
                    node: ends[from].1,
                    port: edge.port,
                    is_covered: edge.port != EdgePort::BegunOnly
                        && (self.applies)(Rule::GraphProgrammaticEdge),
                },
                None => Before::end_of(ends[from].1),
            };
            self.nodes[ends[to].0].before.push(before);
            is_root[to] = false;
            // An operation behind the later node's end is behind this node's end.
            is_leaf[from] &= control.is_some_and(|control| !(before.is_covered && control.waits));
        }
        if let Some(begin) = begin {
            for (&(first, _), _) in ends.iter().zip(&is_root).filter(|(_, is_root)| **is_root) {
                self.nodes[first].before.push(Before::end_of(begin));
            }
        }
        self.within.pop();
        ends.iter().zip(is_leaf).filter(|(_, is_leaf)| *is_leaf).map(|(&(_, end), _)| end).collect()
    }

    /// Adds a node; returns its first and its last part.
    fn add_node(&mut self, graph: &Arc<Graph>, index: usize, may: bool) -> (usize, usize) {
        let node = &graph.nodes[index];
        let bodies: &[GraphId] = match &node.action {
            NodeAction::Child { graph } => std::slice::from_ref(graph),
            NodeAction::Conditional { bodies, .. } => bodies,
            _ => &[],
        };
        let place = (node.enabled && bodies.is_empty()).then(|| (Arc::clone(graph), index));
        let first = self.push(place, node, may, SmallVec::new());
        if bodies.is_empty() || !node.enabled {
            return (first, first);
        }
        let may = may || matches!(node.action, NodeAction::Conditional { .. });
        let is_loop =
            matches!(node.action, NodeAction::Conditional { kind: ConditionalKind::While, .. });
        let mut leaves = Vec::new();
        for (position, &body) in bodies.iter().enumerate() {
            let declared = self.entities.graph(body).filter(|_| !self.within.contains(&body));
            let Some(body) = declared.map(Arc::clone) else { continue };
            // At most one of several bodies runs. Each iteration of a loop is behind the one before
            // it, so one iteration stands for all.
            if bodies.len() > 1 {
                self.branches.push(Branch { of: first, body: position });
            }
            leaves.extend(self.add(&body, Some(first), may));
            if is_loop && !(self.applies)(Rule::GraphConditionalOrder) {
                leaves.extend(self.add(&body, Some(first), may));
            }
            if bodies.len() > 1 {
                self.branches.pop();
            }
        }
        (first, self.end(node, may, first, &leaves))
    }

    fn end(&mut self, node: &GraphNode, may: bool, begin: usize, leaves: &[usize]) -> usize {
        let before = std::iter::once(begin).chain(leaves.iter().copied());
        let before = before.map(Before::end_of).collect();
        self.push(None, node, may, before)
    }

    fn push(
        &mut self,
        place: Option<(Arc<Graph>, usize)>,
        node: &GraphNode,
        may: bool,
        before: SmallVec<[Before; 2]>,
    ) -> usize {
        let (made_by, branches) = (node.made_by, self.branches.clone());
        self.nodes.push(FlatNode { place, made_by, may, before, branches });
        self.nodes.len() - 1
    }
}

/// A kernel may begin before the kernel at the other end of a programmatic edge has ended; every
/// other node waits for that end. Programming Guide, Programmatic Dependent Launch in CUDA Graphs.
/// Documented.
fn begins_early(node: &GraphNode) -> Option<GridControl> {
    match node.action {
        NodeAction::Kernel { control, .. } if node.enabled => Some(control),
        _ => None,
    }
}
