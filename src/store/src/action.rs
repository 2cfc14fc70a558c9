//! Actions as columns of `op`.

use crate::part::PartColumns;
use crate::schema::flag;
use std::sync::Arc;
use streamsan_model::{
    Action, AllocationId, Attachment, Batch, CollectiveGroup, ContextId, Copy, EventId,
    ExecutableId, FileBatchId, GraphId, GridControl, KernelId, LaunchEventKind, MemoryKind,
    MultiDeviceLaunch, OpGroup, OpSeq, Signals, SourceOrder, StreamId, SyncObject, Trigger,
};

/// The code of [`Action::StreamCreate`].
pub(crate) const STREAM_CREATE: i64 = 6;

/// Words of the action codes, in their order.
pub(crate) const ACTIONS: [&str; 45] = [
    "other",
    "context create",
    "context destroy",
    "context synchronize",
    "context record event",
    "context wait event",
    "stream create",
    "stream destroy",
    "stream synchronize",
    "stream query",
    "stream wait event",
    "event create",
    "event destroy",
    "event record",
    "event synchronize",
    "event query",
    "event elapsed time",
    "allocate",
    "free",
    "launch",
    "copy",
    "memset",
    "host function",
    "host function run",
    "host access",
    "launch on several devices",
    "batch of copies",
    "prefetch",
    "discard",
    "attach",
    "signals",
    "graph instantiate",
    "graph update",
    "graph launch",
    "graph upload",
    "graph destroy",
    "captured",
    "stream handed out",
    "file transfer",
    "file batch submit",
    "file batch complete",
    "host release",
    "host acquire",
    "collective",
    "collective group",
];

/// Colour groups of the action codes, in their order.
pub(crate) const GROUPS: [OpGroup; ACTIONS.len()] = {
    use OpGroup::{Copy, Host, Kernel, Memory, Memset, Other, Synchronisation};
    let mut groups = [Other; ACTIONS.len()];
    let mut code = 0;
    while code < groups.len() {
        groups[code] = match code {
            3 | 4 | 5 | 8 | 10 | 13 | 14 | 30 | 40..=42 => Synchronisation,
            17 | 18 | 27..=29 => Memory,
            19 | 25 | 33 | 43 | 44 => Kernel,
            20 | 26 | 38 => Copy,
            21 => Memset,
            22..=24 | 39 => Host,
            _ => Other,
        };
        code += 1;
    }
    groups
};

/// Colour group of an action with the kinds of memory that it copies between; `None` for a code that
/// is none.
pub(crate) fn group(action: i64, source: Option<i64>, destination: Option<i64>) -> Option<OpGroup> {
    let is_host = |code: Option<i64>| {
        let kind = code.and_then(|code| MemoryKind::ALL.get(usize::try_from(code).ok()?).copied());
        kind.is_some_and(MemoryKind::is_host)
    };
    let group = *GROUPS.get(usize::try_from(action).ok()?)?;
    Some(match (group, is_host(source), is_host(destination)) {
        (OpGroup::Copy, true, false) => OpGroup::Upload,
        (OpGroup::Copy, false, true) => OpGroup::Download,
        _ => group,
    })
}

/// The code of the question how much time lies between two events.
const ELAPSED_TIME: i64 = 16;

/// The columns of `op` that hold its action. Whether a column is NULL follows from the action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ActionColumns {
    pub(crate) action: i64,
    pub(crate) stream: Option<i64>,
    pub(crate) context: Option<i64>,
    pub(crate) event: Option<i64>,
    pub(crate) allocation: Option<i64>,
    pub(crate) kernel: Option<i64>,
    pub(crate) other: Option<i64>,
    pub(crate) source: Option<i64>,
    pub(crate) destination: Option<i64>,
    pub(crate) bytes: Option<i64>,
    pub(crate) flags: i64,
    pub(crate) graph: Option<i64>,
}

fn bit(set: bool, flag: i64) -> i64 {
    if set { flag } else { 0 }
}

