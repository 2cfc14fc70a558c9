//! Building graphs and asking what is in them.

use std::collections::{BTreeMap, BTreeSet};

use super::super::sim::Call;
use super::super::state::Driver;
use super::node::{Node, NodeKind};
use crate::errors::{CuError, Outcome};

/// CUgraphEdgeData: from port, to port, type, and reserved bytes that are 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub(crate) struct EdgeData {
    pub(crate) from_port: u8,
    pub(crate) to_port: u8,
    pub(crate) kind: u8,
    reserved: [u8; 5],
}

/// CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.
const PROGRAMMATIC: u8 = 1;

impl EdgeData {
    /// From the programmatic port of a kernel.
    pub(in crate::driver) fn programmatic() -> EdgeData {
        EdgeData { from_port: 1, kind: PROGRAMMATIC, ..EdgeData::default() }
    }

    /// From a kernel of which all blocks have started.
    pub(in crate::driver) fn launch_order(programmatic: bool) -> EdgeData {
        let kind = if programmatic { PROGRAMMATIC } else { 0 };
        EdgeData { from_port: 2, kind, ..EdgeData::default() }
    }

    fn is_plain(self) -> bool {
        self == EdgeData::default()
    }

    /// Whether the later node may start before the earlier one is done.
    pub(super) fn is_programmatic(self) -> bool {
        self.kind == PROGRAMMATIC
    }

    /// Ports: 0 the whole node, 1 programmatic, 2 launch completion (a kernel's only).
    fn check(self, from: &NodeKind, to: &NodeKind) -> Outcome {
        let kernels = matches!(from, NodeKind::Kernel(_)) && matches!(to, NodeKind::Kernel(_));
        let known = self.kind <= PROGRAMMATIC
            && self.from_port <= 2
            && self.to_port == 0
            && self.reserved == [0; 5];
        let fits = match self.kind {
            PROGRAMMATIC => kernels,
            _ => self.from_port == 0 || matches!(from, NodeKind::Kernel(_)),
        };
        if known && fits { Ok(()) } else { Err(CuError::INVALID_VALUE) }
    }
}

/// A dependency.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) data: EdgeData,
}

/// A graph.
#[derive(Default, Debug)]
pub(crate) struct Graph {
    /// Nodes in the order in which they were made.
    pub(super) nodes: Vec<u64>,
    pub(super) edges: Vec<Edge>,
    /// For a clone: its nodes by those of the original.
    of_original: BTreeMap<u64, u64>,
    /// It belongs to a node, or a capture is adding to it.
    pub(in crate::driver) owned: bool,
}

impl Graph {
    /// A graph that is not the program's, or not yet.
    pub(in crate::driver) fn of_capture() -> Graph {
        Graph { owned: true, ..Graph::default() }
    }

    /// A graph that belongs to a node.
    pub(super) fn of_node() -> Graph {
        Graph::of_capture()
    }
}

impl Driver {
    /// A captured graph becomes the program's.
    pub(in crate::driver) fn give_away(&mut self, graph: u64) {
        if let Some(graph) = self.graphs.get_mut(graph) {
            graph.owned = false;
        }
    }

    pub(in crate::driver) fn graph(&self, handle: u64) -> Outcome<&Graph> {
        self.graphs.get(handle).ok_or(CuError::INVALID_VALUE)
    }

    pub(super) fn node(&self, handle: u64) -> Outcome<&Node> {
        self.nodes.get(handle).ok_or(CuError::INVALID_VALUE)
    }

    pub(in crate::driver) fn is_kernel(&self, node: u64) -> bool {
        self.nodes.get(node).is_some_and(|node| matches!(node.kind, NodeKind::Kernel(_)))
    }

    pub(super) fn nodes_of(&self, graph: u64) -> Vec<u64> {
        self.graphs.get(graph).map(|graph| graph.nodes.clone()).unwrap_or_default()
    }

    fn check_edge(&self, graph: u64, edge: &Edge) -> Outcome {
        let (from, to) = (self.node(edge.from)?, self.node(edge.to)?);
        if from.graph != graph || to.graph != graph || edge.from == edge.to {
            return Err(CuError::INVALID_VALUE);
        }
        edge.data.check(&from.kind, &to.kind)
    }

    /// Adds a node behind others of the same graph, each named once.
    pub(in crate::driver) fn add_node(
        &mut self,
        graph: u64,
        after: &[(u64, EdgeData)],
        kind: NodeKind,
    ) -> Outcome<u64> {
        self.graph(graph)?;
        let mut seen = BTreeSet::new();
        for (from, data) in after {
            let earlier = self.node(*from)?;
            if earlier.graph != graph || !seen.insert(*from) {
                return Err(CuError::INVALID_VALUE);
            }
            data.check(&earlier.kind, &kind)?;
        }
        let node = self.nodes.insert(Node { graph, kind });
        if let Some(graph) = self.graphs.get_mut(graph) {
            graph.nodes.push(node);
            graph.edges.extend(after.iter().map(|&(from, data)| Edge { from, to: node, data }));
        }
        Ok(node)
    }

