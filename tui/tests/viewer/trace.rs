//! Traces for the tests: written by the real writer, read by the real reader.

use std::path::Path;
use std::sync::Arc;
use streamsan_model::*;
use streamsan_store::{Meta, Reader, Writer};

pub(crate) fn meta() -> Meta {
    Meta {
        tool_version: "0.1.0".to_owned(),
        started_at: chrono::DateTime::UNIX_EPOCH,
        command: vec!["./pipeline".to_owned()],
        host: "test".to_owned(),
        driver: "simulated".to_owned(),
        extra: Default::default(),
    }
}

const BUFFER: u64 = 0x7f00_0000_0000;

pub(crate) fn entities() -> Vec<Entity> {
    let mut entities = vec![
        Entity::Process(Process {
            id: ProcessId(0),
            pid: 4242,
            parent_pid: 1,
            executable: "/usr/bin/pipeline".to_owned(),
            arguments: vec!["pipeline".to_owned(), "--chunks".to_owned(), "4".to_owned()],
        }),
        Entity::Process(Process {
            id: ProcessId(1),
            pid: 4300,
            parent_pid: 4242,
            executable: "/usr/bin/loader".to_owned(),
            arguments: vec!["loader".to_owned()],
        }),
    ];
    entities.extend([(0, 0, 4242), (1, 0, 4243), (2, 1, 4300)].map(|(id, process, tid)| {
        Entity::Thread(Thread { id: ThreadId(id), process: ProcessId(process), tid })
    }));
    entities.extend([(0, 0, 0), (1, 0, 1), (2, 1, 0)].map(|(id, process, device)| {
        Entity::Context(Context {
            id: ContextId(id),
            process: ProcessId(process),
            device: DeviceId(device),
            primary: true,
            parent: None,
            concurrent_managed_access: true,
            handle: 0x1000 + u64::from(id),
        })
    }));
    let names = ["decode", "prefetch", "", "loader"];
    entities.extend((0..8u32).map(|id| {
        Entity::Stream(Stream {
            id: StreamId(id),
            context: ContextId(if id < 4 { [0, 0, 1, 2][id as usize] } else { 0 }),
            kind: if id == 2 { StreamKind::Blocking } else { StreamKind::NonBlocking },
            thread: None,
            priority: 0,
            handle: 0x55d0_0000 + u64::from(id),
            driver_id: u64::from(id),
            name: names.get(id as usize).filter(|n| !n.is_empty()).map(|n| (*n).to_owned()),
        })
    }));
    entities.push(Entity::Event(Event {
        id: EventId(0),
        context: ContextId(0),
        handle: 0x77,
        flags: 2,
        imported: false,
        name: Some("done".to_owned()),
    }));
    entities.extend((0..3u32).map(|id| {
        Entity::Allocation(Allocation {
            id: AllocationId(id),
            process: ProcessId(0),
            context: Some(ContextId(0)),
            kind: MemoryKind::Device,
            range: ByteRange::with_len(BUFFER + u64::from(id) * 0x10_0000, 0x4000 << id),
            api: "cuMemAlloc_v2".to_owned(),
            backing: None,
            name: (id == 0).then(|| "kv_cache".to_owned()),
            stack: None,
        })
    }));
    let kernels = ["_Z5scalePfi", "_ZN2at6native13reduce_kernelILi512ELi1EEEvT_"];
    entities.extend((0u32..).zip(kernels).map(|(id, name)| {
        Entity::Kernel(Kernel { id: KernelId(id), name: name.to_owned(), params: vec![] })
    }));
    entities
}

fn access(allocation: u32, mode: Mode) -> Access {
    Access {
        allocation: AllocationId(allocation),
        extent: Extent::Range(ByteRange::with_len(
            BUFFER + u64::from(allocation) * 0x10_0000,
            0x1000,
        )),
        mode,
        basis: Basis::Exact,
    }
}

fn launch(stream: u32, kernel: u32) -> Action {
    Action::Launch {
        stream: StreamId(stream),
        kernel: KernelId(kernel),
        programmatic: false,
        control: GridControl::default(),
        cooperative: false,
        event: None,
    }
}

fn copy(stream: u32, source: MemoryKind, destination: MemoryKind) -> Action {
    Action::Copy(Copy {
        stream: StreamId(stream),
        synchronous: false,
        source,
        destination,
        peer: None,
        bytes: 4096,
        source_order: SourceOrder::Stream,
        sync_memops: false,
    })
}

