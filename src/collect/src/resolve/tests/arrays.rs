use super::bench::{Bench, exact, structure, words};
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, Extent, MemoryKind, Mode, Operation,
};
use streamsan_wire::Api;

const A: u64 = 0x10_0000;
const ARRAY: u64 = 0xa1;
const FUNCTION: u64 = 0xf00;

/// A process with linear memory and an array of 16 by 8 elements of 4 bytes.
fn prepared() -> (Bench, AllocationId, u64) {
    let mut bench = Bench::new();
    bench.alloc(A, 0x1000);
    let descriptor = structure(24, &[(0, 16), (8, 8), (16, 0x20 | 1 << 32)]);
    let created = bench.reads(Api::cuArrayCreate_v2, &[0x1, 0x2], &[ARRAY], descriptor);
    let Action::Allocate { allocation, stream: None } = created.action else {
        panic!("{created:?}")
    };
    let declared = bench.declared(allocation);
    assert_eq!((declared.kind, declared.range.len()), (MemoryKind::Array, 16 * 4 * 8));
    let start = declared.range.start;
    assert_eq!(created.accesses, [exact(allocation, start, 512, Mode::Allocate)]);
    (bench, allocation, start)
}

fn copy(operation: &Operation) -> (MemoryKind, MemoryKind) {
    match operation.action {
        Action::Copy(copy) => (copy.source, copy.destination),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_of_one_dimensional_copies_lie_in_the_made_up_range() {
    use MemoryKind::{Array, Device};
    let linear = AllocationId(0);
    for (api, args, kinds, read, write) in [
        (Api::cuMemcpyDtoA_v2, &[ARRAY, 64, A, 32][..], (Device, Array), false, true),
        (Api::cuMemcpyAtoD_v2, &[A, ARRAY, 64, 32], (Array, Device), true, false),
        (Api::cuMemcpyAtoA_v2, &[ARRAY, 64, ARRAY, 128, 32], (Array, Array), true, true),
    ] {
        let (mut bench, array, start) = prepared();
        let operation = bench.call(api, args, &[]);
        assert_eq!(copy(&operation), kinds, "{}", api.name());
        let source = match (read, write) {
            (true, true) => exact(array, start + 128, 32, Mode::Read),
            (true, false) => exact(array, start + 64, 32, Mode::Read),
            _ => exact(linear, A, 32, Mode::Read),
        };
        let target = if write {
            exact(array, start + 64, 32, Mode::Write)
        } else {
            exact(linear, A, 32, Mode::Write)
        };
        assert_eq!(operation.accesses, [source, target], "{}", api.name());
        assert!(bench.reasons().is_empty());
    }
}

#[test]
fn boxes_of_descriptors_lie_row_by_row() {
    let (mut bench, array, start) = prepared();
    let words = [
        (16, 2), // source: device
        (32, A),
        (56, 8), // destination x in bytes
        (64, 2), // destination y
        (72, 3), // destination: array
        (96, ARRAY),
        (112, 16), // width
        (120, 3),  // height
    ];
    let operation = bench.reads(Api::cuMemcpy2D_v2, &[0x1], &[], structure(128, &words));
    assert_eq!(copy(&operation), (MemoryKind::Device, MemoryKind::Array));
    let Access { allocation, extent: Extent::Strided(rows), .. } = operation.accesses[1] else {
        panic!("{operation:?}")
    };
    assert_eq!(allocation, array);
    assert_eq!((rows.start, rows.width), (start + 2 * 64 + 8, 16));
    assert_eq!((rows.pitch, rows.rows), (64, 3));
}

#[test]
fn arrays_of_one_process_do_not_overlap_and_end() {
    let (mut bench, array, start) = prepared();
    let descriptor = structure(40, &[(0, 4), (8, 4), (16, 4), (24, 1 | 4 << 32)]);
    let other = bench.reads(Api::cuArray3DCreate_v2, &[0x1, 0x2], &[0xa2], descriptor);
    let range = other.accesses[0].extent.hull();
    assert_eq!(range.len(), 4 * 4 * 4 * 4);
    assert!(range.start >= start + 512);
    let destroyed = bench.call(Api::cuArrayDestroy, &[ARRAY], &[]);
    assert_eq!(destroyed.action, Action::Free { allocation: array, stream: None });
    assert_eq!(destroyed.accesses, [exact(array, start, 512, Mode::Free)]);
}

#[test]
fn levels_are_parts_of_their_mipmapped_array() {
    let mut bench = Bench::new();
    bench.alloc(A, 0x1000);
    let descriptor = structure(40, &[(0, 8), (8, 8), (24, 0x20 | 1 << 32)]);
    let created = bench.reads(Api::cuMipmappedArrayCreate, &[0x1, 0x2, 3], &[0xb0], descriptor);
    let whole = created.accesses[0].extent.hull();
    // 8x8, 4x4, 2x2 elements of 4 bytes.
    assert_eq!(whole.len(), 4 * (64 + 16 + 4));
    bench.call(Api::cuMipmappedArrayGetLevel, &[0x1, 0xb0, 1], &[0xb1]);
    let operation = bench.call(Api::cuMemcpyAtoD_v2, &[A, 0xb1, 0, 64], &[]);
    let allocation = created.accesses[0].allocation;
    assert_eq!(operation.accesses[0], exact(allocation, whole.start + 256, 64, Mode::Read));
    bench.call(Api::cuMipmappedArrayDestroy, &[0xb0], &[]);
    bench.call(Api::cuMemcpyAtoD_v2, &[A, 0xb1, 0, 64], &[]);
    assert_eq!(bench.reasons().len(), 1);
}

fn launch(bench: &mut Bench, params: &[u64]) -> Vec<Access> {
    let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    let params = words(params);
    let launched = bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
        call.kernel_params = Some(params);
    });
    launched.accesses
}

