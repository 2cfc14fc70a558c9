use super::bench::{Bench, exact, structure};
use streamsan_model::{Action, AllocationId, BackingId, Entity, MemoryKind, Mode, Operation};
use streamsan_wire::Api;

const A: u64 = 0x10_0000;
const THERE: u64 = 0x90_0000;

/// A handle of 64 bytes as the out values of one call and the bytes of another.
fn handle(seed: u64) -> (Vec<u64>, Box<[u8]>) {
    let words: Vec<u64> = (0..8).map(|n| seed << 8 | n).collect();
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    (words, bytes)
}

fn allocated(operation: &Operation) -> AllocationId {
    match operation.action {
        Action::Allocate { allocation, stream: None } => allocation,
        ref other => panic!("{other:?}"),
    }
}

fn backing(bench: &Bench, id: AllocationId) -> Option<(BackingId, u64)> {
    bench.declared(id).backing.map(|b| (b.memory, b.offset))
}

#[test]
fn imported_memory_stands_for_the_exporters() {
    for (export, import) in [
        (Api::cuIpcGetMemHandle, Api::cuIpcOpenMemHandle_v2),
        (Api::cuMemPoolExportPointer, Api::cuMemPoolImportPointer),
    ] {
        let mut bench = Bench::new();
        let exported = bench.alloc(A, 0x1000);
        assert_eq!(backing(&bench, exported), None);
        let (words, bytes) = handle(7);
        bench.call(export, &[0x1, A], &words);
        bench.process = 1;
        let opened = bench.reads(import, &[0x1, 0x2, 0x3], &[THERE, 0x2000], bytes);
        let imported = allocated(&opened);
        assert_eq!(backing(&bench, exported), Some((BackingId(0), 0)));
        assert_eq!(backing(&bench, imported), Some((BackingId(0), 0)));
        let declared = bench.declared(imported);
        assert_eq!((declared.kind, declared.process.0), (MemoryKind::Imported, 1));
        // As long as what was exported, whatever the driver says of its own mapping.
        assert_eq!(declared.range.len(), 0x1000);
        let write = bench.call(Api::cuMemsetD8_v2, &[THERE + 16, 0, 16], &[]);
        assert_eq!(write.accesses, [exact(imported, THERE + 16, 16, Mode::Write)]);
        let close = if import == Api::cuIpcOpenMemHandle_v2 {
            Api::cuIpcCloseMemHandle
        } else {
            Api::cuMemFree_v2
        };
        let closed = bench.call(close, &[THERE], &[]);
        assert_eq!(closed.action, Action::Free { allocation: imported, stream: None });
        assert!(bench.reasons().is_empty());
    }
}

#[test]
fn memory_opened_twice_is_closed_twice() {
    let mut bench = Bench::new();
    let open = |bench: &mut Bench| {
        let api = Api::cuIpcOpenMemHandle_v2;
        bench.reads(api, &[0x1, 0x2, 0], &[THERE, 0x2000], handle(8).1).action
    };
    let Action::Allocate { allocation, .. } = open(&mut bench) else { panic!("no allocation") };
    assert_eq!(open(&mut bench), Action::Other);
    let closed = [0, 1].map(|_| bench.call(Api::cuIpcCloseMemHandle, &[THERE], &[]).action);
    assert_eq!(closed, [Action::Other, Action::Free { allocation, stream: None }]);
    assert!(matches!(open(&mut bench), Action::Allocate { .. }));
}

#[test]
fn memory_of_a_process_outside_is_one_for_all_importers() {
    let mut bench = Bench::new();
    let (_, bytes) = handle(8);
    let ids = [0, 1].map(|process| {
        bench.process = process;
        let api = Api::cuIpcOpenMemHandle_v2;
        allocated(&bench.reads(api, &[0x1, 0x2, 0], &[THERE, 0x2000], bytes.clone()))
    });
    assert_ne!(ids[0], ids[1]);
    assert_eq!(backing(&bench, ids[0]), backing(&bench, ids[1]));
    assert_eq!(bench.declared(ids[0]).range.len(), 0x2000);
}

