use super::bench::{Bench, structure, words};
use streamsan_model::{Action, AllocationId, Operation};
use streamsan_wire::{Api, BlobTag};

const A: u64 = 0x10_0000;
const B: u64 = 0x20_0000;

fn prepared() -> Bench {
    let mut bench = Bench::new();
    bench.alloc(A, 0x1000);
    bench.alloc(B, 0x1000);
    bench.kernel(0xf0, "left", Some(&[(0, 8)]));
    bench.kernel(0xf1, "right", Some(&[(0, 8), (8, 8)]));
    for handle in [0x500, 0x501] {
        bench.call(Api::cuStreamCreate, &[0x1, 1], &[handle, 1]);
    }
    bench
}

#[test]
fn launch_on_several_devices_has_a_kernel_and_accesses_for_each() {
    let entry = |function, stream| structure(56, &[(0, function), (40, stream)]);
    let list = [entry(0xf0, 0x500), entry(0xf1, 0x501)].concat();
    let (left, right) = (words(&[A]), words(&[A, B]));
    let tag = BlobTag::MEMBER_PARAMS;
    let lists: [(u32, &[u8]); 3] = [(0, &list), (tag, &left), (tag + 1, &right)];
    for (flags, before, after) in [(0, true, true), (1, false, true), (2, true, false)] {
        let mut bench = prepared();
        let api = Api::cuLaunchCooperativeKernelMultiDevice;
        let operation = bench.lists(api, &[0x1, 2, flags], &lists);
        let Action::LaunchMultiDevice(launch) = operation.action else { panic!("{operation:?}") };
        assert_eq!((launch.waits_before, launch.holds_back_after), (before, after));
        let accesses: Vec<_> = launch.launches.iter().map(|m| m.accesses).collect();
        assert_eq!(accesses, [1, 2]);
        assert_ne!(launch.launches[0].stream, launch.launches[1].stream);
        assert_ne!(launch.launches[0].kernel, launch.launches[1].kernel);
        let touched: Vec<_> = operation.accesses.iter().map(|a| a.allocation).collect();
        assert_eq!(touched, [AllocationId(0), AllocationId(0), AllocationId(1)]);
    }
}

fn touched(operation: &Operation) -> Vec<AllocationId> {
    assert!(matches!(operation.action, Action::Launch { .. }), "{operation:?}");
    operation.accesses.iter().map(|access| access.allocation).collect()
}

#[test]
fn parameters_set_one_by_one_are_those_of_the_next_launch() {
    let mut bench = prepared();
    bench.reads(Api::cuParamSetv, &[0xf1, 0, 0x1, 8], &[], words(&[A]));
    // The second pointer in two halves.
    bench.call(Api::cuParamSeti, &[0xf1, 8, B & 0xffff_ffff], &[]);
    bench.call(Api::cuParamSeti, &[0xf1, 12, B >> 32], &[]);
    bench.call(Api::cuParamSetSize, &[0xf1, 16], &[]);
    for (api, args) in [
        (Api::cuLaunch, &[0xf1][..]),
        (Api::cuLaunchGrid, &[0xf1, 4, 4]),
        (Api::cuLaunchGridAsync, &[0xf1, 4, 4, 0x500]),
    ] {
        let operation = bench.call(api, args, &[]);
        assert_eq!(touched(&operation), [AllocationId(0), AllocationId(1)], "{}", api.name());
    }
    bench.call(Api::cuParamSetSize, &[0xf1, 8], &[]);
    assert_eq!(touched(&bench.call(Api::cuLaunch, &[0xf1], &[])), [AllocationId(0)]);
}
