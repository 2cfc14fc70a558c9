//! A trace that is read back equals the trace that was written.

use crate::common;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use streamsan_model::*;
use streamsan_store::{Reader, TraceState, Writer};

fn write(path: &Path, items: &[TraceItem]) -> Writer {
    let mut writer = Writer::create(path, &common::meta()).unwrap();
    for item in items {
        writer.item(item).unwrap();
    }
    writer
}

fn read(path: &Path) -> Vec<TraceItem> {
    Reader::open(path).unwrap().items().map(Result::unwrap).collect()
}

#[test]
fn one_of_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut writer = write(&path, &common::items());
    common::edges().iter().for_each(|edge| writer.edge(edge).unwrap());
    common::findings().iter().for_each(|finding| writer.finding(finding).unwrap());
    writer.set_coverage(&common::coverage()).unwrap();
    writer.set_meta("driver", "580.95").unwrap();
    writer.finalize().unwrap();

    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.state(), TraceState::Complete);
    assert_eq!(read(&path), common::items());
    assert_eq!(reader.edges().unwrap(), common::edges());
    assert_eq!(reader.findings().unwrap(), common::findings());
    assert_eq!(reader.coverage().unwrap(), common::coverage());
    assert_eq!(reader.incomplete_reasons().unwrap(), common::coverage().reasons);
    let meta = reader.meta().unwrap();
    assert_eq!(meta, streamsan_store::Meta { driver: "580.95".to_owned(), ..common::meta() });

    let entities = reader.entities().unwrap();
    assert_eq!(entities.stream(StreamId(1)).unwrap().name.as_deref(), Some("decode"));
    for operation in common::operations() {
        assert_eq!(reader.operation(operation.g).unwrap(), Some(operation));
    }
    assert_eq!(reader.operation(OpSeq(3)).unwrap(), None);
    let counts = reader.counts().unwrap();
    assert_eq!(counts.operations as usize, common::operations().len());
    assert_eq!((counts.streams, counts.edges, counts.findings), (4, 15, 2));
    let calls = reader.calls_by_api().unwrap();
    assert!(calls.contains(&("cuLaunchHostFunc".to_owned(), 2)), "{calls:?}");
    assert!(calls.is_sorted());
}

#[test]
fn later_declaration_replaces_the_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut items = common::items();
    let rename = |entity: &Entity| match entity.clone() {
        Entity::Process(x) => Entity::Process(Process { arguments: vec!["one".to_owned()], ..x }),
        Entity::Kernel(x) => Entity::Kernel(Kernel { params: vec![], ..x }),
        Entity::Stream(x) => Entity::Stream(Stream { name: Some("late".to_owned()), ..x }),
        other => other,
    };
    let later: Vec<TraceItem> =
        common::entities().iter().map(|e| TraceItem::Entity(rename(e))).collect();
    items.extend(later.clone());
    write(&path, &items).finalize().unwrap();
    assert_eq!(read(&path)[..later.len()], later);
}

#[test]
fn late_accesses_replace_the_earlier_ones_before_and_after_they_are_inserted() {
    for commit in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let mut writer = write(&path, &common::items());
        if commit {
            writer.commit().unwrap();
        }
        let mut expected = common::operations();
        for (operation, other) in expected.iter_mut().zip(common::operations().iter().rev()) {
            // The last accesses count, in one batch too.
            writer.replace_accesses(operation.g, &operation.accesses).unwrap();
            operation.accesses = other.accesses.clone();
            writer.replace_accesses(operation.g, &operation.accesses).unwrap();
        }
        // Nobody's accesses: the operation was never stored.
        writer.replace_accesses(OpSeq(1), &expected[0].accesses).unwrap();
        writer.finalize().unwrap();
        let items = read(&path);
        let operations: Vec<_> = items
            .into_iter()
            .filter_map(|item| if let TraceItem::Operation(o) = item { Some(o) } else { None })
            .collect();
        assert_eq!(operations, expected);
    }
}

#[test]
fn analysis_can_be_redone_on_a_finished_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut writer = write(&path, &common::items());
    writer.replace_analysis(&common::edges(), &common::findings()).unwrap();
    writer.finalize().unwrap();

    let mut writer = Writer::open(&path).unwrap();
    let (edges, findings) = (&common::edges()[2..4], &common::findings()[1..]);
    writer.replace_analysis(edges, findings).unwrap();
    writer.finalize().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.state(), TraceState::Complete);
    assert_eq!(reader.edges().unwrap(), edges);
    assert_eq!(reader.findings().unwrap(), findings);
    assert_eq!(read(&path), common::items());
}

