//! Verbs of graphs: building, instantiating, changing and launching them.
//!
//! A graph under construction can change; operations refer to a snapshot of it, which is declared
//! when a line first needs it.

use crate::SyntaxError;
use crate::node::{self, Body};
use crate::scope::Scope;
use crate::token::Token;
use crate::verb::{Call, Issue};
use std::collections::HashMap;
use std::mem::discriminant;
use std::sync::Arc;
use streamsan_model::{
    Action, EdgePort, ExecutableId, Graph, GraphEdge, GraphId, GraphNode, NodeAction, OpSeq,
    StreamId,
};

/// Graphs and executable graphs by their names.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    graphs: HashMap<String, Definition>,
    executables: HashMap<String, Executable>,
    executable_count: u32,
    snapshot_count: u32,
    /// Nodes of each snapshot with its bodies in their places, and of all snapshots without.
    sizes: HashMap<GraphId, u64>,
    all_nodes: u64,
}

/// Average number of places that a body may have in a graph: bodies that hold each other twice
/// multiply.
const MOST_PLACES: u64 = 16;
/// Nodes that a graph may have in any case.
const FEW_NODES: u64 = 1024;

impl Graphs {
    /// Counts a snapshot in.
    fn add(&mut self, id: GraphId, nodes: &[(String, GraphNode)]) {
        let size = |body: &GraphId| self.sizes.get(body).copied().unwrap_or_default();
        let bodies = nodes.iter().map(|(_, node)| match &node.action {
            NodeAction::Child { graph } => size(graph),
            NodeAction::Conditional { bodies, .. } => {
                bodies.iter().fold(0_u64, |sum, body| sum.saturating_add(size(body)))
            }
            _ => 0,
        });
        let count = nodes.len() as u64;
        let all = bodies.fold(count, u64::saturating_add);
        self.sizes.insert(id, all);
        self.all_nodes = self.all_nodes.saturating_add(count);
    }

    /// The nodes of a snapshot, if they are more than the trace gives reason for.
    fn excess(&self, id: GraphId) -> Option<u64> {
        let most = FEW_NODES.max(self.all_nodes.saturating_mul(MOST_PLACES));
        self.sizes.get(&id).copied().filter(|&size| size > most)
    }
}

/// A graph as it is now.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    name: String,
    since: usize,
    nodes: Vec<(String, GraphNode)>,
    edges: Vec<GraphEdge>,
    /// Its snapshot, unless it has changed since.
    snapshot: Option<GraphId>,
}

/// An executable graph as the next launch finds it.
#[derive(Debug)]
struct Executable {
    id: ExecutableId,
    since: usize,
    definition: Definition,
}

impl Definition {
    pub(crate) fn new(name: &str, since: usize) -> Self {
        let (nodes, edges) = (Vec::new(), Vec::new());
        Self { name: name.to_owned(), since, nodes, edges, snapshot: None }
    }

    /// The graph under its name, which it gets on line `since`.
    pub(crate) fn called(self, name: &str, since: usize) -> Self {
        Self { name: name.to_owned(), since, ..self }
    }

    /// Adds a node and answers its position.
    pub(crate) fn push(&mut self, name: String, node: GraphNode) -> u32 {
        self.nodes.push((name, node));
        self.snapshot = None;
        self.nodes.len() as u32 - 1
    }

    pub(crate) fn add_edge(&mut self, edge: GraphEdge) {
        self.edges.push(edge);
        self.snapshot = None;
    }

    pub(crate) fn edges(&self) -> &[GraphEdge] {
        &self.edges
    }

    pub(crate) fn node(&self, position: u32) -> Option<&GraphNode> {
        self.nodes.get(position as usize).map(|(_, node)| node)
    }

    fn position(&self, token: Token<'_>) -> Result<u32, SyntaxError> {
        let name = token.identifier("a node")?;
        let position = self.nodes.iter().position(|(other, _)| other == name);
        position.map(|at| at as u32).ok_or_else(|| {
            token.error(format!("graph `{}` has no node `{name}` so far", self.name))
        })
    }

