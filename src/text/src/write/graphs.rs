//! Graphs as lines: one for each node and edge, written before the first line that needs them.
//!
//! A launch names the snapshot that it runs. Where the lines so far would make the executable graph
//! run another snapshot, lines that set, disable and enable nodes come before it.

use super::calls::{order_option, sides};
use super::{Inexpressible, UNDECLARED, Words, Writer, Written, names};
use crate::node::{add, set_parameters};
use crate::scope::can_be_named;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::mem::discriminant;
use std::sync::Arc;
use streamsan_model::{
    Access, AllocationId, EdgePort, ExecutableId, Graph, GraphEdge, GraphId, GraphNode, MemoryKind,
    NodeAction, Operation, StreamId,
};

/// Graphs written so far.
#[derive(Debug, Default)]
pub(super) struct GraphNames {
    names: HashMap<GraphId, String>,
    taken: HashSet<String>,
    /// The snapshot that the next launch of an executable graph runs by the lines so far.
    current: HashMap<ExecutableId, Graph>,
    /// Memory whose allocation node has been written.
    allocated: HashSet<AllocationId>,
}

impl Writer {
    pub(super) fn instantiate(
        &mut self,
        executable: ExecutableId,
        graph: GraphId,
        verb: &str,
        usual: &str,
        succeeds: bool,
    ) -> Written<Words> {
        let name = self.graph(graph)?;
        if !succeeds && verb == "update" {
            let executable = self.executable(executable)?;
            return Ok(Words {
                text: format!("update {executable} {name}"),
                usual: usual.to_owned(),
            });
        }
        if !succeeds {
            return Err(Inexpressible("it failed and made nothing"));
        }
        let mut current = Graph::clone(self.entities.graph(graph).ok_or(UNDECLARED)?);
        current.nodes.iter_mut().for_each(|node| node.enabled = true);
        self.graphs.current.insert(executable, current);
        let text = match verb {
            "update" => format!("update x{executable} {name}"),
            _ => format!("instantiate {name} x{executable}"),
        };
        Ok(Words { text, usual: usual.to_owned() })
    }

    pub(super) fn launch_graph(
        &mut self,
        stream: StreamId,
        executable: ExecutableId,
        graph: GraphId,
        operation: &Operation,
    ) -> Written<Words> {
        let target = Arc::clone(self.entities.graph(graph).ok_or(UNDECLARED)?);
        let stream = self.stream(stream, operation.thread)?;
        self.change(executable, &target)?;
        let text = format!("launch_graph x{executable} {stream}");
        Ok(Words { text, usual: "cuGraphLaunch".to_owned() })
    }

    /// Whether lines before instantiate the executable graph.
    pub(super) fn executable(&self, executable: ExecutableId) -> Written<String> {
        match self.graphs.current.contains_key(&executable) {
            true => Ok(format!("x{executable}")),
            false => Err(Inexpressible("its instantiation is not in the trace")),
        }
    }

    /// Makes the next launch of an executable graph run `target`.
    fn change(&mut self, executable: ExecutableId, target: &Graph) -> Written<()> {
        const UNKNOWN: Inexpressible = Inexpressible("its instantiation is not in the trace");
        let current = self.graphs.current.get(&executable).cloned().ok_or(UNKNOWN)?;
        let same_edges = |a: &Graph, b: &Graph| -> bool {
            let sorted = |graph: &Graph| -> Vec<GraphEdge> {
                let mut edges = graph.edges.clone();
                edges.sort();
                edges
            };
            sorted(a) == sorted(b)
        };
        if current.nodes.len() != target.nodes.len() || !same_edges(&current, target) {
            return Err(Inexpressible("it runs nodes or edges that no line has instantiated"));
        }
        let prefix = self.process_prefix(target.process);
        for (at, (old, new)) in current.nodes.iter().zip(&target.nodes).enumerate() {
            if essence(old) != essence(new) {
                if discriminant(&old.action) != discriminant(&new.action)
                    || set_parameters(&new.action).is_none()
                {
                    return Err(Inexpressible("it runs nodes that no line can set"));
                }
                let body = self.node_body(new)?;
                for access in &new.accesses {
                    self.introduce(access.allocation);
                }
                self.push_line(&format!("{prefix}set_node x{executable} n{at} {body}"));
            }
            if old.enabled != new.enabled {
                let verb = if new.enabled { "enable_node" } else { "disable_node" };
                self.push_line(&format!("{prefix}{verb} x{executable} n{at}"));
            }
        }
        self.graphs.current.insert(executable, target.clone());
        Ok(())
    }

