use super::bench::{Bench, CONTEXT, exact};
use streamsan_model::{
    Action, AllocationId, Entity, FileBatchId, MemoryKind, Mode, Operation, Status, StreamId,
    SyncObject,
};
use streamsan_wire::{Api, HostCall, RecordedMode};

fn pinned(bench: &mut Bench, start: u64, len: u64) -> AllocationId {
    bench.allocation(Api::cuMemAllocHost_v2, start, len)
}

fn stream(bench: &mut Bench, handle: u64) -> StreamId {
    match bench.call(Api::cuStreamCreate, &[0, 1], &[handle, 7]).action {
        Action::StreamCreate { stream } => stream,
        other => panic!("{other:?}"),
    }
}

fn said(operation: Option<Operation>) -> (Action, Vec<streamsan_model::Access>) {
    let operation = operation.expect("an operation");
    assert_eq!(operation.status, Status::SUCCESS);
    (operation.action, operation.accesses)
}

/// The kind of the allocation with this id.
fn kind(bench: &Bench, id: AllocationId) -> MemoryKind {
    let found = bench.entities.iter().find_map(|entity| match entity {
        Entity::Allocation(allocation) if allocation.id == id => Some(allocation.kind),
        _ => None,
    });
    found.expect("it is declared")
}

#[test]
fn annotated_accesses_are_exact() {
    let mut bench = Bench::new();
    let memory = pinned(&mut bench, 0x1000, 0x100);
    for (call, mode) in [(HostCall::HostRead, Mode::Read), (HostCall::HostWrite, Mode::Write)] {
        let (action, accesses) = said(bench.host(call, &[0x1010, 0x20], "", None));
        assert_eq!(action, Action::HostAccess);
        assert_eq!(accesses, [exact(memory, 0x1010, 0x20, mode)]);
        assert_eq!(bench.host(call, &[0x1010, 0], "", None), None, "no bytes");
    }
}

#[test]
fn touches_of_fences_are_one_byte_and_as_strong_as_the_instruction() {
    let mut bench = Bench::new();
    let memory = pinned(&mut bench, 0x1000, 0x100);
    for (mode, single, expected) in [
        (RecordedMode::Read, 0, Mode::Read),
        (RecordedMode::Read, 1, Mode::StrongRead),
        (RecordedMode::Write, 0, Mode::Write),
        (RecordedMode::Write, 1, Mode::StrongWrite),
        (RecordedMode::Atomic, 1, Mode::StrongAtomic),
    ] {
        let words = [0x1010, mode as u64, single];
        let (action, accesses) = said(bench.host(HostCall::FenceTouched, &words, "", None));
        assert_eq!(action, Action::HostAccess);
        assert_eq!(accesses, [exact(memory, 0x1010, 1, expected)]);
    }
}

#[test]
fn accesses_across_allocations_are_split_and_the_rest_is_ordinary_memory() {
    let mut bench = Bench::new();
    let first = pinned(&mut bench, 0x1000, 0x100);
    let second = pinned(&mut bench, 0x1200, 0x100);
    let (_, accesses) = said(bench.host(HostCall::HostWrite, &[0x10f0, 0x120], "", None));
    let [a, b, c] = &accesses[..] else { panic!("{accesses:?}") };
    assert_eq!(*a, exact(first, 0x10f0, 0x10, Mode::Write));
    assert_eq!(*b, exact(b.allocation, 0x1100, 0x100, Mode::Write));
    assert_eq!(kind(&bench, b.allocation), MemoryKind::Pageable);
    assert_eq!(*c, exact(second, 0x1200, 0x10, Mode::Write));
}

/// Its addresses belong to whatever the allocator of the C library put there.
#[test]
fn freed_pinned_memory_is_ordinary_memory() {
    let mut bench = Bench::new();
    let memory = pinned(&mut bench, 0x1000, 0x100);
    bench.call(Api::cuMemFreeHost, &[0x1000], &[]);
    let (_, accesses) = said(bench.host(HostCall::HostRead, &[0x1000, 8], "", None));
    assert_ne!(accesses[0].allocation, memory);
    assert_eq!(kind(&bench, accesses[0].allocation), MemoryKind::Pageable);
}

#[test]
fn instrumented_ranges_are_one_operation() {
    let mut bench = Bench::new();
    let memory = pinned(&mut bench, 0x1000, 0x100);
    let ranges = [0x1000, 0x1008, 0, 0x1000, 0x1008, 1, 0x1010, 0x1014, 2, 5, 5, 1];
    let (action, accesses) = said(bench.host(HostCall::Touched, &ranges, "", None));
    assert_eq!(action, Action::HostAccess);
    let expected =
        [exact(memory, 0x1000, 8, Mode::ReadWrite), exact(memory, 0x1010, 4, Mode::StrongAtomic)];
    assert_eq!(accesses, expected);
}

#[test]
fn order_of_threads_names_its_object() {
    let mut bench = Bench::new();
    let object = SyncObject(0x77);
    let (action, _) = said(bench.host(HostCall::MutexReleased, &[0x77], "", None));
    assert_eq!(action, Action::HostRelease { object });
    let (action, _) = said(bench.host(HostCall::ThreadJoined, &[0x77], "", None));
    assert_eq!(action, Action::HostAcquire { object });
}

