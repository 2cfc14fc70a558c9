//! Changes to a trace whose effect on the findings is known.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use streamsan_model::{
    Access, Action, AllocationId, ByteRange, ContextId, Copy, Entity, Event, EventId, Extent,
    NodeAction, OpSeq, Operation, ProcessId, SignalObject, SignalOperation, Status, StreamId,
    StridedPattern, Thread, ThreadId, TraceItem,
};

/// Hands over the chosen calls the way live recording hands over those that are blocked: without
/// an exit, which follows as an item of its own.
pub(crate) fn hand_over_unfinished(items: &[TraceItem], choice: &[bool]) -> Vec<TraceItem> {
    let mut result = Vec::new();
    let mut open: BTreeSet<(OpSeq, OpSeq, i32)> = BTreeSet::new();
    let mut calls = 0;
    for item in items {
        let TraceItem::Operation(op) = item else {
            result.push(item.clone());
            continue;
        };
        while let Some(first) = open.first().copied().filter(|(exit, ..)| *exit < op.g) {
            open.remove(&first);
            result.push(returned(first));
        }
        calls += 1;
        let only_waits = matches!(
            op.action,
            Action::StreamSynchronize { .. }
                | Action::EventSynchronize { .. }
                | Action::ContextSynchronize { .. }
                | Action::StreamQuery { .. }
                | Action::EventQuery { .. }
        );
        match op.exit {
            // The result of a call is known at its return only.
            Some(exit)
                if choice[calls % choice.len()] && (op.status.is_success() || only_waits) =>
            {
                open.insert((exit, op.g, op.status.0));
                let running = Operation { exit: None, status: Status::SUCCESS, ..op.clone() };
                result.push(TraceItem::Operation(running));
            }
            _ => result.push(item.clone()),
        }
    }
    result.extend(open.into_iter().map(returned));
    result
}

fn returned((exit, g, status): (OpSeq, OpSeq, i32)) -> TraceItem {
    TraceItem::Returned { g, exit, status: Status(status) }
}

/// Synchronisation to put into a trace. Positions and choices are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insertion {
    kind: Inserted,
    after: prop::sample::Index,
    later: prop::sample::Index,
    stream: prop::sample::Index,
    other_stream: prop::sample::Index,
}

#[derive(Clone, Copy, Debug)]
enum Inserted {
    RecordAndWait,
    SynchronizeStream,
    SynchronizeContext,
}

pub(crate) fn insertion() -> impl Strategy<Value = Insertion> {
    let kind = prop_oneof![
        4 => Just(Inserted::RecordAndWait),
        1 => Just(Inserted::SynchronizeStream),
        1 => Just(Inserted::SynchronizeContext),
    ];
    (kind, any::<[prop::sample::Index; 4]>()).prop_map(
        |(kind, [after, later, stream, other_stream])| Insertion {
            kind,
            after,
            later,
            stream,
            other_stream,
        },
    )
}

/// The trace with the synchronisation in it, issued by a thread of its own at indices that nothing
/// else has. The trace itself where it has no stream at that point.
pub(crate) fn insert_synchronisation(items: &[TraceItem], insertion: &Insertion) -> Vec<TraceItem> {
    let calls: Vec<usize> =
        (0..items.len()).filter(|&at| matches!(items[at], TraceItem::Operation(_))).collect();
    let mut places = [insertion.after.index(calls.len()), insertion.later.index(calls.len())];
    places.sort_unstable();
    let [after, later] = places.map(|place| calls[place]);
    let streams_by = |at: usize| -> Vec<(StreamId, ContextId)> {
        let declared = items[..=at].iter().filter_map(|item| match item {
            TraceItem::Entity(Entity::Stream(s)) => Some((s.id, s.context)),
            _ => None,
        });
        declared.collect()
    };
    let (streams, later_streams) = (streams_by(after), streams_by(later));
    if streams.is_empty() {
        return items.to_vec();
    }
    let (stream, context) = streams[insertion.stream.index(streams.len())];
    let (later_stream, _) = later_streams[insertion.other_stream.index(later_streams.len())];
    let event = EventId(count(items, |entity| matches!(entity, Entity::Event(_))));
    let thread = ThreadId(count(items, |entity| matches!(entity, Entity::Thread(_))));
    let (action, later_action) = match insertion.kind {
        Inserted::RecordAndWait => (
            Action::EventRecord { event, stream },
            Some(Action::StreamWaitEvent { stream: later_stream, event }),
        ),
        Inserted::SynchronizeStream => (Action::StreamSynchronize { stream }, None),
        Inserted::SynchronizeContext => (Action::ContextSynchronize { context }, None),
    };
    let process = ProcessId(0);
    let mut result = vec![
        TraceItem::Entity(Entity::Thread(Thread { id: thread, process, tid: 900 })),
        TraceItem::Entity(Entity::Event(Event {
            id: event,
            context,
            handle: 1,
            flags: 0,
            imported: false,
            name: None,
        })),
    ];
    for (at, item) in items.iter().enumerate() {
        result.push(item.clone());
        let TraceItem::Operation(op) = item else { continue };
        let mut call = |offset: u64, action| {
            result.push(TraceItem::Operation(Operation {
                g: OpSeq(op.g.0 + offset),
                exit: Some(OpSeq(op.g.0 + offset + 1)),
                process,
                thread,
                api: "inserted".into(),
                time: None,
                status: Status::SUCCESS,
                action,
                accesses: Vec::new(),
                stack: None,
            }));
        };
        if at == after {
            call(1, action.clone());
        }
        if at == later
            && let Some(action) = &later_action
        {
            call(3, action.clone());
        }
    }
    result
}

