//! The parts of graphs and captures that are read back.

use streamsan_wire::{Api, NodeTag};

use crate::harness::{Event, Owned, OwnedPart, Recorded, bench, run};
use streamsan_testing::fake_driver as fake;

fn recorded() -> Recorded {
    let name = format!("graphs_{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let program = fake::program(bench(), &name, include_str!("c/graphs.c"), &["-l:libcuda.so.1"]);
    let recorded = run(&program, &[]);
    assert_eq!((recorded.stdout.as_str(), recorded.status.code()), ("done\n", Some(0)));
    assert_eq!(recorded.processes[0].dropped, 0);
    recorded
}

/// The parts that were published right before the BEGIN of the only call of `api`.
fn before(recorded: &Recorded, api: Api) -> Vec<&OwnedPart> {
    let begin = recorded.events.iter().position(|event| event.begins(api)).expect("the call");
    let mut parts: Vec<_> = recorded.events[..begin].iter().rev().map_while(part).collect();
    parts.reverse();
    parts
}

fn part(event: &Event) -> Option<&OwnedPart> {
    match &event.record {
        Owned::Graph(part) => Some(part),
        _ => None,
    }
}

/// Kind, whether it could be read, and handle of each node of a graph.
fn nodes(parts: &[&OwnedPart], number: u32) -> Vec<(u32, i32, bool, u64)> {
    let nodes = parts.iter().filter_map(|part| match part {
        OwnedPart::Node { graph, index, kind, readable, handle, .. } if *graph == number => {
            Some((*index, *kind, *readable, *handle))
        }
        _ => None,
    });
    nodes.collect()
}

fn blob(parts: &[&OwnedPart], wanted: (u32, u32), tag: u32) -> Option<Vec<u64>> {
    parts.iter().find_map(|part| match part {
        OwnedPart::Node { graph, index, blobs, .. } if (*graph, *index) == wanted => {
            let (_, bytes) = blobs.iter().find(|(t, _)| *t == tag)?;
            Some(bytes.chunks(8).map(word).collect())
        }
        _ => None,
    })
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The handles of the kernels that were told.
fn kernels(events: &[Event]) -> Vec<u64> {
    let told = events.iter().filter_map(|event| match &event.record {
        Owned::Kernel { function, .. } => Some(*function),
        _ => None,
    });
    told.collect()
}

const INSTANTIATE: Api = Api::cuGraphInstantiateWithFlags;

#[test]
fn graph_is_published_with_its_bodies_before_it_becomes_executable() {
    let recorded = recorded();
    // The kernel is new: its record stands between those of the graph.
    let begin = recorded.events.iter().position(|e| e.begins(INSTANTIATE)).expect("the call");
    assert_eq!(kernels(&recorded.events[..begin]), [0x5002]);
    let parts = before(&recorded, INSTANTIATE);
    let conditional = nodes(&parts, 0).last().expect("nodes").3;
    assert_eq!(
        nodes(&parts, 0),
        [
            (0, 0, true, 0x101),
            (1, 1, true, 0x102),
            (2, 2, true, 0x103),
            (3, 3, true, 0x104),
            (4, 4, true, 0x105),
            (5, 7, true, 0x106),
            (6, 12, true, 0x107),
            (7, 1, false, 0x108),
            (8, 77, false, 0x109),
            (9, 13, true, conditional),
        ]
    );
    let updatable = parts.iter().filter_map(|part| match part {
        OwnedPart::Node { updatable: true, handle, .. } => Some(*handle),
        _ => None,
    });
    assert_eq!(updatable.collect::<Vec<_>>(), [0x101]);
    // The child graph and the body of the condition.
    assert_eq!(blob(&parts, (0, 4), NodeTag::BODIES), Some(vec![1]));
    assert_eq!(blob(&parts, (0, 9), NodeTag::BODIES), Some(vec![2]));
    assert_eq!(nodes(&parts, 1), [(0, 2, true, 0x201)]);
    assert_eq!(nodes(&parts, 2), [(0, 5, true, 0x301)]);
    let ends: Vec<_> = parts.iter().filter(|p| matches!(p, OwnedPart::End { .. })).collect();
    let end = |graph, nodes, edges, complete, handle| OwnedPart::End {
        graph,
        nodes,
        edges,
        complete,
        handle,
    };
    assert_eq!(
        ends,
        [
            &&end(0, 10, 2, false, 0x1000),
            &&end(1, 1, 0, true, 0x2000),
            &&end(2, 1, 0, true, 0x3000)
        ]
    );
    let edges = parts.iter().find_map(|part| match part {
        OwnedPart::Edges { graph: 0, edges } => Some(edges.clone()),
        _ => None,
    });
    assert_eq!(edges, Some(vec![(0, 1, true), (1, 3, false)]));
}

#[test]
fn contents_of_nodes_are_the_drivers_structures() {
    let recorded = recorded();
    let parts = before(&recorded, INSTANTIATE);
    let params = blob(&parts, (0, 0), NodeTag::KERNEL_PARAMS).expect("the kernel's parameters");
    assert_eq!(params, [0x1111_1111_1111_1111, 0x2222_2222]);
    for (node, words, first) in [(1, 25, 7), (2, 5, 8), (3, 2, 9), (4, 1, 0x2000), (5, 1, 0xE0)] {
        let structure = blob(&parts, (0, node), NodeTag::PARAMS).expect("a structure");
        assert_eq!((structure.len(), structure[0]), (words, first), "{node}");
    }
    let operations: Vec<u64> = (1..=12).collect();
    assert_eq!(blob(&parts, (0, 6), NodeTag::ITEMS), Some(operations));
    assert_eq!(blob(&parts, (0, 7), NodeTag::PARAMS), None);
}

#[test]
fn new_parameters_of_an_executable_come_with_their_call() {
    let recorded = recorded();
    let parts = before(&recorded, Api::cuGraphExecKernelNodeSetParams_v2);
    let params = blob(&parts, (0, 0), NodeTag::KERNEL_PARAMS).expect("the kernel's parameters");
    assert_eq!(params, [0x3333_3333_3333_3333, 0x2222_2222]);
    let structure = blob(&parts, (0, 0), NodeTag::PARAMS).expect("a structure");
    assert_eq!((structure[0], structure[7]), (0x4002, 0));
    assert_eq!(kernels(&recorded.events), [0x5002, 0x4002]);
    let parts = before(&recorded, Api::cuGraphExecNodeSetParams);
    let structure = blob(&parts, (0, 0), NodeTag::PARAMS).expect("the copy's descriptor");
    // Behind the type, the flags and the context.
    assert_eq!((nodes(&parts, 0)[0].1, structure.len(), structure[0]), (1, 25, 0x55));
    let parts = before(&recorded, Api::cuGraphExecUpdate_v2);
    assert_eq!(nodes(&parts, 0), [(0, 2, true, 0x201)]);
}

#[test]
fn clones_and_captured_nodes_name_their_call() {
    let recorded = recorded();
    let g = |api: Api, nth: usize| {
        recorded.events.iter().filter(|e| e.begins(api)).nth(nth).expect("the call").g
    };
    let named: Vec<_> = recorded
        .events
        .iter()
        .filter_map(part)
        .filter(|p| matches!(p, OwnedPart::Captured { .. } | OwnedPart::Clones { .. }))
        .cloned()
        .collect();
    // The legacy stream cannot capture and is not asked.
    let expected = [
        OwnedPart::Clones { op: g(Api::cuGraphClone, 0), pairs: vec![(0x201, 0x202)] },
        OwnedPart::Captured { op: g(Api::cuMemsetD8Async, 1), graph: 0x9000, node: 0x777 },
    ];
    assert_eq!(named, expected);
    for (captured, end) in [(0, Api::cuGraphClone), (1, Api::cuMemsetD8Async)] {
        let (OwnedPart::Clones { op, .. } | OwnedPart::Captured { op, .. }) = &named[captured]
        else {
            panic!("filtered above")
        };
        let at = |wanted: &dyn Fn(&Event) -> bool| recorded.events.iter().position(wanted);
        let part_at = at(&|e| part(e) == Some(&named[captured]));
        let end_at = at(
            &|e| matches!(e.record, Owned::End { begin, api, .. } if begin == *op && api == end),
        );
        assert!(part_at < end_at, "before the END");
    }
}
