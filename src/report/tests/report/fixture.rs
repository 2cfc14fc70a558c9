//! Entities, operations and findings that the tests report on.

use streamsan_model::*;

pub(crate) const KV_CACHE: u64 = 0x7f12_0000_0000;

pub(crate) fn entities() -> Entities {
    let mut entities = Entities::default();
    entities.declare(Entity::Process(Process {
        id: ProcessId(0),
        pid: 100,
        parent_pid: 1,
        executable: "/opt/serve".to_owned(),
        arguments: vec!["serve".to_owned()],
    }));
    for (id, device) in [(0, 0), (1, 1)] {
        entities.declare(Entity::Context(Context {
            id: ContextId(id),
            process: ProcessId(0),
            device: DeviceId(device),
            primary: true,
            parent: None,
            concurrent_managed_access: true,
            handle: 0x1000 + u64::from(id),
        }));
    }
    for (id, context, kind, name) in [
        (0, 0, StreamKind::Legacy, None),
        (3, 0, StreamKind::Blocking, Some("prefetch")),
        (4, 0, StreamKind::PerThread, None),
        (5, 1, StreamKind::NonBlocking, None),
        (7, 0, StreamKind::NonBlocking, Some("decode")),
    ] {
        entities.declare(Entity::Stream(Stream {
            id: StreamId(id),
            context: ContextId(context),
            kind,
            thread: None,
            priority: 0,
            handle: 0xbee0 + u64::from(id),
            driver_id: 0,
            name: name.map(str::to_owned),
        }));
    }
    for (id, name) in [(1, Some("done")), (2, None)] {
        entities.declare(Entity::Event(Event {
            id: EventId(id),
            context: ContextId(0),
            handle: 0xe00 + u64::from(id),
            flags: 2,
            imported: false,
            name: name.map(str::to_owned),
        }));
    }
    for (id, kind, start, length, api, name) in [
        (41, MemoryKind::Device, KV_CACHE, 64 << 20, "cuMemAlloc_v2", Some("kv_cache")),
        (42, MemoryKind::StreamOrdered, 0x7f20_0000_0000, 1 << 20, "cuMemAllocAsync", None),
        (43, MemoryKind::Pinned, 0x7f30_0000_0000, 8192, "cuMemHostAlloc", None),
        (44, MemoryKind::Pageable, 0, u64::MAX, "", None),
    ] {
        entities.declare(Entity::Allocation(Allocation {
            id: AllocationId(id),
            process: ProcessId(0),
            context: None,
            kind,
            range: ByteRange::with_len(start, length),
            api: api.to_owned(),
            backing: None,
            name: name.map(str::to_owned),
            stack: None,
        }));
    }
    entities
}

/// The event calls that findings refer to.
pub(crate) fn operation(g: OpSeq) -> Option<Operation> {
    let (event, decode, prefetch) = (EventId(2), StreamId(7), StreamId(3));
    let (api, action) = match g.0 {
        18_120 => ("cuEventRecord", Action::EventRecord { event, stream: decode }),
        18_121 => ("cuStreamWaitEvent", Action::StreamWaitEvent { stream: prefetch, event }),
        18_130 => ("cuEventRecord", Action::EventRecord { event: EventId(1), stream: StreamId(4) }),
        18_236 => ("cuMemFree_v2", Action::Free { allocation: AllocationId(42), stream: None }),
        _ => return None,
    };
    Some(Operation {
        g,
        exit: Some(g),
        process: ProcessId(0),
        thread: ThreadId(0),
        api: api.into(),
        time: None,
        status: Status::SUCCESS,
        action,
        accesses: vec![],
        stack: None,
    })
}

pub(crate) fn side(
    op: u64,
    stream: Option<u32>,
    call: (&str, Option<&str>),
    mode: Mode,
    range: ByteRange,
) -> FindingAccess {
    FindingAccess {
        op: OpSeq(op),
        stream: stream.map(StreamId),
        api: call.0.to_owned(),
        kernel: call.1.map(str::to_owned),
        access: Access {
            allocation: AllocationId(41),
            extent: Extent::Range(range),
            mode,
            basis: Basis::Exact,
        },
        stack: None,
    }
}

