//! Executable graphs: made of a graph, and changed node by node.

use std::collections::BTreeMap;

use super::super::sim::Call;
use super::super::state::Driver;
use super::node::NodeKind;
use super::params::NodeSpec;
use super::topology::EdgeData;
use crate::errors::{CuError, Outcome};
use crate::schedule::OpId;

/// An executable graph.
#[derive(Default, Debug)]
pub(crate) struct Executable {
    /// The graph that it was made of, whose nodes name its own.
    pub(super) source: u64,
    pub(super) graph: ExecGraph,
    pub(super) flags: u64,
    /// The end of its last launch, which the next one runs behind.
    pub(super) last: Vec<OpId>,
}

/// The nodes of an executable, or of a child graph in it.
#[derive(Clone, Default, Debug)]
pub(crate) struct ExecGraph {
    /// In the order of the graph's making.
    pub(super) nodes: Vec<ExecNode>,
}

/// A node of an executable.
#[derive(Clone, Debug)]
pub(crate) struct ExecNode {
    /// The node of the graph that it was made of.
    pub(super) source: u64,
    pub(super) kind: NodeKind,
    /// Places of the nodes that it depends on.
    pub(super) after: Vec<(usize, EdgeData)>,
    pub(super) enabled: bool,
    /// Its identity for the policies, so that each node is scheduled by itself.
    pub(super) lane: u64,
    /// The graph inside it: of a child graph node, or the body that a conditional node runs.
    pub(super) child: Option<ExecGraph>,
}

/// CUDA_GRAPH_INSTANTIATE_FLAG_*.
pub(super) const AUTO_FREE: u64 = 1;
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;
const USE_NODE_PRIORITY: u64 = 8;

impl ExecGraph {
    /// Every node with those of child graphs.
    pub(super) fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a ExecNode)) {
        for node in &self.nodes {
            see(node);
            if let Some(child) = &node.child {
                child.visit(see);
            }
        }
    }

    pub(super) fn find_mut(&mut self, source: u64) -> Option<&mut ExecNode> {
        self.nodes.iter_mut().find_map(|node| {
            if node.source == source {
                return Some(node);
            }
            node.child.as_mut()?.find_mut(source)
        })
    }

    /// Whether another has the same types of nodes with the same dependencies.
    pub(super) fn same_shape(&self, other: &ExecGraph) -> bool {
        self.nodes.len() == other.nodes.len()
            && self.nodes.iter().zip(&other.nodes).all(|(ours, theirs)| {
                ours.kind.number() == theirs.kind.number()
                    && ours.after == theirs.after
                    && match (&ours.child, &theirs.child) {
                        (Some(ours), Some(theirs)) => ours.same_shape(theirs),
                        _ => true,
                    }
            })
    }

    /// Takes the parameters of another of the same shape; nodes, lanes and switches stay.
    pub(super) fn adopt(&mut self, other: ExecGraph) {
        for (ours, theirs) in self.nodes.iter_mut().zip(other.nodes) {
            match (&mut ours.child, theirs.child) {
                (Some(ours), Some(theirs)) => ours.adopt(theirs),
                _ => ours.kind = theirs.kind,
            }
        }
    }
}

impl Driver {
    /// The executable form of a graph.
    pub(super) fn compile_graph(&mut self, handle: u64) -> Outcome<ExecGraph> {
        self.in_order(handle)?;
        let graph = self.graph(handle)?;
        let (sources, edges) = (graph.nodes.clone(), graph.edges.clone());
        let places: BTreeMap<u64, usize> =
            sources.iter().enumerate().map(|(place, node)| (*node, place)).collect();
        let mut nodes = Vec::new();
        for source in sources {
            let kind = self.node(source)?.kind.clone();
            let inner = match &kind {
                NodeKind::Child(child) => Some(*child),
                NodeKind::Conditional(conditional) => conditional.chosen(),
                _ => None,
            };
            let child = inner.map(|graph| self.compile_graph(graph)).transpose()?;
            let mut after: Vec<(usize, EdgeData)> = edges
                .iter()
                .filter(|edge| edge.to == source)
                .map(|edge| (places[&edge.from], edge.data))
                .collect();
            after.sort_by_key(|(place, _)| *place);
            let lane = self.fresh_id();
            nodes.push(ExecNode { source, kind, after, enabled: true, lane, child });
        }
        Ok(ExecGraph { nodes })
    }

