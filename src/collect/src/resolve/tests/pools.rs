//! Heaps and regions, as NVTX tells of them.

use super::bench::{Bench, exact};
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, Entity, Extent, MemoryKind, Mode, Operation,
};
use streamsan_wire::{Access as Touched, Api, HostCall, RecordedMode};

const POOL: u64 = 0x10_0000;
const LEN: u64 = 0x1000;
const PART: u64 = 0x100;
const SUB_ALLOCATOR: u64 = 1;
const FUNCTION: u64 = 0xf00;

/// An allocation with a heap in it.
fn prepared() -> Bench {
    let mut bench = Bench::new();
    bench.alloc(POOL, LEN);
    bench.kernel(FUNCTION, "scale", Some(&[(0, 8)]));
    heap(&mut bench, SUB_ALLOCATOR);
    bench
}

fn heap(bench: &mut Bench, usage: u64) {
    let words = [POOL, LEN, usage];
    assert_eq!(bench.host(HostCall::NvtxHeapRegister, &words, "arena", None), None);
}

fn register(bench: &mut Bench, offset: u64, len: u64) -> Option<AllocationId> {
    let words = [POOL + offset, len, POOL];
    let operation = bench.host(HostCall::NvtxRegionRegister, &words, "", None)?;
    assert_eq!(&*operation.api, "nvtxMemRegionsRegister");
    let Action::Allocate { allocation, stream: None } = operation.action else {
        panic!("{operation:?} registers nothing")
    };
    assert_eq!(operation.accesses, [exact(allocation, POOL + offset, len, Mode::Allocate)]);
    Some(allocation)
}

fn region(bench: &mut Bench, offset: u64, len: u64) -> AllocationId {
    register(bench, offset, len).expect("a region")
}

fn unregister(bench: &mut Bench, offset: u64) -> Option<Operation> {
    bench.host(HostCall::NvtxRegionUnregister, &[POOL + offset], "", None)
}

/// Which allocation a memset of these bytes touches.
fn set(bench: &mut Bench, offset: u64, len: u64) -> AllocationId {
    let memset = bench.call(Api::cuMemsetD8Async, &[POOL + offset, 7, len, 0], &[]);
    let [access] = &memset.accesses[..] else { panic!("{memset:?}") };
    assert_eq!(*access, exact(access.allocation, POOL + offset, len, Mode::Write));
    access.allocation
}

fn launch(bench: &mut Bench, pointer: u64) -> Operation {
    let args = [FUNCTION, 1, 1, 1, 32, 1, 1, 0, 0, 0x10, 0];
    let params = Some(pointer.to_le_bytes().into());
    bench.full(Api::cuLaunchKernel, &args, &[], 0, |call| call.kernel_params = params)
}

#[test]
fn region_is_an_allocation_on_the_memory_of_its_pool() {
    let mut bench = prepared();
    let id = region(&mut bench, PART, PART);
    let region = bench.declared(id).clone();
    let pool = bench.declared(AllocationId(0)).clone();
    assert_eq!((region.kind, &*region.api), (MemoryKind::Region, "nvtxMemRegionsRegister"));
    assert_eq!(region.range, ByteRange::with_len(POOL + PART, PART));
    let (of, part) = (pool.backing.expect("known"), region.backing.expect("known"));
    assert_eq!((part.memory, part.offset), (of.memory, of.offset + PART));
    assert_eq!(pool.name.as_deref(), Some("arena"));
}

#[test]
fn bytes_belong_to_the_region_that_holds_all_of_them() {
    let mut bench = prepared();
    let pool = AllocationId(0);
    let (first, second) = (region(&mut bench, 0, PART), region(&mut bench, PART, PART));
    for (offset, len, expected) in [
        (0, PART, first),
        (0x10, 4, first),
        (PART, PART, second),
        (0, LEN, pool),
        (0x10, PART, pool),
        (2 * PART, PART, pool),
    ] {
        assert_eq!(set(&mut bench, offset, len), expected, "{offset:#x}+{len:#x}");
    }
}