/// The refill of a buffer that a kernel on another stream still reads.
pub(crate) fn stale_wait(occurrence: u64) -> Finding {
    let overlap = ByteRange::with_len(KV_CACHE + 0x2000, 4 << 20);
    let at = 18_233 + 100 * occurrence;
    Finding {
        fingerprint: Fingerprint::of(["stale-wait", "flash_fwd", "cuMemcpyHtoDAsync_v2"]),
        severity: Severity::Race,
        class: RaceClass::StaleWait,
        kind: ConflictKind::WriteAfterRead,
        confidence: Confidence::Certain,
        allocation: AllocationId(41),
        overlap,
        first: side(at, Some(7), ("cuLaunchKernel", Some("flash_fwd")), Mode::Read, overlap),
        second: side(at + 7, Some(3), ("cuMemcpyHtoDAsync_v2", None), Mode::Write, overlap),
        knows: Some(OpSeq(18_120)),
        nearest: Some(OpSeq(18_120)),
        masked_by: None,
        proposed_edge: Some(ProposedEdge {
            record_after_op: OpSeq(at),
            on_stream: Some(StreamId(7)),
            wait_before_op: OpSeq(at + 7),
            in_stream: Some(StreamId(3)),
        }),
    }
}

/// One finding of every class, each at operations of its own.
pub(crate) fn every_class() -> Vec<Finding> {
    RaceClass::ALL.iter().zip(0u64..).map(|(&class, n)| of_class(class, n)).collect()
}

fn of_class(class: RaceClass, n: u64) -> Finding {
    let mut finding = differences(class, n);
    for side in [&mut finding.first, &mut finding.second] {
        side.access.allocation = finding.allocation;
        if matches!(side.access.extent, Extent::Range(_)) {
            side.access.extent = Extent::Range(finding.overlap);
        }
    }
    if let Some(edge) = &mut finding.proposed_edge {
        edge.on_stream = finding.first.stream;
        edge.in_stream = finding.second.stream;
    }
    finding
}

