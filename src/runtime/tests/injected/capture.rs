//! The bytes copied at a call: kernel parameters, host functions, exact accesses.

use streamsan_wire::{Api, BlobTag, LONGEST_DETAIL, NotMeasured, RecordedMode};

use crate::harness::{Event, Options, Owned, Recorded, bench, run, run_with};
use streamsan_testing::fake_driver as fake;

fn recorded() -> Recorded {
    let name = format!("capture_{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let program = fake::program(bench(), &name, include_str!("c/capture.c"), &["-l:libcuda.so.1"]);
    let recorded = run(&program, &[]);
    assert_eq!((recorded.stdout.as_str(), recorded.status.code()), ("done\n", Some(0)));
    recorded
}

fn params(event: &Event) -> Option<&[u8]> {
    let Owned::Begin { blobs, .. } = &event.record else { return None };
    blobs.iter().find(|(tag, _)| *tag == BlobTag::KERNEL_PARAMS).map(|(_, bytes)| &bytes[..])
}

#[test]
fn kernel_parameters_are_copied_by_the_layout_the_driver_tells() {
    let recorded = recorded();
    let kernels: Vec<_> = recorded
        .events
        .iter()
        .filter_map(|event| match &event.record {
            Owned::Kernel { function, name, params } => {
                Some((*function, name.as_str(), params.clone()))
            }
            _ => None,
        })
        .collect();
    let two = Some(vec![(0, 8), (8, 4)]);
    let expected = [
        (0x4002, "function_4002", two.clone()),
        (0x5001, "kernel_5001", Some(vec![(0, 8)])),
        (0x6001, "", None),
        (0x4000, "function_4000", Some(vec![])),
        (0x4002, "function_4002", two),
    ];
    assert_eq!(kernels, expected);

    let launches: Vec<_> =
        recorded.events.iter().filter(|e| e.begins(Api::cuLaunchKernel)).map(params).collect();
    let first = [0x11u8; 8];
    let mut both = first.to_vec();
    both.extend([0x22; 4]);
    let expected: [Option<&[u8]>; 7] =
        [Some(&both), Some(&both), Some(&first), None, Some(b"bytes"), None, Some(&both)];
    assert_eq!(launches, expected);
}

#[test]
fn host_functions_are_recorded_with_the_operation_that_enqueued_them() {
    let recorded = recorded();
    let host: Vec<_> =
        recorded.events.iter().filter(|e| e.begins(Api::cuLaunchHostFunc)).map(|e| e.g).collect();
    let callback = recorded.events.iter().find(|e| e.begins(Api::cuStreamAddCallback)).unwrap().g;
    let runs: Vec<_> = recorded
        .events
        .iter()
        .filter_map(|event| match event.record {
            Owned::HostFunctionBegin { op } => Some((op, true)),
            Owned::HostFunctionEnd { op } => Some((op, false)),
            _ => None,
        })
        .collect();
    // The captured function ran twice, the refused one never.
    let expected = [
        (host[0], true),
        (host[0], false),
        (callback, true),
        (callback, false),
        (host[1], true),
        (host[1], false),
        (host[1], true),
        (host[1], false),
    ];
    assert_eq!(runs, expected);
    // Calls of a host function are the program's own, not the driver's.
    for event in recorded.events.iter().filter(|e| e.begins(Api::cuMemFree_v2)) {
        assert!(matches!(event.record, Owned::Begin { depth: 0, .. }), "{event:?}");
    }
    assert_eq!(recorded.count(Api::cuMemFree_v2), 2);
}

#[test]
fn exact_accesses_arrive_complete_and_in_order() {
    let recorded = recorded();
    let of = |wanted: u64| {
        let mut ranges = Vec::new();
        let mut parts = Vec::new();
        for event in &recorded.events {
            if let Owned::Accesses { op, list, complete } = &event.record
                && *op == wanted
            {
                ranges.extend(list.iter().copied());
                parts.push(*complete);
            }
        }
        (ranges, parts)
    };
    assert_eq!(of(3), (vec![], vec![true]));
    let (ranges, parts) = of(4);
    assert_eq!(parts, [false, false, true]);
    assert_eq!(ranges.len(), 1200);
    for (i, range) in ranges.iter().enumerate() {
        let modes = [RecordedMode::Read, RecordedMode::Write, RecordedMode::Atomic];
        assert_eq!((range.start, range.end), (16 * i as u64, 16 * i as u64 + 8));
        assert_eq!(range.mode, modes[i % 3]);
    }
    assert!(of(0).1.is_empty());
}

#[test]
fn measured_bytes_arrive_complete_and_in_order() {
    let recorded = recorded();
    let of = |wanted: (u64, u64)| {
        let (mut runs, mut parts) = (Vec::new(), Vec::new());
        for event in &recorded.events {
            if let Owned::Measured { op, node, runs: part, flags, complete } = &event.record
                && (*op, *node) == wanted
            {
                runs.extend(part.iter().copied());
                parts.push((*flags, *complete));
            }
        }
        (runs, parts)
    };
    assert_eq!(of((3, 0)), (vec![], vec![(2, true)]));
    let (runs, parts) = of((4, 7));
    assert_eq!(parts, [(1, false), (1, false), (1, true)]);
    assert_eq!(runs.len(), 700);
    for (i, run) in (0..).zip(&runs) {
        assert_eq!((run.start, run.width, run.pitch, run.rows), (64 * i, 8, 16, 3));
        assert_eq!((run.mode, run.flags), (i as u32 % 3, 2));
    }
    // No launch, and no node.
    assert_eq!(of((0, 0)).1, []);
    assert_eq!(of((5, 0)).1, []);
    let not: Vec<_> = recorded
        .events
        .iter()
        .filter_map(|event| match &event.record {
            Owned::NotMeasured { op, reason, detail } => Some((*op, *reason, detail.len())),
            _ => None,
        })
        .collect();
    let expected = [
        (4, NotMeasured::NoRoom, 0),
        (0, NotMeasured::NoLibrary, 5),
        (5, NotMeasured::Other, LONGEST_DETAIL),
    ];
    assert_eq!(not, expected);
}

/// What is recorded is the program's function; one in its place that cannot be launched is no failure
/// of the program.
#[test]
fn a_function_in_the_place_of_the_programs_is_taken_back_where_it_fails() {
    let source = include_str!("c/replaced.c");
    let program = fake::program(bench(), "replaced", source, &["-l:libcuda.so.1"]);
    let recorded = run(&program, &[]);
    assert_eq!(recorded.status.code(), Some(0));
    let expected = [
        "launched 0x4003: 0",
        "program 0x4002: 0",
        "launched 0x4003: 701",
        "launched 0x4002: 0",
        "program 0x4002: 0",
        "launched 0x4000: 1",
        "program 0x4000: 1",
    ];
    assert_eq!(recorded.stdout.lines().collect::<Vec<_>>(), expected);
    let launches: Vec<_> = recorded
        .events
        .iter()
        .filter(|event| event.begins(Api::cuLaunchKernel))
        .map(|event| match &event.record {
            Owned::Begin { args, .. } => (event.g, args[0]),
            _ => unreachable!("it begins"),
        })
        .collect();
    assert_eq!(
        launches.iter().map(|launch| launch.1).collect::<Vec<_>>(),
        [0x4002, 0x4002, 0x4000]
    );
    let not: Vec<_> = recorded
        .events
        .iter()
        .filter_map(|event| match &event.record {
            Owned::NotMeasured { op, reason, .. } => Some((*op, *reason)),
            _ => None,
        })
        .collect();
    assert_eq!(not, [(launches[1].0, NotMeasured::LaunchFailed)]);
}

/// Lists of 2 and 1,000 elements, one of 1.4 MB, one that nobody could read, and none.
const LISTS: &str = r#"
#include <stdio.h>
int cuStreamBatchMemOp_v2(void *stream, unsigned count, void *list, unsigned flags);
static unsigned char list[48 * 30000];
int main(void) {
    for (unsigned i = 0; i < sizeof list; i++)
        list[i] = i % 251;
    cuStreamBatchMemOp_v2(0, 2, list, 0);
    cuStreamBatchMemOp_v2(0, 1000, list, 0);
    cuStreamBatchMemOp_v2(0, 30000, list, 0);
    cuStreamBatchMemOp_v2(0, ~0u, (void *)16, 0);
    cuStreamBatchMemOp_v2(0, 2, 0, 0);
    puts("done");
}
"#;

/// Lengths of the lists that were recorded; the bytes are compared.
fn lists(ring_bytes: u64) -> Vec<Option<usize>> {
    let name = format!("lists_{ring_bytes}");
    let program = fake::program(bench(), &name, LISTS, &["-l:libcuda.so.1"]);
    let recorded = run_with(&program, &[], &Options { ring_bytes, ..Options::default() });
    assert_eq!((recorded.stdout.as_str(), recorded.status.code()), ("done\n", Some(0)));
    assert_eq!(recorded.processes[0].dropped, 0);
    let list = |event: &Event| {
        let Owned::Begin { api: Api::cuStreamBatchMemOp_v2, blobs, .. } = &event.record else {
            return None;
        };
        Some(blobs.first().map(|(tag, bytes)| {
            assert_eq!(*tag, 2);
            assert!(bytes.iter().enumerate().all(|(i, byte)| usize::from(*byte) == i % 251));
            bytes.len()
        }))
    };
    recorded.events.iter().filter_map(list).collect()
}

#[test]
fn lists_are_copied_as_far_as_they_fit() {
    let large = Options::default().ring_bytes;
    assert_eq!(lists(large), [Some(96), Some(48_000), None, None, None]);
    // A call whose list does not fit into the ring is recorded without it.
    assert_eq!(lists(64 << 10), [Some(96), None, None, None, None]);
}