    /// Whether a path leads from one node to another.
    fn reaches(&self, from: u32, to: u32) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut waiting = vec![from];
        while let Some(at) = waiting.pop() {
            if at == to {
                return true;
            }
            if !std::mem::replace(&mut seen[at as usize], true) {
                waiting.extend(self.edges.iter().filter(|e| e.from == at).map(|e| e.to));
            }
        }
        false
    }

    /// Why an executable graph of this definition cannot be updated to `other`.
    fn differs_from(&self, other: &Self) -> Option<&'static str> {
        let kinds = |definition: &Self| -> Vec<_> {
            definition.nodes.iter().map(|(_, node)| discriminant(&node.action)).collect()
        };
        let sorted = |definition: &Self| -> Vec<GraphEdge> {
            let mut edges = definition.edges.clone();
            edges.sort();
            edges
        };
        if kinds(self) != kinds(other) {
            Some("its nodes are of other kinds")
        } else if sorted(self) != sorted(other) {
            Some("its edges are others")
        } else {
            None
        }
    }
}

impl Scope {
    /// The snapshot of `definition`, which is declared unless it has been.
    fn snapshot(&mut self, definition: &mut Definition) -> GraphId {
        if let Some(id) = definition.snapshot {
            return id;
        }
        let id = GraphId(self.graphs.snapshot_count);
        self.graphs.snapshot_count += 1;
        self.graphs.add(id, &definition.nodes);
        let process = self.current_process();
        self.declare(streamsan_model::Entity::Graph(Arc::new(Graph {
            id,
            process,
            name: Some(definition.name.clone()),
            nodes: definition.nodes.iter().map(|(_, node)| node.clone()).collect(),
            edges: definition.edges.clone(),
        })));
        definition.snapshot = Some(id);
        id
    }

    /// The snapshot of the graph that `token` names.
    pub(crate) fn graph(&mut self, token: Token<'_>) -> Result<GraphId, SyntaxError> {
        let mut definition = self.definition(token)?.clone();
        let id = self.snapshot(&mut definition);
        self.definition(token)?.snapshot = Some(id);
        match self.graphs.excess(id) {
            Some(nodes) => Err(token.error(format!(
                "graph `{}` has {nodes} nodes when each body is put in its place, which are too many",
                definition.name
            ))),
            None => Ok(id),
        }
    }

    fn definition(&mut self, token: Token<'_>) -> Result<&mut Definition, SyntaxError> {
        let key = self.own_key(token.identifier("a graph")?);
        self.graphs.graphs.get_mut(&key).ok_or_else(|| {
            token.error(format!(
                "graph `{0}` is not declared; write `graph {0}` on a line before",
                token.text
            ))
        })
    }

    /// Gives a name to a new graph.
    pub(crate) fn declare_graph(
        &mut self,
        token: Token<'_>,
        definition: impl FnOnce(&str) -> Definition,
    ) -> Result<(), SyntaxError> {
        let name = token.identifier("a name for the graph")?;
        let key = self.own_key(name);
        if let Some(other) = self.graphs.graphs.get(&key) {
            return Err(token.error(format!(
                "graph `{name}` is in use since line {}; choose another name",
                other.since
            )));
        }
        let definition = definition(&key);
        self.graphs.graphs.insert(key, definition);
        Ok(())
    }

    fn executable(&mut self, token: Token<'_>) -> Result<&mut Executable, SyntaxError> {
        let key = self.own_key(token.identifier("an executable graph")?);
        self.graphs.executables.get_mut(&key).ok_or_else(|| {
            token.error(format!(
                "`{0}` is no executable graph; write `instantiate G {0}` on a line before",
                token.text
            ))
        })
    }
}