#[test]
fn shared_events_are_one_event() {
    let mut bench = Bench::new();
    bench.call(Api::cuEventCreate, &[0x1, 4], &[0x700]);
    let (words, bytes) = handle(9);
    bench.call(Api::cuIpcGetEventHandle, &[0x1, 0x700], &words);
    bench.process = 1;
    bench.reads(Api::cuIpcOpenEventHandle, &[0x1, 0x2], &[0x900], bytes);
    let waits = bench.call(Api::cuStreamWaitEvent, &[1, 0x900, 0], &[]);
    bench.process = 0;
    let records = bench.call(Api::cuEventRecord, &[0x700, 1], &[]);
    let Action::StreamWaitEvent { event: waited, .. } = waits.action else { panic!("{waits:?}") };
    let Action::EventRecord { event, .. } = records.action else { panic!("{records:?}") };
    assert_eq!(waited, event);

    bench.process = 1;
    let unknown = bench.reads(Api::cuIpcOpenEventHandle, &[0x1, 0x2], &[0x901], handle(10).1);
    let Action::EventCreate { event } = unknown.action else { panic!("{unknown:?}") };
    // The importer's handle ends, not the event.
    let destroyed = bench.call(Api::cuEventDestroy_v2, &[0x900], &[]);
    assert_eq!(destroyed.action, Action::Other);
    let imported = |e: &Entity| match e {
        Entity::Event(e) => Some((e.id, e.imported)),
        _ => None,
    };
    let events: Vec<_> = bench.entities.iter().filter_map(imported).collect();
    assert_eq!(events, [(waited, false), (event, true)]);
}

#[test]
fn buffers_of_one_external_memory_share_it() {
    let mut bench = Bench::new();
    let descriptor = structure(104, &[(0, 1), (24, 0x10000)]);
    bench.reads(Api::cuImportExternalMemory, &[0x1, 0x2], &[0xe0], descriptor);
    let ids = [(A, 0u64), (THERE, 0x800)].map(|(start, offset)| {
        let buffer = structure(88, &[(0, offset), (8, 0x1000)]);
        let api = Api::cuExternalMemoryGetMappedBuffer;
        allocated(&bench.reads(api, &[0x1, 0xe0, 0x2], &[start], buffer))
    });
    let backings = ids.map(|id| backing(&bench, id));
    assert_eq!(backings, [Some((BackingId(0), 0)), Some((BackingId(0), 0x800))]);
    bench.call(Api::cuDestroyExternalMemory, &[0xe0], &[]);
    let freed = bench.call(Api::cuMemFree_v2, &[A], &[]);
    assert_eq!(freed.action, Action::Free { allocation: ids[0], stream: None });
}

#[test]
fn device_address_of_host_memory_stands_for_it() {
    let mut bench = Bench::new();
    let pinned = bench.allocation(Api::cuMemAllocHost_v2, A, 0x1000);
    bench.call(Api::cuMemHostGetDevicePointer_v2, &[0x1, A, 0], &[A]);
    assert_eq!(backing(&bench, pinned), None);
    let alias = bench.call(Api::cuMemHostGetDevicePointer_v2, &[0x1, A + 16, 0], &[THERE + 16]);
    let alias = allocated(&alias);
    assert_eq!(backing(&bench, pinned), Some((BackingId(0), 0)));
    assert_eq!(backing(&bench, alias), Some((BackingId(0), 0)));
    assert_eq!(bench.declared(alias).range.start, THERE);
    assert_eq!(bench.declared(alias).kind, MemoryKind::Pinned);
    bench.call(Api::cuMemFreeHost, &[A], &[]);
    let alive = bench.call(Api::cuMemFree_v2, &[THERE], &[]);
    assert_eq!(alive.action, Action::Other);
    assert!(bench.reasons().is_empty());
}