#[test]
fn nothing_is_known_of_a_kernel_but_the_region_bounds_it() {
    let mut bench = prepared();
    let id = region(&mut bench, PART, PART);
    let extent = |start, len| Extent::Range(ByteRange::with_len(start, len));
    let whole = |allocation, extent| {
        [Access { allocation, extent, mode: Mode::MayWrite, basis: Basis::Assumed }]
    };
    let inside = launch(&mut bench, POOL + PART + 8).accesses;
    assert_eq!(inside, whole(id, extent(POOL + PART, PART)));
    let outside = launch(&mut bench, POOL).accesses;
    assert_eq!(outside, whole(AllocationId(0), extent(POOL, LEN)));
    unregister(&mut bench, PART);
    let stale = launch(&mut bench, POOL + PART + 8).accesses;
    assert_eq!(stale, whole(id, extent(POOL + PART, PART)), "the region that stood there");
}

#[test]
fn exact_accesses_are_split_at_the_regions_of_their_time() {
    let mut bench = prepared();
    let first = region(&mut bench, PART, PART);
    let early = launch(&mut bench, POOL);
    unregister(&mut bench, PART);
    let second = region(&mut bench, PART, 2 * PART);
    let late = launch(&mut bench, POOL);
    let touched =
        [Touched { start: POOL, end: POOL + 4 * PART, mode: RecordedMode::Write, early: false }];
    let pool = AllocationId(0);
    let part = |allocation, from: u64, to: u64| {
        exact(allocation, POOL + from * PART, (to - from) * PART, Mode::Write)
    };
    let expected = [part(pool, 0, 1), part(first, 1, 2), part(pool, 2, 4)];
    assert_eq!(bench.exact(&early, &touched), expected);
    let expected = [part(pool, 0, 1), part(second, 1, 3), part(pool, 3, 4)];
    assert_eq!(bench.exact(&late, &touched), expected);
}

#[test]
fn what_comes_after_the_end_means_the_region() {
    let mut bench = prepared();
    let id = region(&mut bench, PART, PART);
    let end = unregister(&mut bench, PART).expect("an operation");
    assert_eq!(end.action, Action::Free { allocation: id, stream: None });
    assert_eq!(end.accesses, [exact(id, POOL + PART, PART, Mode::Free)]);
    assert_eq!(unregister(&mut bench, PART), None, "once");
    assert_eq!(set(&mut bench, PART, 8), id);
    assert_eq!(set(&mut bench, 0, LEN), AllocationId(0), "the pool's owner clears it");
    let next = region(&mut bench, PART, PART / 2);
    assert_eq!(set(&mut bench, PART, 8), next);
    assert_eq!(set(&mut bench, PART + PART / 2, 8), id);
}

#[test]
fn reset_ends_all_regions_and_the_end_of_the_heap_forgets_them() {
    for call in [HostCall::NvtxHeapReset, HostCall::NvtxHeapUnregister] {
        let mut bench = prepared();
        let (first, second) = (region(&mut bench, 0, PART), region(&mut bench, PART, PART));
        let ended = bench.host(call, &[POOL], "", None).expect("an operation");
        assert_eq!(ended.action, Action::Free { allocation: first, stream: None });
        let free = |id, offset| exact(id, POOL + offset, PART, Mode::Free);
        assert_eq!(ended.accesses, [free(first, 0), free(second, PART)]);
        let is_reset = call == HostCall::NvtxHeapReset;
        let expected = if is_reset { second } else { AllocationId(0) };
        assert_eq!(set(&mut bench, PART, 8), expected, "{call:?}");
        assert_eq!(register(&mut bench, 0, PART).is_some(), is_reset, "{call:?}");
    }
}