fn action() -> impl Strategy<Value = Action> {
    let kind = || prop::sample::select(MemoryKind::ALL.to_vec());
    let id = any::<u32>;
    let copy = (any::<(u32, bool, u64)>(), kind(), kind(), any::<Option<(u32, u32)>>());
    prop_oneof![
        4 => prop::sample::select(crate::actions::actions()).prop_map(|(_, action)| action),
        1 => copy.prop_map(|((stream, synchronous, bytes), source, destination, peer)| {
            Action::Copy(Copy {
                stream: StreamId(stream),
                synchronous,
                source,
                destination,
                peer: peer.map(|(a, b)| (ContextId(a), ContextId(b))),
                bytes,
                source_order: SourceOrder::Stream,
                sync_memops: false,
            })
        }),
        1 => (id(), id(), any::<[bool; 3]>(), 0..3usize, any::<u16>()).prop_map(
            |(stream, kernel, flags, trigger, early)| Action::Launch {
                stream: StreamId(stream),
                kernel: KernelId(kernel),
                programmatic: flags[0],
                control: GridControl {
                    waits: flags[1],
                    early: u32::from(early),
                    trigger: Trigger::ALL[trigger],
                },
                cooperative: flags[2],
                event: None,
            }
        ),
        1 => any::<(u32, Option<u32>)>().prop_map(|(allocation, stream)| Action::Allocate {
            allocation: AllocationId(allocation),
            stream: stream.map(StreamId),
        }),
        1 => id().prop_map(|stream| Action::Collective { stream: StreamId(stream) }),
        1 => prop::collection::vec((id(), id()), 2..4).prop_map(|members| {
            let member = |(stream, accesses)| {
                MemberCollective { stream: StreamId(stream), accesses }
            };
            let members = members.into_iter().map(member).collect();
            Action::CollectiveGroup(Arc::new(CollectiveGroup { members }))
        }),
        1 => any::<u64>().prop_map(|g| Action::HostFunctionRun { enqueued: OpSeq(g) }),
    ]
}

fn access() -> impl Strategy<Value = Access> {
    let extent = prop_oneof![
        any::<(u64, u64)>().prop_map(|(a, b)| Extent::Range(ByteRange::new(a, b))),
        (any::<[u64; 4]>(), 1..u64::MAX, 1..u64::MAX).prop_map(|(n, rows, slices)| {
            Extent::Strided(StridedPattern {
                start: n[0],
                width: n[1],
                pitch: n[2],
                rows,
                slice_pitch: n[3],
                slices,
            })
        }),
    ];
    let mode = prop::sample::select(Mode::ALL.to_vec());
    let basis = prop::sample::select(Basis::ALL.to_vec());
    (any::<u32>(), extent, mode, basis).prop_map(|(allocation, extent, mode, basis)| Access {
        allocation: AllocationId(allocation),
        extent,
        mode,
        basis,
    })
}

