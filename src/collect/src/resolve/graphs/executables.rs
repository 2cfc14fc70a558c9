//! Executable graphs, and the snapshot that each would run now.

use super::super::launches;
use super::super::resolution::Resolution;
use super::contents::{Contents, Node};
use super::nodes::{self, Snapshot};
use crate::launch::ByWords;
use crate::measured::LaunchedNode;
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{Entity, ExecutableId, Graph, GraphId, GraphNode, NodeAction};

/// An executable graph.
#[derive(Debug)]
struct Executable {
    id: ExecutableId,
    contents: Contents,
    /// Whether nothing has changed since `declared`.
    fresh: bool,
    /// State of the process's memory, and of what is known of kernels, when it was resolved last.
    state: (u64, u64),
    /// The last declaration, and the kernel nodes in it.
    declared: Option<(GraphId, Snapshot, Arc<[LaunchedNode]>)>,
}

/// The executable graphs of a process, by handle.
#[derive(Debug, Default)]
pub(in super::super) struct Executables {
    by_handle: HashMap<u64, Executable>,
}

impl Executables {
    /// The node of an executable that is about to be changed.
    pub(super) fn change(&mut self, executable: u64, node: u64) -> Option<&mut Node> {
        let executable = self.by_handle.get_mut(&executable)?;
        executable.fresh = false;
        executable.contents.find(node)
    }

    /// The id of an executable.
    pub(super) fn id(&self, handle: u64) -> Option<ExecutableId> {
        self.by_handle.get(&handle).map(|executable| executable.id)
    }

    /// It is no more.
    pub(super) fn remove(&mut self, handle: u64) -> Option<ExecutableId> {
        self.by_handle.remove(&handle).map(|executable| executable.id)
    }

    /// An executable has come to be.
    pub(super) fn insert(&mut self, handle: u64, id: ExecutableId, contents: Contents) {
        let executable = Executable { id, contents, fresh: false, state: (0, 0), declared: None };
        self.by_handle.insert(handle, executable);
    }

    /// An executable has become the image of another graph.
    pub(super) fn update(&mut self, handle: u64, mut contents: Contents) {
        if let Some(executable) = self.by_handle.get_mut(&handle) {
            contents.take_the_place_of(&executable.contents);
            executable.contents = contents;
            executable.fresh = false;
        }
    }
}

/// The graph that a launch of the executable would run now, declared if it is new. Counts what of
/// it is not understood if `launched`.
pub(super) fn current(
    resolution: &mut Resolution<'_>,
    handle: u64,
    launched: bool,
) -> Option<(ExecutableId, GraphId)> {
    let mut executable = resolution.tables.executables.by_handle.remove(&handle)?;
    let state = (resolution.tables.memory.changes(), resolution.codes.learnt());
    let known = executable.fresh && executable.state == state;
    if !known {
        let mut snapshot = nodes::resolve(resolution, &executable.contents);
        let same = executable.declared.as_ref().is_some_and(|(_, last, _)| *last == snapshot);
        if !same {
            let mut kernels = Vec::new();
            let contents = Some(&executable.contents);
            let graph = declare(resolution, &mut snapshot, contents, &mut kernels);
            executable.declared = Some((graph, snapshot, kernels.into()));
        }
        // Resolving may have declared memory of the graph.
        executable.state = (resolution.tables.memory.changes(), resolution.codes.learnt());
        executable.fresh = true;
    }
    let current = executable.declared.as_ref().map(|(graph, snapshot, kernels)| {
        resolution.launched_nodes = Some(kernels.clone());
        if launched {
            for gap in snapshot.gaps() {
                resolution.gaps.not_understood(gap);
            }
        }
        (executable.id, *graph)
    });
    resolution.tables.executables.by_handle.insert(handle, executable);
    current
}

/// Declares a snapshot, the graphs inside it first. `contents` are those that it was made of, or
/// `None` in the body of a conditional node, which may run any number of times. The kernel nodes go to
/// `kernels`.
fn declare(
    resolution: &mut Resolution<'_>,
    snapshot: &mut Snapshot,
    contents: Option<&Contents>,
    kernels: &mut Vec<LaunchedNode>,
) -> GraphId {
    let mut nodes = snapshot.nodes.clone();
    for (position, bodies) in &mut snapshot.bodies {
        let is_child = |node: &GraphNode| matches!(node.action, NodeAction::Child { .. });
        let runs_once = nodes.get(*position).is_some_and(is_child);
        let node = contents.filter(|_| runs_once).and_then(|inside| inside.nodes.get(*position));
        let mut ids = Vec::with_capacity(bodies.len());
        for (at, body) in bodies.iter_mut().enumerate() {
            let inside = node.and_then(|node| node.bodies.get(at));
            ids.push(declare(resolution, body, inside, kernels));
        }
        match nodes.get_mut(*position).map(|node| &mut node.action) {
            Some(NodeAction::Child { graph }) => {
                if let Some(&id) = ids.first() {
                    *graph = id;
                }
            }
            Some(NodeAction::Conditional { bodies, .. }) => *bodies = ids,
            _ => {}
        }
    }
    let id = resolution.ids.graph();
    for (position, node) in nodes.iter().enumerate() {
        let made = contents.and_then(|inside| inside.nodes.get(position));
        // A collective operation is told by its call, not by the library's kernel.
        let of_library = made.is_some_and(|made| made.maker.collective.is_some());
        if node.enabled && !of_library && matches!(node.action, NodeAction::Kernel { .. }) {
            let handle = made.map_or(0, |made| made.handle);
            let unseen = snapshot.unseen.contains(&position);
            kernels.push(LaunchedNode { handle, graph: id, position: position as u32, unseen });
        }
    }
    let process = resolution.tables.id;
    let edges = snapshot.edges.clone();
    let graph = Arc::new(Graph { id, process, name: None, nodes, edges });
    let by_words = snapshot.take_by_words();
    if !by_words.is_empty() {
        resolution.tables.graphs.insert(id, (graph.clone(), by_words.len()));
    }
    for (position, launch) in by_words {
        launches::keep(resolution, Box::new(ByWords { node: Some((id, position)), ..launch }));
    }
    resolution.declare(Entity::Graph(graph));
    id
}
