//! Operations issued to a capturing stream are not executed.

use super::bench::{Bench, INVALID};
use crate::read_back::ReadBack;
use streamsan_model::{Action, Entity};
use streamsan_wire::Api;

const A: u64 = 0x500;
const B: u64 = 0x501;
const C: u64 = 0x502;
/// `CU_STREAM_PER_THREAD`.
const THREAD: u64 = 2;
const E: u64 = 0x700;
const F: u64 = 0x701;
const MEMORY: u64 = 0x1000;
const INVALIDATED: i32 = 901;
const UNJOINED: i32 = 904;

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin(u64),
    End(u64),
    EndFails(u64, i32),
    Record(u64, u64),
    RecordExternal(u64, u64),
    Wait(u64, u64),
    WaitFails(u64, u64),
    Destroy(u64),
    /// Work in a stream is carried out.
    Runs(u64),
    /// Work in a stream becomes part of a graph.
    Captured(u64),
}
use Step::*;

fn prepared() -> Bench {
    let mut bench = Bench::new();
    bench.alloc(MEMORY, 0x100);
    for stream in [A, B, C] {
        bench.call(Api::cuStreamCreate, &[0x10, 1], &[stream, 7]);
    }
    for event in [E, F] {
        bench.call(Api::cuEventCreate, &[0x10, 2], &[event]);
    }
    bench
}

/// Whether a memset in the stream is carried out.
fn runs(bench: &mut Bench, stream: u64) -> bool {
    let memset = bench.call(Api::cuMemsetD8Async, &[MEMORY, 0, 16, stream], &[]);
    assert_eq!(matches!(memset.action, Action::Memset { .. }), !memset.accesses.is_empty());
    let captured = matches!(memset.action, Action::Captured { .. });
    assert_eq!(captured, memset.accesses.is_empty());
    !memset.accesses.is_empty()
}

fn take(bench: &mut Bench, step: Step) {
    match step {
        Begin(s) => drop(bench.call(Api::cuStreamBeginCapture_v2, &[s, 0], &[])),
        End(s) => drop(bench.call(Api::cuStreamEndCapture, &[s, 0x10], &[0x900])),
        EndFails(s, result) => drop(bench.fails(Api::cuStreamEndCapture, &[s, 0x10], result)),
        Record(e, s) => drop(bench.call(Api::cuEventRecord, &[e, s], &[])),
        RecordExternal(e, s) => drop(bench.call(Api::cuEventRecordWithFlags, &[e, s, 1], &[])),
        Wait(s, e) => drop(bench.call(Api::cuStreamWaitEvent, &[s, e, 0], &[])),
        WaitFails(s, e) => drop(bench.fails(Api::cuStreamWaitEvent, &[s, e, 0], INVALID)),
        Destroy(s) => drop(bench.call(Api::cuStreamDestroy_v2, &[s], &[])),
        Runs(s) => assert!(runs(bench, s), "{s:x} executes"),
        Captured(s) => assert!(!runs(bench, s), "{s:x} is captured"),
    }
}

#[test]
fn streams_join_and_leave_captures() {
    for (name, steps) in [
        ("origin alone", &[Runs(A), Begin(A), Captured(A), Runs(B), End(A), Runs(A)][..]),
        (
            "fork by event",
            &[Begin(A), Record(E, A), Runs(B), Wait(B, E), Captured(B), End(A), Runs(A), Runs(B)],
        ),
        (
            "fork of a fork",
            &[Begin(A), Record(E, A), Wait(B, E), Record(F, B), Wait(C, F), Captured(C), End(A)],
        ),
        (
            "fork of a fork is released too",
            &[Begin(A), Record(E, A), Wait(B, E), Record(F, B), Wait(C, F), End(A), Runs(C)],
        ),
        ("event recorded before the capture", &[Record(E, A), Begin(A), Wait(B, E), Runs(B)]),
        (
            "event recorded again outside",
            &[Begin(A), Record(E, A), Record(E, C), Wait(B, E), Runs(B), Captured(A)],
        ),
        (
            "event of an ended capture",
            &[Begin(A), Record(E, A), End(A), Wait(B, E), Runs(B), Runs(A)],
        ),
        ("event node", &[Begin(A), RecordExternal(E, A), Wait(B, E), Runs(B)]),
        ("refused wait", &[Begin(A), Record(E, A), WaitFails(B, E), Runs(B)]),
        ("refused end", &[Begin(A), EndFails(A, INVALID), Captured(A), End(A), Runs(A)]),
        (
            "end of an invalidated capture",
            &[Begin(A), Record(E, A), Wait(B, E), EndFails(A, INVALIDATED), Runs(A), Runs(B)],
        ),
        (
            "end with a stream left behind",
            &[Begin(A), Record(E, A), Wait(B, E), EndFails(A, UNJOINED), Runs(A), Runs(B)],
        ),
        (
            "two captures",
            &[Begin(A), Begin(B), Record(E, A), Wait(C, E), End(B), Runs(B), Captured(C), End(A)],
        ),
        (
            "joined stream is destroyed",
            &[Begin(A), Record(E, A), Wait(B, E), Destroy(B), Captured(A), End(A), Runs(A)],
        ),
        ("default stream of a thread", &[Begin(THREAD), Captured(THREAD), Runs(0), End(THREAD)]),
    ] {
        println!("{name}");
        let mut bench = prepared();
        for &step in steps {
            take(&mut bench, step);
        }
        assert!(bench.reasons().is_empty(), "{name}");
    }
}