    pub(super) fn exec(&self, handle: u64) -> Outcome<&Executable> {
        self.execs.get(handle).ok_or(CuError::INVALID_VALUE)
    }

    fn exec_node(&mut self, exec: u64, source: u64) -> Outcome<&mut ExecNode> {
        let exec = self.execs.get_mut(exec).ok_or(CuError::INVALID_VALUE)?;
        exec.graph.find_mut(source).ok_or(CuError::INVALID_VALUE)
    }
}

impl Call {
    /// Every `cuGraphInstantiate`. A graph that allocates or frees has one executable at a time.
    pub(crate) fn graph_instantiate(&self, graph: u64, flags: u64) -> Outcome<u64> {
        let mut driver = self.lock();
        driver.graph(graph)?;
        driver.check_unsafe()?;
        if flags & DEVICE_LAUNCH != 0 {
            return Err(CuError::NOT_SUPPORTED);
        }
        if flags & !(AUTO_FREE | UPLOAD | USE_NODE_PRIORITY) != 0 {
            return Err(CuError::INVALID_VALUE);
        }
        let taken = driver.execs.iter().any(|(_, exec)| exec.source == graph);
        if taken && driver.has_memory_nodes(graph) {
            return Err(CuError::NOT_SUPPORTED);
        }
        let compiled = driver.compile_graph(graph)?;
        let exec = Executable { source: graph, graph: compiled, flags, last: Vec::new() };
        Ok(driver.execs.insert(exec))
    }

    /// `cuGraphExecDestroy`: launches under way go on.
    pub(crate) fn exec_destroy(&self, exec: u64) -> Outcome {
        self.lock().execs.remove(exec).map(|_| ()).ok_or(CuError::INVALID_VALUE)
    }

    pub(crate) fn exec_flags(&self, exec: u64) -> Outcome<u64> {
        Ok(self.lock().exec(exec)?.flags)
    }

    /// Replaces what a node does in later launches.
    pub(crate) fn exec_set(&self, exec: u64, node: u64, spec: &NodeSpec<'_>) -> Outcome {
        let mut driver = self.lock();
        let old = driver.exec_node(exec, node)?.kind.number();
        if let NodeSpec::Child(graph) = spec {
            let child = driver.compile_graph(*graph)?;
            let entry = driver.exec_node(exec, node)?;
            let ours = entry.child.as_mut().ok_or(CuError::INVALID_VALUE)?;
            if !ours.same_shape(&child) {
                return Err(CuError::GRAPH_EXEC_UPDATE_FAILURE);
            }
            ours.adopt(child);
            return Ok(());
        }
        if matches!(spec, NodeSpec::Conditional { .. }) {
            return Err(CuError::INVALID_VALUE);
        }
        let kind = driver.node_kind(spec)?;
        let fixed = matches!(kind, NodeKind::Alloc(_) | NodeKind::Free(_));
        if fixed || kind.number() != old {
            return Err(CuError::INVALID_VALUE);
        }
        let entry = driver.exec_node(exec, node)?;
        if let (NodeKind::Kernel(new), NodeKind::Kernel(old)) = (&kind, &entry.kind)
            && new.context != old.context
        {
            return Err(CuError::INVALID_VALUE);
        }
        entry.kind = kind;
        Ok(())
    }

    pub(crate) fn exec_node_enabled(&self, exec: u64, node: u64) -> Outcome<bool> {
        Ok(self.lock().exec_node(exec, node)?.enabled)
    }

    /// `cuGraphNodeSetEnabled`: a node that is off does nothing and keeps its place in the order.
    pub(crate) fn exec_node_enable(&self, exec: u64, node: u64, enabled: bool) -> Outcome {
        let mut driver = self.lock();
        let entry = driver.exec_node(exec, node)?;
        if !matches!(entry.kind, NodeKind::Kernel(_) | NodeKind::Copy(_) | NodeKind::Fill(_)) {
            return Err(CuError::INVALID_VALUE);
        }
        entry.enabled = enabled;
        Ok(())
    }
}
