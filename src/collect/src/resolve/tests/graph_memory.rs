//! Memory that graphs allocate: lives at one address, and which of them a node means.

use super::bench::{Bench, exact};
use crate::read_back::{NodeContents, ReadBack, ReadGraph, ReadNode};
use streamsan_model::{
    Access, Action, AllocationId, Entity, Graph, MemoryKind, Mode, NodeAction, Operation,
};
use streamsan_wire::node_kind::*;
use streamsan_wire::{Api, WireEdge};

const OWN: u64 = 0x7000;
const LEN: u64 = 0x80;
const STREAM: u64 = 0x500;

/// A node; its handle is `graph` and its position.
fn node(graph: u64, index: u32, kind: i32, words: &[u64]) -> ReadNode {
    let params = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let contents = NodeContents { params, ..NodeContents::default() };
    let handle = graph + u64::from(index);
    ReadNode { index, kind, readable: true, updatable: false, handle, contents, bodies: Vec::new() }
}

/// The work of a test's node.
#[derive(Clone, Copy)]
enum Does {
    Alloc(u64, u64),
    Set(u64, u64),
    Free(u64),
    Child(u32),
}

use Does::{Alloc, Child, Free, Set};

struct Bed {
    bench: Bench,
}

impl Bed {
    fn new() -> Self {
        let mut bench = Bench::new();
        bench.call(Api::cuStreamCreate, &[0x10, 1], &[STREAM, 7]);
        Self { bench }
    }

    fn read(&self, graph: u64, does: &[Does], edges: &[(u32, u32)]) -> ReadGraph {
        let nodes: Vec<ReadNode> = does
            .iter()
            .zip(0..)
            .map(|(does, index)| match *does {
                Alloc(start, len) => {
                    let mut words = [0; 15];
                    (words[13], words[14]) = (len, start);
                    node(graph, index, ALLOCATE, &words)
                }
                // Value, and the size of an element in the upper half.
                Set(start, len) => node(graph, index, MEMSET, &[start, 0, 1 << 32, len, 1]),
                Free(start) => node(graph, index, FREE, &[start]),
                Child(number) => {
                    let mut child = node(graph, index, CHILD, &[0]);
                    child.bodies = vec![number];
                    child
                }
            })
            .collect();
        let edge = |&(from, to): &(u32, u32)| WireEdge { from, to, data: [0; 8] };
        let end = Some((nodes.len() as u32, edges.len() as u32, true));
        ReadGraph { nodes, edges: edges.iter().map(edge).collect(), end }
    }

    /// The calls that make the nodes, in this order.
    fn make(&mut self, graph: u64, does: &[Does], order: impl IntoIterator<Item = u32>) {
        for index in order {
            let api = match does[index as usize] {
                Alloc(..) => Api::cuGraphAddMemAllocNode,
                Set(..) => Api::cuGraphAddMemsetNode,
                Free(_) => Api::cuGraphAddMemFreeNode,
                Child(_) => Api::cuGraphAddChildGraphNode,
            };
            self.bench.call(api, &[0x10, graph, 0, 0, 0x40, 0], &[graph + u64::from(index)]);
        }
    }

    fn instantiate(&mut self, executable: u64, graphs: Vec<ReadGraph>) {
        let read = ReadBack { graphs: (0..).zip(graphs).collect(), ..ReadBack::default() };
        let api = Api::cuGraphInstantiateWithFlags;
        self.bench.full(api, &[0x10, 1, 0], &[executable], 0, |call| {
            call.read_back = Some(Box::new(read));
        });
    }

    /// A graph whose nodes are made one after the other.
    fn graph(&mut self, executable: u64, graph: u64, does: &[Does], edges: &[(u32, u32)]) {
        self.make(graph, does, 0..does.len() as u32);
        let read = self.read(graph, does, edges);
        self.instantiate(executable, vec![read]);
    }

    fn launch(&mut self, executable: u64) -> Operation {
        self.bench.call(Api::cuGraphLaunch, &[executable, STREAM], &[])
    }

    /// The graph that a launch runs now.
    fn launched(&mut self, executable: u64) -> std::sync::Arc<Graph> {
        let launch = self.launch(executable);
        let Action::GraphLaunch { graph, .. } = launch.action else { panic!("{launch:?}") };
        let graphs = self.bench.entities.iter().filter_map(|entity| match entity {
            Entity::Graph(graph) => Some(graph.clone()),
            _ => None,
        });
        graphs.into_iter().find(|g| g.id == graph).expect("declared before")
    }