/// The bits of `flags` for a kernel's programmatic dependent launch: how it waits and triggers.
pub(crate) fn control_flags(control: GridControl) -> i64 {
    bit(control.waits, flag::WAITS_FOR_PROGRAMMATIC)
        | match control.trigger {
            Trigger::AtEnd => 0,
            Trigger::BehindWait => flag::TRIGGERS_BEHIND_WAIT,
            Trigger::Early => flag::TRIGGERS_EARLY,
        }
        | i64::from(control.early) << flag::EARLY_ACCESSES
}

/// The bits that [`control_flags`] uses.
pub(crate) const CONTROL_FLAGS: i64 =
    flag::WAITS_FOR_PROGRAMMATIC | flag::TRIGGERS_BEHIND_WAIT | flag::TRIGGERS_EARLY | !OTHER_FLAGS;

/// The bits below the number of early accesses.
pub(crate) const OTHER_FLAGS: i64 = (1 << flag::EARLY_ACCESSES) - 1;

/// How a kernel waits and triggers, from the bits of `flags`.
pub(crate) fn control(flags: i64) -> GridControl {
    GridControl {
        waits: flags & flag::WAITS_FOR_PROGRAMMATIC != 0,
        early: (flags >> flag::EARLY_ACCESSES) as u32,
        trigger: match flags {
            _ if flags & flag::TRIGGERS_BEHIND_WAIT != 0 => Trigger::BehindWait,
            _ if flags & flag::TRIGGERS_EARLY != 0 => Trigger::Early,
            _ => Trigger::AtEnd,
        },
    }
}

/// The bits of `flags` for a copy.
pub(crate) fn copy_flags(copy: &Copy) -> i64 {
    bit(copy.synchronous, flag::SYNCHRONOUS)
        | bit(copy.sync_memops, flag::SYNC_MEMOPS)
        | match copy.source_order {
            SourceOrder::Stream => 0,
            SourceOrder::DuringCall => flag::SOURCE_DURING_CALL,
            SourceOrder::Any => flag::SOURCE_ANY_TIME,
        }
}

/// The source order in `flags`.
pub(crate) fn source_order(flags: i64) -> SourceOrder {
    match flags {
        f if f & flag::SOURCE_DURING_CALL != 0 => SourceOrder::DuringCall,
        f if f & flag::SOURCE_ANY_TIME != 0 => SourceOrder::Any,
        _ => SourceOrder::Stream,
    }
}