/// One round of the pipeline: (thread, call, action, accesses).
pub(crate) fn round() -> Vec<(u32, &'static str, Action, Vec<Access>)> {
    use MemoryKind::{Device, Pinned};
    let (event, decode) = (EventId(0), StreamId(0));
    vec![
        (0, "cuMemcpyHtoDAsync_v2", copy(1, Pinned, Device), vec![access(0, Mode::Write)]),
        (0, "cuEventRecord", Action::EventRecord { event, stream: StreamId(1) }, vec![]),
        (0, "cuStreamWaitEvent", Action::StreamWaitEvent { stream: decode, event }, vec![]),
        (0, "cuLaunchKernel", launch(0, 0), vec![access(0, Mode::Read), access(1, Mode::Write)]),
        (0, "cuLaunchKernel", launch(0, 1), vec![access(1, Mode::Read), access(2, Mode::Write)]),
        (1, "cuMemcpyDtoHAsync_v2", copy(2, Device, Pinned), vec![access(2, Mode::Read)]),
        (1, "cuCtxSynchronize", Action::ContextSynchronize { context: ContextId(1) }, vec![]),
        (
            2,
            "cuMemsetD8Async",
            Action::Memset {
                stream: StreamId(3),
                synchronous: false,
                destination: Device,
                sync_memops: false,
            },
            vec![],
        ),
    ]
}

pub(crate) fn finding(first: &Operation, second: &Operation, allocation: u32, id: u64) -> Finding {
    let side = |op: &Operation, mode| FindingAccess {
        op: op.g,
        stream: op.action.stream(),
        api: op.api.to_string(),
        kernel: matches!(op.action, Action::Launch { .. }).then(|| "_Z5scalePfi".to_owned()),
        access: access(allocation, mode),
        stack: None,
    };
    Finding {
        fingerprint: Fingerprint(id),
        severity: Severity::Race,
        class: if (id / 8).is_multiple_of(2) {
            RaceClass::MissingWait
        } else {
            RaceClass::StaleWait
        },
        kind: ConflictKind::ReadAfterWrite,
        confidence: Confidence::Certain,
        allocation: AllocationId(allocation),
        overlap: ByteRange::with_len(BUFFER + u64::from(allocation) * 0x10_0000, 0x1000),
        first: side(first, Mode::Write),
        second: side(second, Mode::Read),
        knows: None,
        nearest: None,
        masked_by: None,
        proposed_edge: None,
    }
}

/// The contents of a test's trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rounds: u64,
    pub(crate) races: bool,
    pub(crate) times: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self { rounds: 40, races: true, times: true }
    }
}

/// Writes the trace, and opens it.
pub(crate) fn write(folder: &Path, shape: Shape) -> Reader {
    let path = folder.join("pipeline.db");
    let mut writer = Writer::create(&path, &meta()).unwrap();
    for entity in entities() {
        writer.item(&TraceItem::Entity(entity)).unwrap();
    }
    let mut operations = Vec::new();
    let mut push = |thread: u32, api: &str, action: Action, accesses: Vec<Access>| {
        let g = 2 * operations.len() as u64 + 1;
        let start_ns = 5_000_000_000 + g * 1_500 + g / 16 * 40_000;
        operations.push(Operation {
            g: OpSeq(g),
            exit: Some(OpSeq(g + 1)),
            process: ProcessId(thread / 2),
            thread: ThreadId(thread),
            api: Arc::from(api),
            time: shape.times.then_some(HostTime { start_ns, end_ns: start_ns + 900 }),
            status: Status::SUCCESS,
            action,
            accesses,
            stack: None,
        });
    };
    for id in 0..3 {
        let action = Action::Allocate { allocation: AllocationId(id), stream: None };
        push(0, "cuMemAlloc_v2", action, vec![]);
    }
    for id in 0..8 {
        push(0, "cuStreamCreate", Action::StreamCreate { stream: StreamId(id) }, vec![]);
    }
    for _ in 0..shape.rounds {
        for (thread, api, action, accesses) in round() {
            push(thread, api, action, accesses);
        }
    }
    push(0, "cuMemFree_v2", Action::Free { allocation: AllocationId(2), stream: None }, vec![]);
    for operation in &operations {
        writer.item(&TraceItem::Operation(operation.clone())).unwrap();
    }
    let setup = 11;
    let of_round = |round: u64, place: usize| &operations[setup + round as usize * 8 + place];
    for round in 0..shape.rounds {
        let edge = |from: &Operation, to: &Operation, kind| Edge {
            from: from.g,
            to: to.g,
            kind,
            tier: Tier::Documented,
        };
        let wait = edge(of_round(round, 1), of_round(round, 2), EdgeKind::EventWait);
        writer.edge(&wait).unwrap();
        let host = edge(of_round(round, 5), of_round(round, 6), EdgeKind::ContextHost);
        writer.edge(&host).unwrap();
        if shape.races && round % 8 == 3 {
            let race = finding(of_round(round, 4), of_round(round, 5), 2, 100 + round);
            writer.finding(&Finding { knows: Some(of_round(round - 1, 4).g), ..race }).unwrap();
        }
    }
    writer.finalize().unwrap();
    Reader::open(&path).unwrap()
}
