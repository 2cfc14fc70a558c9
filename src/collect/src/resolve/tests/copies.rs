use super::bench::{Bench, INVALID, exact};
use streamsan_model::{
    Access, Action, AllocationId, Basis, Copy, Extent, MemoryKind, Mode, StridedPattern,
};
use streamsan_wire::Api;

const DEVICE: u64 = 0x10_0000;
const PINNED: u64 = 0x20_0000;
const MANAGED: u64 = 0x30_0000;
const PAGEABLE: u64 = 0x40_0000;

fn prepared() -> Bench {
    let mut bench = Bench::new();
    bench.alloc(DEVICE, 0x1000);
    bench.allocation(Api::cuMemAllocHost_v2, PINNED, 0x1000);
    bench.allocation(Api::cuMemAllocManaged, MANAGED, 0x1000);
    bench
}

fn copy(action: Action) -> Copy {
    match action {
        Action::Copy(copy) => copy,
        other => panic!("{other:?}"),
    }
}

#[test]
fn kinds_and_ranges_follow_the_addresses() {
    use MemoryKind::{Device, Managed, Pageable, Pinned};
    for (api, dst, src, kinds) in [
        (Api::cuMemcpyHtoD_v2, DEVICE + 8, PINNED, (Pinned, Device)),
        (Api::cuMemcpyHtoD_v2, DEVICE, PAGEABLE, (Pageable, Device)),
        (Api::cuMemcpyDtoH_v2, PAGEABLE, DEVICE, (Device, Pageable)),
        (Api::cuMemcpyDtoD_v2, DEVICE, DEVICE + 0x800, (Device, Device)),
        (Api::cuMemcpy, MANAGED, PINNED, (Pinned, Managed)),
        (Api::cuMemcpy, PAGEABLE, PINNED, (Pinned, Pageable)),
    ] {
        let mut bench = prepared();
        let operation = bench.call(api, &[dst, src, 0x40], &[]);
        let copy = copy(operation.action);
        assert_eq!((copy.source, copy.destination), kinds, "{}", api.name());
        assert_eq!((copy.bytes, copy.synchronous, copy.peer), (0x40, true, None));
        let ranges: Vec<_> =
            operation.accesses.iter().map(|a| (a.extent.hull().start, a.mode)).collect();
        assert_eq!(ranges, [(src, Mode::Read), (dst, Mode::Write)]);
        assert!(operation.accesses.iter().all(|a| a.extent.hull().len() == 0x40));
    }
}

#[test]
fn asynchronous_forms_take_their_stream() {
    let mut bench = prepared();
    let created = bench.call(Api::cuStreamCreate, &[0, 1], &[0x500, 1]);
    let args = [DEVICE, PINNED, 16, 0x500];
    let copy = copy(bench.call(Api::cuMemcpyHtoDAsync_v2, &args, &[]).action);
    assert_eq!(Some(copy.stream), created.action.stream());
    assert!(!copy.synchronous);
}

#[test]
fn per_thread_twins_copy_in_the_threads_stream() {
    let mut bench = prepared();
    let plain = copy(bench.call(Api::cuMemcpyHtoD_v2, &[DEVICE, PINNED, 16], &[]).action);
    let twin = copy(bench.call(Api::cuMemcpyHtoD_v2_ptds, &[DEVICE, PINNED, 16], &[]).action);
    assert_ne!(plain.stream, twin.stream);
}

#[test]
fn freed_device_memory_is_still_named() {
    let mut bench = prepared();
    bench.call(Api::cuMemFree_v2, &[DEVICE], &[]);
    let operation = bench.call(Api::cuMemcpyHtoD_v2, &[DEVICE, PAGEABLE, 16], &[]);
    assert_eq!(operation.accesses[1], exact(AllocationId(0), DEVICE, 16, Mode::Write));
}

#[test]
fn freed_host_memory_is_ordinary_memory() {
    let mut bench = prepared();
    bench.call(Api::cuMemFreeHost, &[PINNED], &[]);
    let copy = copy(bench.call(Api::cuMemcpyHtoD_v2, &[DEVICE, PINNED, 16], &[]).action);
    assert_eq!(copy.source, MemoryKind::Pageable);
}

#[test]
fn peer_copies_name_both_contexts() {
    let mut bench = prepared();
    let args = [DEVICE, 0xd0, DEVICE + 64, 0xe0, 32];
    let peer = copy(bench.call(Api::cuMemcpyPeer, &args, &[]).action).peer;
    let (source, destination) = peer.expect("contexts");
    assert_ne!(source, destination);
}