    /// The graph-ordered allocations, in the order of their declaration.
    fn lives(&self) -> Vec<AllocationId> {
        let lives = self.bench.entities.iter().filter_map(|entity| match entity {
            Entity::Allocation(a) if a.kind == MemoryKind::GraphOrdered => Some(a.id),
            _ => None,
        });
        lives.collect()
    }

    fn set_outside(&mut self, start: u64) -> Vec<Access> {
        self.bench.call(Api::cuMemsetD8Async, &[start, 0, 8, STREAM], &[]).accesses
    }
}

fn accesses(graph: &Graph) -> Vec<Access> {
    graph.nodes.iter().flat_map(|node| node.accesses.clone()).collect()
}

const TWICE: [Does; 6] =
    [Alloc(OWN, LEN), Set(OWN, 8), Free(OWN), Alloc(OWN, LEN / 2), Set(OWN, 8), Free(OWN)];
const CHAIN: [(u32, u32); 5] = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)];

#[test]
fn each_allocation_node_begins_a_life_of_its_own() {
    let mut bed = Bed::new();
    bed.graph(0xe00, 0x100, &TWICE, &CHAIN);
    let graph = bed.launched(0xe00);
    let [first, second] = bed.lives()[..] else { panic!("two lives") };
    assert_eq!(
        accesses(&graph),
        [
            exact(first, OWN, LEN, Mode::Allocate),
            exact(first, OWN, 8, Mode::Write),
            exact(first, OWN, LEN, Mode::Free),
            exact(second, OWN, LEN / 2, Mode::Allocate),
            exact(second, OWN, 8, Mode::Write),
            exact(second, OWN, LEN / 2, Mode::Free),
        ]
    );
    assert_eq!(graph.nodes[5].action, NodeAction::Free { allocation: second });
    // Later launches, and another instantiation, find the same ones.
    let read = bed.read(0x100, &TWICE, &CHAIN);
    bed.instantiate(0xe01, vec![read]);
    assert_eq!(accesses(&bed.launched(0xe01)), accesses(&graph));
    assert_eq!(bed.launched(0xe00).id, graph.id);
    assert_eq!(bed.lives().len(), 2);
}

/// The order counts, not the positions of the nodes or the calls that made them.
#[test]
fn nodes_may_stand_and_be_made_in_any_order() {
    let mut bed = Bed::new();
    let does = [TWICE[4], TWICE[3], TWICE[5], TWICE[1], TWICE[0], TWICE[2]];
    bed.make(0x100, &does, [4, 5, 1, 2, 0, 3]);
    let edges = [(4, 3), (3, 5), (5, 1), (1, 0), (0, 2)];
    let read = bed.read(0x100, &does, &edges);
    bed.instantiate(0xe00, vec![read]);
    let graph = bed.launched(0xe00);
    let of = |at: usize| graph.nodes[at].accesses[0].allocation;
    assert_eq!((of(0), of(3)), (of(1), of(4)));
    assert_eq!((of(2), of(5)), (of(1), of(4)));
    assert_ne!(of(1), of(4));
}

#[test]
fn a_use_outside_of_every_life_is_given_to_the_one_that_shows_the_mistake() {
    // A seventh node and its edges: whose memory it uses.
    for (edges, made, expected) in [
        // Not behind the free: the free does not wait for it.
        (&[(0, 6)][..], 6, 0),
        (&[(1, 6)], 1, 0),
        // Behind the free, before the next allocation.
        (&[(2, 6), (6, 3)], 6, 0),
        // Behind the free, beside the next allocation: it depends on what the program knew.
        (&[(2, 6)], 6, 1),
        (&[(2, 6)], 3, 0),
        // Behind everything.
        (&[(5, 6)], 6, 1),
        // Behind nothing.
        (&[], 6, 1),
        // In the second life.
        (&[(3, 6)], 6, 1),
    ] {
        let mut bed = Bed::new();
        let mut does = TWICE.to_vec();
        does.push(Set(OWN + 8, 8));
        let mut order: Vec<u32> = (0..6).collect();
        order.insert(made, 6);
        bed.make(0x100, &does, order);
        let edges: Vec<(u32, u32)> = CHAIN.iter().chain(edges).copied().collect();
        let read = bed.read(0x100, &does, &edges);
        bed.instantiate(0xe00, vec![read]);
        let graph = bed.launched(0xe00);
        let lives = bed.lives();
        assert_eq!(
            graph.nodes[6].accesses,
            [exact(lives[expected], OWN + 8, 8, Mode::Write)],
            "{edges:?} {made}"
        );
    }
}

