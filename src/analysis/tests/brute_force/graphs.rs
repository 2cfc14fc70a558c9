//! Graphs and batches: a launch is all of the graph's nodes, each an operation of its own.

use super::graph::{Graph, Node};
use super::rules::{Inside, Moment, Order, PlacedAccess, Rules};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use streamsan_model::{
    Access, Batch, Entities, ExecutableId, Graph as Definition, GraphId, GraphNode, Mode,
    NodeAction, OpSeq, Operation, SourceOrder, StreamId,
};

/// What is remembered of graphs.
#[derive(Default)]
pub(super) struct Graphs {
    seen: BTreeSet<GraphId>,
    /// The ends of all launches and the uploads of each executable graph.
    launches: BTreeMap<ExecutableId, Vec<Node>>,
    uploads: BTreeMap<ExecutableId, Vec<Node>>,
    pub(super) inside: Vec<Inside>,
}

/// The nodes of a graph in a world of nodes.
struct Placed<'a> {
    entities: &'a Entities,
    world: &'a mut Graph,
    /// What has been placed: the node of the graph, where it is, whether it may not run.
    nodes: Vec<(GraphNode, Node, bool)>,
}

impl Placed<'_> {
    /// A node for each node of the graph, behind `begin` and what its edges say; for one that holds
    /// a graph itself, a node at its end. Edges lead to later nodes.
    fn add(&mut self, graph: &Definition, begin: Node, may: bool) -> Vec<Node> {
        let mut behind: Vec<Vec<Node>> = Vec::new();
        let mut ends: Vec<Node> = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            let mut before = vec![begin];
            for edge in graph.edges.iter().filter(|edge| edge.to as usize == index) {
                let from = edge.from as usize;
                assert!(from < index, "random graphs are built from front to back");
                if edge.programmatic && !waits(node) {
                    // It begins when the other one has begun.
                    before.extend(behind[from].iter().copied());
                } else {
                    before.push(ends[from]);
                }
            }
            let new = self.world.node();
            for &earlier in &before {
                self.world.edge(earlier, new);
            }
            self.nodes.push((node.clone(), new, may));
            ends.push(self.end(node, new, may));
            behind.push(before);
        }
        ends
    }

    /// A body's iterations are each behind the one before, so one stands for all.
    fn end(&mut self, node: &GraphNode, begin: Node, may: bool) -> Node {
        let (body, may) = match &node.action {
            NodeAction::Child { graph } => (*graph, may),
            NodeAction::Conditional { bodies, .. } => (bodies[0], true),
            _ => return begin,
        };
        let body = Arc::clone(self.entities.graph(body).expect("declared"));
        let inner = self.add(&body, begin, may);
        let end = self.world.node();
        for node in [begin].into_iter().chain(inner) {
            self.world.edge(node, end);
        }
        end
    }
}

fn waits(node: &GraphNode) -> bool {
    match node.action {
        NodeAction::Kernel { waits_for_programmatic, .. } => {
            waits_for_programmatic || !node.enabled
        }
        _ => true,
    }
}

/// What the placed nodes touch, as accesses of what `op` says.
fn touched(
    nodes: &[(GraphNode, Node, bool)],
    op: impl Fn(&GraphNode) -> OpSeq,
) -> Vec<PlacedAccess> {
    let enabled = nodes.iter().filter(|(node, ..)| node.enabled);
    let accesses = enabled.flat_map(|(node, at, may)| {
        let op = op(node);
        let place = move |access: &Access| PlacedAccess {
            op,
            node: *at,
            on_host: false,
            access: access.clone(),
            may: *may,
            floating: None,
        };
        node.accesses.iter().map(place)
    });
    accesses.collect()
}

impl Rules {
    /// The order within a graph, the first time that it is seen.
    pub(super) fn look_inside(&mut self, id: GraphId) {
        let graph = Arc::clone(self.entities.graph(id).expect("declared"));
        if !self.graphs.seen.insert(id) {
            return;
        }
        let mut world = Graph::default();
        let begin = world.node();
        let (entities, nodes) = (&self.entities, Vec::new());
        let mut placed = Placed { entities, world: &mut world, nodes };
        placed.add(&graph, begin, false);
        let accesses = touched(&placed.nodes, |node| node.made_by);
        let order = apart(&self.entities, &world, accesses);
        self.graphs.inside.push(Inside { part_of: None, order });
    }