fn differences(class: RaceClass, n: u64) -> Finding {
    let mut finding = stale_wait(n + 10);
    finding.class = class;
    finding.fingerprint = Fingerprint::of([class.description()]);
    let host = |finding: &mut Finding, mode| {
        finding.second.stream = None;
        finding.second.api = "cuMemFreeHost".to_owned();
        finding.second.access.mode = mode;
        finding.allocation = AllocationId(43);
        finding.overlap = ByteRange::with_len(0x7f30_0000_0000, 512);
        finding.nearest = None;
        finding.knows = None;
    };
    match class {
        RaceClass::MissingWait => {
            finding.knows = None;
            finding.nearest = None;
        }
        RaceClass::StaleWait => finding.nearest = None,
        RaceClass::WrongStreamWait | RaceClass::EventRerecorded => {
            finding.nearest = Some(OpSeq(18_130));
        }
        RaceClass::WaitBeforeRecord => finding.nearest = Some(OpSeq(18_121)),
        RaceClass::LegacyVsNonblocking => {
            finding.second.stream = Some(StreamId(0));
            finding.second.access.extent = Extent::Strided(StridedPattern {
                start: KV_CACHE + 0x2000,
                width: 64,
                pitch: 256,
                rows: 16,
                slice_pitch: 0,
                slices: 1,
            });
        }
        RaceClass::PageableCopyTail => {
            finding.kind = ConflictKind::ReadAfterWrite;
            finding.first.api = "cuMemcpyHtoD_v2".to_owned();
            finding.first.kernel = None;
            finding.first.stream = Some(StreamId(0));
            finding.first.access.mode = Mode::Write;
            finding.second.stream = Some(StreamId(7));
            finding.second.access.mode = Mode::Read;
            finding.nearest = None;
            finding.knows = None;
        }
        RaceClass::HostReadEarly => {
            host(&mut finding, Mode::Read);
            finding.kind = ConflictKind::ReadAfterWrite;
            finding.first.access.mode = Mode::Write;
            finding.second.api = "host".to_owned();
        }
        RaceClass::HostBufferReuse => {
            host(&mut finding, Mode::Write);
            finding.second.api = "cuMemcpyDtoH_v2".to_owned();
        }
        RaceClass::UseBeforeAlloc | RaceClass::UseAfterFree | RaceClass::AllocatorReuse => {
            finding.allocation = AllocationId(42);
            finding.overlap = ByteRange::with_len(0x7f20_0000_0000, 1 << 20);
            if class == RaceClass::UseAfterFree {
                finding.proposed_edge = None;
            }
            finding.kind = match class {
                RaceClass::UseBeforeAlloc => ConflictKind::UseBeforeAlloc,
                _ => ConflictKind::UseAfterFree,
            };
        }
        RaceClass::FreeInFlight => {
            host(&mut finding, Mode::Free);
            finding.kind = ConflictKind::UseAfterFree;
        }
        RaceClass::PeerUnordered => {
            finding.first.stream = Some(StreamId(5));
            finding.first.access.basis = Basis::Inferred;
            finding.confidence = Confidence::Likely;
        }
        RaceClass::GraphUnordered => {
            finding.second.kernel = None;
            finding.second.stream = finding.first.stream;
            finding.allocation = AllocationId(44);
            finding.proposed_edge = None;
        }
        RaceClass::MemopOnlyOrder
        | RaceClass::LegacyBesideNonblocking
        | RaceClass::PooledStreamAlias => {
            finding.severity = Severity::Lint;
            finding.proposed_edge = None;
        }
    }
    finding
}

/// Two launches of one stream; the second need not wait for the first.
pub(crate) fn programmatic() -> Finding {
    let mut finding = stale_wait(0);
    finding.class = RaceClass::MissingWait;
    finding.fingerprint = Fingerprint::of(["programmatic"]);
    finding.nearest = None;
    finding.second.stream = finding.first.stream;
    finding.second.api = "cuLaunchKernelEx".to_owned();
    finding.second.kernel = Some("refill".to_owned());
    finding.proposed_edge = None;
    finding
}

/// A copy from ordinary memory that a host function of the same stream writes.
pub(crate) fn pageable_source() -> Finding {
    let mut finding = stale_wait(1);
    finding.class = RaceClass::MissingWait;
    finding.kind = ConflictKind::ReadAfterWrite;
    finding.fingerprint = Fingerprint::of(["pageable"]);
    finding.allocation = AllocationId(44);
    finding.nearest = None;
    finding.first.api = "cuLaunchHostFunc".to_owned();
    finding.first.kernel = None;
    finding.first.access.mode = Mode::Write;
    finding.second.stream = finding.first.stream;
    finding.second.access.mode = Mode::Read;
    if let Some(edge) = &mut finding.proposed_edge {
        edge.in_stream = None;
    }
    finding
}

/// Ordered today by a call that need not.
pub(crate) fn latent() -> Finding {
    Finding {
        severity: Severity::Latent,
        class: RaceClass::MissingWait,
        fingerprint: Fingerprint::of(["latent"]),
        masked_by: Some(OpSeq(18_236)),
        nearest: None,
        ..stale_wait(0)
    }
}

/// A kernel whose accesses are unknown.
pub(crate) fn possible(n: u64) -> Finding {
    let mut finding = stale_wait(n);
    finding.class = RaceClass::MissingWait;
    finding.confidence = Confidence::Possible;
    finding.fingerprint = Fingerprint(n);
    finding.first.access.basis = Basis::Assumed;
    finding.first.access.mode = Mode::MayWrite;
    finding.allocation = AllocationId(42);
    finding.overlap = ByteRange::with_len(0x7f20_0000_0000, 100);
    finding
}
