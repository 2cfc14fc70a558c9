//! Graphs: contents of executables, who made their nodes, and when a snapshot is declared.

use super::bench::{Bench, INVALID, exact};
use crate::read_back::{NodeContents, ReadBack, ReadGraph, ReadNode};
use std::sync::Arc;
use streamsan_model::{
    Access, Action, Allocation, AllocationId, Basis, ConditionalKind, EdgePort, Entity, Graph,
    GraphEdge, IncompleteReason, MemoryKind, Mode, NodeAction, Operation,
};
use streamsan_wire::node_kind::*;
use streamsan_wire::{Api, WireEdge};

const A: u64 = 0x1000;
const B: u64 = 0x2000;
const GRAPH: u64 = 0x900;
const EXEC: u64 = 0xe00;
const STREAM: u64 = 0x500;
const FUNCTION: u64 = 0x77;

fn bytes(words: &[u64]) -> Box<[u8]> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A node; its handle is 0x100 and its position.
fn node(index: u32, kind: i32, params: &[u64]) -> ReadNode {
    let contents = NodeContents { params: bytes(params), ..NodeContents::default() };
    let handle = 0x100 + u64::from(index);
    let bodies = Vec::new();
    ReadNode { index, kind, readable: true, updatable: false, handle, contents, bodies }
}

fn memset(index: u32, start: u64, len: u64) -> ReadNode {
    // Value, and the size of an element in the upper half.
    node(index, MEMSET, &[start, 0, 1 << 32, len, 1])
}

fn memcpy(index: u32, to: u64, from: u64, len: u64) -> ReadNode {
    let mut words = [0; 25];
    (words[4], words[6]) = (2, from);
    (words[15], words[17]) = (2, to);
    (words[22], words[23], words[24]) = (len, 1, 1);
    node(index, MEMCPY, &words)
}

fn whole(nodes: Vec<ReadNode>, edges: &[(u32, u32)]) -> ReadGraph {
    let edges: Vec<_> =
        edges.iter().map(|&(from, to)| WireEdge { from, to, data: [0; 8] }).collect();
    ReadGraph { end: Some((nodes.len() as u32, edges.len() as u32, true)), nodes, edges }
}

fn read(graphs: Vec<ReadGraph>) -> ReadBack {
    ReadBack { graphs: (0..).zip(graphs).collect(), ..ReadBack::default() }
}

struct Graphs {
    bench: Bench,
    a: AllocationId,
    b: AllocationId,
}

impl Graphs {
    fn new() -> Self {
        let mut bench = Bench::new();
        let (a, b) = (bench.alloc(A, 0x100), bench.alloc(B, 0x100));
        bench.call(Api::cuStreamCreate, &[0x10, 1], &[STREAM, 7]);
        Self { bench, a, b }
    }

    fn with(&mut self, api: Api, args: &[u64], outs: &[u64], read: ReadBack) -> Operation {
        self.bench.full(api, args, outs, 0, |call| call.read_back = Some(Box::new(read)))
    }

    fn instantiate(&mut self, read: ReadBack) -> Operation {
        self.with(Api::cuGraphInstantiateWithFlags, &[0x10, GRAPH, 0], &[EXEC], read)
    }

    fn launch(&mut self) -> Operation {
        self.bench.call(Api::cuGraphLaunch, &[EXEC, STREAM], &[])
    }

    /// The graph that a launch runs now.
    fn launched(&mut self) -> Arc<Graph> {
        let launch = self.launch();
        let Action::GraphLaunch { graph, .. } = launch.action else { panic!("{launch:?}") };
        assert!(launch.accesses.is_empty());
        self.graphs().into_iter().find(|g| g.id == graph).expect("declared before")
    }

    fn graphs(&self) -> Vec<Arc<Graph>> {
        let graphs = self.bench.entities.iter().filter_map(|entity| match entity {
            Entity::Graph(graph) => Some(graph.clone()),
            _ => None,
        });
        graphs.collect()
    }

    fn reasons(&self) -> Vec<String> {
        let names = self.bench.reasons().into_iter().map(|reason| match reason {
            IncompleteReason::NotUnderstood { api, .. } => api,
            other => format!("{other:?}"),
        });
        names.collect()
    }
}

fn accesses(graph: &Graph) -> Vec<Vec<Access>> {
    graph.nodes.iter().map(|node| node.accesses.clone()).collect()
}

