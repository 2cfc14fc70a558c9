//! Collective operations: alone, in groups, and what their library does for them.

use super::bench::{Bench, exact, words};
use crate::read_back::{NodeContents, ReadBack, ReadGraph, ReadNode};
use streamsan_model::{Action, AllocationId, Entity, Mode, Operation, StreamId};
use streamsan_wire::node_kind::KERNEL;
use streamsan_wire::{Api, CollectivePhase, HostCall, Transfer};

const A: u64 = 0x1000;
const B: u64 = 0x2000;
const STREAM: u64 = 0x500;
const OTHER: u64 = 0x501;
const SEND: u64 = Transfer::Send as u64;
const RECEIVE: u64 = Transfer::Receive as u64;

/// Two buffers and two streams.
fn prepared() -> Bench {
    let mut bench = Bench::new();
    bench.alloc(A, 0x100);
    bench.alloc(B, 0x100);
    for stream in [STREAM, OTHER] {
        bench.call(Api::cuStreamCreate, &[0x10, 1], &[stream, 7]);
    }
    bench
}

fn say(
    bench: &mut Bench,
    call: HostCall,
    phase: CollectivePhase,
    (stream, transfers): (u64, &[u64]),
) -> Option<Operation> {
    let context = bench.context;
    let list = [&[phase as u64, stream, context], transfers].concat();
    bench.host(call, &list, "", call.returns().then_some(0))
}

fn stream_of(operation: &Operation) -> StreamId {
    let Action::Collective { stream } = operation.action else { panic!("{operation:?}") };
    stream
}

#[test]
fn call_reads_what_it_sends_and_writes_what_it_receives() {
    let mut bench = prepared();
    let transfers = (STREAM, &[A, 16, SEND, B + 32, 64, RECEIVE][..]);
    let done = say(&mut bench, HostCall::NcclAllGather, CollectivePhase::Now, transfers);
    let done = done.expect("an operation");
    assert_eq!((stream_of(&done), &*done.api), (StreamId(0), "ncclAllGather"));
    let (a, b) = (AllocationId(0), AllocationId(1));
    assert_eq!(done.accesses, [exact(a, A, 16, Mode::Read), exact(b, B + 32, 64, Mode::Write)]);
    // In place.
    let transfers = (STREAM, &[A, 16, SEND, A, 16, RECEIVE][..]);
    let done = say(&mut bench, HostCall::NcclAllReduce, CollectivePhase::Now, transfers);
    assert_eq!(done.expect("an operation").accesses, [exact(a, A, 16, Mode::ReadWrite)]);
    assert!(bench.reasons().is_empty());
}

#[test]
fn group_is_carried_out_at_its_end() {
    let mut bench = prepared();
    let (a, b) = (AllocationId(0), AllocationId(1));
    let queued = HostCall::NcclQueued;
    for transfers in
        [(STREAM, [A, 16, SEND]), (OTHER, [B, 8, RECEIVE]), (STREAM, [B + 16, 16, RECEIVE])]
    {
        let transfers = (transfers.0, &transfers.1[..]);
        let said = say(&mut bench, queued, CollectivePhase::Queued, transfers);
        assert_eq!(said, None);
    }
    let end = |bench: &mut Bench, call, stream| {
        say(bench, call, CollectivePhase::GroupEnd, (stream, &[])).expect("an operation")
    };
    let first = end(&mut bench, HostCall::NcclGroupEnd, STREAM);
    assert_eq!((stream_of(&first), &*first.api), (StreamId(0), "ncclGroupEnd"));
    let expected = [exact(a, A, 16, Mode::Read), exact(b, B + 16, 16, Mode::Write)];
    assert_eq!(first.accesses, expected);
    // The end of another context's group.
    let second = end(&mut bench, HostCall::NcclRecv, OTHER);
    assert_eq!((stream_of(&second), &*second.api), (StreamId(1), "ncclRecv"));
    assert_eq!(second.accesses, [exact(b, B, 8, Mode::Write)]);
    // Nothing is left for the next group, and nothing of a group that was only simulated.
    assert!(end(&mut bench, HostCall::NcclGroupEnd, STREAM).accesses.is_empty());
    say(&mut bench, queued, CollectivePhase::Queued, (STREAM, &[A, 16, SEND]));
    say(&mut bench, queued, CollectivePhase::Dropped, (STREAM, &[]));
    assert!(end(&mut bench, HostCall::NcclGroupEnd, STREAM).accesses.is_empty());
}

