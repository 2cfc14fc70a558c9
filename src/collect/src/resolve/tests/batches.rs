use super::bench::{Bench, structure, words};
use streamsan_model::{Access, Action, Batch, BatchEntry, Extent, MemoryKind, Mode, SourceOrder};
use streamsan_wire::Api;

const A: u64 = 0x10_0000;
const B: u64 = 0x20_0000;
const C: u64 = 0x30_0000;
const STREAM: u64 = 1;

fn prepared() -> Bench {
    let mut bench = Bench::new();
    for start in [A, B, C] {
        bench.alloc(start, 0x1000);
    }
    bench
}

fn batch(action: &Action) -> &Batch {
    match action {
        Action::Batch(batch) => batch,
        other => panic!("{other:?}"),
    }
}

fn ranges(accesses: &[Access]) -> Vec<(u64, u64, Mode)> {
    let range = |a: &Access| (a.extent.hull().start, a.extent.hull().len(), a.mode);
    accesses.iter().map(range).collect()
}

/// The attributes of a copy.
fn attributes(order: u64) -> Box<[u8]> {
    structure(24, &[(0, order)])
}

#[test]
fn every_copy_of_a_batch_has_its_own_accesses_and_order() {
    let (dsts, srcs, sizes) = (words(&[B, C, B + 64]), words(&[A, A, A]), words(&[16, 16, 32]));
    let both: Vec<u8> = [attributes(3), attributes(2)].concat();
    let first = words(&[0, 2]);
    for (api, tail) in
        [(Api::cuMemcpyBatchAsync, &[0x9, STREAM][..]), (Api::cuMemcpyBatchAsync_v2, &[STREAM][..])]
    {
        let mut bench = prepared();
        let args = [&[0x1, 0x2, 0x3, 3, 0x4, 0x5, 2], tail].concat();
        let lists: [(u32, &[u8]); 5] =
            [(0, &dsts), (1, &srcs), (2, &sizes), (4, &both), (5, &first)];
        let operation = bench.lists(api, &args, &lists);
        let entries = &batch(&operation.action).entries;
        let orders: Vec<_> = entries.iter().map(|e| e.copy.source_order).collect();
        assert_eq!(orders, [SourceOrder::Any, SourceOrder::Any, SourceOrder::DuringCall]);
        assert!(entries.iter().all(|entry| entry.accesses == 2 && !entry.copy.synchronous));
        assert_eq!(
            ranges(&operation.accesses),
            [
                (A, 16, Mode::Read),
                (B, 16, Mode::Write),
                (A, 16, Mode::Read),
                (C, 16, Mode::Write),
                (A, 32, Mode::Read),
                (B + 64, 32, Mode::Write),
            ]
        );
        assert!(bench.reasons().is_empty());
    }
}

#[test]
fn list_that_was_not_recorded_is_counted() {
    let mut bench = prepared();
    let args = [0x1, 0x2, 0x3, 200_000, 0x4, 0x5, 1, STREAM];
    let operation = bench.lists(Api::cuMemcpyBatchAsync_v2, &args, &[]);
    assert_eq!(operation.action, Action::Other);
    assert_eq!(bench.reasons().len(), 1);
}

#[test]
fn attributes_of_a_single_copy_say_when_the_source_is_read() {
    for (code, order) in
        [(1, SourceOrder::Stream), (2, SourceOrder::DuringCall), (3, SourceOrder::Any)]
    {
        let mut bench = prepared();
        let args = [B, A, 32, 0x1, STREAM];
        let api = Api::cuMemcpyWithAttributesAsync;
        let operation = bench.reads(api, &args, &[], attributes(code));
        let Action::Copy(copy) = operation.action else { panic!("{operation:?}") };
        assert_eq!((copy.source_order, copy.bytes, copy.synchronous), (order, 32, false));
    }
}

