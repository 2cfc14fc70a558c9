use super::bench::{Bench, words};
use streamsan_model::{Access, AllocationId, Basis, ByteRange, Extent, Mode, StridedPattern};
use streamsan_wire::Api;

const A: u64 = 0x10_0000;
const BYTES: u64 = 0x1_0000;
const FUNCTION: u64 = 0xf00;

/// `CU_TENSOR_MAP_DATA_TYPE_FLOAT16`, and one of packed elements.
const HALF: u64 = 6;
const PACKED: u64 = 13;

/// The content of a map that a test names by a number.
fn content(name: u64) -> Vec<u64> {
    (0..16).map(|word| name << 32 | word).collect()
}

fn prepared() -> (Bench, AllocationId) {
    let mut bench = Bench::new();
    let memory = bench.alloc(A, BYTES);
    bench.kernel(FUNCTION, "gemm", Some(&[(0, 128), (128, 8)]));
    (bench, memory)
}

fn encode(
    bench: &mut Bench,
    name: u64,
    (kind, start, interleave): (u64, u64, u64),
    dimensions: &[u64],
    strides: &[u64],
) {
    let rank = dimensions.len() as u64;
    let args = [0x1, kind, rank, start, 0x2, 0x3, 0x4, 0x5, interleave, 0, 0, 0];
    let (dimensions, strides) = (words(dimensions), words(strides));
    bench.full(Api::cuTensorMapEncodeTiled, &args, &content(name), 0, |call| {
        call.inputs = vec![(4, dimensions), (5, strides)];
    });
}

fn launch(bench: &mut Bench, params: &[u64]) -> Vec<Access> {
    let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    let params = words(params);
    let launched = bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| {
        call.kernel_params = Some(params);
    });
    launched.accesses
}

fn assumed(allocation: AllocationId, extent: Extent) -> Access {
    Access { allocation, extent, mode: Mode::MayWrite, basis: Basis::Assumed }
}

fn range(start: u64, len: u64) -> Extent {
    Extent::Range(ByteRange::with_len(start, len))
}

fn rows(width: u64, pitch: u64, rows: u64, slice_pitch: u64, slices: u64) -> Extent {
    Extent::Strided(StridedPattern { start: A, width, pitch, rows, slice_pitch, slices })
}

/// Type, interleave, dimensions, strides: what the tensor covers from `A` on.
type Case = (u64, u64, &'static [u64], &'static [u64], Extent);

#[test]
fn map_stands_for_its_tensor() {
    let whole = range(A, BYTES);
    let cases: &[Case] = &[
        (HALF, 0, &[64], &[], range(A, 128)),
        (HALF, 0, &[64, 8], &[128], range(A, 1024)),
        (HALF, 0, &[64, 8], &[256], rows(128, 256, 8, 0, 1)),
        (HALF, 0, &[64, 8, 3], &[256, 4096], rows(128, 256, 8, 4096, 3)),
        // Rows of slices without a gap are rows.
        (HALF, 0, &[64, 8, 3], &[256, 2048], rows(128, 256, 24, 0, 1)),
        // In any order of the dimensions.
        (HALF, 0, &[64, 3, 8], &[4096, 256], rows(128, 256, 8, 4096, 3)),
        // A dimension of one element, and one that repeats the same bytes.
        (HALF, 0, &[64, 1, 8, 9], &[512, 256, 0], rows(128, 256, 8, 0, 1)),
        // Three levels, and rows that overlap: all between the first byte and the last.
        (HALF, 0, &[64, 2, 2, 2], &[256, 1024, 4096], range(A, 256 + 1024 + 4096 + 128)),
        (HALF, 0, &[64, 8], &[64], range(A, 7 * 64 + 128)),
        // Not known byte by byte.
        (HALF, 1, &[64, 8], &[256], whole),
        (PACKED, 0, &[64, 8], &[256], whole),
        (HALF, 0, &[u64::MAX, 8], &[256], whole),
        (HALF, 0, &[64, 0], &[256], whole),
    ];
    for (case, &(kind, interleave, dimensions, strides, expected)) in cases.iter().enumerate() {
        let (mut bench, memory) = prepared();
        encode(&mut bench, 7, (kind, A, interleave), dimensions, strides);
        let params = [content(7), vec![0]].concat();
        assert_eq!(launch(&mut bench, &params), [assumed(memory, expected)], "case {case}");
        assert!(bench.reasons().is_empty());
    }
}

#[test]
fn words_of_a_map_are_no_pointers_and_others_are() {
    let (mut bench, memory) = prepared();
    let other = bench.alloc(0x20_0000, 64);
    // The first word of the content would be an address.
    let mut bytes = content(7);
    bytes[0] = A;
    let args = [0x1, HALF, 1, A + 256, 0x2, 0x3, 0x4, 0x5, 0, 0, 0, 0];
    bench.full(Api::cuTensorMapEncodeTiled, &args, &bytes, 0, |call| {
        call.inputs = vec![(4, words(&[16]))];
    });
    let params = [bytes, vec![0x20_0000]].concat();
    let expected = [assumed(memory, range(A + 256, 32)), assumed(other, range(0x20_0000, 64))];
    assert_eq!(launch(&mut bench, &params), expected);
    // A map that nobody encoded.
    let params = [content(8), vec![0x20_0000]].concat();
    assert_eq!(launch(&mut bench, &params), expected[1..]);
}

#[test]
fn maps_are_found_inside_a_structure() {
    let (mut bench, memory) = prepared();
    bench.kernel(FUNCTION, "gemm", Some(&[(0, 64 + 256)]));
    encode(&mut bench, 7, (HALF, A, 0), &[16], &[]);
    encode(&mut bench, 8, (HALF, A + 64, 0), &[16], &[]);
    let params = [vec![0; 8], content(8), content(7)].concat();
    assert_eq!(
        launch(&mut bench, &params),
        [assumed(memory, range(A + 64, 32)), assumed(memory, range(A, 32))]
    );
}

#[test]
fn replaced_address_keeps_the_shape() {
    let (mut bench, memory) = prepared();
    encode(&mut bench, 7, (HALF, A, 0), &[16], &[]);
    let before = words(&content(7));
    bench.reads(Api::cuTensorMapReplaceAddress, &[0x1, A + 512], &content(8), before);
    let params = [content(8), vec![0]].concat();
    assert_eq!(launch(&mut bench, &params), [assumed(memory, range(A + 512, 32))]);
    // The shape of one that was not seen being made is not known.
    bench.reads(Api::cuTensorMapReplaceAddress, &[0x1, A], &content(9), words(&content(1)));
    let params = [content(9), vec![0]].concat();
    assert_eq!(launch(&mut bench, &params), [assumed(memory, range(A, BYTES))]);
}

#[test]
fn tensor_in_freed_memory_is_used_after_free() {
    let (mut bench, memory) = prepared();
    encode(&mut bench, 7, (HALF, A, 0), &[16], &[]);
    bench.call(Api::cuMemFree_v2, &[A], &[]);
    let params = [content(7), vec![0]].concat();
    assert_eq!(launch(&mut bench, &params), [assumed(memory, range(A, 32))]);
}