#[test]
fn nodes_edges_and_accesses_are_the_drivers() {
    let mut g = Graphs::new();
    let mut graph = whole(vec![memset(0, A, 16), memcpy(1, B, A + 8, 8)], &[(0, 1)]);
    graph.edges[0].data[2] = 1;
    let instantiate = g.instantiate(read(vec![graph]));
    let Action::GraphInstantiate { graph: id, executable } = instantiate.action else {
        panic!("{instantiate:?}")
    };
    let graph = g.launched();
    assert_eq!(graph.id, id);
    assert_eq!(graph.edges, [GraphEdge { from: 0, to: 1, port: EdgePort::Triggered }]);
    assert_eq!(
        accesses(&graph),
        [
            vec![exact(g.a, A, 16, Mode::Write)],
            vec![exact(g.a, A + 8, 8, Mode::Read), exact(g.b, B, 8, Mode::Write)],
        ]
    );
    assert_eq!(graph.nodes[0].action, NodeAction::Memset { destination: MemoryKind::Device });
    assert!(matches!(graph.nodes[1].action, NodeAction::Copy(copy) if copy.bytes == 8));
    // Nobody was seen to make the nodes.
    assert!(graph.nodes.iter().all(|n| n.made_by == instantiate.g && n.captured_from.is_none()));
    assert_eq!(g.reasons(), ["cuGraphLaunch (programmatic edge)"]);
    // Further launches declare nothing.
    g.launch();
    assert_eq!(g.graphs().len(), 1);
    let destroy = g.bench.call(Api::cuGraphExecDestroy, &[EXEC], &[]);
    assert_eq!(destroy.action, Action::GraphDestroy { executable });
}

#[test]
fn kernels_may_touch_what_their_parameters_point_into() {
    let mut g = Graphs::new();
    g.bench.kernel(FUNCTION, "k", Some(&[(0, 8)]));
    for (function, kernel) in [(FUNCTION, 0), (0, FUNCTION)] {
        let mut launch = node(0, KERNEL, &[function, 0, 0, 0, 0, 0, 0, kernel, 0]);
        launch.contents.kernel_params = Some(bytes(&[B + 4]));
        g.instantiate(read(vec![whole(vec![launch], &[])]));
        let graph = g.launched();
        let access = accesses(&graph).remove(0).remove(0);
        assert_eq!(
            (access.allocation, access.mode, access.basis),
            (g.b, Mode::MayWrite, Basis::Assumed)
        );
        assert!(matches!(graph.nodes[0].action, NodeAction::Kernel { .. }));
    }
    assert_eq!(g.reasons(), [""; 0]);
}

#[test]
fn tensor_map_of_a_node_stands_for_its_tensor() {
    let mut g = Graphs::new();
    let map: Vec<u64> = (0..16).map(|word| 7 << 32 | word).collect();
    let args = [0x1, 0, 1, B + 16, 0x2, 0, 0x3, 0x4, 0, 0, 0, 0];
    g.bench.full(Api::cuTensorMapEncodeTiled, &args, &map, 0, |call| {
        call.inputs = vec![(4, bytes(&[32]))];
    });
    g.bench.kernel(FUNCTION, "gemm", Some(&[(0, 128)]));
    let mut launch = node(0, KERNEL, &[FUNCTION, 0, 0, 0, 0, 0, 0, 0, 0]);
    launch.contents.kernel_params = Some(bytes(&map));
    g.instantiate(read(vec![whole(vec![launch], &[])]));
    let extent = exact(g.b, B + 16, 32, Mode::MayWrite).extent;
    let expected = Access { allocation: g.b, extent, mode: Mode::MayWrite, basis: Basis::Assumed };
    assert_eq!(accesses(&g.launched()), [vec![expected]]);
}