    /// The name of a graph, whose lines are written unless they have been.
    fn graph(&mut self, id: GraphId) -> Written<String> {
        if let Some(name) = self.graphs.names.get(&id) {
            return Ok(name.clone());
        }
        let graph = Arc::clone(self.entities.graph(id).ok_or(UNDECLARED)?);
        let prefix = self.process_prefix(graph.process);
        // Their lines come first, and may name memory that nodes here allocate.
        for node in &graph.nodes {
            match &node.action {
                NodeAction::Child { graph } => drop(self.graph(*graph)?),
                NodeAction::Conditional { bodies, .. } => {
                    bodies.iter().try_for_each(|body| self.graph(*body).map(drop))?;
                }
                _ => {}
            }
        }
        let mut lines = Vec::new();
        // Memory that nodes before use, and that which they allocate.
        let (mut older, mut made) = (Vec::new(), HashSet::new());
        for (at, node) in graph.nodes.iter().enumerate() {
            let body = match node.action {
                NodeAction::Allocate { allocation } => {
                    let text = self.allocation_node(allocation, made.contains(&allocation))?;
                    made.insert(allocation);
                    text
                }
                _ => {
                    let freed = match node.action {
                        NodeAction::Free { allocation } => Some(allocation),
                        _ => None,
                    };
                    let used = node.accesses.iter().map(|access| access.allocation).chain(freed);
                    older.extend(used.filter(|&used| self.is_unwritten(used) && made.insert(used)));
                    self.node_body(node)?
                }
            };
            let usual = add(&node.action);
            let api = match *node.api == *usual || node.api.is_empty() {
                true => String::new(),
                false => format!(" api={}", node.api.replace(char::is_whitespace, "_")),
            };
            lines.push((format!("n{at} {body}{api}"), at));
        }
        older.into_iter().for_each(|allocation| self.introduce(allocation));
        self.graphs.allocated.extend(made);
        let name = self.graph_name(graph.name.as_deref(), || format!("g{}", graph.id));
        self.push_line(&format!("{prefix}graph {name}"));
        for (line, at) in lines {
            self.push_line(&format!("{prefix}node {name} {line}"));
            // The names of the run's calls here.
            if let Some(node) = graph.nodes.get(at) {
                self.lines.insert(node.made_by, self.line);
            }
        }
        for GraphEdge { from, to, port } in &graph.edges {
            let port = match port {
                EdgePort::End => String::new(),
                port => format!(" {}", port.description()),
            };
            self.push_line(&format!("{prefix}edge {name} n{from} n{to}{port}"));
        }
        self.graphs.names.insert(id, name.clone());
        Ok(name)
    }

    /// Whether only a node of a graph can make the memory, and no line has done so yet.
    fn is_unwritten(&self, id: AllocationId) -> bool {
        let kind = self.entities.allocation(id).map(|buffer| buffer.kind);
        kind == Some(MemoryKind::GraphOrdered) && !self.graphs.allocated.contains(&id)
    }