fn count(items: &[TraceItem], is_counted: impl Fn(&Entity) -> bool) -> u32 {
    let entities = items.iter().filter(|item| match item {
        TraceItem::Entity(entity) => is_counted(entity),
        _ => false,
    });
    entities.count() as u32
}

/// Other ids, names, handles and addresses for the same program.
#[derive(Clone, Debug)]
pub(crate) struct Renaming {
    keys: Vec<u32>,
    shift: u32,
}

pub(crate) fn renaming() -> impl Strategy<Value = Renaming> {
    (vec(any::<u32>(), 40), any::<u32>()).prop_map(|(keys, shift)| Renaming { keys, shift })
}

impl Renaming {
    /// A permutation of the first `count` ids.
    fn permutation(&self, count: u32) -> Vec<u32> {
        let mut ids: Vec<u32> = (0..count).collect();
        ids.sort_by_key(|&id| self.keys[id as usize % self.keys.len()]);
        ids
    }
}

struct Renamer {
    contexts: Vec<u32>,
    threads: Vec<u32>,
    streams: Vec<u32>,
    events: Vec<u32>,
    allocations: Vec<u32>,
    shift: u64,
}

/// The renamed trace, and what became of the allocations' ids.
pub(crate) fn rename_and_shift(
    items: &[TraceItem],
    renaming: &Renaming,
) -> (Vec<TraceItem>, impl Fn(AllocationId) -> AllocationId) {
    let all = |is_counted: fn(&Entity) -> bool| renaming.permutation(count(items, is_counted));
    let renamer = Renamer {
        contexts: all(|e| matches!(e, Entity::Context(_))),
        threads: all(|e| matches!(e, Entity::Thread(_))),
        streams: all(|e| matches!(e, Entity::Stream(_))),
        events: all(|e| matches!(e, Entity::Event(_))),
        allocations: all(|e| matches!(e, Entity::Allocation(_))),
        shift: u64::from(renaming.shift),
    };
    let renamed = items
        .iter()
        .map(|item| match item {
            TraceItem::Entity(entity) => TraceItem::Entity(renamer.entity(entity)),
            TraceItem::Operation(op) => TraceItem::Operation(Operation {
                thread: renamer.thread(op.thread),
                action: renamer.action(&op.action),
                accesses: op.accesses.iter().map(|access| renamer.access(access)).collect(),
                ..op.clone()
            }),
            other @ (TraceItem::Returned { .. } | TraceItem::Range(_)) => other.clone(),
        })
        .collect();
    (renamed, move |id| renamer.allocation(id))
}

impl Renamer {
    fn context(&self, id: ContextId) -> ContextId {
        ContextId(self.contexts[id.index()])
    }

    fn thread(&self, id: ThreadId) -> ThreadId {
        ThreadId(self.threads[id.index()])
    }

    fn stream(&self, id: StreamId) -> StreamId {
        StreamId(self.streams[id.index()])
    }

    fn event(&self, id: EventId) -> EventId {
        EventId(self.events[id.index()])
    }

    fn allocation(&self, id: AllocationId) -> AllocationId {
        AllocationId(self.allocations[id.index()])
    }

    fn range(&self, range: ByteRange) -> ByteRange {
        ByteRange::new(range.start + self.shift, range.end + self.shift)
    }

