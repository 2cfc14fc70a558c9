use super::bench::{Bench, exact, words};
use streamsan_model::{
    Access, Action, AllocationId, Backing, BackingId, Basis, ByteRange, Extent, IncompleteReason,
    MemoryKind, Mode, StridedPattern,
};
use streamsan_wire::Api;

const BASE: u64 = 0x100_0000;
const PIECE: u64 = 0x1000;
const FUNCTION: u64 = 0xf00;
const HANDLE: u64 = 0xe0;

/// Three pieces of one reservation, one behind the other, as expandable segments make them.
fn prepared() -> (Bench, [AllocationId; 3]) {
    let mut bench = Bench::new();
    bench.call(Api::cuMemAddressReserve, &[0x1, 8 * PIECE, 0, 0, 0], &[BASE]);
    let pieces = [0, 1, 2].map(|n| {
        bench.call(Api::cuMemCreate, &[0x1, PIECE, 0x2, 0], &[HANDLE]);
        let id = map(&mut bench, BASE + n * PIECE, 0);
        // The mapping outlives the handle, which the next piece gets again.
        id
    });
    (bench, pieces)
}

fn map(bench: &mut Bench, at: u64, offset: u64) -> AllocationId {
    let operation = bench.call(Api::cuMemMap, &[at, PIECE, offset, HANDLE, 0], &[]);
    let Action::Allocate { allocation, stream: None } = operation.action else {
        panic!("{operation:?}")
    };
    assert_eq!(operation.accesses, [exact(allocation, at, PIECE, Mode::Allocate)]);
    allocation
}

#[test]
fn mappings_stand_for_physical_memory() {
    let (mut bench, pieces) = prepared();
    let backings = pieces.map(|id| {
        let declared = bench.declared(id);
        assert_eq!(declared.kind, MemoryKind::Mapped);
        declared.backing.expect("physical memory")
    });
    assert_eq!(backings.map(|b| b.memory), [BackingId(0), BackingId(1), BackingId(2)]);
    // The last piece once more, elsewhere, from its middle on.
    let again = map(&mut bench, BASE + 5 * PIECE, 64);
    let backing = Backing { memory: BackingId(2), offset: 64 };
    assert_eq!(bench.declared(again).backing, Some(backing));
    assert!(bench.reasons().is_empty());
}

#[test]
fn retained_and_reimported_handles_mean_the_same_memory() {
    let (mut bench, _) = prepared();
    bench.call(Api::cuMemRetainAllocationHandle, &[0x1, BASE], &[0xe7]);
    bench.call(Api::cuMemExportToShareableHandle, &[0x1, 0xe7, 1, 0], &[33]);
    bench.call(Api::cuMemImportFromShareableHandle, &[0x1, 33, 1], &[HANDLE]);
    let id = map(&mut bench, BASE + 6 * PIECE, 0);
    assert_eq!(bench.declared(id).backing.map(|b| b.memory), Some(BackingId(0)));
    assert!(bench.reasons().is_empty());
}

/// A handle may be one that stood for other memory before.
#[test]
fn mapping_of_a_multicast_object_matters_where_it_is_used() {
    let (mut bench, _) = prepared();
    bench.call(Api::cuMulticastCreate, &[0x1, 0x2], &[HANDLE]);
    let at = BASE + 6 * PIECE;
    let mapped = map(&mut bench, at, 0);
    assert_eq!(bench.declared(mapped).backing.map(|b| b.memory), Some(BackingId(3)));
    assert!(bench.reasons().is_empty());
    bench.call(Api::cuMemsetD8_v2, &[at, 0, 16], &[]);
    let api = "cuMulticastCreate (memory of unknown origin that is used)".to_owned();
    assert_eq!(bench.reasons(), [IncompleteReason::NotUnderstood { api, calls: 1 }]);
}