/// All lines of graphs.
pub(crate) fn graph(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    match issue.verb.text {
        "graph" => declare(issue),
        "node" => add_node(issue),
        "edge" => add_edge(issue),
        "instantiate" => instantiate(issue),
        "update" => update(issue),
        "set_node" => set_node(issue),
        "disable_node" | "enable_node" => enable_node(issue),
        "launch_graph" => launch(issue),
        "upload_graph" => upload(issue),
        _ => destroy(issue),
    }
}

fn declare(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    issue.must_succeed()?;
    let token = issue.cursor.next("a name for the graph")?;
    let line = issue.line();
    issue.scope.declare_graph(token, |name| Definition::new(name, line))?;
    Ok(Call::plain("cuGraphCreate", Action::Other))
}

fn add_node(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    issue.must_succeed()?;
    let graph = issue.cursor.next("a graph")?;
    let name = issue.cursor.next("a name for the node")?;
    let taken = issue.scope.definition(graph)?.position(name);
    let text = name.identifier("a name for the node")?;
    if taken.is_ok() {
        return Err(name.error(format!("graph `{}` has a node `{text}`", graph.text)));
    }
    let Body { api, action, accesses } = node::body(issue)?;
    let node = GraphNode {
        made_by: OpSeq(issue.line() as u64),
        api: issue.api.map_or(&*api, |token| token.text).into(),
        captured_from: None,
        enabled: true,
        action,
        accesses,
        stack: issue.scope.stack,
    };
    issue.scope.definition(graph)?.push(text.to_owned(), node);
    Ok(Call::plain(&api, Action::Other))
}

fn add_edge(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let graph = issue.cursor.next("a graph")?;
    issue.scope.definition(graph)?;
    let from = issue.cursor.next("the node before")?;
    let to = issue.cursor.next("the node behind")?;
    let mut ports = EdgePort::ALL.into_iter().filter(|&port| port != EdgePort::End);
    let port = ports.find(|port| issue.cursor.flag(port.description())).unwrap_or_default();
    let is_success = issue.status.is_success();
    let definition = issue.scope.definition(graph)?;
    let edge = GraphEdge { from: definition.position(from)?, to: definition.position(to)?, port };
    if definition.edges.iter().any(|e| (e.from, e.to) == (edge.from, edge.to)) {
        return Err(to.error("there is an edge between these nodes"));
    }
    if definition.reaches(edge.to, edge.from) {
        return Err(to.error("this edge would close a cycle"));
    }
    let is_kernel = |at| matches!(definition.node(at), Some(n) if is_kernel(n));
    if port != EdgePort::End && !is_kernel(edge.from) {
        return Err(from.error("only kernels can be programmatic predecessors"));
    }
    if is_success {
        definition.add_edge(edge);
    }
    Ok(Call::plain("cuGraphAddDependencies_v2", Action::Other))
}

/// Whether a node is a kernel.
pub(crate) fn is_kernel(node: &GraphNode) -> bool {
    matches!(node.action, NodeAction::Kernel { .. })
}

fn instantiate(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    issue.must_succeed()?;
    let token = issue.cursor.next("a graph")?;
    let graph = issue.scope.graph(token)?;
    let definition = issue.scope.definition(token)?.clone();
    let token = issue.cursor.next("a name for the executable graph")?;
    let key = issue.scope.own_key(token.identifier("a name for the executable graph")?);
    let since = issue.line();
    let graphs = &mut issue.scope.graphs;
    if let Some(other) = graphs.executables.get(&key) {
        return Err(token.error(format!(
            "executable graph `{}` is in use since line {}; choose another name",
            token.text, other.since
        )));
    }
    let executable = ExecutableId(graphs.executable_count);
    graphs.executable_count += 1;
    graphs.executables.insert(key, Executable { id: executable, since, definition });
    let action = Action::GraphInstantiate { executable, graph };
    Ok(Call::plain("cuGraphInstantiateWithFlags", action))
}

