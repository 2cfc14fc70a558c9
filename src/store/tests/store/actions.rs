//! One action of every kind, for traces that hold everything.

use std::sync::Arc;
use streamsan_model::*;

pub(crate) fn actions() -> Vec<(&'static str, Action)> {
    let (stream, event, context) = (StreamId(1), EventId(0), ContextId(0));
    let copy = Copy {
        stream,
        synchronous: false,
        source: MemoryKind::Pinned,
        destination: MemoryKind::Device,
        peer: None,
        bytes: 4096,
        source_order: SourceOrder::Any,
        sync_memops: true,
    };
    vec![
        ("cuCtxCreate_v2", Action::ContextCreate { context }),
        ("cuStreamCreate", Action::StreamCreate { stream }),
        ("cuEventCreate", Action::EventCreate { event }),
        ("cuMemAlloc_v2", Action::Allocate { allocation: AllocationId(0), stream: None }),
        ("cuMemAllocAsync", Action::Allocate { allocation: AllocationId(1), stream: Some(stream) }),
        ("cuMemcpyHtoDAsync_v2", Action::Copy(copy)),
        (
            "cuMemcpyDtoH_v2",
            Action::Copy(Copy {
                synchronous: true,
                stream: StreamId(0),
                source: MemoryKind::Device,
                destination: MemoryKind::Pageable,
                bytes: u64::MAX,
                ..copy
            }),
        ),
        (
            "cuMemcpyPeerAsync",
            Action::Copy(Copy {
                source: MemoryKind::Device,
                peer: Some((ContextId(0), ContextId(1))),
                ..copy
            }),
        ),
        (
            "cuMemsetD8Async",
            Action::Memset {
                stream,
                synchronous: false,
                destination: MemoryKind::Device,
                sync_memops: false,
            },
        ),
        (
            "cuMemsetD8_v2",
            Action::Memset {
                stream: StreamId(0),
                synchronous: true,
                destination: MemoryKind::Managed,
                sync_memops: true,
            },
        ),
        (
            "cuLaunchKernel",
            Action::Launch {
                stream,
                kernel: KernelId(0),
                programmatic: false,
                control: GridControl::default(),
                cooperative: false,
                event: None,
            },
        ),
        (
            "cuLaunchKernelEx",
            Action::Launch {
                stream,
                kernel: KernelId(0),
                programmatic: true,
                control: GridControl { waits: true, early: 1, trigger: Trigger::BehindWait },
                cooperative: true,
                event: Some((event, LaunchEventKind::LaunchCompletion)),
            },
        ),
        (
            "cuLaunchKernelEx",
            Action::Launch {
                stream,
                kernel: KernelId(0),
                programmatic: false,
                control: GridControl { waits: false, early: 0, trigger: Trigger::Early },
                cooperative: false,
                event: Some((event, LaunchEventKind::BlockStart)),
            },
        ),
        ("cuEventRecord", Action::EventRecord { event, stream }),
        ("cuStreamWaitEvent", Action::StreamWaitEvent { stream: StreamId(2), event }),
        ("cuCtxRecordEvent", Action::ContextRecordEvent { context, event }),
        ("cuCtxWaitEvent", Action::ContextWaitEvent { context, event }),
        ("cuStreamQuery", Action::StreamQuery { stream }),
        ("cuEventQuery", Action::EventQuery { event }),
        ("cuEventElapsedTime", Action::EventElapsedTime { start: event, end: EventId(1) }),
        ("cuLaunchHostFunc", Action::HostFunction { stream }),
        ("cuLaunchHostFunc", Action::HostFunctionRun { enqueued: OpSeq(3) }),
        ("host", Action::HostAccess),
        ("cuModuleLoadData", Action::Other),
        ("cuStreamSynchronize", Action::StreamSynchronize { stream }),
        ("cuEventSynchronize", Action::EventSynchronize { event }),
        ("cuCtxSynchronize", Action::ContextSynchronize { context }),
        ("cuMemFreeAsync", Action::Free { allocation: AllocationId(1), stream: Some(stream) }),
        ("cuMemFree_v2", Action::Free { allocation: AllocationId(0), stream: None }),
        ("cuEventDestroy_v2", Action::EventDestroy { event }),
        ("cuStreamDestroy_v2", Action::StreamDestroy { stream }),
        ("cuCtxDestroy_v2", Action::ContextDestroy { context }),
    ]
    .into_iter()
    .chain(actions_of_schema_2())
    .collect()
}

fn actions_of_schema_2() -> Vec<(&'static str, Action)> {
    let (stream, executable, graph) = (StreamId(1), ExecutableId(4), GraphId(1));
    let word =
        SignalObject::Memory { allocation: AllocationId(0), address: 0x7f00_0000_0000, width: 4 };
    let copy = Copy {
        stream,
        synchronous: false,
        source: MemoryKind::Array,
        destination: MemoryKind::Mapped,
        peer: None,
        bytes: 64,
        source_order: SourceOrder::DuringCall,
        sync_memops: false,
    };
    let entry = BatchEntry { copy, accesses: 2 };
    let member = MemberLaunch { stream, kernel: KernelId(1), accesses: 1 };
    vec![
        (
            "cuLaunchCooperativeKernelMultiDevice",
            Action::LaunchMultiDevice(Arc::new(MultiDeviceLaunch {
                waits_before: true,
                holds_back_after: false,
                launches: vec![member, MemberLaunch { stream: StreamId(2), accesses: 0, ..member }],
            })),
        ),
        (
            "cuMemcpyBatchAsync",
            Action::Batch(Arc::new(Batch {
                stream,
                entries: vec![entry, BatchEntry { accesses: 0, ..entry }],
            })),
        ),
        ("cuMemPrefetchAsync", Action::Prefetch { stream }),
        ("cuMemDiscardBatchAsync", Action::Discard { stream }),
        (
            "cuStreamAttachMemAsync",
            Action::Attach { stream, allocation: AllocationId(2), attachment: Attachment::Single },
        ),
        (
            "cuStreamBatchMemOp_v2",
            Action::Signals(Arc::new(Signals {
                stream,
                operations: vec![
                    SignalOperation::Signal { object: word, value: u64::MAX, releases: true },
                    SignalOperation::Wait {
                        object: SignalObject::Semaphore(SemaphoreId(2)),
                        value: 7,
                        compare: ValueCompare::Nor,
                    },
                ],
            })),
        ),
        ("cuGraphInstantiate_v2", Action::GraphInstantiate { executable, graph }),
        ("cuGraphExecUpdate_v2", Action::GraphUpdate { executable, graph }),
        ("cuGraphLaunch", Action::GraphLaunch { stream, executable, graph }),
        ("cuGraphUpload", Action::GraphUpload { stream, executable }),
        ("cuGraphExecDestroy", Action::GraphDestroy { executable }),
        ("cuLaunchKernel", Action::Captured { stream }),
        ("streamsan_name_stream", Action::StreamHandedOut { stream }),
        ("cuFileReadAsync", Action::FileTransfer { stream }),
        ("cuFileBatchIOSubmit", Action::FileBatchSubmit { batch: FileBatchId(3) }),
        ("cuFileBatchIOGetStatus", Action::FileBatchComplete { batch: FileBatchId(3) }),
        ("pthread_mutex_unlock", Action::HostRelease { object: SyncObject(u64::MAX - 7) }),
        ("pthread_mutex_lock", Action::HostAcquire { object: SyncObject(0) }),
    ]
}
