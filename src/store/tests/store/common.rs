//! A fixed small trace with one of everything, shared by the tests.

use crate::actions::actions;
use chrono::{TimeZone, Utc};
use std::path::Path;
use std::sync::Arc;
use streamsan_model::KernelGap;
use streamsan_model::*;
use streamsan_store::{
    Coverage, EntryPoint, KernelCount, MeasuredCount, MeasuredKind, Meta, Treatment, Writer,
};

pub(crate) fn meta() -> Meta {
    Meta {
        tool_version: "0.1.0".to_owned(),
        started_at: Utc.with_ymd_and_hms(2026, 11, 20, 18, 0, 0).unwrap(),
        command: vec!["./pipeline".to_owned(), "--chunks".to_owned(), "4".to_owned()],
        host: "builder".to_owned(),
        driver: "simulated (eager)".to_owned(),
        extra: [("serialized".to_owned(), "no".to_owned())].into(),
    }
}

/// A finished trace of all that is here.
pub(crate) fn write_everything(path: &Path) {
    let mut writer = Writer::create(path, &meta()).unwrap();
    items().iter().for_each(|item| writer.item(item).unwrap());
    ranges().into_iter().for_each(|range| writer.item(&TraceItem::Range(range)).unwrap());
    writer.replace_analysis(&edges(), &findings()).unwrap();
    lints().iter().for_each(|lint| writer.lint(lint).unwrap());
    writer.set_coverage(&coverage()).unwrap();
    writer.finalize().unwrap();
}

/// A range around the first operations with another one in it, one of a domain that crosses it, one
/// of the process, a mark, and one that never ended.
pub(crate) fn ranges() -> Vec<NvtxRange> {
    let range =
        |begin, end: Option<u64>, kind, domain: Option<&str>, name: &str, depth| NvtxRange {
            begin: OpSeq(begin),
            end: end.map(OpSeq),
            process: ProcessId(0),
            thread: ThreadId(0),
            kind,
            domain: domain.map(Arc::from),
            name: name.into(),
            time: HostTime {
                start_ns: 5_000_000_000 + begin,
                end_ns: 5_000_000_000 + end.unwrap_or(begin),
            },
            depth,
        };
    vec![
        range(1, Some(21), NvtxKind::Pushed, None, "train", 0),
        range(3, Some(23), NvtxKind::Pushed, Some("nccl"), "all-reduce", 1),
        range(5, Some(15), NvtxKind::Started, None, "epoch", 0),
        range(7, Some(7), NvtxKind::Mark, None, "here", 0),
        range(25, None, NvtxKind::Pushed, None, "", 0),
    ]
}

pub(crate) fn entities() -> Vec<Entity> {
    let name = |s: &str| Some(s.to_owned());
    let stream = |id, kind, text: Option<&str>| {
        Entity::Stream(Stream {
            id: StreamId(id),
            context: ContextId(0),
            kind,
            thread: (kind == StreamKind::PerThread).then_some(ThreadId(1)),
            priority: -1,
            handle: 0x55d0_0000 + u64::from(id),
            driver_id: u64::from(id) + 10,
            name: text.map(str::to_owned),
        })
    };
    let mut entities = vec![
        Entity::Process(Process {
            id: ProcessId(0),
            pid: 4242,
            parent_pid: 4241,
            executable: "/usr/bin/pipeline".to_owned(),
            arguments: vec!["pipeline".to_owned(), String::new(), "pipeline".to_owned()],
        }),
        Entity::Thread(Thread { id: ThreadId(0), process: ProcessId(0), tid: 4242 }),
        Entity::Thread(Thread { id: ThreadId(1), process: ProcessId(0), tid: 4243 }),
        Entity::Context(Context {
            id: ContextId(0),
            process: ProcessId(0),
            device: DeviceId(0),
            primary: true,
            parent: None,
            concurrent_managed_access: true,
            handle: u64::MAX,
        }),
        Entity::Context(Context {
            id: ContextId(1),
            process: ProcessId(0),
            device: DeviceId(1),
            primary: false,
            parent: Some(ContextId(0)),
            concurrent_managed_access: false,
            handle: 7,
        }),
        stream(0, StreamKind::Legacy, None),
        stream(1, StreamKind::NonBlocking, Some("decode")),
        stream(2, StreamKind::Blocking, None),
        stream(3, StreamKind::PerThread, None),
        Entity::Event(Event {
            id: EventId(0),
            context: ContextId(0),
            handle: 0x77,
            flags: 2,
            imported: false,
            name: name("done"),
        }),
        Entity::Event(Event {
            id: EventId(1),
            context: ContextId(1),
            handle: 0,
            flags: 0,
            imported: true,
            name: None,
        }),
    ];
    entities.extend(stacks());
    entities.extend(MemoryKind::ALL.iter().enumerate().map(|(i, &kind)| {
        Entity::Allocation(Allocation {
            id: AllocationId(i as u32),
            process: ProcessId(0),
            context: (i != 5).then_some(ContextId(0)),
            kind,
            range: match kind {
                MemoryKind::Pageable => ByteRange::new(0, u64::MAX),
                _ => ByteRange::with_len(0x7f00_0000_0000 + (i as u64) * 0x10_0000, 0x1_0000),
            },
            api: "cuMemAlloc_v2".to_owned(),
            backing: (i == 8).then_some(Backing { memory: BackingId(3), offset: 1 << 20 }),
            name: name("buffer").filter(|_| i == 0),
            stack: (i % 3 == 1).then_some(StackId(1)),
        })
    }));
    let at_kernels = entities.len();
    entities.push(Entity::Kernel(Kernel {
        id: KernelId(0),
        name: "_Z5scalePfi".to_owned(),
        params: vec![KernelParam { offset: 0, size: 8 }, KernelParam { offset: 8, size: 4 }],
    }));
    entities.push(Entity::Kernel(Kernel { id: KernelId(1), name: String::new(), params: vec![] }));
    entities.splice(at_kernels..at_kernels, modules());
    entities.extend(kernel_codes());
    entities.extend(graphs());
    entities
}