impl From<&Action> for ActionColumns {
    fn from(action: &Action) -> Self {
        let stream = |s: StreamId| Some(i64::from(s.0));
        let context = |c: ContextId| Some(i64::from(c.0));
        let event = |e: EventId| Some(i64::from(e.0));
        let allocation = |a: AllocationId| Some(i64::from(a.0));
        let number = |n: u32| Some(i64::from(n));
        let none = Self::default();
        match *action {
            Action::Other => none,
            Action::ContextCreate { context: c } => Self { action: 1, context: context(c), ..none },
            Action::ContextDestroy { context: c } => {
                Self { action: 2, context: context(c), ..none }
            }
            Action::ContextSynchronize { context: c } => {
                Self { action: 3, context: context(c), ..none }
            }
            Action::ContextRecordEvent { context: c, event: e } => {
                Self { action: 4, context: context(c), event: event(e), ..none }
            }
            Action::ContextWaitEvent { context: c, event: e } => {
                Self { action: 5, context: context(c), event: event(e), ..none }
            }
            Action::StreamCreate { stream: s } => {
                Self { action: STREAM_CREATE, stream: stream(s), ..none }
            }
            Action::StreamDestroy { stream: s } => Self { action: 7, stream: stream(s), ..none },
            Action::StreamSynchronize { stream: s } => {
                Self { action: 8, stream: stream(s), ..none }
            }
            Action::StreamQuery { stream: s } => Self { action: 9, stream: stream(s), ..none },
            Action::StreamWaitEvent { stream: s, event: e } => {
                Self { action: 10, stream: stream(s), event: event(e), ..none }
            }
            Action::EventCreate { event: e } => Self { action: 11, event: event(e), ..none },
            Action::EventDestroy { event: e } => Self { action: 12, event: event(e), ..none },
            Action::EventRecord { event: e, stream: s } => {
                Self { action: 13, stream: stream(s), event: event(e), ..none }
            }
            Action::EventSynchronize { event: e } => Self { action: 14, event: event(e), ..none },
            Action::EventQuery { event: e } => Self { action: 15, event: event(e), ..none },
            Action::EventElapsedTime { start, end } => {
                Self { action: ELAPSED_TIME, event: event(start), other: event(end), ..none }
            }
            Action::Allocate { allocation: a, stream: s } => {
                Self { action: 17, allocation: allocation(a), stream: s.and_then(stream), ..none }
            }
            Action::Free { allocation: a, stream: s } => {
                Self { action: 18, allocation: allocation(a), stream: s.and_then(stream), ..none }
            }
            Action::Launch {
                stream: s,
                kernel,
                programmatic,
                control,
                cooperative,
                event: recorded,
            } => Self {
                action: 19,
                stream: stream(s),
                kernel: Some(i64::from(kernel.0)),
                flags: bit(programmatic, flag::PROGRAMMATIC)
                    | control_flags(control)
                    | bit(cooperative, flag::COOPERATIVE)
                    | match recorded {
                        None => 0,
                        Some((_, LaunchEventKind::Programmatic)) => flag::PROGRAMMATIC_EVENT,
                        Some((_, LaunchEventKind::BlockStart)) => flag::BLOCK_START_EVENT,
                        Some((_, LaunchEventKind::LaunchCompletion)) => flag::COMPLETION_EVENT,
                    },
                event: recorded.and_then(|(e, _)| event(e)),
                ..none
            },
            Action::Copy(copy) => Self {
                action: 20,
                stream: stream(copy.stream),
                context: copy.peer.and_then(|(source, _)| context(source)),
                other: copy.peer.and_then(|(_, destination)| context(destination)),
                source: Some(copy.source as i64),
                destination: Some(copy.destination as i64),
                bytes: Some(copy.bytes as i64),
                flags: copy_flags(&copy),
                ..none
            },
            Action::Memset { stream: s, synchronous, destination, sync_memops } => Self {
                action: 21,
                stream: stream(s),
                destination: Some(destination as i64),
                flags: bit(synchronous, flag::SYNCHRONOUS) | bit(sync_memops, flag::SYNC_MEMOPS),
                ..none
            },
            Action::HostFunction { stream: s } => Self { action: 22, stream: stream(s), ..none },
            Action::HostFunctionRun { enqueued } => {
                Self { action: 23, other: Some(enqueued.0 as i64), ..none }
            }
            Action::HostAccess => Self { action: 24, ..none },
            Action::LaunchMultiDevice(ref launch) => Self {
                action: 25,
                flags: bit(launch.waits_before, flag::WAITS_BEFORE)
                    | bit(launch.holds_back_after, flag::HOLDS_BACK_AFTER),
                ..none
            },
            Action::Batch(ref batch) => Self { action: 26, stream: stream(batch.stream), ..none },
            Action::Prefetch { stream: s } => Self { action: 27, stream: stream(s), ..none },
            Action::Discard { stream: s } => Self { action: 28, stream: stream(s), ..none },
            Action::Attach { stream: s, allocation: a, attachment } => Self {
                action: 29,
                stream: stream(s),
                allocation: allocation(a),
                other: Some(attachment as i64),
                ..none
            },
            Action::Signals(ref signals) => {
                Self { action: 30, stream: stream(signals.stream), ..none }
            }
            Action::GraphInstantiate { executable, graph } => {
                Self { action: 31, other: number(executable.0), graph: number(graph.0), ..none }
            }
            Action::GraphUpdate { executable, graph } => {
                Self { action: 32, other: number(executable.0), graph: number(graph.0), ..none }
            }
            Action::GraphLaunch { stream: s, executable, graph } => Self {
                action: 33,
                stream: stream(s),
                other: number(executable.0),
                graph: number(graph.0),
                ..none
            },
            Action::GraphUpload { stream: s, executable } => {
                Self { action: 34, stream: stream(s), other: number(executable.0), ..none }
            }
            Action::GraphDestroy { executable } => {
                Self { action: 35, other: number(executable.0), ..none }
            }
            Action::Captured { stream: s } => Self { action: 36, stream: stream(s), ..none },
            Action::StreamHandedOut { stream: s } => Self { action: 37, stream: stream(s), ..none },
            Action::FileTransfer { stream: s } => Self { action: 38, stream: stream(s), ..none },
            Action::Collective { stream: s } => Self { action: 43, stream: stream(s), ..none },
            Action::CollectiveGroup(_) => Self { action: 44, ..none },
            Action::FileBatchSubmit { batch } => {
                Self { action: 39, other: number(batch.0), ..none }
            }
            Action::FileBatchComplete { batch } => {
                Self { action: 40, other: number(batch.0), ..none }
            }
            Action::HostRelease { object } => {
                Self { action: 41, other: Some(object.0 as i64), ..none }
            }
            Action::HostAcquire { object } => {
                Self { action: 42, other: Some(object.0 as i64), ..none }
            }
        }
    }
}