    /// Checks that all of the nodes are of a graph.
    pub(in crate::driver) fn check_nodes_of(
        &self,
        graph: u64,
        mut nodes: impl Iterator<Item = u64>,
    ) -> Outcome {
        self.graph(graph)?;
        let of_graph = |node| self.nodes.get(node).is_some_and(|node| node.graph == graph);
        if nodes.all(of_graph) { Ok(()) } else { Err(CuError::INVALID_VALUE) }
    }

    /// Nodes of a graph with everything that they depend on.
    pub(in crate::driver) fn past_of(
        &self,
        graph: u64,
        nodes: impl Iterator<Item = u64>,
    ) -> BTreeSet<u64> {
        let mut before: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for edge in self.graphs.get(graph).iter().flat_map(|graph| &graph.edges) {
            before.entry(edge.to).or_default().push(edge.from);
        }
        let (mut past, mut open) = (BTreeSet::new(), nodes.collect::<Vec<_>>());
        while let Some(node) = open.pop() {
            if past.insert(node) {
                open.extend(before.get(&node).into_iter().flatten());
            }
        }
        past
    }

    /// Whether a graph, and each of its child graphs, is one that can be copied: it neither allocates
    /// nor frees memory, and has no conditional nodes (CUDA Driver API, cuGraphClone).
    pub(super) fn can_be_cloned(&self, graph: u64) -> bool {
        self.nodes_of(graph).iter().all(|node| match self.nodes.get(*node).map(|node| &node.kind) {
            Some(NodeKind::Alloc(_) | NodeKind::Free(_) | NodeKind::Conditional(_)) => false,
            Some(NodeKind::Child(child)) => self.can_be_cloned(*child),
            _ => true,
        })
    }

    /// Copies a graph that can be copied, with the graphs of its child nodes.
    pub(in crate::driver) fn clone_graph(&mut self, handle: u64) -> Outcome<u64> {
        let (nodes, edges) = {
            let graph = self.graph(handle)?;
            (graph.nodes.clone(), graph.edges.clone())
        };
        let copy = self.graphs.insert(Graph::default());
        let mut of_original = BTreeMap::new();
        for node in nodes {
            let kind = match self.node(node)?.kind.clone() {
                NodeKind::Child(child) => NodeKind::Child(self.clone_child(child)?),
                kind => kind,
            };
            of_original.insert(node, self.add_node(copy, &[], kind)?);
        }
        if let Some(graph) = self.graphs.get_mut(copy) {
            let map = |edge: &Edge| Edge {
                from: of_original[&edge.from],
                to: of_original[&edge.to],
                data: edge.data,
            };
            graph.edges = edges.iter().map(map).collect();
            graph.of_original = of_original;
        }
        Ok(copy)
    }

    /// A copy of a graph that belongs to a child graph node.
    pub(in crate::driver) fn clone_child(&mut self, graph: u64) -> Outcome<u64> {
        let child = self.clone_graph(graph)?;
        if let Some(graph) = self.graphs.get_mut(child) {
            graph.owned = true;
        }
        Ok(child)
    }

    /// Whether a graph, or one of its child graphs, allocates or frees memory.
    pub(super) fn has_memory_nodes(&self, graph: u64) -> bool {
        self.nodes_of(graph).iter().any(|node| match self.nodes.get(*node).map(|node| &node.kind) {
            Some(NodeKind::Alloc(_) | NodeKind::Free(_)) => true,
            Some(NodeKind::Child(child)) => self.has_memory_nodes(*child),
            _ => false,
        })
    }

    fn destroy_node(&mut self, handle: u64) {
        let Some(node) = self.nodes.remove(handle) else { return };
        match node.kind {
            NodeKind::Child(child) => self.destroy_graph(child),
            NodeKind::Conditional(conditional) => {
                conditional.bodies.iter().for_each(|body| self.destroy_graph(*body));
            }
            _ => {}
        }
        if let Some(graph) = self.graphs.get_mut(node.graph) {
            graph.nodes.retain(|other| *other != handle);
            graph.edges.retain(|edge| edge.from != handle && edge.to != handle);
        }
    }

    pub(in crate::driver) fn destroy_graph(&mut self, handle: u64) {
        for node in self.nodes_of(handle) {
            self.destroy_node(node);
        }
        self.graphs.remove(handle);
    }

