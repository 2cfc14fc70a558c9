use super::bench::{Bench, INVALID, exact};
use streamsan_model::{Action, AllocationId, Entity, MemoryKind, Mode};
use streamsan_wire::Api;

fn kinds(bench: &Bench) -> Vec<(MemoryKind, u64)> {
    bench
        .entities
        .iter()
        .filter_map(|e| match e {
            Entity::Allocation(a) => Some((a.kind, a.range.len())),
            _ => None,
        })
        .collect()
}

#[test]
fn every_allocator_has_its_kind_and_size() {
    for (api, args, outs, kind, len) in [
        (Api::cuMemAlloc_v2, &[0, 100][..], &[0x1000][..], MemoryKind::Device, 100),
        (Api::cuMemAllocPitch_v2, &[0, 0, 100, 3, 4], &[0x1000, 512], MemoryKind::Device, 1536),
        (Api::cuMemAllocManaged, &[0, 100, 1], &[0x1000], MemoryKind::Managed, 100),
        (Api::cuMemAllocHost_v2, &[0, 100], &[0x1000], MemoryKind::Pinned, 100),
        (Api::cuMemHostAlloc, &[0, 100, 0], &[0x1000], MemoryKind::Pinned, 100),
        (Api::cuMemHostRegister_v2, &[0x1000, 100, 0], &[], MemoryKind::Registered, 100),
        (Api::cuMemAllocAsync, &[0, 100, 1], &[0x1000], MemoryKind::StreamOrdered, 100),
        (
            Api::cuMemAllocFromPoolAsync_ptsz,
            &[0, 100, 9, 1],
            &[0x1000],
            MemoryKind::StreamOrdered,
            100,
        ),
    ] {
        let mut bench = Bench::new();
        let operation = bench.call(api, args, outs);
        let Action::Allocate { allocation, stream } = operation.action else {
            panic!("{}: {:?}", api.name(), operation.action)
        };
        assert_eq!(kinds(&bench), [(kind, len)], "{}", api.name());
        assert_eq!(stream.is_some(), kind == MemoryKind::StreamOrdered, "{}", api.name());
        assert_eq!(operation.accesses, [exact(allocation, 0x1000, len, Mode::Allocate)]);
    }
}

#[test]
fn free_ends_the_generation_at_the_address() {
    let mut bench = Bench::new();
    let first = bench.alloc(0x1000, 0x100);
    let freed = bench.call(Api::cuMemFree_v2, &[0x1000], &[]);
    assert_eq!(freed.action, Action::Free { allocation: first, stream: None });
    assert_eq!(freed.accesses, [exact(first, 0x1000, 0x100, Mode::Free)]);
    let second = bench.alloc(0x1000, 0x80);
    assert_ne!(first, second);
    let freed = bench.call(Api::cuMemFreeAsync, &[0x1000, 1], &[]);
    assert_eq!(freed.accesses, [exact(second, 0x1000, 0x80, Mode::Free)]);
    assert!(matches!(freed.action, Action::Free { stream: Some(_), .. }));
}

#[test]
fn failed_calls_change_nothing() {
    let mut bench = Bench::new();
    let allocation = bench.alloc(0x1000, 0x100);
    let failed = bench.fails(Api::cuMemFree_v2, &[0x1000], INVALID);
    assert_eq!((failed.action, failed.accesses.len()), (Action::Other, 0));
    let failed = bench.fails(Api::cuMemAlloc_v2, &[0, 1 << 60], 2);
    assert_eq!((failed.action, failed.accesses.len()), (Action::Other, 0));
    let freed = bench.call(Api::cuMemFree_v2, &[0x1000], &[]);
    assert_eq!(freed.action, Action::Free { allocation, stream: None });
}

#[test]
fn freeing_nothing_is_no_free() {
    let mut bench = Bench::new();
    assert_eq!(bench.call(Api::cuMemFree_v2, &[0], &[]).action, Action::Other);
}

#[test]
fn module_variable_is_declared_once_and_ends_with_its_module() {
    let mut bench = Bench::new();
    let look_up = |bench: &mut Bench| {
        let args = [0x10, 0x18, 0x77, 0x20];
        bench.full(Api::cuModuleGetGlobal_v2, &args, &[0x5000, 64], 0, |call| {
            call.pointee = Some(b"counter".as_slice().into());
        })
    };
    assert_eq!(look_up(&mut bench).action, Action::Other);
    look_up(&mut bench);
    assert_eq!(kinds(&bench), [(MemoryKind::Global, 64)]);
    let write = bench.call(Api::cuMemsetD8_v2, &[0x5000, 0, 64], &[]);
    assert_eq!(write.accesses, [exact(AllocationId(0), 0x5000, 64, Mode::Write)]);

    bench.call(Api::cuModuleUnload, &[0x77], &[]);
    look_up(&mut bench);
    assert_eq!(kinds(&bench).iter().filter(|(kind, _)| *kind == MemoryKind::Global).count(), 2);
}

/// Objects that programs make and end over and over leave nothing behind.
#[test]
fn what_is_kept_does_not_grow_with_what_has_ended() {
    type Round = fn(&mut Bench, u64);
    let rounds: [(&str, Round); 4] = [
        ("streams", |bench, n| {
            bench.call(Api::cuStreamCreate, &[0, 1], &[0x1000 + n, n]);
            bench.call(Api::cuStreamDestroy_v2, &[0x1000 + n], &[]);
        }),
        ("events", |bench, n| {
            bench.call(Api::cuEventCreate, &[0, 0], &[0x1000 + n]);
            bench.call(Api::cuEventDestroy_v2, &[0x1000 + n], &[]);
        }),
        ("memory at the same addresses", |bench, _| {
            bench.allocation(Api::cuMemAlloc_v2, 0x1000, 0x100);
            bench.call(Api::cuMemFree_v2, &[0x1000], &[]);
        }),
        ("memory at other addresses", |bench, n| {
            bench.allocation(Api::cuMemAlloc_v2, 0x1000 * n, 0x100);
            bench.call(Api::cuMemFree_v2, &[0x1000 * n], &[]);
        }),
    ];
    for (what, round) in rounds {
        let most = |rounds| {
            let mut bench = Bench::new();
            let kept = (1..=rounds).map(|n| {
                round(&mut bench, n);
                bench.kept()
            });
            kept.max()
        };
        assert_eq!(most(500), most(2000), "{what}");
    }
}