#[test]
fn names_declare_again_and_a_second_name_hands_the_stream_out() {
    let mut bench = Bench::new();
    let id = stream(&mut bench, 0x55);
    assert_eq!(bench.host(HostCall::NameStream, &[0x55], "one", None), None);
    let Some(Entity::Stream(named)) = bench.entities.last() else { panic!("declared last") };
    assert_eq!((named.id, named.name.as_deref(), named.driver_id), (id, Some("one"), 7));
    assert_eq!(bench.host(HostCall::NvtxCuStream, &[0x55], "one", None), None, "the same name");
    let (action, _) = said(bench.host(HostCall::NameStream, &[0x55], "two", None));
    assert_eq!(action, Action::StreamHandedOut { stream: id });
    let before = bench.entities.len();
    assert_eq!(bench.host(HostCall::NameStream, &[0x99], "nobody's", None), None);
    assert_eq!(bench.entities.len(), before);
}

#[test]
fn names_of_events_and_memory() {
    let mut bench = Bench::new();
    bench.call(Api::cuEventCreate, &[0, 2], &[0x66]);
    assert_eq!(bench.host(HostCall::NvtxCudaEvent, &[0x66], "ready", None), None);
    let Some(Entity::Event(event)) = bench.entities.last() else { panic!("declared last") };
    assert_eq!((event.flags, event.name.as_deref()), (2, Some("ready")));
    let memory = pinned(&mut bench, 0x1000, 0x100);
    assert_eq!(bench.host(HostCall::NameMemory, &[0x10ff], "result", None), None);
    let Some(Entity::Allocation(named)) = bench.entities.last() else { panic!("declared last") };
    assert_eq!((named.id, named.name.as_deref()), (memory, Some("result")));
    assert_eq!(named.api, "cuMemAllocHost_v2");
}

#[test]
fn synchronous_transfers_touch_what_they_moved() {
    let mut bench = Bench::new();
    let memory = bench.alloc(0x1000, 0x100);
    for (call, mode) in [(HostCall::FileRead, Mode::Write), (HostCall::FileWrite, Mode::Read)] {
        let (action, accesses) = said(bench.host(call, &[0x1000, 0x80], "", Some(0x40)));
        assert_eq!(action, Action::HostAccess);
        assert_eq!(accesses, [exact(memory, 0x1000, 0x40, mode)]);
        let failed = bench.host(call, &[0x1000, 0x80], "", Some(-5)).expect("an operation");
        assert_eq!((failed.status, failed.accesses.len()), (Status(-1), 0));
    }
}

#[test]
fn asynchronous_transfers_run_in_their_stream() {
    let mut bench = Bench::new();
    let memory = bench.alloc(0x1000, 0x100);
    let id = stream(&mut bench, 0x55);
    let args = [0x1000, 0x80, 0x55, CONTEXT];
    let (action, accesses) = said(bench.host(HostCall::FileReadAsync, &args, "", Some(0)));
    assert_eq!(action, Action::FileTransfer { stream: id });
    assert_eq!(accesses, [exact(memory, 0x1000, 0x80, Mode::Write)]);
}

#[test]
fn requests_are_over_when_they_were_told() {
    let mut bench = Bench::new();
    let memory = bench.alloc(0x1000, 0x100);
    let submit = HostCall::FileBatchSubmit;
    for (id, request, access) in [
        (0, [0xb, 0x1000, 0x10, 0, 1], exact(memory, 0x1000, 0x10, Mode::Write)),
        (1, [0xb, 0x1040, 0x10, 1, 2], exact(memory, 0x1040, 0x10, Mode::Read)),
    ] {
        let (action, accesses) = said(bench.host(submit, &request, "", Some(0)));
        assert_eq!(action, Action::FileBatchSubmit { batch: FileBatchId(id) });
        assert_eq!(accesses, [access]);
    }
    // Two in one record are over together.
    let (action, _) = said(bench.host(submit, &[0xb, 0x10, 8, 0, 3, 0x20, 8, 0, 3], "", Some(0)));
    assert_eq!(action, Action::FileBatchSubmit { batch: FileBatchId(2) });
    let refused = bench.host(submit, &[0xb, 0x1000, 8, 0, 4], "", Some(-1));
    assert_eq!(refused, None);
    let mut told = |cookie: u64| {
        bench.host(HostCall::FileBatchGetStatus, &[0xb, cookie], "", None).map(|o| o.action)
    };
    let complete = |id| Some(Action::FileBatchComplete { batch: FileBatchId(id) });
    assert_eq!(told(2), complete(1));
    assert_eq!(told(2), None, "told twice");
    assert_eq!(told(3), Some(Action::Other));
    assert_eq!(told(3), complete(2));
    assert_eq!(told(4), None, "never accepted");
    assert_eq!(told(1), complete(0));
    bench.host(submit, &[0xb, 0x1000, 8, 0, 1], "", Some(0));
    bench.host(HostCall::FileBatchDestroy, &[0xb], "", None);
    let late = bench.host(HostCall::FileBatchGetStatus, &[0xb, 1], "", None);
    assert_eq!(late, None, "the handle is gone");
}