impl ActionColumns {
    /// Whether the action has rows in `op_part`.
    pub(crate) fn has_parts(&self) -> bool {
        matches!(self.action, 25 | 26 | 30 | 44)
    }

    /// The streams (0), events (1) and allocations (2) that it refers to, beside those of its parts.
    pub(crate) fn referred(&self) -> impl Iterator<Item = (usize, i64)> + use<> {
        let second = self.other.filter(|_| self.action == ELAPSED_TIME);
        let ids = [(0, self.stream), (1, self.event), (1, second), (2, self.allocation)];
        ids.into_iter().filter_map(|(table, id)| Some((table, id?)))
    }

    /// The action, or which column does not fit it.
    pub(crate) fn decode(&self, parts: &[PartColumns]) -> Result<Action, &'static str> {
        fn id<T>(
            value: Option<i64>,
            new: fn(u32) -> T,
            name: &'static str,
        ) -> Result<T, &'static str> {
            value.and_then(|v| u32::try_from(v).ok()).map(new).ok_or(name)
        }
        fn kind(value: Option<i64>, name: &'static str) -> Result<MemoryKind, &'static str> {
            value.and_then(|v| MemoryKind::ALL.get(usize::try_from(v).ok()?).copied()).ok_or(name)
        }
        let stream = || id(self.stream, StreamId, "op.stream");
        let context = || id(self.context, ContextId, "op.context");
        let event = || id(self.event, EventId, "op.event");
        let allocation = || id(self.allocation, AllocationId, "op.allocation");
        let executable = || id(self.other, ExecutableId, "op.other");
        let graph = || id(self.graph, GraphId, "op.graph");
        let object = || self.other.map(|o| SyncObject(o as u64)).ok_or("op.other");
        let has = |flag: i64| self.flags & flag != 0;
        Ok(match self.action {
            0 => Action::Other,
            1 => Action::ContextCreate { context: context()? },
            2 => Action::ContextDestroy { context: context()? },
            3 => Action::ContextSynchronize { context: context()? },
            4 => Action::ContextRecordEvent { context: context()?, event: event()? },
            5 => Action::ContextWaitEvent { context: context()?, event: event()? },
            STREAM_CREATE => Action::StreamCreate { stream: stream()? },
            7 => Action::StreamDestroy { stream: stream()? },
            8 => Action::StreamSynchronize { stream: stream()? },
            9 => Action::StreamQuery { stream: stream()? },
            10 => Action::StreamWaitEvent { stream: stream()?, event: event()? },
            11 => Action::EventCreate { event: event()? },
            12 => Action::EventDestroy { event: event()? },
            13 => Action::EventRecord { event: event()?, stream: stream()? },
            14 => Action::EventSynchronize { event: event()? },
            15 => Action::EventQuery { event: event()? },
            16 => Action::EventElapsedTime {
                start: event()?,
                end: id(self.other, EventId, "op.other")?,
            },
            17 => Action::Allocate {
                allocation: allocation()?,
                stream: self.stream.map(|_| stream()).transpose()?,
            },
            18 => Action::Free {
                allocation: allocation()?,
                stream: self.stream.map(|_| stream()).transpose()?,
            },
            19 => Action::Launch {
                stream: stream()?,
                kernel: id(self.kernel, KernelId, "op.kernel")?,
                programmatic: has(flag::PROGRAMMATIC),
                control: control(self.flags),
                cooperative: has(flag::COOPERATIVE),
                event: match self.event {
                    None => None,
                    Some(_) if has(flag::COMPLETION_EVENT) => {
                        Some((event()?, LaunchEventKind::LaunchCompletion))
                    }
                    Some(_) if has(flag::BLOCK_START_EVENT) => {
                        Some((event()?, LaunchEventKind::BlockStart))
                    }
                    Some(_) => Some((event()?, LaunchEventKind::Programmatic)),
                },
            },
            20 => Action::Copy(Copy {
                stream: stream()?,
                synchronous: has(flag::SYNCHRONOUS),
                source: kind(self.source, "op.source")?,
                destination: kind(self.destination, "op.destination")?,
                peer: match self.context {
                    Some(_) => Some((context()?, id(self.other, ContextId, "op.other")?)),
                    None => None,
                },
                bytes: self.bytes.ok_or("op.bytes")? as u64,
                source_order: source_order(self.flags),
                sync_memops: has(flag::SYNC_MEMOPS),
            }),
            21 => Action::Memset {
                stream: stream()?,
                synchronous: has(flag::SYNCHRONOUS),
                destination: kind(self.destination, "op.destination")?,
                sync_memops: has(flag::SYNC_MEMOPS),
            },
            22 => Action::HostFunction { stream: stream()? },
            23 => Action::HostFunctionRun { enqueued: OpSeq(self.other.ok_or("op.other")? as u64) },
            24 => Action::HostAccess,
            25 => Action::LaunchMultiDevice(Arc::new(MultiDeviceLaunch {
                waits_before: has(flag::WAITS_BEFORE),
                holds_back_after: has(flag::HOLDS_BACK_AFTER),
                launches: parts.iter().map(PartColumns::member).collect::<Result<_, _>>()?,
            })),
            26 => {
                let stream = stream()?;
                let entries = parts.iter().map(|part| part.entry(stream));
                Action::Batch(Arc::new(Batch {
                    stream,
                    entries: entries.collect::<Result<_, _>>()?,
                }))
            }
            27 => Action::Prefetch { stream: stream()? },
            28 => Action::Discard { stream: stream()? },
            29 => Action::Attach {
                stream: stream()?,
                allocation: allocation()?,
                attachment: usize::try_from(self.other.unwrap_or(-1))
                    .ok()
                    .and_then(|code| Attachment::ALL.get(code).copied())
                    .ok_or("op.other")?,
            },
            30 => Action::Signals(Arc::new(Signals {
                stream: stream()?,
                operations: parts.iter().map(PartColumns::signal).collect::<Result<_, _>>()?,
            })),
            31 => Action::GraphInstantiate { executable: executable()?, graph: graph()? },
            32 => Action::GraphUpdate { executable: executable()?, graph: graph()? },
            33 => Action::GraphLaunch {
                stream: stream()?,
                executable: executable()?,
                graph: graph()?,
            },
            34 => Action::GraphUpload { stream: stream()?, executable: executable()? },
            35 => Action::GraphDestroy { executable: executable()? },
            36 => Action::Captured { stream: stream()? },
            37 => Action::StreamHandedOut { stream: stream()? },
            38 => Action::FileTransfer { stream: stream()? },
            39 => Action::FileBatchSubmit { batch: id(self.other, FileBatchId, "op.other")? },
            40 => Action::FileBatchComplete { batch: id(self.other, FileBatchId, "op.other")? },
            41 => Action::HostRelease { object: object()? },
            42 => Action::HostAcquire { object: object()? },
            43 => Action::Collective { stream: stream()? },
            44 => Action::CollectiveGroup(Arc::new(CollectiveGroup {
                members: parts.iter().map(PartColumns::collective).collect::<Result<_, _>>()?,
            })),
            _ => return Err("op.action"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored words are those of the model.
    #[test]
    fn words_are_those_of_the_model() {
        let stream = StreamId(0);
        for action in [
            Action::Other,
            Action::HostFunction { stream },
            Action::HostAccess,
            Action::Prefetch { stream },
            Action::GraphDestroy { executable: ExecutableId(0) },
            Action::HostAcquire { object: SyncObject(1) },
        ] {
            let columns = ActionColumns::from(&action);
            assert_eq!(ACTIONS[columns.action as usize], action.description());
            assert_eq!(GROUPS[columns.action as usize], action.group(), "{action:?}");
            assert_eq!(columns.decode(&[]), Ok(action));
        }
    }
}
