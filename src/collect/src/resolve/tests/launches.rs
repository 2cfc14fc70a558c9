use super::bench::{Bench, exact, structure};
use crate::call::Call;
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, Extent, IncompleteReason, LaunchEventKind,
    Mode, Operation,
};
use streamsan_wire::{Access as Touched, Api, RecordedMode};

const FUNCTION: u64 = 0xf00;
const A: u64 = 0x10_0000;
const B: u64 = 0x20_0000;

fn prepared(layout: Option<&[(u32, u32)]>) -> Bench {
    let mut bench = Bench::new();
    bench.alloc(A, 0x1000);
    bench.alloc(B, 0x1000);
    bench.kernel(FUNCTION, "scale", layout);
    bench
}

fn words(words: &[u64]) -> Option<Box<[u8]>> {
    Some(words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

fn launch(bench: &mut Bench, params: Option<Box<[u8]>>) -> Operation {
    let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| call.kernel_params = params)
}

fn assumed(allocation: u32, start: u64) -> Access {
    Access {
        allocation: AllocationId(allocation),
        extent: Extent::Range(ByteRange::with_len(start, 0x1000)),
        mode: Mode::MayWrite,
        basis: Basis::Assumed,
    }
}

#[test]
fn pointers_are_found_by_the_layout() {
    // A pointer, an int, a structure with a pointer in its second word.
    let mut bench = prepared(Some(&[(0, 8), (8, 4), (16, 16)]));
    let operation = launch(&mut bench, words(&[A + 0x10, A, 7, B + 0xfff]));
    assert_eq!(operation.accesses, [assumed(0, A), assumed(1, B)]);
    assert!(bench.reasons().is_empty());
}

#[test]
fn two_pointers_into_one_allocation_are_one_access() {
    let mut bench = prepared(Some(&[(0, 8), (8, 8)]));
    assert_eq!(launch(&mut bench, words(&[A, A + 8])).accesses, [assumed(0, A)]);
}

#[test]
fn integers_as_large_as_an_address_are_not_read_in_halves() {
    let mut bench = prepared(Some(&[(0, 4), (4, 4)]));
    assert!(launch(&mut bench, words(&[A])).accesses.is_empty());
}

#[test]
fn packed_parameters_need_no_layout() {
    let mut bench = prepared(None);
    assert_eq!(launch(&mut bench, words(&[B])).accesses, [assumed(1, B)]);
    assert!(bench.reasons().is_empty());
}

#[test]
fn stale_pointer_parameter_names_the_freed_allocation() {
    let mut bench = prepared(Some(&[(0, 8), (8, 16)]));
    bench.call(Api::cuMemFree_v2, &[A], &[]);
    bench.call(Api::cuMemFree_v2, &[B], &[]);
    // Inside a structure a stale word may be anything.
    assert_eq!(launch(&mut bench, words(&[A, B, 0])).accesses, [assumed(0, A)]);
}

#[test]
fn unreadable_parameters_are_counted_by_kernel() {
    let mut bench = prepared(None);
    for _ in 0..3 {
        launch(&mut bench, None);
    }
    let kernel = "scale".to_owned();
    let reason = IncompleteReason::UnknownKernelParameters { kernel, launches: 3 };
    assert_eq!(bench.reasons(), [reason]);
}

#[test]
fn kernel_without_parameters_is_known_entirely() {
    let mut bench = prepared(Some(&[]));
    assert!(launch(&mut bench, None).accesses.is_empty());
    assert!(bench.reasons().is_empty());
}

#[test]
fn reused_function_handle_is_another_kernel() {
    let mut bench = prepared(Some(&[]));
    let kernel = |operation: Operation| match operation.action {
        Action::Launch { kernel, .. } => kernel,
        other => panic!("{other:?}"),
    };
    let first = kernel(launch(&mut bench, None));
    bench.kernel(FUNCTION, "other", Some(&[]));
    let second = kernel(launch(&mut bench, None));
    bench.kernel(0xf08, "scale", Some(&[]));
    bench.kernel(FUNCTION, "scale", Some(&[]));
    assert_ne!(first, second);
    assert_eq!(kernel(launch(&mut bench, None)), first);
}

fn extended(bench: &mut Bench, attributes: &[(u32, u32)]) -> Operation {
    let mut config = vec![0; 56];
    config[32..40].copy_from_slice(&1u64.to_le_bytes());
    let attributes: Vec<u8> = attributes
        .iter()
        .flat_map(|(id, value)| {
            let mut bytes = vec![0; 72];
            bytes[..4].copy_from_slice(&id.to_le_bytes());
            bytes[8..12].copy_from_slice(&value.to_le_bytes());
            bytes
        })
        .collect();
    bench.full(Api::cuLaunchKernelEx, &[0x10, FUNCTION, 0, 0], &[], 0, |call: &mut Call| {
        call.pointee = Some(config.into());
        call.launch_attributes = Some(attributes.into());
    })
}

#[test]
fn launch_attributes_that_order_nothing_are_ignored() {
    let mut bench = prepared(Some(&[]));
    let operation = extended(&mut bench, &[(4, 1), (2, 1), (6, 0)]);
    let Action::Launch { programmatic, cooperative, .. } = operation.action else {
        panic!("{operation:?}")
    };
    assert_eq!((programmatic, cooperative), (false, true));
    assert!(bench.reasons().is_empty());
}

#[test]
fn programmatic_launch_is_counted() {
    let mut bench = prepared(Some(&[]));
    let operation = extended(&mut bench, &[(6, 1)]);
    assert!(matches!(operation.action, Action::Launch { programmatic: true, .. }));
    assert_eq!(bench.reasons().len(), 1);
}

/// Attributes 7 and 12: an event handle, flags, and for the first whether blocks trigger it.
#[test]
fn launch_records_an_event_by_attribute() {
    use LaunchEventKind::{BlockStart, LaunchCompletion, Programmatic};
    for (id, at_start, kind) in
        [(7, 0, Programmatic), (7, 1, BlockStart), (12, 0, LaunchCompletion)]
    {
        let mut bench = prepared(Some(&[]));
        let created = bench.call(Api::cuEventCreate, &[0x10, 2], &[0x700]);
        let Action::EventCreate { event } = created.action else { panic!("{created:?}") };
        let args = [0x10, FUNCTION, 0, 0];
        let operation = bench.full(Api::cuLaunchKernelEx, &args, &[], 0, |call: &mut Call| {
            call.pointee = Some(structure(56, &[(32, 1)]));
            let attribute = [(0, id), (8, 0x700), (20, at_start)];
            call.launch_attributes = Some(structure(72, &attribute));
        });
        let Action::Launch { event: found, programmatic: false, .. } = operation.action else {
            panic!("{operation:?}")
        };
        assert_eq!(found, Some((event, kind)));
        assert!(bench.reasons().is_empty());
    }
}

fn touched(start: u64, end: u64, mode: RecordedMode) -> Touched {
    Touched { start, end, mode, early: false }
}

#[test]
fn exact_ranges_are_split_between_neighbours() {
    let mut bench = prepared(Some(&[]));
    bench.alloc(A + 0x1000, 0x1000);
    let operation = launch(&mut bench, None);
    let range = touched(A + 0xff0, A + 0x1010, RecordedMode::Write);
    assert_eq!(
        bench.exact(&operation, &[range]),
        [
            exact(AllocationId(0), A + 0xff0, 0x10, Mode::Write),
            exact(AllocationId(2), A + 0x1000, 0x10, Mode::Write),
        ]
    );
}

#[test]
fn exact_ranges_belong_to_the_generation_of_the_launch() {
    let mut bench = prepared(Some(&[]));
    let operation = launch(&mut bench, None);
    bench.call(Api::cuMemFree_v2, &[A], &[]);
    let later = bench.alloc(A, 0x1000);
    let range = [touched(A, A + 8, RecordedMode::Read), touched(A, A + 8, RecordedMode::Write)];
    let before = bench.exact(&operation, &range);
    assert_eq!(before, [exact(AllocationId(0), A, 8, Mode::ReadWrite)]);
    let operation = launch(&mut bench, None);
    let after = bench.exact(&operation, &range[..1]);
    assert_eq!(after, [exact(later, A, 8, Mode::Read)]);
}

#[test]
fn memory_of_no_recorded_call_is_one_allocation() {
    let mut bench = prepared(Some(&[]));
    let operation = launch(&mut bench, None);
    let first = bench.exact(&operation, &[touched(8, 16, RecordedMode::Atomic)]);
    let second = bench.exact(&operation, &[touched(A - 4, A + 4, RecordedMode::Atomic)]);
    assert_eq!(first[0].allocation, second[1].allocation);
    assert_eq!(second[0], exact(AllocationId(0), A, 4, Mode::Atomic));
}