/// A frame in a library, one where functions were inlined, one of Python, one in no file.
fn stacks() -> Vec<Entity> {
    let source = |function: Option<&str>, file: Option<&str>, line, inlined| SourceFrame {
        function: function.map(Arc::from),
        file: file.map(Arc::from),
        line,
        inlined,
    };
    let native = |image: &str, build_id: Option<&[u8]>, offset| FramePlace::Native {
        image: image.into(),
        build_id: build_id.map(Arc::from),
        offset,
    };
    let places = [
        (native("/usr/lib/libpipeline.so", Some(&[0, 0xab, 7]), 0x1234), vec![]),
        (
            native("/usr/bin/pipeline", None, u64::MAX),
            vec![
                source(Some("copy_in<int>"), Some("src/copy.h"), Some(17), true),
                source(Some("main"), None, None, false),
            ],
        ),
        (
            FramePlace::Python,
            vec![source(Some("train"), Some("/home/me/train.py"), Some(31), false)],
        ),
        (native("", None, 0x7f00_1234), vec![source(None, Some("a.c"), None, false)]),
    ];
    let frames = (0..).zip(places).map(|(id, (place, source))| {
        Entity::Frame(Arc::new(Frame { id: FrameId(id), place, source }))
    });
    let stack = |id, frames: &[u32], truncated| {
        let frames = frames.iter().copied().map(FrameId).collect();
        Entity::Stack(Arc::new(Stack { id: StackId(id), frames, truncated }))
    };
    frames.chain([stack(0, &[0, 2, 1], false), stack(1, &[3, 0], true)]).collect()
}

fn modules() -> Vec<Entity> {
    let in_memory = Module {
        id: ModuleId(0),
        process: ProcessId(0),
        hash: Some(u64::MAX - 3),
        size: 4096,
        path: None,
        offset: 0,
    };
    let in_file = Module {
        id: ModuleId(1),
        hash: None,
        size: 0,
        path: Some("/usr/lib/libmath.so".to_owned()),
        offset: 1 << 33,
        ..in_memory.clone()
    };
    vec![Entity::Module(in_memory), Entity::Module(in_file)]
}

fn kernel_codes() -> Vec<Entity> {
    let word =
        |param, kind, mode, table| KernelWord { param, offset: 8 * param, kind, mode, table };
    let known = KernelCode {
        kernel: KernelId(0),
        module: Some(ModuleId(1)),
        source: CodeSource::Sass,
        reason: String::new(),
        waits_on_primary: true,
        words: vec![
            word(0, WordKind::Pointer, Some(Mode::ReadWrite), false),
            word(1, WordKind::TensorMap, Some(Mode::MayWrite), false),
            word(3, WordKind::Handle, None, true),
        ],
        globals: vec![KernelGlobal {
            name: "counter".to_owned(),
            mode: Some(Mode::Atomic),
            table: false,
        }],
    };
    let unread = KernelCode {
        kernel: KernelId(1),
        module: None,
        source: CodeSource::NoDisassembler,
        reason: "there is no nvdisasm".to_owned(),
        waits_on_primary: false,
        words: vec![],
        globals: vec![],
    };
    vec![Entity::KernelCode(known.into()), Entity::KernelCode(unread.into())]
}