#[test]
fn nodes_belong_to_the_call_that_made_them() {
    let mut g = Graphs::new();
    let added = g.bench.call(Api::cuGraphAddMemsetNode, &[0x10, GRAPH, 0, 0, 0x40, 0], &[0x100]);
    g.bench.call(Api::cuStreamBeginCapture_v2, &[STREAM, 0], &[]);
    let captured_as = |node| ReadBack { captured: Some(node), ..ReadBack::default() };
    let captured = g.with(Api::cuMemsetD8Async, &[A, 0, 16, STREAM], &[], captured_as(0x101));
    let Action::Captured { stream } = captured.action else { panic!("{captured:?}") };
    // Records and waits make edges: the stream's newest node is still the memset.
    g.with(Api::cuEventRecord, &[0x700, STREAM], &[], captured_as(0x101));
    g.with(Api::cuStreamWaitEvent, &[STREAM, 0x700, 0], &[], captured_as(0x101));
    // Two nodes at once, or none: nobody's.
    g.with(Api::cuStreamWaitEvent, &[STREAM, 0x700, 0], &[], captured_as(0));
    g.bench.call(Api::cuStreamEndCapture, &[STREAM, 0x10], &[GRAPH]);
    let clone = ReadBack { clones: vec![(0x101, 0x102)], ..ReadBack::default() };
    g.with(Api::cuGraphClone, &[0x10, GRAPH], &[0x901], clone);
    let nodes = vec![memset(0, A, 1), memset(1, A, 1), memset(2, A, 1), memset(3, A, 1)];
    let instantiate = g.instantiate(read(vec![whole(nodes, &[])]));
    let made: Vec<_> = g
        .launched()
        .nodes
        .iter()
        .map(|n| (n.made_by, n.api.to_string(), n.captured_from))
        .collect();
    assert_eq!(
        made,
        [
            (added.g, "cuGraphAddMemsetNode".to_owned(), None),
            (captured.g, "cuMemsetD8Async".to_owned(), Some(stream)),
            (captured.g, "cuMemsetD8Async".to_owned(), Some(stream)),
            (instantiate.g, "cuGraphInstantiateWithFlags".to_owned(), None),
        ]
    );
}

#[test]
fn changes_of_an_executable_show_in_its_next_launch() {
    let mut g = Graphs::new();
    g.instantiate(read(vec![whole(vec![memset(0, A, 16), node(1, EVENT_RECORD, &[0x700])], &[])]));
    let first = g.launched();
    assert_eq!(g.graphs().len(), 1);

    let new = || read(vec![ReadGraph { nodes: vec![memset(0, B, 4)], ..ReadGraph::default() }]);
    let set = Api::cuGraphExecMemsetNodeSetParams;
    assert_eq!(g.with(set, &[EXEC, 0x100, 0x40, 0], &[], new()).action, Action::Other);
    assert_eq!(g.graphs().len(), 1, "nothing is declared before the launch");
    let second = g.launched();
    assert_ne!(first.id, second.id);
    assert_eq!(accesses(&second)[0], [exact(g.b, B, 4, Mode::Write)]);
    assert_eq!(second.nodes[0].made_by, first.nodes[0].made_by);

    // The same once more: the same snapshot.
    g.with(set, &[EXEC, 0x100, 0x40, 0], &[], new());
    assert_eq!(g.launched().id, second.id);

    // A refused change changes nothing.
    g.bench.full(set, &[EXEC, 0x100, 0x40, 0], &[], INVALID, |call| {
        call.read_back = Some(Box::new(read(vec![whole(vec![memset(0, A, 99)], &[])])));
    });
    assert_eq!(g.launched().id, second.id);

    g.bench.call(Api::cuGraphNodeSetEnabled, &[EXEC, 0x100, 0], &[]);
    g.bench.call(Api::cuGraphExecEventRecordNodeSetEvent, &[EXEC, 0x101, 0x701], &[]);
    let third = g.launched();
    assert_eq!((third.nodes[0].enabled, third.nodes[1].enabled), (false, true));
    assert_ne!(third.nodes[1].action, second.nodes[1].action);
    assert_eq!(g.graphs().len(), 3);
    assert_eq!(g.reasons(), [""; 0]);
    g.bench.call(Api::cuGraphNodeSetEnabled, &[EXEC, 0x999, 0], &[]);
    assert_eq!(g.reasons(), ["cuGraphNodeSetEnabled (node unknown)"]);
}

#[test]
fn updated_executable_keeps_the_handles_of_its_nodes() {
    let mut g = Graphs::new();
    g.instantiate(read(vec![whole(vec![memset(0, A, 16)], &[])]));
    let first = g.launched();
    let other = || {
        let mut node = memset(0, B, 16);
        node.handle = 0x555;
        read(vec![whole(vec![node], &[])])
    };
    let args = [EXEC, 0x901, 0x40];
    let refused = g.bench.full(Api::cuGraphExecUpdate_v2, &args, &[], 910, |call| {
        call.read_back = Some(Box::new(other()));
    });
    assert_eq!((refused.action, g.launched().id), (Action::Other, first.id));
    let update = g.with(Api::cuGraphExecUpdate_v2, &args, &[], other());
    let second = g.launched();
    assert!(matches!(update.action, Action::GraphUpdate { graph, .. } if graph == second.id));
    assert_eq!(accesses(&second)[0], [exact(g.b, B, 16, Mode::Write)]);
    g.bench.call(Api::cuGraphNodeSetEnabled, &[EXEC, 0x100, 0], &[]);
    assert!(!g.launched().nodes[0].enabled);
}

