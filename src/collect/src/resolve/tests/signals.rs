use super::bench::{Bench, exact, structure, words};
use streamsan_model::{
    Action, AllocationId, Mode, SemaphoreId, SignalObject, SignalOperation, ValueCompare,
};
use streamsan_wire::Api;

const FLAG: u64 = 0x10_0000;
const STREAM: u64 = 1;

fn prepared() -> Bench {
    let mut bench = Bench::new();
    bench.alloc(FLAG, 0x1000);
    bench
}

fn operations(action: Action) -> Vec<SignalOperation> {
    match action {
        Action::Signals(signals) => signals.operations.clone(),
        other => panic!("{other:?}"),
    }
}

fn memory(address: u64, width: u8) -> SignalObject {
    SignalObject::Memory { allocation: AllocationId(0), address, width }
}

#[test]
fn values_are_written_and_waited_for_in_a_word() {
    use ValueCompare::{And, Equal, GreaterOrEqual, Nor};
    let long = 0x1_0000_0002;
    for (api, flags, width, compare) in [
        (Api::cuStreamWaitValue32, 0, 4, GreaterOrEqual),
        (Api::cuStreamWaitValue32_v2, 1, 4, Equal),
        (Api::cuStreamWaitValue64_v2, 2, 8, And),
        (Api::cuStreamWaitValue64_v2_ptsz, 3 | 1 << 30, 8, Nor),
    ] {
        let mut bench = prepared();
        let operation = bench.call(api, &[STREAM, FLAG + 8, long, flags], &[]);
        let width_bytes = u64::from(width);
        assert_eq!(
            operation.accesses,
            [exact(AllocationId(0), FLAG + 8, width_bytes, Mode::Atomic)]
        );
        let value = if width == 4 { 2 } else { long };
        let object = memory(FLAG + 8, width);
        let expected = [SignalOperation::Wait { object, value, compare }];
        assert_eq!(operations(operation.action), expected, "{}", api.name());
    }
    for (api, flags, width, releases) in
        [(Api::cuStreamWriteValue32, 0, 4, true), (Api::cuStreamWriteValue64_v2, 1, 8, false)]
    {
        let mut bench = prepared();
        let operation = bench.call(api, &[STREAM, FLAG, 5, flags], &[]);
        let expected =
            [SignalOperation::Signal { object: memory(FLAG, width), value: 5, releases }];
        assert_eq!(operations(operation.action), expected, "{}", api.name());
    }
}

#[test]
fn batch_keeps_the_order_of_its_operations() {
    let entry = |words: &[(usize, u64)]| structure(48, words);
    let list = [
        entry(&[(0, 1), (8, FLAG), (16, 3), (24, 1)]), // wait, equal
        entry(&[(0, 5), (8, FLAG + 8), (16, 4), (24, 1)]), // write, no barrier
        entry(&[(0, 6)]),                              // barrier
        entry(&[(0, 2), (8, FLAG + 16), (16, 5), (24, 1)]), // write behind it
        entry(&[(0, 3)]),                              // flush
    ]
    .concat();
    for api in [Api::cuStreamBatchMemOp, Api::cuStreamBatchMemOp_v2_ptsz] {
        let mut bench = prepared();
        let operation = bench.reads(api, &[STREAM, 5, 0x1, 0], &[], list.clone().into());
        let compare = ValueCompare::Equal;
        let expected = [
            SignalOperation::Wait { object: memory(FLAG, 4), value: 3, compare },
            SignalOperation::Signal { object: memory(FLAG + 8, 8), value: 4, releases: false },
            SignalOperation::Signal { object: memory(FLAG + 16, 4), value: 5, releases: true },
        ];
        assert_eq!(operation.accesses.len(), 3);
        assert_eq!(operations(operation.action), expected);
        assert!(bench.reasons().is_empty());
    }
    let mut bench = prepared();
    let reduction = entry(&[(0, 8), (16, FLAG)]);
    bench.reads(Api::cuStreamBatchMemOp_v2, &[STREAM, 1, 0x1, 0], &[], reduction);
    assert_eq!(bench.reasons().len(), 1);
}

#[test]
fn semaphores_have_one_object_and_the_values_of_their_kind() {
    const TIMELINE: u64 = 9;
    const BINARY: u64 = 1;
    const NVSCISYNC: u64 = 6;
    let mut bench = Bench::new();
    for (handle, kind) in [(0xe0, BINARY), (0xe1, TIMELINE), (0xe2, NVSCISYNC)] {
        let descriptor = structure(96, &[(0, kind)]);
        bench.reads(Api::cuImportExternalSemaphore, &[0x1, 0x2], &[handle], descriptor);
    }
    let handles = words(&[0xe0, 0xe1]);
    let parameters = [structure(144, &[(0, 77)]), structure(144, &[(0, 42)])].concat();
    let lists: [(u32, &[u8]); 2] = [(0, &handles), (1, &parameters)];
    let mut made = [Api::cuSignalExternalSemaphoresAsync, Api::cuWaitExternalSemaphoresAsync]
        .map(|api| operations(bench.lists(api, &[0x1, 0x2, 2, STREAM], &lists).action));
    let [signals, waits] = &mut made;
    let semaphore = |id| SignalObject::Semaphore(SemaphoreId(id));
    for (index, value) in [(0, 1), (1, 42)] {
        let object = semaphore(index);
        let index = index as usize;
        assert_eq!(signals[index], SignalOperation::Signal { object, value, releases: true });
        let compare = ValueCompare::GreaterOrEqual;
        assert_eq!(waits[index], SignalOperation::Wait { object, value, compare });
    }
    assert!(bench.reasons().is_empty());
    let one = words(&[0xe2]);
    let lists: [(u32, &[u8]); 2] = [(0, &one), (1, &parameters[..144])];
    bench.lists(Api::cuSignalExternalSemaphoresAsync, &[0x1, 0x2, 1, STREAM], &lists);
    bench.call(Api::cuDestroyExternalSemaphore, &[0xe0], &[]);
    let gone = words(&[0xe0]);
    let lists: [(u32, &[u8]); 2] = [(0, &gone), (1, &parameters[..144])];
    bench.lists(Api::cuSignalExternalSemaphoresAsync, &[0x1, 0x2, 1, STREAM], &lists);
    assert_eq!(bench.reasons().len(), 2);
}