#[test]
fn resized_region_stays_itself() {
    let mut bench = prepared();
    let id = region(&mut bench, 0, PART);
    let neighbour = region(&mut bench, 2 * PART, PART);
    let resize = |bench: &mut Bench, len: u64| {
        assert_eq!(bench.host(HostCall::NvtxRegionResize, &[POOL, len], "", None), None);
    };
    resize(&mut bench, 2 * PART);
    assert_eq!(bench.declared(id).range, ByteRange::with_len(POOL, 2 * PART));
    assert_eq!(set(&mut bench, PART, PART), id);
    resize(&mut bench, 3 * PART);
    assert_eq!(set(&mut bench, 2 * PART, PART), neighbour, "there is no room");
    resize(&mut bench, 8);
    assert_eq!(set(&mut bench, PART, PART), AllocationId(0));
}

#[test]
fn free_of_the_memory_ends_its_pool() {
    let mut bench = prepared();
    region(&mut bench, 0, PART);
    let free = bench.call(Api::cuMemFree_v2, &[POOL], &[]);
    assert_eq!(free.accesses, [exact(AllocationId(0), POOL, LEN, Mode::Free)]);
    assert_eq!(set(&mut bench, 0, 8), AllocationId(0), "a use of freed memory");
    let again = bench.alloc(POOL, LEN);
    assert_eq!(set(&mut bench, 0, 8), again);
    assert_eq!(register(&mut bench, 0, PART), None, "no heap is there");
}

#[test]
fn what_is_no_pool_of_device_memory_has_no_regions() {
    // The whole process; a layout, whose memory is accessible without regions.
    for usage in [0, 2] {
        let mut bench = Bench::new();
        bench.alloc(POOL, LEN);
        heap(&mut bench, usage);
        assert_eq!(register(&mut bench, 0, PART), None);
    }
    let mut bench = Bench::new();
    bench.allocation(Api::cuMemAllocHost_v2, POOL, LEN);
    heap(&mut bench, SUB_ALLOCATOR);
    assert_eq!(register(&mut bench, 0, PART), None);
    let mut bench = prepared();
    for (offset, len) in [(0, 0), (LEN - 8, 16), (LEN, 8)] {
        assert_eq!(register(&mut bench, offset, len), None, "outside of the heap");
    }
}

#[test]
fn overlapping_regions_follow_each_other() {
    let mut bench = prepared();
    let former = region(&mut bench, 0, 2 * PART);
    let next = region(&mut bench, PART, 2 * PART);
    assert_eq!(set(&mut bench, PART, 8), next);
    assert_eq!(set(&mut bench, 0, 8), former);
    assert_eq!(unregister(&mut bench, 0), None, "its end was not told");
}

#[test]
fn names_are_those_of_the_region() {
    let mut bench = prepared();
    let id = region(&mut bench, 0, PART);
    assert_eq!(bench.host(HostCall::NvtxRegionName, &[POOL], "weights", None), None);
    let Some(Entity::Allocation(named)) = bench.entities.last() else { panic!("declared last") };
    assert_eq!((named.id, named.name.as_deref()), (id, Some("weights")));
    assert_eq!((named.kind, &*named.api), (MemoryKind::Region, "nvtxMemRegionsRegister"));
    bench.host(HostCall::NvtxRegionResize, &[POOL, 2 * PART], "", None);
    assert_eq!(bench.declared(id).name.as_deref(), Some("weights"), "whatever its size");
    unregister(&mut bench, 0);
    let next = region(&mut bench, 0, PART);
    assert_eq!(bench.declared(next).name, None);
}

#[test]
fn transfers_of_libraries_are_split_at_regions() {
    let mut bench = prepared();
    let id = region(&mut bench, PART, PART);
    let words = [POOL, 3 * PART];
    let read = bench.host(HostCall::FileRead, &words, "", Some(3 * PART as i64)).expect("one");
    let pool = AllocationId(0);
    let part = |allocation, from: u64| exact(allocation, POOL + from * PART, PART, Mode::Write);
    assert_eq!(read.accesses, [part(pool, 0), part(id, 1), part(pool, 2)]);
}