#[test]
fn graphs_inside_nodes_are_declared_first() {
    let mut g = Graphs::new();
    let mut child = node(0, CHILD, &[0x902]);
    child.bodies = vec![1];
    // Handle, kind and size, bodies, context.
    let mut condition = node(1, CONDITIONAL, &[0xc, 1 | 1 << 32, 0x40, 0]);
    condition.bodies = vec![2];
    let inner = |handle: u64, start: u64| {
        let mut node = memset(0, start, 8);
        node.handle = handle;
        whole(vec![node], &[])
    };
    let empty = node(2, EMPTY, &[]);
    let top = whole(vec![child, condition, empty], &[(0, 1), (1, 2)]);
    g.instantiate(read(vec![top, inner(0x200, A), inner(0x300, B)]));
    let graph = g.launched();
    let [first, second, top] = &g.graphs()[..] else { panic!("three graphs") };
    assert_eq!(top.id, graph.id);
    assert_eq!(graph.nodes[0].action, NodeAction::Child { graph: first.id });
    let (kind, bodies) = (ConditionalKind::While, vec![second.id]);
    assert_eq!(graph.nodes[1].action, NodeAction::Conditional { kind, bodies });
    assert_eq!(accesses(first), [vec![exact(g.a, A, 8, Mode::Write)]]);
    assert_eq!(accesses(second), [vec![exact(g.b, B, 8, Mode::Write)]]);
    // A node of the child is changed by its own handle.
    let new = read(vec![ReadGraph { nodes: vec![memset(0, A, 2)], ..ReadGraph::default() }]);
    g.with(Api::cuGraphExecMemsetNodeSetParams, &[EXEC, 0x200, 0x40, 0], &[], new);
    let graph = g.launched();
    let NodeAction::Child { graph: child } = graph.nodes[0].action else { panic!("a child") };
    let child = g.graphs().into_iter().find(|graph| graph.id == child).expect("declared");
    assert_eq!(accesses(&child), [vec![exact(g.a, A, 2, Mode::Write)]]);
    assert_eq!(g.reasons(), [""; 0]);
}

#[test]
fn memory_of_a_graph_is_one_allocation_for_all_launches() {
    const OWN: u64 = 0x7000;
    let mut g = Graphs::new();
    let mut allocate = [0; 15];
    (allocate[13], allocate[14]) = (0x80, OWN);
    let nodes = || vec![node(0, ALLOCATE, &allocate), memset(1, OWN, 8), node(2, FREE, &[OWN])];
    let add = Api::cuGraphAddMemAllocNode;
    g.bench.call(add, &[0x10, GRAPH, 0, 0, 0x40], &[0x100]);
    g.instantiate(read(vec![whole(nodes(), &[(0, 1), (1, 2)])]));
    let graph = g.launched();
    let own: Vec<&Allocation> = g
        .bench
        .entities
        .iter()
        .filter_map(|entity| match entity {
            Entity::Allocation(a) if a.kind == MemoryKind::GraphOrdered => Some(a),
            _ => None,
        })
        .collect();
    let [allocation] = own[..] else { panic!("{own:?}") };
    assert_eq!(allocation.api, add.name());
    let allocation = allocation.id;
    assert_eq!(graph.nodes[0].action, NodeAction::Allocate { allocation });
    assert_eq!(graph.nodes[2].action, NodeAction::Free { allocation });
    assert_eq!(
        accesses(&graph),
        [Mode::Allocate, Mode::Write, Mode::Free].map(|mode| {
            let len = if mode == Mode::Write { 8 } else { 0x80 };
            vec![exact(allocation, OWN, len, mode)]
        })
    );
    // A free outside the graph ends a generation, not the allocation.
    let free = g.bench.call(Api::cuMemFreeAsync, &[OWN, STREAM], &[]);
    assert!(matches!(free.action, Action::Free { allocation: a, .. } if a == allocation));
    assert_eq!(g.launched().id, graph.id);
    // A second executable of the same graph.
    g.instantiate(read(vec![whole(nodes(), &[])]));
    assert_eq!(accesses(&g.launched()), accesses(&graph));
}