/// The exporter closes its descriptor, whose number then stands for something else.
#[test]
fn files_are_known_by_their_marks_in_all_processes() {
    let (mut bench, _) = prepared();
    let mark = 77 << 8 | 1;
    bench.call(Api::cuMemRetainAllocationHandle, &[0x1, BASE], &[0xe7]);
    bench.call(Api::cuMemExportToShareableHandle, &[0x1, 0xe7, 1, 0], &[33, mark]);
    bench.call(Api::cuMemImportFromShareableHandle, &[0x1, 33, 1], &[HANDLE, mark + 1]);
    let unknown = map(&mut bench, BASE + 6 * PIECE, 0);
    bench.process = 1;
    bench.call(Api::cuMemImportFromShareableHandle, &[0x1, 12, 1], &[HANDLE, mark]);
    let imported = map(&mut bench, BASE + 6 * PIECE, 0);
    let memory = |id| bench.declared(id).backing.map(|backing| backing.memory);
    assert_eq!(memory(imported), Some(BackingId(0)));
    assert_ne!(memory(unknown), Some(BackingId(0)));
    bench.call(Api::cuMemsetD8_v2, &[BASE + 6 * PIECE, 0, 16], &[]);
    assert!(bench.reasons().is_empty());
}

/// Libraries import memory of other processes for their own use.
#[test]
fn memory_of_unknown_origin_matters_where_it_is_used() {
    let (mut bench, _) = prepared();
    bench.call(Api::cuMemImportFromShareableHandle, &[0x1, 34, 1], &[HANDLE]);
    let (at, other) = (BASE + 5 * PIECE, BASE + 6 * PIECE);
    let imported = map(&mut bench, at, 0);
    map(&mut bench, other, 0);
    assert!(bench.reasons().is_empty(), "nobody uses it");
    // Kernels of a library itself are not judged.
    bench.kernel(FUNCTION, "scale", Some(&[(0, 8)]));
    let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    let launch = |bench: &mut Bench, of_library| {
        bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
            call.kernel_params = Some(words(&[at]));
            call.of_library = of_library;
        })
    };
    launch(&mut bench, true);
    assert!(bench.reasons().is_empty(), "a library uses it");
    let launched = launch(&mut bench, false);
    assert_eq!(launched.accesses[0].allocation, imported);
    launch(&mut bench, false);
    bench.call(Api::cuMemsetD8_v2, &[at, 0, 16], &[]);
    let used = "cuMemImportFromShareableHandle (memory of unknown origin that is used)";
    let reasons = |calls| [IncompleteReason::NotUnderstood { api: used.to_owned(), calls }];
    // Both mappings follow each other: the pointer reaches the second one too.
    assert_eq!(bench.reasons(), reasons(2));
    // The driver's final word on a kernel counts instead.
    let (mut bench, _) = prepared();
    bench.call(Api::cuMemImportFromShareableHandle, &[0x1, 34, 1], &[HANDLE]);
    map(&mut bench, at, 0);
    bench.kernel(FUNCTION, "scale", Some(&[(0, 8)]));
    let launched = launch(&mut bench, false);
    assert_eq!(bench.reasons(), reasons(1));
    assert_eq!(bench.exact(&launched, &[]), []);
    assert!(bench.reasons().is_empty());
    bench.call(Api::cuMemUnmap, &[at, PIECE], &[]);
    assert!(bench.reasons().is_empty(), "to free it is no use");
}

#[test]
fn accesses_across_mappings_are_split() {
    let (mut bench, pieces) = prepared();
    let start = BASE + PIECE - 16;
    let operation = bench.call(Api::cuMemsetD8_v2, &[start, 0, PIECE + 32], &[]);
    assert_eq!(
        operation.accesses,
        [
            exact(pieces[0], start, 16, Mode::Write),
            exact(pieces[1], BASE + PIECE, PIECE, Mode::Write),
            exact(pieces[2], BASE + 2 * PIECE, 16, Mode::Write),
        ]
    );
    // Rows of 32 bytes at a pitch of 64: one row crosses, the others lie on one side.
    let start = BASE + PIECE - 80;
    let operation = bench.call(Api::cuMemsetD2D8_v2, &[start, 64, 0, 32, 4], &[]);
    let rows = |allocation, start, width, rows| Access {
        allocation,
        extent: Extent::strided(StridedPattern {
            start,
            width,
            pitch: 64,
            rows,
            slice_pitch: 0,
            slices: 1,
        })
        .expect("not empty"),
        mode: Mode::Write,
        basis: Basis::Exact,
    };
    assert_eq!(
        operation.accesses,
        [
            rows(pieces[0], start, 32, 1),
            rows(pieces[0], start + 64, 16, 1),
            rows(pieces[1], start + 80, 16, 1),
            rows(pieces[1], start + 128, 32, 2),
        ]
    );
}