    /// All nodes are behind the stream's earlier work and all earlier launches of the executable
    /// graph; the stream's later work is behind all nodes.
    pub(super) fn launch_graph(
        &mut self,
        op: &Operation,
        entry: Node,
        stream: StreamId,
        executable: ExecutableId,
        id: GraphId,
    ) {
        self.look_inside(id);
        let graph = Arc::clone(self.entities.graph(id).expect("declared"));
        let begin = self.put_behind(entry, stream);
        for &earlier in self.graphs.launches.get(&executable).into_iter().flatten() {
            self.graph.edge(earlier, begin);
        }
        let (entities, nodes) = (&self.entities, Vec::new());
        let mut placed = Placed { entities, world: &mut self.graph, nodes };
        let ends = placed.add(&graph, begin, false);
        let nodes = placed.nodes;
        let end = self.graph.node();
        for node in [begin].into_iter().chain(ends) {
            self.graph.edge(node, end);
        }
        let mut records = Vec::new();
        for (node, at, _) in &nodes {
            match node.action {
                NodeAction::EventWait { event } => {
                    for captured in self.captured(event) {
                        self.graph.edge(captured, *at);
                    }
                }
                NodeAction::EventRecord { event } => records.push((event, *at)),
                _ => {}
            }
        }
        self.accesses.extend(touched(&nodes, |_| op.g));
        for (event, node) in records {
            self.recorded.insert(event, vec![node]);
        }
        self.graphs.launches.entry(executable).or_default().push(end);
        self.issued.entry(stream).or_default().push((op.g, end));
    }

    /// Behind the earlier launches and uploads of the executable graph.
    pub(super) fn upload_graph(
        &mut self,
        op: &Operation,
        entry: Node,
        stream: StreamId,
        executable: ExecutableId,
    ) {
        let node = self.issue(op.g, entry, stream);
        let Graphs { launches, uploads, .. } = &self.graphs;
        for &earlier in [launches, uploads].iter().filter_map(|of| of.get(&executable)).flatten() {
            self.graph.edge(earlier, node);
        }
        self.graphs.uploads.entry(executable).or_default().push(node);
    }

    /// One operation of its stream; the copies are not ordered among themselves.
    pub(super) fn batch(&mut self, op: &Operation, entry: Node, batch: &Batch) {
        let node = self.issue(op.g, entry, batch.stream);
        let mut world = Graph::default();
        let mut parts = Vec::new();
        let mut accesses = op.accesses.iter();
        for (index, part) in (1..).zip(&batch.entries) {
            let own = world.node();
            for access in accesses.by_ref().take(part.accesses as usize) {
                let (at, on_host) = match part.copy.source_order {
                    _ if access.mode != Mode::Read => (node, false),
                    SourceOrder::Stream => (node, false),
                    SourceOrder::DuringCall => (self.host_node(op.g, Moment::During), true),
                    SourceOrder::Any => {
                        let read = self.graph.node();
                        self.graph.edge(entry, read);
                        self.graph.edge(read, node);
                        (read, false)
                    }
                };
                let access = access.clone();
                self.accesses.push(PlacedAccess {
                    op: op.g,
                    node: at,
                    on_host,
                    access: access.clone(),
                    may: false,
                    floating: (at != node && !on_host).then_some(batch.stream),
                });
                parts.push(PlacedAccess {
                    op: OpSeq(index),
                    node: own,
                    on_host: false,
                    access,
                    may: false,
                    floating: None,
                });
            }
        }
        let order = apart(&self.entities, &world, parts);
        self.graphs.inside.push(Inside { part_of: Some(op.g), order });
    }
}

fn apart(entities: &Entities, world: &Graph, accesses: Vec<PlacedAccess>) -> Order {
    Order {
        entities: entities.clone(),
        accesses,
        issued: BTreeMap::new(),
        documented: world.closure(),
        incidental: world.closure(),
        inside: Vec::new(),
    }
}