    /// The nodes of a graph each behind those that it depends on, in the order of their making as
    /// far as that allows; an error if the dependencies go round.
    pub(super) fn in_order(&self, graph: u64) -> Outcome<Vec<u64>> {
        let graph = self.graph(graph)?;
        let mut left: BTreeMap<u64, usize> = graph.nodes.iter().map(|node| (*node, 0)).collect();
        for edge in &graph.edges {
            *left.entry(edge.to).or_default() += 1;
        }
        let mut order = Vec::new();
        let mut open = graph.nodes.clone();
        while !open.is_empty() {
            let at = open.iter().position(|node| left[node] == 0);
            let node = open.remove(at.ok_or(CuError::INVALID_VALUE)?);
            for edge in graph.edges.iter().filter(|edge| edge.from == node) {
                *left.entry(edge.to).or_default() -= 1;
            }
            order.push(node);
        }
        Ok(order)
    }
}

impl Call {
    pub(crate) fn graph_create(&self) -> Outcome<u64> {
        Ok(self.lock().graphs.insert(Graph::default()))
    }

    pub(crate) fn graph_destroy(&self, graph: u64) -> Outcome {
        let mut driver = self.lock();
        if driver.is_being_captured(graph) {
            return Err(CuError::ILLEGAL_STATE);
        }
        if driver.graph(graph)?.owned {
            return Err(CuError::INVALID_VALUE);
        }
        driver.destroy_graph(graph);
        Ok(())
    }

    pub(crate) fn graph_clone(&self, graph: u64) -> Outcome<u64> {
        let mut driver = self.lock();
        if !driver.can_be_cloned(graph) {
            return Err(CuError::NOT_SUPPORTED);
        }
        driver.clone_graph(graph)
    }

    pub(crate) fn graph_find_in_clone(&self, original: u64, clone: u64) -> Outcome<u64> {
        let driver = self.lock();
        driver.graph(clone)?.of_original.get(&original).copied().ok_or(CuError::INVALID_VALUE)
    }

    pub(crate) fn graph_nodes(&self, graph: u64) -> Outcome<Vec<u64>> {
        Ok(self.lock().graph(graph)?.nodes.clone())
    }

    pub(crate) fn graph_root_nodes(&self, graph: u64) -> Outcome<Vec<u64>> {
        let driver = self.lock();
        let graph = driver.graph(graph)?;
        let later: BTreeSet<u64> = graph.edges.iter().map(|edge| edge.to).collect();
        Ok(graph.nodes.iter().copied().filter(|node| !later.contains(node)).collect())
    }

    pub(crate) fn graph_edges(&self, graph: u64) -> Outcome<Vec<Edge>> {
        Ok(self.lock().graph(graph)?.edges.clone())
    }

    /// The edges that end (or, for `dependents`, start) at a node.
    pub(crate) fn node_edges(&self, node: u64, dependents: bool) -> Outcome<Vec<Edge>> {
        let driver = self.lock();
        let graph = driver.graph(driver.node(node)?.graph)?;
        let end = |edge: &&Edge| node == if dependents { edge.from } else { edge.to };
        Ok(graph.edges.iter().filter(end).copied().collect())
    }

    pub(crate) fn node_type(&self, node: u64) -> Outcome<u32> {
        Ok(self.lock().node(node)?.kind.number())
    }

    pub(crate) fn node_graph(&self, node: u64) -> Outcome<u64> {
        Ok(self.lock().node(node)?.graph)
    }

    /// Adds dependencies, none of which may be there yet.
    pub(crate) fn graph_add_edges(&self, graph: u64, edges: &[Edge]) -> Outcome {
        let mut driver = self.lock();
        driver.graph(graph)?;
        for edge in edges {
            driver.check_edge(graph, edge)?;
            let known = |other: &Edge| (other.from, other.to) == (edge.from, edge.to);
            if driver.graph(graph)?.edges.iter().any(known) {
                return Err(CuError::INVALID_VALUE);
            }
        }
        if let Some(graph) = driver.graphs.get_mut(graph) {
            graph.edges.extend(edges);
        }
        Ok(())
    }

    /// Removes dependencies, all of which must be there, with the data given. Driver 580 does not
    /// support the removal of any other.
    pub(crate) fn graph_remove_edges(&self, graph: u64, edges: &[Edge]) -> Outcome {
        let mut driver = self.lock();
        driver.graph(graph)?;
        for edge in edges {
            driver.check_edge(graph, edge)?;
            let same = |other: &Edge| {
                (other.from, other.to, other.data) == (edge.from, edge.to, edge.data)
            };
            if !driver.graph(graph)?.edges.iter().any(same) {
                return Err(CuError::NOT_SUPPORTED);
            }
        }
        if let Some(graph) = driver.graphs.get_mut(graph) {
            graph.edges.retain(|edge| {
                !edges.iter().any(|gone| (gone.from, gone.to) == (edge.from, edge.to))
            });
        }
        Ok(())
    }

    pub(crate) fn graph_destroy_node(&self, node: u64) -> Outcome {
        let mut driver = self.lock();
        driver.node(node)?;
        driver.destroy_node(node);
        Ok(())
    }
}

/// Whether every edge is one that the calls without edge data can tell.
pub(crate) fn all_plain(edges: &[Edge]) -> bool {
    edges.iter().all(|edge| edge.data.is_plain())
}
