//! The meaning of lines: entry points, objects, bytes.

use streamsan_model::{
    Action, Basis, Copy, Entity, Extent, FrameId, FramePlace, MemoryKind, Mode, OpSeq, Operation,
    SourceFrame, StackId, Status, StreamKind, TraceItem,
};
use streamsan_text::{TextTrace, parse};

fn trace(text: &str) -> TextTrace {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn operations(trace: &TextTrace) -> Vec<&Operation> {
    trace
        .items
        .iter()
        .filter_map(|item| match item {
            TraceItem::Operation(operation) => Some(operation),
            _ => None,
        })
        .collect()
}

fn entities(trace: &TextTrace) -> impl Iterator<Item = &Entity> {
    trace.items.iter().filter_map(|item| match item {
        TraceItem::Entity(entity) => Some(entity),
        _ => None,
    })
}

/// A call behind declarations, and the entry point that it stands for.
const ENTRY_POINTS: &[(&str, &str)] = &[
    ("copy s1 dst:A src:B", "cuMemcpyDtoDAsync_v2"),
    ("copy s1 dst:A src:P", "cuMemcpyHtoDAsync_v2"),
    ("copy s1 dst:H src:A", "cuMemcpyDtoHAsync_v2"),
    ("copy s1 dst:H src:P", "cuMemcpyAsync"),
    ("copy s1 dst:M src:A", "cuMemcpyAsync"),
    ("copy_sync dst:A src:H", "cuMemcpyHtoD_v2"),
    ("copy_sync dst:A src:H ptds", "cuMemcpyHtoD_v2_ptds"),
    ("copy_sync dst:H src:A", "cuMemcpyDtoH_v2"),
    ("copy_sync dst:H src:P", "cuMemcpy"),
    ("copy s1 dst:A src:B api=cuMemcpyAsync_ptsz", "cuMemcpyAsync_ptsz"),
    ("copy2d s1 dst:A(0,64) src:B(0,32) 8 4", "cuMemcpy2DAsync_v2"),
    ("copy2d_sync dst:A(0,64) src:B(0,32) 8 4", "cuMemcpy2D_v2"),
    ("copy3d s1 dst:A(0,16,4) src:B(0,8,4) 4 2 2", "cuMemcpy3DAsync_v2"),
    ("copy_peer s1 dst:D1/A src:A", "cuMemcpyPeerAsync"),
    ("copy_peer_sync dst:D1/A src:A", "cuMemcpyPeer"),
    ("memset s1 A", "cuMemsetD8Async"),
    ("memset_sync A", "cuMemsetD8_v2"),
    ("memset_sync A ptds", "cuMemsetD8_v2_ptds"),
    ("memset2d s1 A(0,64) 8 4", "cuMemsetD2D8Async"),
    ("launch s1 k", "cuLaunchKernel"),
    ("launch s1 k pdl pdl_wait", "cuLaunchKernelEx"),
    ("launch s1 k coop", "cuLaunchCooperativeKernel"),
    ("alloc X 8", "cuMemAlloc_v2"),
    ("alloc_managed X 8", "cuMemAllocManaged"),
    ("alloc_pinned X 8", "cuMemAllocHost_v2"),
    ("alloc_async X 8 s1", "cuMemAllocAsync"),
    ("register X 8", "cuMemHostRegister_v2"),
    ("free A", "cuMemFree_v2"),
    ("free M", "cuMemFree_v2"),
    ("free_pinned P", "cuMemFreeHost"),
    ("free_async A s1", "cuMemFreeAsync"),
    ("context c1 device=1", "cuCtxCreate_v2"),
    ("context D1", "cuDevicePrimaryCtxRetain"),
    ("destroy_context D1", "cuDevicePrimaryCtxReset_v2"),
    ("stream s7", "cuStreamCreate"),
    ("stream s7 priority=-1", "cuStreamCreateWithPriority"),
    ("destroy_stream s1", "cuStreamDestroy_v2"),
    ("event e1", "cuEventCreate"),
    ("destroy_event e1", "cuEventDestroy_v2"),
    ("record e1 s1", "cuEventRecord"),
    ("wait s1 e1", "cuStreamWaitEvent"),
    ("sync_event e1", "cuEventSynchronize"),
    ("query_event e1", "cuEventQuery"),
    ("elapsed e1 e2", "cuEventElapsedTime"),
    ("sync_stream legacy", "cuStreamSynchronize"),
    ("query_stream s1 busy", "cuStreamQuery"),
    ("sync_ctx", "cuCtxSynchronize"),
    ("record_ctx e1 D1", "cuCtxRecordEvent"),
    ("wait_ctx c0 e1", "cuCtxWaitEvent"),
    ("host_fn s1 r:A", "cuLaunchHostFunc"),
    ("host w:P", "host access"),
    ("array X 64", "cuArrayCreate_v2"),
    ("copy s1 dst:R src:A", "cuMemcpy2DAsync_v2"),
    ("copy s1 dst:R src:H", "cuMemcpyHtoAAsync_v2"),
    ("copy_sync dst:H src:R", "cuMemcpyAtoH_v2"),
    ("free_array R", "cuArrayDestroy"),
    ("map X 64 phys=m offset=128", "cuMemMap"),
    ("unmap V", "cuMemUnmap"),
    ("P2: import X P1/A", "cuIpcOpenMemHandle_v2"),
    ("import X 64", "cuIpcOpenMemHandle_v2"),
    ("close_import I", "cuIpcCloseMemHandle"),
    ("batch s1 dst:A src:B order=any dst:C src:D", "cuMemcpyBatchAsync"),
    ("batch s1 dst:A[0..8/64*4] src:B[0..32]", "cuMemcpy3DBatchAsync"),
    ("decompress s1 dst:A src:B[0..32]", "cuMemBatchDecompressAsync"),
    ("launch_multi s1 k w:A & D1/s1 k w:D1/A", "cuLaunchCooperativeKernelMultiDevice"),
    ("file_read A", "cuFileRead"),
    ("file_write A[0..8]", "cuFileWrite"),
    ("file_read_async s1 A", "cuFileReadAsync"),
    ("file_write_async s1 A", "cuFileWriteAsync"),
    ("collective s1 ncclAllReduce r:A w:C", "ncclAllReduce"),
    ("file_batch B w:A r:C", "cuFileBatchIOSubmit"),
    ("prefetch s1 M[0..64]", "cuMemPrefetchAsync"),
    ("discard s1 M", "cuMemDiscardBatchAsync"),
    ("discard_prefetch s1 M", "cuMemDiscardAndPrefetchBatchAsync"),
    ("attach s1 M single", "cuStreamAttachMemAsync"),
    ("copy s1 dst:A src:B order=any", "cuMemcpyWithAttributesAsync"),
    ("write_value s1 V=3", "cuStreamWriteValue32_v2"),
    ("wait_value s1 V[8..16]=3 eq", "cuStreamWaitValue64_v2"),
    ("signal s1 done=4", "cuSignalExternalSemaphoresAsync"),
    ("wait_signal s1 done=4", "cuWaitExternalSemaphoresAsync"),
    ("release lock", "pthread_mutex_unlock"),
    ("acquire lock api=sem_wait", "sem_wait"),
    ("event e1 imported", "cuIpcOpenEventHandle"),
    ("context c1 green=D1", "cuGreenCtxCreate"),
    ("launch s1 k completion_event=e1", "cuLaunchKernelEx"),
];

#[test]
fn verbs_stand_for_entry_points() {
    for (call, api) in ENTRY_POINTS {
        let text = format!(
            "alloc_pinned P 1024\nalloc_managed M 1024\npageable H 1024\n\
                            array R 1024 existing\nmap V 64 phys=m existing\n\
                            import I 64 existing\n{call}\n"
        );
        let trace = trace(&text);
        let last = operations(&trace).last().copied().cloned().expect("one call");
        assert_eq!(&*last.api, *api, "{call}");
        assert_eq!((last.g, last.exit), (OpSeq(7), Some(OpSeq(7))), "{call}");
    }
}

#[test]
fn undeclared_objects_are_what_the_grammar_says() {
    let trace = trace("launch s1 k w:A\nT2: launch ptds k r:D1/B\nrecord D1/e1 D1/s1");
    let mut seen = Vec::new();
    for entity in entities(&trace) {
        match entity {
            Entity::Stream(s) => seen.push(format!("{:?} in {:?}", s.kind, s.context)),
            Entity::Allocation(a) => {
                assert_eq!((a.kind, a.range.len(), &*a.api), (MemoryKind::Device, 1024, ""));
                seen.push(format!("{} in {:?}", a.name.as_deref().unwrap_or("-"), a.context));
            }
            Entity::Event(e) => seen.push(format!("event in {:?}", e.context)),
            _ => {}
        }
    }
    assert_eq!(
        seen,
        [
            "NonBlocking in c0",
            "A in Some(c0)",
            "PerThread in c0",
            "D1/B in Some(c1)",
            "NonBlocking in c1",
            "event in c1"
        ]
    );
    assert!(entities(&trace).any(|e| matches!(e, Entity::Thread(t) if t.tid == 2)));
}

#[test]
fn default_streams_are_one_a_context_and_one_a_thread() {
    let trace = trace(
        "launch legacy k\nlaunch D1/legacy k\nlaunch legacy k\nlaunch ptds k\nT2: launch ptds k\n\
         launch ptds k\ncopy_sync dst:A src:B\ncopy_sync dst:D1/A src:D1/B\n\
         T2: memset_sync A ptds\nmemset_sync A ctx=D1",
    );
    let streams: Vec<_> = operations(&trace).iter().map(|o| o.action.stream()).collect();
    let same = |a: usize, b: usize| streams[a - 1] == streams[b - 1];
    assert!(same(1, 3) && !same(1, 2) && !same(4, 5) && same(4, 6));
    assert!(same(7, 1) && same(8, 2) && same(9, 5) && same(10, 2));
}

#[test]
fn a_new_generation_can_lie_on_old_addresses() {
    let trace = trace(
        "alloc_async A 1024 s1\nfree_async A s1\nalloc_async B 512 s2 at=A[256..768]\n\
         free_async B s2\nalloc_async A 512 s2 at=B",
    );
    let ranges: Vec<_> = entities(&trace)
        .filter_map(|e| match e {
            Entity::Allocation(a) => Some(a.range),
            _ => None,
        })
        .collect();
    assert_eq!(ranges.len(), 3);
    assert_eq!(ranges[1].start, ranges[0].start + 256);
    assert_eq!((ranges[1].len(), ranges[2]), (512, ranges[1]));
    let last = operations(&trace)[4];
    assert_eq!(last.accesses[0].mode, Mode::Allocate);
    assert!(matches!(last.action, Action::Allocate { allocation, .. } if allocation.0 == 2));
}

#[test]
fn a_destroyed_event_leaves_its_name_to_a_new_one() {
    let trace = trace("record e1 s1\ndestroy_event e1\nwait s2 e1\nevent e1\nwait s2 e1");
    let events: Vec<_> = operations(&trace)
        .iter()
        .filter_map(|o| match o.action {
            Action::StreamWaitEvent { event, .. } | Action::EventRecord { event, .. } => {
                Some(event.0)
            }
            _ => None,
        })
        .collect();
    assert_eq!(events, [0, 1, 2]);
}

#[test]
fn accesses_have_mode_basis_and_bytes() {
    let trace =
        trace("launch s1 k r:A[1..3] ~w:B ?:C =rw:D at:E[0..4/16*3] ?r:F !?:G[5..5] !?:H %w:I");
    let accesses = &operations(&trace)[0].accesses;
    let modes: Vec<_> = accesses.iter().map(|a| (a.mode, a.basis)).collect();
    assert_eq!(
        modes,
        [
            (Mode::Read, Basis::Exact),
            (Mode::Write, Basis::Anchored),
            (Mode::MayWrite, Basis::Assumed),
            (Mode::ReadWrite, Basis::Inferred),
            (Mode::Atomic, Basis::Exact),
            (Mode::Read, Basis::Assumed),
            (Mode::MayWrite, Basis::Exact),
            (Mode::Write, Basis::Measured),
        ]
    );
    assert_eq!(accesses[0].extent.hull().len(), 2);
    assert!(matches!(accesses[4].extent, Extent::Strided(p) if (p.width, p.rows) == (4, 3)));
}

#[test]
fn a_copy_takes_the_number_of_bytes_from_the_side_that_says_it() {
    let trace = trace("alloc A 64\ncopy s1 dst:B[512..576] src:A\ncopy s1 dst:C src:A[0..16]");
    let bytes: Vec<_> = operations(&trace)
        .iter()
        .filter_map(|o| match o.action {
            Action::Copy(Copy { bytes, .. }) => Some(bytes),
            _ => None,
        })
        .collect();
    assert_eq!(bytes, [64, 16]);
}

#[test]
fn results_of_calls() {
    let trace = trace("query_event e1 busy\nwait s1 e1 status=400\nquery_stream s1");
    let statuses: Vec<_> = operations(&trace).iter().map(|o| o.status).collect();
    assert_eq!(statuses, [Status::NOT_READY, Status(400), Status::SUCCESS]);
}

#[test]
fn stream_kinds_and_contexts_of_declared_streams() {
    let trace =
        trace("context c1 device=2\nstream a ctx=c1\nstream c1/b nonblocking\nstream d existing");
    let streams: Vec<_> = entities(&trace)
        .filter_map(|e| match e {
            Entity::Stream(s) => Some((s.name.as_deref(), s.kind)),
            _ => None,
        })
        .collect();
    assert_eq!(
        streams,
        [
            (Some("a"), StreamKind::Blocking),
            (Some("c1/b"), StreamKind::NonBlocking),
            (Some("d"), StreamKind::Blocking)
        ]
    );
    assert_eq!(operations(&trace).len(), 3);
}

#[test]
fn calls_nodes_and_allocations_bear_stacks() {
    let trace = trace(
        "stack a /w/app+64:get@/w/pool.h:9|refill@/w/pool.cc:40 py:step@train.py:12 libc++.so.1+8\n\
         stack b py:step@train.py:12 truncated\n\
         alloc A 8 stack=a\nlaunch s1 k w:A stack=b\ngraph G\nnode G n launch k r:A stack=a\n\
         capture_begin s1\nlaunch s1 k r:A stack=b\ncapture_end s1 H\nrecord e s1\n",
    );
    let mut stacks = Vec::new();
    let mut frames = Vec::new();
    let mut buffer = None;
    for entity in entities(&trace) {
        match entity {
            Entity::Stack(stack) => stacks.push((stack.frames.clone(), stack.truncated)),
            Entity::Frame(frame) => frames.push(frame.clone()),
            Entity::Allocation(allocation) => buffer = allocation.stack,
            _ => {}
        }
    }
    // The Python frame is in both.
    let ids = |ids: &[u32]| ids.iter().copied().map(FrameId).collect::<Vec<_>>();
    assert_eq!(stacks, [(ids(&[0, 1, 2]), false), (ids(&[1]), true)]);
    let native =
        |image: &str, offset| FramePlace::Native { image: image.into(), build_id: None, offset };
    let source = |function: &str, file: &str, line, inlined| SourceFrame {
        function: Some(function.into()),
        file: Some(file.into()),
        line: Some(line),
        inlined,
    };
    assert_eq!(frames[0].place, native("/w/app", 64));
    assert_eq!(
        frames[0].source,
        [source("get", "/w/pool.h", 9, true), source("refill", "/w/pool.cc", 40, false)]
    );
    assert_eq!(frames[1].place, FramePlace::Python);
    assert_eq!(frames[1].source, [source("step", "train.py", 12, false)]);
    assert_eq!((&frames[2].place, frames[2].source.len()), (&native("libc++.so.1", 8), 0));
    assert_eq!(buffer, Some(StackId(0)));
    let of_calls: Vec<_> = operations(&trace).iter().map(|op| (op.g.0, op.stack)).collect();
    let (a, b) = (Some(StackId(0)), Some(StackId(1)));
    assert_eq!(of_calls[..2], [(3, a), (4, b)]);
    assert!(of_calls.contains(&(8, b)), "{of_calls:?}");
    assert_eq!(of_calls.last(), Some(&(10, None)));
}