fn assumed(allocation: AllocationId, start: u64, len: u64, mode: Mode) -> Access {
    let extent = Extent::Range(ByteRange::with_len(start, len));
    Access { allocation, extent, mode, basis: Basis::Assumed }
}

#[test]
fn launch_touches_what_its_textures_and_surfaces_lead_to() {
    let (mut bench, array, start) = prepared();
    bench.kernel(FUNCTION, "sample", Some(&[(0, 8), (8, 8)]));
    let of_array = structure(144, &[(8, ARRAY)]);
    let linear = structure(144, &[(0, 2), (8, A + 16), (16, 0x20 | 1 << 32), (24, 64)]);
    bench.reads(Api::cuTexObjectCreate, &[0x1, 0x2, 0, 0], &[7], linear);
    bench.reads(Api::cuSurfObjectCreate, &[0x1, 0x2], &[9], of_array);
    assert_eq!(
        launch(&mut bench, &[9, 7]),
        [
            assumed(array, start, 512, Mode::MayWrite),
            assumed(AllocationId(0), A + 16, 64, Mode::Read),
        ]
    );
    bench.call(Api::cuTexObjectDestroy, &[7], &[]);
    bench.call(Api::cuSurfObjectDestroy, &[9], &[]);
    assert!(launch(&mut bench, &[9, 7]).is_empty());
    assert!(bench.reasons().is_empty());
}

#[test]
fn pitched_texture_is_read_row_by_row() {
    let (mut bench, ..) = prepared();
    bench.kernel(FUNCTION, "sample", Some(&[(0, 8)]));
    // Rows of 4 two-byte elements at a pitch of 32.
    let pitched =
        structure(144, &[(0, 3), (8, A), (16, 0x10 | 1 << 32), (24, 4), (32, 3), (40, 32)]);
    bench.reads(Api::cuTexObjectCreate, &[0x1, 0x2, 0, 0], &[7], pitched);
    let accesses = launch(&mut bench, &[7]);
    let Extent::Strided(rows) = accesses[0].extent else { panic!("{accesses:?}") };
    assert_eq!((rows.width, rows.pitch, rows.rows), (8, 32, 3));
}

#[test]
fn bound_reference_is_read_by_the_kernels_of_its_module() {
    let (mut bench, array, start) = prepared();
    bench.kernel(FUNCTION, "sample", Some(&[]));
    let name = || b"reference".as_slice().into();
    bench.reads(Api::cuModuleGetFunction, &[0x1, 0x50, 0x2], &[FUNCTION], name());
    bench.reads(Api::cuModuleGetTexRef, &[0x1, 0x50, 0x2], &[0x60], name());
    bench.reads(Api::cuModuleGetTexRef, &[0x1, 0x51, 0x2], &[0x61], name());
    assert!(launch(&mut bench, &[]).is_empty());
    // That of another module is not for this kernel.
    bench.call(Api::cuTexRefSetAddress_v2, &[0, 0x61, A, 64], &[]);
    assert!(launch(&mut bench, &[]).is_empty());
    bench.call(Api::cuTexRefSetArray, &[0x60, ARRAY, 1], &[]);
    assert_eq!(launch(&mut bench, &[]), [assumed(array, start, 512, Mode::Read)]);
    bench.call(Api::cuModuleUnload, &[0x50], &[]);
    bench.reads(Api::cuModuleGetFunction, &[0x1, 0x52, 0x2], &[FUNCTION], name());
    assert!(launch(&mut bench, &[]).is_empty());
}