/// An operation, and whether it is handed over while it is still running.
fn operation() -> impl Strategy<Value = (Operation, bool)> {
    let numbers =
        (any::<[u32; 2]>(), any::<Option<u64>>(), any::<Option<[u64; 2]>>(), any::<i32>());
    let accesses = prop::collection::vec(access(), 0..4);
    (numbers, "[a-z\u{e9}]{0,3}", action(), accesses, any::<bool>()).prop_map(
        |((ids, exit, time, status), api, action, accesses, running)| {
            let operation = Operation {
                g: OpSeq(0),
                exit: exit.map(OpSeq),
                process: ProcessId(ids[0]),
                thread: ThreadId(ids[1]),
                api: api.into(),
                time: time.map(|[start_ns, end_ns]| HostTime { start_ns, end_ns }),
                status: Status(status),
                action,
                accesses,
                stack: None,
            };
            (operation, running)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_operations(
        numbers in prop::collection::btree_set(0u64..1 << 39, 0..40),
        mut operations in prop::collection::vec(operation(), 40),
        commit_at in 0usize..40,
    ) {
        operations.truncate(numbers.len());
        for ((operation, _), &g) in operations.iter_mut().zip(&numbers) {
            operation.g = OpSeq(g);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let mut writer = Writer::create(&path, &common::meta()).unwrap();
        for (position, (operation, running)) in operations.iter().enumerate() {
            let entered = if *running {
                Operation { exit: None, status: Status::SUCCESS, ..operation.clone() }
            } else {
                operation.clone()
            };
            writer.item(&TraceItem::Operation(entered)).unwrap();
            if position == commit_at {
                writer.commit().unwrap();
            }
        }
        for (operation, _) in operations.iter_mut().filter(|(_, running)| *running) {
            let Some(exit) = operation.exit else {
                operation.status = Status::SUCCESS;
                continue;
            };
            let (g, status) = (operation.g, operation.status);
            writer.item(&TraceItem::Returned { g, exit, status }).unwrap();
        }
        writer.finalize().unwrap();
        // One by one: nothing that these refer to is declared.
        let reader = Reader::open(&path).unwrap();
        for (operation, _) in operations {
            prop_assert_eq!(reader.operation(operation.g).unwrap(), Some(operation));
        }
    }
}

/// A program may have as many streams, events and allocations as calls: who forgets what has ended
/// never has all of them, as each comes with the operations that refer to it first.
#[test]
fn later_entities_come_with_the_operations_that_refer_to_them() {
    const ROUNDS: u32 = 4000;
    let of = |n: u32| {
        let stream = StreamId(n);
        let (event, allocation) = (EventId(n), AllocationId(n));
        let entities = [
            Entity::Stream(Stream {
                id: stream,
                context: ContextId(0),
                kind: StreamKind::NonBlocking,
                thread: None,
                priority: 0,
                handle: 0,
                driver_id: 0,
                name: None,
            }),
            Entity::Event(Event {
                id: event,
                context: ContextId(0),
                handle: 0,
                flags: 0,
                imported: false,
                name: None,
            }),
            Entity::Allocation(Allocation {
                id: allocation,
                process: ProcessId(0),
                context: None,
                kind: MemoryKind::Device,
                range: ByteRange::with_len(4096 * u64::from(n), 64),
                api: "cuMemAlloc_v2".to_owned(),
                backing: None,
                name: None,
                stack: None,
            }),
        ];
        let actions = [
            Action::StreamCreate { stream },
            Action::EventElapsedTime { start: EventId(0), end: event },
            Action::Allocate { allocation, stream: None },
        ];
        let operations = actions.into_iter().enumerate().map(move |(at, action)| {
            TraceItem::Operation(Operation {
                g: OpSeq(3 * u64::from(n) + at as u64 + 1),
                exit: None,
                process: ProcessId(0),
                thread: ThreadId(0),
                api: "a call".into(),
                time: None,
                status: Status::SUCCESS,
                action,
                accesses: Vec::new(),
                stack: None,
            })
        });
        entities.into_iter().map(TraceItem::Entity).chain(operations)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let is_caller = |e: &TraceItem| {
        matches!(e, TraceItem::Entity(Entity::Process(_) | Entity::Thread(_) | Entity::Context(_)))
    };
    let callers = common::items().into_iter().filter(is_caller);
    let items: Vec<TraceItem> = callers.chain((0..ROUNDS).flat_map(of)).collect();
    write(&path, &items).finalize().unwrap();

    let mut known = Entities::default();
    let mut operations = 0;
    for item in read(&path) {
        match item {
            TraceItem::Entity(entity) => known.declare(entity),
            TraceItem::Operation(operation) => {
                operations += 1;
                let is_known = match operation.action {
                    Action::StreamCreate { stream } => known.stream(stream).is_some(),
                    Action::EventElapsedTime { end, .. } => known.event(end).is_some(),
                    Action::Allocate { allocation, .. } => known.allocation(allocation).is_some(),
                    _ => false,
                };
                assert!(is_known, "{operation:?}");
                if operations == 1 {
                    assert!(known.held() < 3 * ROUNDS as usize / 2, "{}", known.held());
                }
            }
            TraceItem::Returned { .. } | TraceItem::Range(_) => {}
        }
    }
    assert_eq!((operations, known.held()), (3 * ROUNDS, 3 * ROUNDS as usize));
}
