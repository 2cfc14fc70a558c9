use super::bench::Bench;
use streamsan_model::Action;
use streamsan_wire::Api;

const A: u64 = 0x10_0000;
const B: u64 = 0x20_0000;
const SYNC_MEMOPS: u64 = 0x80;

/// Whether a synchronous copy from A to B, a synchronous memset of B and an asynchronous copy wait
/// by request.
fn waits(bench: &mut Bench) -> [bool; 3] {
    let calls = [
        (Api::cuMemcpyDtoD_v2, &[B, A, 16][..]),
        (Api::cuMemsetD8_v2, &[B, 0, 16]),
        (Api::cuMemcpyDtoDAsync_v2, &[B, A, 16, 1]),
    ];
    calls.map(|(api, args)| match bench.call(api, args, &[]).action {
        Action::Copy(copy) => copy.sync_memops,
        Action::Memset { sync_memops, .. } => sync_memops,
        other => panic!("{other:?}"),
    })
}

fn prepared() -> Bench {
    let mut bench = Bench::new();
    bench.alloc(A, 0x1000);
    bench.alloc(B, 0x1000);
    bench
}

#[test]
fn flag_of_the_context_counts_while_it_is_set() {
    let mut bench = prepared();
    assert_eq!(waits(&mut bench), [false; 3]);
    bench.call(Api::cuCtxSetFlags, &[SYNC_MEMOPS], &[]);
    assert_eq!(waits(&mut bench), [true, true, false]);
    bench.call(Api::cuCtxSetFlags, &[0], &[]);
    assert_eq!(waits(&mut bench), [false; 3]);
}

#[test]
fn flags_of_a_primary_context_outlive_it() {
    let mut bench = Bench::new();
    bench.call(Api::cuDevicePrimaryCtxSetFlags_v2, &[0, SYNC_MEMOPS], &[]);
    bench.call(Api::cuDevicePrimaryCtxRetain, &[0x10, 0], &[super::bench::CONTEXT, 1]);
    assert_eq!(waits(&mut bench), [true, true, false]);
    bench.call(Api::cuDevicePrimaryCtxReset_v2, &[0], &[]);
    assert_eq!(waits(&mut bench), [true, true, false]);
}

#[test]
fn attribute_of_an_allocation_counts_for_it_alone() {
    let mut bench = prepared();
    bench.reads(Api::cuPointerSetAttribute, &[0x1, 6, A + 8], &[], [1].into());
    assert_eq!(waits(&mut bench), [true, false, false]);
    bench.reads(Api::cuPointerSetAttribute, &[0x1, 6, A], &[], [0].into());
    assert_eq!(waits(&mut bench), [false; 3]);
}