/// Two graphs with a node of every kind, the second inside of the first.
fn graphs() -> Vec<Entity> {
    let access = |allocation: u32, mode| Access {
        allocation: AllocationId(allocation),
        extent: Extent::Strided(StridedPattern {
            start: 0x7f00_0000_0010,
            width: 4,
            pitch: 16,
            rows: 3,
            slice_pitch: 0,
            slices: 1,
        }),
        mode,
        basis: Basis::Inferred,
    };
    let copy = Copy {
        stream: StreamId(0),
        synchronous: false,
        source: MemoryKind::Pinned,
        destination: MemoryKind::GraphOrdered,
        peer: None,
        bytes: 12,
        source_order: SourceOrder::Stream,
        sync_memops: false,
    };
    let semaphore = SignalObject::Semaphore(SemaphoreId(0));
    let actions = [
        NodeAction::Empty,
        NodeAction::Kernel { kernel: KernelId(0), control: GridControl::UNKNOWN },
        NodeAction::Copy(copy),
        NodeAction::Memset { destination: MemoryKind::Device },
        NodeAction::HostFunction,
        NodeAction::EventRecord { event: EventId(0) },
        NodeAction::EventWait { event: EventId(1) },
        NodeAction::Allocate { allocation: AllocationId(10) },
        NodeAction::Free { allocation: AllocationId(10) },
        NodeAction::Child { graph: GraphId(0) },
        NodeAction::Conditional {
            kind: ConditionalKind::Switch,
            bodies: vec![GraphId(0), GraphId(0)],
        },
        NodeAction::Signals {
            operations: vec![SignalOperation::Signal {
                object: semaphore,
                value: 3,
                releases: false,
            }],
        },
        NodeAction::Unknown { kind: -1 },
    ];
    let node = |(i, action): (u64, NodeAction)| GraphNode {
        made_by: OpSeq(2 * i),
        api: "cuGraphAddNode_v2".into(),
        captured_from: (i % 2 == 0).then_some(StreamId(1)),
        enabled: i != 4,
        action,
        accesses: (0..i % 3).map(|n| access(n as u32, Mode::ALL[n as usize])).collect(),
        stack: (i % 2 == 1).then_some(StackId(0)),
    };
    let inner = Graph {
        id: GraphId(0),
        process: ProcessId(0),
        name: None,
        nodes: vec![node((1, NodeAction::Empty))],
        edges: vec![],
    };
    let last = actions.len() as u32 - 1;
    let outer = Graph {
        id: GraphId(1),
        process: ProcessId(0),
        name: Some("step".to_owned()),
        nodes: (1..).zip(actions).map(node).collect(),
        edges: (0..last)
            .map(|from| {
                let port = EdgePort::ALL[from as usize % EdgePort::ALL.len()];
                GraphEdge { from, to: from + 1, port }
            })
            .collect(),
    };
    vec![Entity::Graph(Arc::new(inner)), Entity::Graph(Arc::new(outer))]
}

pub(crate) fn lints() -> Vec<Lint> {
    let lint = Lint {
        fingerprint: Fingerprint(9),
        class: RaceClass::WaitBeforeRecord,
        op: OpSeq(8),
        api: "cuStreamWaitEvent".into(),
        stream: Some(StreamId(1)),
        event: Some(EventId(0)),
        related: None,
        stack: Some(StackId(1)),
        related_stack: None,
    };
    let other = Lint {
        class: RaceClass::LegacyBesideNonblocking,
        stream: None,
        event: None,
        related: Some(OpSeq(4)),
        stack: None,
        related_stack: Some(StackId(0)),
        ..lint.clone()
    };
    vec![lint, other]
}

pub(crate) fn operations() -> Vec<Operation> {
    let accesses = |i: u64| -> Vec<Access> {
        let pattern = StridedPattern {
            start: 0x7f00_0000_0010,
            width: 4,
            pitch: 16,
            rows: 3,
            slice_pitch: 64 * (1 + i % 2),
            slices: 2,
        };
        (0..i % 3)
            .map(|n| Access {
                allocation: AllocationId(n as u32),
                extent: if n == 1 {
                    Extent::Strided(pattern)
                } else {
                    Extent::Range(ByteRange::with_len(0x7f00_0000_0000 + i, 0x100 * i))
                },
                mode: Mode::ALL[(i + n) as usize % Mode::ALL.len()],
                basis: Basis::ALL[(i + n) as usize % Basis::ALL.len()],
            })
            .collect()
    };
    (1u64..)
        .zip(actions())
        .map(|(i, (api, action))| Operation {
            g: OpSeq(2 * i),
            exit: (i != 30).then_some(OpSeq(2 * i + 1)),
            process: ProcessId(0),
            thread: ThreadId((i % 2) as u32),
            api: api.into(),
            time: (i % 5 != 0)
                .then_some(HostTime { start_ns: 900_000_000_000 - i, end_ns: 900_000_000_000 + i }),
            status: if i == 17 { Status::NOT_READY } else { Status::SUCCESS },
            action,
            accesses: accesses(i),
            stack: (i % 4 != 0).then_some(StackId((i % 2) as u32)),
        })
        .collect()
}