#[test]
fn addresses_mean_what_lies_there_at_the_launch() {
    let mut g = Graphs::new();
    g.instantiate(read(vec![whole(vec![memset(0, A, 16)], &[])]));
    let first = g.launched();
    g.bench.call(Api::cuMemFree_v2, &[A], &[]);
    let again = g.bench.alloc(A, 0x100);
    let second = g.launched();
    assert_ne!(first.id, second.id);
    assert_eq!(accesses(&second)[0], [exact(again, A, 16, Mode::Write)]);
    // Other memory comes and goes: the snapshot is the same.
    g.bench.alloc(0x9000, 16);
    assert_eq!(g.launched().id, second.id);
}

#[test]
fn what_could_not_be_read_is_named_at_each_launch() {
    let refused = || ReadNode { readable: false, ..memcpy(0, A, B, 8) };
    let updatable = || ReadNode { updatable: true, ..memset(0, A, 1) };
    let lost_node = || ReadGraph { end: Some((2, 0, true)), ..whole(vec![memset(1, A, 1)], &[]) };
    let unreadable = || ReadGraph { end: Some((1, 0, false)), ..whole(vec![memset(0, A, 1)], &[]) };
    let lost_end = || ReadGraph { end: None, ..whole(vec![memset(0, A, 1)], &[]) };
    const NOT_READ: &str = "cuGraphLaunch (graph not read back)";
    for (graph, expected) in [
        (whole(vec![refused()], &[]), "cuGraphLaunch (copy node that could not be read)"),
        (whole(vec![node(0, 77, &[])], &[]), "cuGraphLaunch (node of type 77)"),
        (whole(vec![updatable()], &[]), "cuGraphLaunch (kernel node that kernels may change)"),
        (lost_node(), NOT_READ),
        (unreadable(), NOT_READ),
        (lost_end(), NOT_READ),
    ] {
        let mut g = Graphs::new();
        g.instantiate(read(vec![graph]));
        assert_eq!(g.reasons(), [""; 0], "{expected}");
        g.launch();
        g.launch();
        let names = g.bench.reasons();
        let wanted = IncompleteReason::NotUnderstood { api: expected.to_owned(), calls: 2 };
        assert!(names.contains(&wanted), "{names:?}, {wanted:?}");
    }
    // Everything was lost, or the instantiation was not seen.
    let mut g = Graphs::new();
    g.bench.call(Api::cuGraphInstantiateWithFlags, &[0x10, GRAPH, 0], &[EXEC]);
    g.launch();
    assert_eq!(g.reasons(), [NOT_READ]);
    let launch = g.bench.call(Api::cuGraphLaunch, &[0xbad, STREAM], &[]);
    assert_eq!(launch.action, Action::Other);
    assert_eq!(g.reasons(), ["(instantiation of a graph, unseen)", NOT_READ]);
}

#[test]
fn launches_from_the_device_are_not_seen() {
    const NAME: &str = "cuGraphInstantiate (launches from the device are not seen)";
    for (api, flags, expected) in [
        (Api::cuGraphInstantiateWithFlags, 4, &[NAME][..]),
        (Api::cuGraphInstantiateWithFlags, 1, &[]),
        (Api::cuGraphInstantiateWithParams, 4, &[NAME]),
    ] {
        let mut g = Graphs::new();
        let args =
            [0x10, GRAPH, if api == Api::cuGraphInstantiateWithParams { 0x40 } else { flags }];
        g.bench.full(api, &args, &[EXEC], 0, |call| {
            call.read_back = Some(Box::new(read(vec![whole(vec![memset(0, A, 1)], &[])])));
            call.pointee = Some(bytes(&[flags, 0, 0, 0]));
        });
        assert!(matches!(g.launch().action, Action::GraphLaunch { .. }));
        assert_eq!(g.reasons(), expected);
    }
}

#[test]
fn launch_into_a_capturing_stream_is_captured() {
    let mut g = Graphs::new();
    g.instantiate(read(vec![whole(vec![memset(0, A, 16)], &[])]));
    g.bench.call(Api::cuStreamBeginCapture_v2, &[STREAM, 0], &[]);
    assert!(matches!(g.launch().action, Action::Captured { .. }));
    let upload = g.bench.call(Api::cuGraphUpload, &[EXEC, 0], &[]);
    assert!(matches!(upload.action, Action::GraphUpload { .. }));
}
