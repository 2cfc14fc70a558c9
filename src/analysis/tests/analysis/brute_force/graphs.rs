//! Graphs and batches: a launch is all of the graph's nodes, each an operation of its own.

use super::graph::{Graph, Node};
use super::launches::Kernel;
use super::rules::{Inside, Moment, Order, PlacedAccess, Rules};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use streamsan_model::{
    Access, Batch, EdgePort, Entities, ExecutableId, Graph as Definition, GraphId, GraphNode, Mode,
    NodeAction, OpSeq, Operation, SourceOrder, StreamId,
};

/// State of the graphs.
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
    nodes: Vec<PlacedNode>,
}

/// A node of the graph, where it is, whether it may not run.
struct PlacedNode {
    node: GraphNode,
    at: Node,
    may: bool,
    /// Where each of its accesses is.
    accesses: Vec<Node>,
}

impl Placed<'_> {
    /// A node for each node of the graph, behind `begin` and what its edges say; for one that holds
    /// a graph itself, a node at its end. Edges lead to later nodes.
    fn add(&mut self, graph: &Definition, begin: Node, may: bool) -> Vec<Node> {
        let mut kernels: Vec<Option<Kernel>> = Vec::new();
        let mut ends: Vec<Node> = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            let control = match node.action {
                NodeAction::Kernel { control, .. } if node.enabled => Some(control),
                _ => None,
            };
            let (mut before, mut covered) = (vec![begin], Vec::new());
            for edge in graph.edges.iter().filter(|edge| edge.to as usize == index) {
                let from = edge.from as usize;
                assert!(from < index, "random graphs are built from front to back");
                match (kernels[from], control) {
                    (Some(kernel), Some(_)) if edge.port != EdgePort::End => {
                        before.push(kernel.open(edge.port));
                        if edge.port != EdgePort::BegunOnly {
                            covered.push(kernel.end);
                        }
                    }
                    _ => before.push(ends[from]),
                }
            }
            let new = self.world.node();
            for &earlier in &before {
                self.world.edge(earlier, new);
            }
            let kernel = control.map(|control| Kernel::new(self.world, control, new, &covered));
            let access = |(position, access): (usize, &Access)| match kernel {
                Some(kernel) => kernel.access(self.world, position, access.mode),
                None => new,
            };
            let accesses = node.accesses.iter().enumerate().map(access).collect();
            let at = kernel.map_or(new, |kernel| kernel.end);
            self.nodes.push(PlacedNode { node: node.clone(), at, may, accesses });
            ends.push(self.end(node, at, may));
            kernels.push(kernel);
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

/// The accesses of the placed nodes; `op` gives the operation of each node.
fn touched(nodes: &[PlacedNode], op: impl Fn(&GraphNode) -> OpSeq) -> Vec<PlacedAccess> {
    let enabled = nodes.iter().filter(|placed| placed.node.enabled);
    let accesses = enabled.flat_map(|placed| {
        let op = op(&placed.node);
        let place = move |(access, &node): (&Access, &Node)| PlacedAccess {
            op,
            node,
            on_host: false,
            access: access.clone(),
            may: placed.may,
            floating: None,
        };
        placed.node.accesses.iter().zip(&placed.accesses).map(place)
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
        for PlacedNode { node, at, .. } in &nodes {
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
        overlaps: false,
    }
}