pub(crate) fn items() -> Vec<TraceItem> {
    let entities = entities().into_iter().map(TraceItem::Entity);
    entities.chain(operations().into_iter().map(TraceItem::Operation)).collect()
}

pub(crate) fn edges() -> Vec<Edge> {
    (1u64..)
        .zip(EdgeKind::ALL)
        .map(|(i, kind)| Edge {
            from: OpSeq(2 * i),
            to: OpSeq(2 * i + 2),
            kind,
            tier: if i % 2 == 0 { Tier::Documented } else { Tier::Incidental },
        })
        .collect()
}

pub(crate) fn findings() -> Vec<Finding> {
    let operations = operations();
    let side = |at: usize, stream: Option<u32>, kernel: Option<&str>| FindingAccess {
        op: operations[at].g,
        stream: stream.map(StreamId),
        api: operations[at].api.to_string(),
        kernel: kernel.map(str::to_owned),
        access: operations[at].accesses[0].clone(),
        stack: operations[at].stack,
    };
    let race = Finding {
        fingerprint: Fingerprint(u64::MAX - 5),
        severity: Severity::Race,
        class: RaceClass::StaleWait,
        kind: ConflictKind::WriteAfterRead,
        confidence: Confidence::Certain,
        allocation: AllocationId(0),
        overlap: ByteRange::new(0x7f00_0000_0010, 0x7f00_0000_0020),
        first: side(6, Some(1), Some("_Z5scalePfi")),
        second: side(7, Some(2), None),
        knows: Some(OpSeq(4)),
        nearest: Some(OpSeq(6)),
        masked_by: None,
        proposed_edge: Some(ProposedEdge {
            record_after_op: OpSeq(14),
            on_stream: Some(StreamId(1)),
            wait_before_op: OpSeq(16),
            in_stream: None,
        }),
    };
    let latent = Finding {
        fingerprint: Fingerprint(3),
        severity: Severity::Latent,
        class: RaceClass::HostReadEarly,
        confidence: Confidence::Possible,
        second: side(10, None, None),
        knows: None,
        nearest: None,
        masked_by: Some(OpSeq(20)),
        proposed_edge: None,
        ..race.clone()
    };
    vec![race, latent]
}

pub(crate) fn coverage() -> Coverage {
    use IncompleteReason as R;
    let entry_point =
        |name: &str, treatment, calls| EntryPoint { name: name.to_owned(), treatment, calls };
    Coverage {
        entry_points: vec![
            entry_point("cuDeviceGet", Treatment::Harmless, 3),
            entry_point("cuGraphLaunch", Treatment::NotUnderstood, 12),
            entry_point("cuLaunchKernel", Treatment::Recorded, 1_000_000),
        ],
        dropped: 9,
        ambiguous: 2,
        kernels: KernelGap::ALL
            .iter()
            .map(|&gap| KernelCount { gap, name: "flash_fwd".to_owned(), count: 3 })
            .collect(),
        host_accesses: Some(HostAccesses {
            operations: 7,
            fenced: 5,
            in_part: 2,
            not_fenced: vec![("passed over for want of room".to_owned(), 2)],
            left_alone: vec![("which the host touches all the time".to_owned(), 1)],
            unwatched: Some(Unwatched::OwnHandler),
        }),
        measured: MeasuredKind::ALL
            .iter()
            .map(|&kind| MeasuredCount { kind, name: "grouped_gemm".to_owned(), count: 6 })
            .collect(),
        reasons: vec![
            R::DroppedRecords(9),
            R::NotUnderstood { api: "cuGraphLaunch".to_owned(), calls: 12 },
            R::UnknownKernelParameters { kernel: "_Z5scalePfi".to_owned(), launches: 4 },
            R::NotAttached,
            R::PointersInMemory { kernel: "flash_fwd".to_owned(), launches: 5 },
        ],
    }
}
