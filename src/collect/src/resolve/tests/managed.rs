use super::bench::{Bench, exact, words};
use streamsan_model::{Action, Attachment, Mode};
use streamsan_wire::Api;

const MANAGED: u64 = 0x30_0000;
const STREAM: u64 = 1;

#[test]
fn prefetches_and_discards_name_their_bytes() {
    let (starts, sizes) = (words(&[MANAGED, MANAGED + 64]), words(&[32, 16]));
    let lists: [(u32, &[u8]); 2] = [(0, &starts), (1, &sizes)];
    for (api, args, mode) in [
        (Api::cuMemPrefetchBatchAsync, &[1, 2, 2, 0, 0, 0, 0, STREAM][..], Mode::Prefetch),
        (Api::cuMemDiscardAndPrefetchBatchAsync, &[1, 2, 2, 0, 0, 0, 0, STREAM], Mode::Discard),
        (Api::cuMemDiscardBatchAsync, &[1, 2, 2, 0, STREAM], Mode::Discard),
    ] {
        let mut bench = Bench::new();
        let id = bench.allocation(Api::cuMemAllocManaged, MANAGED, 0x1000);
        let operation = bench.lists(api, args, &lists);
        let expected = [exact(id, MANAGED, 32, mode), exact(id, MANAGED + 64, 16, mode)];
        assert_eq!(operation.accesses, expected, "{}", api.name());
        assert_eq!(matches!(operation.action, Action::Discard { .. }), mode == Mode::Discard);
    }
    for (api, args) in [
        (Api::cuMemPrefetchAsync, &[MANAGED, 64, 0, STREAM][..]),
        (Api::cuMemPrefetchAsync_v2, &[MANAGED, 64, 1, 0, STREAM]),
    ] {
        let mut bench = Bench::new();
        let id = bench.allocation(Api::cuMemAllocManaged, MANAGED, 0x1000);
        let operation = bench.call(api, args, &[]);
        assert!(matches!(operation.action, Action::Prefetch { .. }), "{}", api.name());
        assert_eq!(operation.accesses, [exact(id, MANAGED, 64, Mode::Prefetch)]);
    }
}

#[test]
fn attachment_is_of_the_whole_allocation() {
    for (flag, expected) in
        [(1, Attachment::Global), (2, Attachment::Host), (4, Attachment::Single)]
    {
        let mut bench = Bench::new();
        let id = bench.allocation(Api::cuMemAllocManaged, MANAGED, 0x1000);
        let args = [STREAM, MANAGED, 0, flag];
        let operation = bench.call(Api::cuStreamAttachMemAsync, &args, &[]);
        let Action::Attach { allocation, attachment, .. } = operation.action else {
            panic!("{operation:?}")
        };
        assert_eq!((allocation, attachment), (id, expected));
    }
}