/// A `CUDA_MEMCPY3D_BATCH_OP` between addresses: rows of 8 bytes, 2 rows, 2 slices.
fn box_between(source: u64, destination: u64) -> Box<[u8]> {
    structure(
        112,
        &[
            (0, 1),
            (8, source),
            (16, 32), // row length
            (24, 4),  // rows of a layer
            (40, 1),
            (48, destination),
            (80, 8),
            (88, 2),
            (96, 2),
            (104, 3), // any order
        ],
    )
}

#[test]
fn boxes_between_addresses_count_bytes() {
    let one = box_between(A, B);
    let mut bench = prepared();
    let api = Api::cuMemcpy3DWithAttributesAsync;
    let operation = bench.reads(api, &[0x1, 0, STREAM], &[], one.clone());
    let Action::Copy(copy) = operation.action else { panic!("{operation:?}") };
    assert_eq!((copy.bytes, copy.source_order), (32, SourceOrder::Any));
    let Extent::Strided(source) = operation.accesses[0].extent else { panic!("rows") };
    assert_eq!((source.pitch, source.rows, source.slice_pitch), (32, 2, 128));
    assert_eq!(operation.accesses[1].extent.hull().len(), 32);

    for (api, args) in [
        (Api::cuMemcpy3DBatchAsync, &[2, 0x1, 0x9, 0, STREAM][..]),
        (Api::cuMemcpy3DBatchAsync_v2, &[2, 0x1, 0, STREAM][..]),
    ] {
        let mut bench = prepared();
        let list = [one.clone(), box_between(A, C)].concat();
        let listed = bench.reads(api, args, &[], list.into());
        let [first, second] = batch(&listed.action).entries[..] else { panic!("{listed:?}") };
        assert_eq!(first, BatchEntry { copy, accesses: 2 });
        assert_eq!(second.accesses, 2);
        assert_eq!(listed.accesses[..2], operation.accesses);
    }
}

#[test]
fn boxes_with_arrays_count_elements() {
    let mut bench = prepared();
    // 16 by 8 elements of four 4-byte floats.
    let descriptor = structure(24, &[(0, 16), (8, 8), (16, 0x20 | 4 << 32)]);
    let created = bench.reads(Api::cuArrayCreate_v2, &[0x1, 0x2], &[0xa1], descriptor);
    let array = created.accesses[0].extent.hull();
    let operation = structure(
        112,
        &[
            (0, 2),
            (8, 0xa1),
            (16, 2), // x
            (24, 3), // y
            (40, 1),
            (48, B),
            (80, 4),
            (88, 2),
            (96, 1),
            (104, 1),
        ],
    );
    let copied = bench.reads(Api::cuMemcpy3DBatchAsync_v2, &[1, 1, 0, STREAM], &[], operation);
    let entry = batch(&copied.action).entries[0];
    assert_eq!((entry.copy.source, entry.copy.bytes), (MemoryKind::Array, 128));
    let Extent::Strided(rows) = copied.accesses[0].extent else { panic!("rows") };
    assert_eq!((rows.start - array.start, rows.width, rows.pitch), (3 * 256 + 32, 64, 256));
    assert_eq!(ranges(&copied.accesses[1..]), [(B, 128, Mode::Write)]);
    assert!(bench.reasons().is_empty());
}

#[test]
fn decompression_writes_its_output_and_its_length() {
    let mut bench = prepared();
    let one = |actual: u64| structure(64, &[(0, 10), (8, 40), (16, actual), (24, A), (32, B)]);
    let list = [one(C), one(0)].concat();
    let args = [0x1, 2, 0, 0x9, STREAM];
    let operation = bench.reads(Api::cuMemBatchDecompressAsync, &args, &[], list.into());
    let accesses: Vec<_> = batch(&operation.action).entries.iter().map(|e| e.accesses).collect();
    assert_eq!(accesses, [3, 2]);
    assert_eq!(
        ranges(&operation.accesses[..3]),
        [(A, 10, Mode::Read), (B, 40, Mode::Write), (C, 4, Mode::Write)]
    );
}