#[test]
fn captured_kernels_of_the_library_touch_what_was_asked_for() {
    let mut bench = prepared();
    bench.kernel(0xf00, "ncclDevKernel", Some(&[(0, 8)]));
    let (a, b) = (AllocationId(0), AllocationId(1));
    for stream in [STREAM, OTHER] {
        bench.call(Api::cuStreamBeginCapture_v2, &[stream, 0], &[]);
    }
    let launch = |bench: &mut Bench, node: u64| {
        let args = [0xf00, 1, 1, 1, 32, 1, 1, 0, STREAM, 0x10, 0];
        bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
            call.of_library = true;
            let captured = ReadBack { captured: Some(node), ..ReadBack::default() };
            call.read_back = Some(Box::new(captured));
        });
    };
    let all_reduce = (STREAM, &[A, 16, SEND, A, 16, RECEIVE][..]);
    let said = say(&mut bench, HostCall::NcclAllReduce, CollectivePhase::Now, all_reduce);
    assert_eq!(said, None);
    launch(&mut bench, 0x101);
    // A group of two streams, whose kernel is launched in one of them.
    for (stream, transfers) in [(STREAM, [A + 32, 8, SEND]), (OTHER, [B, 8, RECEIVE])] {
        say(&mut bench, HostCall::NcclQueued, CollectivePhase::Queued, (stream, &transfers));
    }
    let end = (STREAM, &[OTHER][..]);
    let end = say(&mut bench, HostCall::NcclGroupEnd, CollectivePhase::GroupEnd, end);
    assert_eq!(end, None);
    launch(&mut bench, 0x102);
    let node = |index: u32| ReadNode {
        index,
        kind: KERNEL,
        readable: true,
        updatable: false,
        handle: 0x101 + u64::from(index),
        contents: NodeContents {
            params: words(&[0xf00, 0, 0, 0, 0, 0, 0, 0, 0]),
            kernel_params: Some(words(&[B])),
            ..NodeContents::default()
        },
        bodies: Vec::new(),
    };
    let graph =
        ReadGraph { nodes: vec![node(0), node(1)], edges: Vec::new(), end: Some((2, 0, true)) };
    bench.full(Api::cuGraphInstantiateWithFlags, &[0x10, 0x900, 0], &[0xe00], 0, |call| {
        let graphs = [(0, graph)].into();
        call.read_back = Some(Box::new(ReadBack { graphs, ..ReadBack::default() }));
    });
    let Some(Entity::Graph(graph)) = bench.entities.last() else { panic!("declared last") };
    let touched: Vec<_> = graph.nodes.iter().map(|node| node.accesses.clone()).collect();
    assert_eq!(
        touched,
        [
            vec![exact(a, A, 16, Mode::ReadWrite)],
            vec![exact(a, A + 32, 8, Mode::Read), exact(b, B, 8, Mode::Write)],
        ]
    );
    assert!(bench.reasons().is_empty());
}

#[test]
fn group_of_several_streams_is_one_operation() {
    let mut bench = prepared();
    let (a, b) = (AllocationId(0), AllocationId(1));
    for (stream, transfers) in
        [(STREAM, [A, 16, SEND]), (OTHER, [A, 16, SEND]), (STREAM, [B, 8, RECEIVE])]
    {
        let queued = HostCall::NcclQueued;
        say(&mut bench, queued, CollectivePhase::Queued, (stream, &transfers[..]));
    }
    let end = (STREAM, &[OTHER][..]);
    let done = say(&mut bench, HostCall::NcclGroupEnd, CollectivePhase::GroupEnd, end);
    let done = done.expect("an operation");
    let Action::CollectiveGroup(group) = &done.action else { panic!("{done:?}") };
    let members: Vec<_> = group.members.iter().map(|m| (m.stream, m.accesses)).collect();
    assert_eq!(members, [(StreamId(0), 2), (StreamId(1), 1)]);
    let read = exact(a, A, 16, Mode::Read);
    assert_eq!(done.accesses, [read.clone(), exact(b, B, 8, Mode::Write), read]);
    assert!(bench.reasons().is_empty());
}

#[test]
fn unknown_size_is_told() {
    let mut bench = prepared();
    let transfers = (STREAM, &[0, 0, Transfer::Unknown as u64][..]);
    let done = say(&mut bench, HostCall::NcclAllGather, CollectivePhase::Now, transfers);
    assert!(done.expect("an operation").accesses.is_empty());
    assert_eq!(bench.reasons().len(), 1);
}

#[test]
fn kernels_and_copies_of_the_library_have_no_accesses() {
    let mut bench = prepared();
    bench.kernel(0xf00, "ncclDevKernel", Some(&[(0, 8)]));
    let args = [0xf00, 1, 1, 1, 32, 1, 1, 0, STREAM, 0x10, 0];
    for of_library in [false, true] {
        let launched = bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
            call.kernel_params = Some(words(&[A]));
            call.of_library = of_library;
        });
        assert_eq!(launched.accesses.is_empty(), of_library);
        let copied = bench.full(Api::cuMemcpyDtoDAsync_v2, &[A, B, 8, STREAM], &[], 0, |call| {
            call.of_library = of_library;
        });
        assert_eq!(copied.accesses.is_empty(), of_library);
        // Accesses from the interpreter of the simulated driver are dropped as well.
        let touched = [streamsan_wire::Access {
            early: false,
            start: A,
            end: A + 4,
            mode: streamsan_wire::RecordedMode::Write,
        }];
        assert_eq!(bench.exact(&launched, &touched).is_empty(), of_library);
    }
    // Memory that it makes is memory.
    let made = bench.full(Api::cuMemAlloc_v2, &[0x10, 64], &[0x9000], 0, |call| {
        call.of_library = true;
    });
    assert_eq!(made.accesses.len(), 1);
}