fn whole(allocation: AllocationId, start: u64) -> Access {
    let extent = Extent::Range(ByteRange::with_len(start, PIECE));
    Access { allocation, extent, mode: Mode::MayWrite, basis: Basis::Assumed }
}

#[test]
fn pointer_parameter_reaches_all_mappings_around_it() {
    let (mut bench, pieces) = prepared();
    let apart = {
        bench.call(Api::cuMemCreate, &[0x1, PIECE, 0x2, 0], &[HANDLE]);
        map(&mut bench, BASE + 4 * PIECE, 0)
    };
    bench.kernel(FUNCTION, "scale", Some(&[(0, 8), (8, 8), (16, 8)]));
    let mut launch = |params: &[u64]| {
        let params = words(params);
        let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
        let full = bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
            call.kernel_params = Some(params);
        });
        full.accesses
    };
    let run = [0, 1, 2].map(|n| whole(pieces[n as usize], BASE + n * PIECE));
    assert_eq!(launch(&[BASE + PIECE + 8, BASE, 0]), run);
    let separate = [whole(apart, BASE + 4 * PIECE)];
    assert_eq!(launch(&[BASE + 4 * PIECE, 0, 0]), separate);
    assert_eq!(launch(&[BASE, BASE + 4 * PIECE, BASE + 8]), [&run[..], &separate].concat());
}

#[test]
fn neighbours_of_another_reservation_are_apart() {
    let (mut bench, pieces) = prepared();
    bench.call(Api::cuMemAddressReserve, &[0x1, PIECE, 0, 0, 0], &[BASE + 8 * PIECE]);
    bench.call(Api::cuMemCreate, &[0x1, PIECE, 0x2, 0], &[HANDLE]);
    let last = map(&mut bench, BASE + 7 * PIECE, 0);
    let beyond = map(&mut bench, BASE + 8 * PIECE, 0);
    let start = BASE + 8 * PIECE - 8;
    let operation = bench.call(Api::cuMemsetD8_v2, &[start, 0, 16], &[]);
    // An access out of its reservation is out of bounds: it stays with the memory it began in.
    assert_eq!(operation.accesses, [exact(last, start, 16, Mode::Write)]);
    assert!(pieces.iter().all(|id| *id != beyond));
}

#[test]
fn unmapping_ends_every_mapping_of_the_range() {
    let (mut bench, pieces) = prepared();
    let operation = bench.call(Api::cuMemUnmap, &[BASE, 2 * PIECE], &[]);
    assert_eq!(operation.action, Action::Free { allocation: pieces[0], stream: None });
    assert_eq!(
        operation.accesses,
        [
            exact(pieces[0], BASE, PIECE, Mode::Free),
            exact(pieces[1], BASE + PIECE, PIECE, Mode::Free),
        ]
    );
    // A stale pointer leads to the former mapping, not to what is mapped beside it.
    bench.kernel(FUNCTION, "scale", Some(&[(0, 8)]));
    let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    let launched = bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
        call.kernel_params = Some(words(&[BASE + PIECE]));
    });
    assert_eq!(launched.accesses, [whole(pieces[1], BASE + PIECE)]);
    let left = bench.call(Api::cuMemsetD8_v2, &[BASE + 2 * PIECE, 0, 8], &[]);
    assert_eq!(left.accesses, [exact(pieces[2], BASE + 2 * PIECE, 8, Mode::Write)]);
}