#[test]
fn every_form_of_capture_is_known() {
    for (begin, args, end) in [
        (Api::cuStreamBeginCapture, &[A][..], Api::cuStreamEndCapture),
        (Api::cuStreamBeginCapture_ptsz, &[A], Api::cuStreamEndCapture_ptsz),
        (Api::cuStreamBeginCapture_v2_ptsz, &[A, 2], Api::cuStreamEndCapture_ptsz),
        (Api::cuStreamBeginCaptureToGraph, &[A, 0x9, 0, 0, 0, 2], Api::cuStreamEndCapture),
        (Api::cuStreamBeginCaptureToGraph_ptsz, &[A, 9, 0, 0, 0, 2], Api::cuStreamEndCapture_ptsz),
        (Api::cuStreamBeginRecaptureToGraph, &[A, 2, 9, 0, 0], Api::cuStreamEndCapture),
    ] {
        let mut bench = prepared();
        assert_eq!(bench.call(begin, args, &[]).action, Action::Other);
        assert!(!runs(&mut bench, A), "{}", begin.name());
        assert_eq!(bench.call(end, &[A, 0x10], &[0x900]).action, Action::Other);
        assert!(runs(&mut bench, A), "{}", end.name());
    }
}

#[test]
fn handle_zero_of_a_per_thread_twin_is_captured_for_its_thread_alone() {
    let mut bench = prepared();
    bench.call(Api::cuStreamBeginCapture_v2_ptsz, &[0, 0], &[]);
    let memset = |bench: &mut Bench, api| {
        matches!(bench.call(api, &[MEMORY, 0, 16, 0], &[]).action, Action::Memset { .. })
    };
    assert!(!memset(&mut bench, Api::cuMemsetD8Async_ptsz));
    assert!(memset(&mut bench, Api::cuMemsetD8Async));
    bench.thread = 1;
    assert!(memset(&mut bench, Api::cuMemsetD8Async_ptsz));
}

#[test]
fn refused_begin_captures_nothing() {
    let mut bench = prepared();
    // The legacy default stream cannot be captured.
    bench.fails(Api::cuStreamBeginCapture_v2, &[0, 0], 900);
    assert!(runs(&mut bench, 0));
}

#[test]
fn captured_calls_leave_no_trace_in_the_tables() {
    let mut bench = prepared();
    bench.kernel(0x77, "k", None);
    bench.call(Api::cuStreamBeginCapture_v2, &[A, 0], &[]);
    let declared = bench.entities.len();
    let mut config = vec![0; 56];
    config[32..40].copy_from_slice(&A.to_le_bytes());
    let mut attribute = [0; 72];
    attribute[0] = 6;
    attribute[8] = 1;
    for (api, args, outs) in [
        (Api::cuMemAllocAsync, &[0x10, 64, A][..], &[0x9000][..]),
        (Api::cuMemAllocFromPoolAsync, &[0x10, 64, 0x8, A], &[0x9100]),
        (Api::cuMemFreeAsync, &[MEMORY, A], &[]),
        (Api::cuMemcpyDtoDAsync_v2, &[0x9000, MEMORY, 16, A], &[]),
        (Api::cuLaunchKernel, &[0x77, 1, 1, 1, 1, 1, 1, 0, A], &[]),
        (Api::cuLaunchKernelEx, &[0x40, 0x77], &[]),
        (Api::cuLaunchHostFunc, &[A, 0x40, 0], &[]),
    ] {
        let operation = bench.full(api, args, outs, 0, |call| {
            call.pointee = Some(config.as_slice().into());
            call.launch_attributes = Some(attribute.into());
        });
        assert!(matches!(operation.action, Action::Captured { .. }), "{}", api.name());
        assert!(operation.accesses.is_empty(), "{}", api.name());
    }
    assert_eq!(bench.entities.len(), declared);
    bench.call(Api::cuStreamEndCapture, &[A, 0x10], &[0x900]);

    // The graph's address means nothing, and the memory that was "freed" is alive.
    let freed = bench.call(Api::cuMemFree_v2, &[0x9000], &[]);
    assert_eq!(freed.action, Action::Other);
    let freed = bench.call(Api::cuMemFree_v2, &[MEMORY], &[]);
    assert!(matches!(freed.action, Action::Free { .. }));
    assert!(bench.reasons().is_empty());
    assert!(!bench.entities[declared..].iter().any(|e| matches!(e, Entity::Allocation(_))));
}

#[test]
fn what_the_driver_says_of_a_capture_counts() {
    // The begin was not seen: a library made it, or its record is lost.
    let mut bench = prepared();
    for (api, args) in [
        (Api::cuMemsetD8Async, &[MEMORY, 0, 16, A][..]),
        (Api::cuEventRecord, &[E, A]),
        (Api::cuStreamWaitEvent, &[A, E, 0]),
    ] {
        let operation = bench.full(api, args, &[], 0, |call| {
            call.read_back = Some(Box::new(ReadBack { captured: Some(0), ..ReadBack::default() }));
        });
        assert!(matches!(operation.action, Action::Captured { .. }), "{}", api.name());
    }
    assert!(runs(&mut bench, A));
}