fn update(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("an executable graph")?;
    let executable = issue.scope.executable(token)?.id;
    let other = issue.cursor.next("a graph")?;
    let graph = issue.scope.graph(other)?;
    if issue.status.is_success() {
        let definition = issue.scope.definition(other)?.clone();
        let target = issue.scope.executable(token)?;
        if let Some(why) = target.definition.differs_from(&definition) {
            return Err(other.error(format!(
                "`{}` cannot be updated to this graph: {why}; instantiate it instead",
                token.text
            )));
        }
        target.definition = definition;
    }
    let action = Action::GraphUpdate { executable, graph };
    Ok(Call::plain("cuGraphExecUpdate_v2", action))
}

fn set_node(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let (token, name, position) = executable_node(issue)?;
    let Body { action, accesses, .. } = node::body(issue)?;
    let is_success = issue.status.is_success();
    let definition = &mut issue.scope.executable(token)?.definition;
    let Some((_, node)) = definition.nodes.get_mut(position as usize) else {
        return Err(name.expected("a node"));
    };
    let Some(api) = node::set_parameters(&action) else {
        return Err(name.error("the parameters of such a node cannot be set"));
    };
    if discriminant(&node.action) != discriminant(&action) {
        return Err(name.error(format!("node `{}` is of another kind", name.text)));
    }
    if is_success {
        (node.action, node.accesses) = (action, accesses);
        definition.snapshot = None;
    }
    Ok(Call::plain(api, Action::Other))
}

/// `X N`: an executable graph and one of its nodes.
fn executable_node<'a>(
    issue: &mut Issue<'_, 'a>,
) -> Result<(Token<'a>, Token<'a>, u32), SyntaxError> {
    let token = issue.cursor.next("an executable graph")?;
    issue.scope.executable(token)?;
    let name = issue.cursor.next("a node")?;
    let position = issue.scope.executable(token)?.definition.position(name)?;
    Ok((token, name, position))
}

fn enable_node(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let enabled = issue.verb.text == "enable_node";
    let is_success = issue.status.is_success();
    let (token, name, position) = executable_node(issue)?;
    let definition = &mut issue.scope.executable(token)?.definition;
    let Some((_, node)) = definition.nodes.get_mut(position as usize) else {
        return Err(name.expected("a node"));
    };
    use NodeAction::{Copy, Kernel, Memset};
    if !matches!(node.action, Kernel { .. } | Copy(_) | Memset { .. }) {
        return Err(name.error("only kernels, copies and memsets can be enabled and disabled"));
    }
    if is_success && node.enabled != enabled {
        node.enabled = enabled;
        definition.snapshot = None;
    }
    Ok(Call::plain("cuGraphNodeSetEnabled", Action::Other))
}

fn launch(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("an executable graph")?;
    let target = issue.scope.executable(token)?;
    let (executable, mut definition) = (target.id, target.definition.clone());
    let stream = issue.next_stream()?;
    let graph = issue.scope.snapshot(&mut definition);
    issue.scope.executable(token)?.definition.snapshot = Some(graph);
    Ok(Call::plain("cuGraphLaunch", Action::GraphLaunch { stream, executable, graph }))
}

fn upload(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("an executable graph")?;
    let executable = issue.scope.executable(token)?.id;
    let stream: StreamId = issue.next_stream()?;
    Ok(Call::plain("cuGraphUpload", Action::GraphUpload { stream, executable }))
}

fn destroy(issue: &mut Issue<'_, '_>) -> Result<Call, SyntaxError> {
    let token = issue.cursor.next("an executable graph")?;
    let executable = issue.scope.executable(token)?.id;
    if issue.status.is_success() {
        let key = issue.scope.own_key(token.text);
        issue.scope.graphs.executables.remove(&key);
    }
    Ok(Call::plain("cuGraphExecDestroy", Action::GraphDestroy { executable }))
}