    fn access(&self, access: &Access) -> Access {
        let extent = match access.extent {
            Extent::Range(range) => Extent::Range(self.range(range)),
            Extent::Strided(p) => {
                Extent::Strided(StridedPattern { start: p.start + self.shift, ..p })
            }
        };
        Access { allocation: self.allocation(access.allocation), extent, ..access.clone() }
    }

    fn entity(&self, entity: &Entity) -> Entity {
        let mut entity = entity.clone();
        match &mut entity {
            Entity::Thread(x) => x.id = self.thread(x.id),
            Entity::Context(x) => {
                x.id = self.context(x.id);
                x.parent = x.parent.map(|parent| self.context(parent));
                x.handle += self.shift;
            }
            Entity::Stream(x) => {
                x.id = self.stream(x.id);
                x.context = self.context(x.context);
                x.thread = x.thread.map(|thread| self.thread(thread));
                x.name = Some(format!("another stream {:?}", x.id));
            }
            Entity::Event(x) => {
                x.id = self.event(x.id);
                x.context = self.context(x.context);
                x.handle += self.shift;
                x.name = None;
            }
            Entity::Allocation(x) => {
                x.id = self.allocation(x.id);
                x.context = x.context.map(|context| self.context(context));
                x.range = self.range(x.range);
                x.name = Some(format!("another buffer {:?}", x.id));
            }
            Entity::Graph(x) => {
                let graph = Arc::make_mut(x);
                graph.name = None;
                for node in &mut graph.nodes {
                    node.accesses = node.accesses.iter().map(|a| self.access(a)).collect();
                    if let NodeAction::EventRecord { event } | NodeAction::EventWait { event } =
                        &mut node.action
                    {
                        *event = self.event(*event);
                    }
                }
            }
            Entity::Process(_)
            | Entity::Kernel(_)
            | Entity::Module(_)
            | Entity::KernelCode(_)
            | Entity::Frame(_)
            | Entity::Stack(_) => {}
        }
        entity
    }

    fn action(&self, action: &Action) -> Action {
        let mut action = action.clone();
        match &mut action {
            Action::ContextSynchronize { context } => *context = self.context(*context),
            Action::StreamCreate { stream }
            | Action::StreamDestroy { stream }
            | Action::StreamSynchronize { stream }
            | Action::StreamQuery { stream }
            | Action::Copy(Copy { stream, .. })
            | Action::Prefetch { stream }
            | Action::Discard { stream }
            | Action::GraphLaunch { stream, .. }
            | Action::GraphUpload { stream, .. }
            | Action::Memset { stream, .. } => *stream = self.stream(*stream),
            Action::Launch { stream, event, .. } => {
                *stream = self.stream(*stream);
                if let Some((event, _)) = event {
                    *event = self.event(*event);
                }
            }
            Action::Batch(batch) => {
                let batch = Arc::make_mut(batch);
                batch.stream = self.stream(batch.stream);
                for entry in &mut batch.entries {
                    entry.copy.stream = batch.stream;
                }
            }
            Action::EventCreate { event }
            | Action::EventDestroy { event }
            | Action::EventSynchronize { event }
            | Action::EventQuery { event } => *event = self.event(*event),
            Action::EventRecord { event, stream } | Action::StreamWaitEvent { event, stream } => {
                *event = self.event(*event);
                *stream = self.stream(*stream);
            }
            Action::ContextRecordEvent { context, event }
            | Action::ContextWaitEvent { context, event } => {
                *context = self.context(*context);
                *event = self.event(*event);
            }
            Action::EventElapsedTime { start, end } => {
                *start = self.event(*start);
                *end = self.event(*end);
            }
            Action::Allocate { allocation, stream } | Action::Free { allocation, stream } => {
                *allocation = self.allocation(*allocation);
                *stream = stream.map(|stream| self.stream(stream));
            }
            Action::Signals(signals) => {
                let stream = self.stream(signals.stream);
                let signals = Arc::make_mut(signals);
                signals.stream = stream;
                for operation in &mut signals.operations {
                    let (SignalOperation::Signal { object, .. }
                    | SignalOperation::Wait { object, .. }) = operation;
                    if let SignalObject::Memory { allocation, address, .. } = object {
                        *allocation = self.allocation(*allocation);
                        *address += self.shift;
                    }
                }
            }
            Action::HostAccess
            | Action::Other
            | Action::HostRelease { .. }
            | Action::HostAcquire { .. }
            | Action::GraphInstantiate { .. }
            | Action::GraphUpdate { .. } => {}
            other => unreachable!("random programs have no {other:?}"),
        }
        action
    }
}