    /// Writes a graph that allocates the memory and is never launched, where nodes whose lines come
    /// later or not at all have made it: a name that no line has declared would be another buffer.
    pub(super) fn introduce(&mut self, id: AllocationId) {
        if !self.is_unwritten(id) {
            return;
        }
        let Ok(node) = self.allocation_node(id, false) else { return };
        let process = self.entities.allocation(id).map(|buffer| buffer.process);
        let prefix = process.map_or(String::new(), |process| self.process_prefix(process));
        let name = self.names.of_buffer(id);
        let wanted = format!("of_{}", name.rsplit('/').next().unwrap_or_default());
        let graph = self.graph_name(Some(&wanted), || wanted.clone());
        self.push_line(&format!("{prefix}graph {graph}"));
        self.push_line(&format!("{prefix}node {graph} n0 {node}"));
        self.graphs.allocated.insert(id);
    }

    /// A name for a graph: the wanted one where the grammar takes it.
    fn graph_name(&mut self, wanted: Option<&str>, otherwise: impl Fn() -> String) -> String {
        let wanted = wanted.map(|name| name.rsplit('/').next().unwrap_or_default());
        let base = match wanted.filter(|name| can_be_named(name)) {
            Some(name) => name.to_owned(),
            None => otherwise(),
        };
        let mut name = base.clone();
        for count in 2.. {
            if self.graphs.taken.insert(name.clone()) {
                break;
            }
            name = format!("{base}_{count}");
        }
        name
    }

    /// The action of a node, in words.
    fn node_body(&mut self, node: &GraphNode) -> Written<String> {
        Ok(match &node.action {
            // A node that is not known passes order on, as an empty node does.
            NodeAction::Empty | NodeAction::Unknown { .. } => "empty".to_owned(),
            NodeAction::Kernel { kernel, control } => {
                let kernel = self.entities.kernel(*kernel).ok_or(UNDECLARED)?;
                let name = names::kernel(&kernel.name);
                format!("launch {name}{}", self.kernel_words(*control, &node.accesses)?)
            }
            NodeAction::Copy(copy) => {
                let (to, from) = sides(&node.accesses)?;
                let verb = if copy.peer.is_some() { "copy_peer" } else { "copy" };
                let (to, from) = (self.region(to)?, self.region(from)?);
                format!("{verb} dst:{to} src:{from}{}", order_option(copy))
            }
            NodeAction::Memset { .. } => format!("memset {}", self.region(only(&node.accesses)?)?),
            NodeAction::HostFunction => format!("host_fn{}", self.access_list(&node.accesses)?),
            NodeAction::EventRecord { event } => format!("record {}", self.names.of_event(*event)),
            NodeAction::EventWait { event } => format!("wait {}", self.names.of_event(*event)),
            NodeAction::Allocate { allocation } => self.allocation_node(*allocation, true)?,
            NodeAction::Free { allocation } => {
                format!("free {}", self.names.of_buffer(*allocation))
            }
            NodeAction::Child { graph } => format!("child {}", self.graph(*graph)?),
            NodeAction::Conditional { kind, bodies } => {
                let mut text = kind.description().to_owned();
                for body in bodies {
                    let _ = write!(text, " {}", self.graph(*body)?);
                }
                text
            }
            NodeAction::Signals { operations } => self.signal_words(operations, None)?,
        })
    }

    /// The node that allocates memory, which has one `already`, or may be the second in other lines.
    fn allocation_node(&self, id: AllocationId, already: bool) -> Written<String> {
        let buffer = self.entities.allocation(id).cloned().ok_or(UNDECLARED)?;
        let name = self.names.of_buffer(id);
        let mut text = format!("alloc {name} {}", buffer.range.len());
        text.push_str(&self.context_words(&buffer, &name));
        if already || self.graphs.allocated.contains(&id) {
            text.push_str(" existing");
        }
        Ok(text)
    }
}

fn only(accesses: &[Access]) -> Written<&Access> {
    match accesses {
        [access] => Ok(access),
        _ => Err(Inexpressible("its destination is not known")),
    }
}

/// The action and the accesses that a line for a node states.
fn essence(node: &GraphNode) -> (NodeAction, &[Access]) {
    let action = match &node.action {
        NodeAction::Copy(copy) => {
            NodeAction::Copy(streamsan_model::Copy { stream: StreamId(0), ..*copy })
        }
        action => action.clone(),
    };
    (action, &node.accesses)
}