#[test]
fn failed_copy_touches_nothing() {
    let mut bench = prepared();
    let operation = bench.fails(Api::cuMemcpyHtoD_v2, &[DEVICE, PINNED, 16], INVALID);
    assert!(operation.accesses.is_empty());
}

#[test]
fn empty_copy_touches_nothing() {
    let mut bench = prepared();
    assert!(bench.call(Api::cuMemcpyHtoD_v2, &[DEVICE, PINNED, 0], &[]).accesses.is_empty());
}

#[test]
fn array_of_unknown_origin_is_counted() {
    let mut bench = prepared();
    let operation = bench.call(Api::cuMemcpyAtoH_v2, &[PINNED, 0x9000, 0, 64], &[]);
    assert_eq!(operation.accesses.len(), 1);
    assert_eq!(bench.reasons().len(), 1);
}

/// A descriptor with these words at these offsets.
fn descriptor(size: usize, words: &[(usize, u64)]) -> Box<[u8]> {
    let mut bytes = vec![0; size];
    for &(at, word) in words {
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes.into()
}

fn strided(
    allocation: u32,
    mode: Mode,
    start: u64,
    (width, pitch, rows): (u64, u64, u64),
    (slice_pitch, slices): (u64, u64),
) -> Access {
    let pattern = StridedPattern { start, width, pitch, rows, slice_pitch, slices };
    Access {
        allocation: AllocationId(allocation),
        extent: Extent::strided(pattern).expect("not empty"),
        mode,
        basis: Basis::Exact,
    }
}

#[test]
fn flat_descriptor_gives_rows() {
    let mut bench = prepared();
    let words = [
        (0, 4),       // source x
        (8, 1),       // source y
        (16, 1),      // source: host
        (24, PINNED), //
        (48, 128),    // source pitch
        (72, 2),      // destination: device
        (88, DEVICE), //
        (104, 64),    // destination pitch
        (112, 16),    // width
        (120, 3),     // height
    ];
    let operation = bench.full(Api::cuMemcpy2D_v2, &[0x10], &[], 0, |call| {
        call.pointee = Some(descriptor(128, &words));
    });
    assert_eq!(copy(operation.action).bytes, 48);
    assert_eq!(
        operation.accesses,
        [
            strided(1, Mode::Read, PINNED + 128 + 4, (16, 128, 3), (384, 1)),
            strided(0, Mode::Write, DEVICE, (16, 64, 3), (192, 1)),
        ]
    );
}

#[test]
fn deep_descriptor_gives_slices() {
    let mut bench = prepared();
    let words = [
        (16, 1),        // source z
        (32, 4),        // source: unified
        (48, DEVICE),   //
        (72, 32),       // source pitch
        (80, 4),        // source height
        (120, 2),       // destination: device
        (136, MANAGED), //
        (160, 16),      // destination pitch
        (168, 2),       // destination height
        (176, 8),       // width
        (184, 2),       // height
        (192, 2),       // depth
    ];
    let operation = bench.full(Api::cuMemcpy3DAsync_v2, &[0x10, 1], &[], 0, |call| {
        call.pointee = Some(descriptor(200, &words));
    });
    let copy = copy(operation.action);
    assert_eq!((copy.source, copy.destination), (MemoryKind::Device, MemoryKind::Managed));
    assert_eq!(
        operation.accesses,
        [
            strided(0, Mode::Read, DEVICE + 128, (8, 32, 2), (128, 2)),
            strided(2, Mode::Write, MANAGED, (8, 16, 2), (32, 2)),
        ]
    );
}

#[test]
fn descriptor_of_the_first_abi_is_counted() {
    let mut bench = prepared();
    let operation = bench.full(Api::cuMemcpy2D, &[0x10], &[], 0, |call| {
        call.pointee = Some(descriptor(96, &[]));
    });
    assert_eq!(operation.action, Action::Other);
    assert_eq!(bench.reasons().len(), 1);
}

#[test]
fn memsets_count_elements() {
    for (api, args, len) in [
        (Api::cuMemsetD8_v2, [DEVICE, 0, 10], 10),
        (Api::cuMemsetD16_v2, [DEVICE, 0, 10], 20),
        (Api::cuMemsetD32_v2, [DEVICE, 0, 10], 40),
    ] {
        let mut bench = prepared();
        let operation = bench.call(api, &args, &[]);
        assert_eq!(operation.accesses, [exact(AllocationId(0), DEVICE, len, Mode::Write)]);
    }
    let mut bench = prepared();
    let operation = bench.call(Api::cuMemsetD2D32Async, &[DEVICE, 64, 0, 4, 3, 1], &[]);
    assert_eq!(operation.accesses, [strided(0, Mode::Write, DEVICE, (16, 64, 3), (192, 1))]);
}