#[test]
fn what_the_graph_leaves_allocated_is_meant_outside() {
    // The whole, then its halves, of which the lower one stays.
    let does = [
        Alloc(OWN, LEN),
        Free(OWN),
        Alloc(OWN, LEN / 2),
        Alloc(OWN + LEN / 2, LEN / 2),
        Free(OWN + LEN / 2),
    ];
    let edges = [(0, 1), (1, 2), (1, 3), (3, 4)];
    let mut bed = Bed::new();
    bed.graph(0xe00, 0x100, &does, &edges);
    let graph = bed.launched(0xe00);
    let of = |at: usize| graph.nodes[at].accesses[0].allocation;
    assert_eq!(bed.set_outside(OWN)[0].allocation, of(2));
    assert_eq!(bed.set_outside(OWN + LEN / 2)[0].allocation, of(3));
    let free = bed.bench.call(Api::cuMemFreeAsync, &[OWN, STREAM], &[]);
    assert!(matches!(free.action, Action::Free { allocation, .. } if allocation == of(2)));
    // A graph may free it as well.
    bed.graph(0xe01, 0x200, &[Free(OWN)], &[]);
    let frees = bed.launched(0xe01);
    assert_eq!(frees.nodes[0].action, NodeAction::Free { allocation: of(2) });
}

#[test]
fn an_address_belongs_to_the_graph_that_was_launched_last() {
    let mut bed = Bed::new();
    for (executable, graph) in [(0xe00, 0x100), (0xe01, 0x200)] {
        bed.graph(executable, graph, &[Alloc(OWN, LEN), Set(OWN, 8)], &[(0, 1)]);
    }
    let [first, second] = bed.lives()[..] else { panic!("two lives") };
    for (executable, life) in [(0xe00, first), (0xe01, second), (0xe00, first)] {
        let graph = bed.launched(executable);
        assert_eq!(graph.nodes[1].accesses, [exact(life, OWN, 8, Mode::Write)]);
        assert_eq!(bed.set_outside(OWN), [exact(life, OWN, 8, Mode::Write)]);
    }
    assert_eq!(bed.lives().len(), 2);
    // Handles are used again for the nodes of another graph.
    bed.graph(0xe02, 0x100, &[Alloc(OWN, LEN), Set(OWN, 8)], &[(0, 1)]);
    let third = bed.launched(0xe02).nodes[1].accesses[0].allocation;
    assert!(![first, second].contains(&third));
}

#[test]
fn lives_reach_into_graphs_inside_nodes() {
    let mut bed = Bed::new();
    // An allocation, a child that uses and frees it and allocates it again, a use of that.
    let top = [Alloc(OWN, LEN), Child(1), Set(OWN, 8), Free(OWN)];
    let child = [Set(OWN, 8), Free(OWN), Alloc(OWN, LEN), Set(OWN, 8)];
    bed.make(0x100, &top, 0..4);
    bed.make(0x200, &child, 0..4);
    let graphs = vec![
        bed.read(0x100, &top, &[(0, 1), (1, 2), (2, 3)]),
        bed.read(0x200, &child, &[(0, 1), (1, 2), (2, 3)]),
    ];
    bed.instantiate(0xe00, graphs);
    let graph = bed.launched(0xe00);
    let NodeAction::Child { graph: child } = graph.nodes[1].action else { panic!("a child") };
    let child = bed.bench.entities.iter().find_map(|entity| match entity {
        Entity::Graph(graph) if graph.id == child => Some(graph.clone()),
        _ => None,
    });
    let child = child.expect("declared");
    let of = |graph: &Graph, at: usize| graph.nodes[at].accesses[0].allocation;
    let (first, second) = (of(&graph, 0), of(&child, 2));
    assert_ne!(first, second);
    assert_eq!([of(&child, 0), of(&child, 1), of(&child, 3)], [first, first, second]);
    assert_eq!([of(&graph, 2), of(&graph, 3)], [second, second]);
}
