//! Batches, and graphs with their executables.

use super::super::recipe::{Call, NodeKind, NodeRecipe, Shape};
use super::Builder;
use std::sync::Arc;
use streamsan_model::{
    Access, Action, Basis, Batch, BatchEntry, ByteRange, Copy, EdgePort, Entity, ExecutableId,
    Graph, GraphEdge, GraphId, GraphNode, GridControl, KernelId, MemoryKind, Mode, NodeAction,
    OpSeq, ProcessId, SourceOrder,
};

impl Builder {
    pub(super) fn batch(
        &mut self,
        call: Call,
        stream: u8,
        entries: &[(u8, u8, Shape, SourceOrder)],
    ) {
        let Some(stream) = self.stream(stream) else { return };
        let mut batch = Batch { stream, entries: Vec::new() };
        let mut accesses = Vec::new();
        for &(from, to, shape, source_order) in entries {
            let (from, to) = (self.buffer(from), self.buffer(to));
            if from.id == to.id {
                continue;
            }
            let common = from.range.len().min(to.range.len());
            for (buffer, mode) in [(from, Mode::Read), (to, Mode::Write)] {
                let range = ByteRange::with_len(buffer.range.start, common);
                let extent = self.extent(range, shape);
                accesses.push(Access { allocation: buffer.id, extent, mode, basis: Basis::Exact });
            }
            let copy = Copy {
                stream,
                synchronous: false,
                source: from.kind,
                destination: to.kind,
                peer: None,
                bytes: common,
                source_order,
                sync_memops: false,
            };
            batch.entries.push(BatchEntry { copy, accesses: 2 });
        }
        self.call(call, "cuMemcpyBatchAsync", Action::Batch(Arc::new(batch)), accesses);
    }

    /// The executable graph, once it is instantiated.
    pub(super) fn executable(&self, wanted: u8) -> Option<(ExecutableId, GraphId)> {
        self.executables[usize::from(wanted) % self.executables.len()]
    }

    /// Makes every node by a call of its own, then the executable graph, or updates it.
    pub(super) fn instantiate(&mut self, call: Call, wanted: u8, nodes: &[NodeRecipe]) {
        let call = Call { fails: false, ..call };
        let id = GraphId(self.next_graph);
        self.next_graph += 1;
        let mut graph = Graph {
            id,
            process: ProcessId(0),
            name: Some(format!("g{id}")),
            nodes: Vec::new(),
            edges: Vec::new(),
        };
        for (index, node) in (0..).zip(nodes) {
            let body = match node.kind {
                NodeKind::Body { chained, .. } => Some(self.body(call, node, chained)),
                _ => None,
            };
            self.call(call, "cuGraphAddNode_v2", Action::Other, vec![]);
            let made_by = self.newest_call();
            graph.nodes.push(self.node(made_by, node, body));
            graph.edges.extend((0..index).filter(|&from| node.behind >> from & 1 == 1).map(
                |from| {
                    let before = nodes[from as usize].kind;
                    let overlaps = node.programmatic >> from & 1 == 1
                        && matches!(before, NodeKind::Kernel { .. });
                    let port = if overlaps { node.port } else { EdgePort::End };
                    GraphEdge { from, to: index, port }
                },
            ));
        }
        self.entity(Entity::Graph(Arc::new(graph)));
        let slot = usize::from(wanted) % self.executables.len();
        // Now and then the graph that runs changes under the executable.
        if let Some((executable, _)) = self.executables[slot].filter(|_| nodes.len() > 3) {
            self.executables[slot] = Some((executable, id));
            let action = Action::GraphUpdate { executable, graph: id };
            self.call(call, "cuGraphExecUpdate_v2", action, vec![]);
            return;
        }
        let executable = ExecutableId(self.next_executable);
        self.next_executable += 1;
        self.executables[slot] = Some((executable, id));
        let action = Action::GraphInstantiate { executable, graph: id };
        self.call(call, "cuGraphInstantiateWithFlags", action, vec![]);
    }

    /// A graph with a kernel for each touch.
    fn body(&mut self, call: Call, node: &NodeRecipe, chained: bool) -> GraphId {
        let id = GraphId(self.next_graph);
        self.next_graph += 1;
        let mut graph =
            Graph { id, process: ProcessId(0), name: None, nodes: Vec::new(), edges: Vec::new() };
        for (index, touch) in (0..).zip(&node.touches) {
            self.call(call, "cuGraphAddNode_v2", Action::Other, vec![]);
            let kernel = NodeRecipe {
                kind: NodeKind::Kernel { control: GridControl::UNKNOWN },
                touches: vec![*touch],
                behind: 0,
                programmatic: 0,
                port: EdgePort::End,
            };
            graph.nodes.push(self.node(self.newest_call(), &kernel, None));
            if chained && index > 0 {
                graph.edges.push(GraphEdge { from: index - 1, to: index, port: EdgePort::End });
            }
        }
        self.entity(Entity::Graph(Arc::new(graph)));
        id
    }

    fn node(&self, made_by: OpSeq, node: &NodeRecipe, body: Option<GraphId>) -> GraphNode {
        let mut accesses = self.accesses(&node.touches);
        let action = match node.kind {
            NodeKind::Kernel { control } => NodeAction::Kernel { kernel: KernelId(0), control },
            NodeKind::Disabled => {
                NodeAction::Kernel { kernel: KernelId(0), control: GridControl::default() }
            }
            NodeKind::Memset => {
                accesses.iter_mut().for_each(|access| access.mode = Mode::Write);
                NodeAction::Memset { destination: MemoryKind::Device }
            }
            NodeKind::Record { event } => NodeAction::EventRecord { event: self.event(event) },
            NodeKind::Wait { event } => NodeAction::EventWait { event: self.event(event) },
            NodeKind::Body { condition, .. } => {
                let graph = body.expect("made before the node");
                condition.map_or(NodeAction::Child { graph }, |kind| NodeAction::Conditional {
                    kind,
                    bodies: vec![graph],
                })
            }
        };
        if !matches!(action, NodeAction::Kernel { .. } | NodeAction::Memset { .. }) {
            accesses.clear();
        }
        GraphNode {
            made_by,
            api: "cuGraphAddNode_v2".into(),
            captured_from: None,
            enabled: !matches!(node.kind, NodeKind::Disabled),
            action,
            accesses,
            stack: None,
        }
    }
}
