//! Parts of operations and graph nodes as columns: entries of a batch, kernels of a launch on
//! several devices, streams of a group of collective operations, stream memory operations, and the
//! actions of graph nodes.

use crate::action::{control, control_flags, copy_flags, source_order};
use crate::schema::flag;
use streamsan_model::{
    AllocationId, BatchEntry, ConditionalKind, Copy, EventId, GraphId, KernelId, MemberCollective,
    MemberLaunch, MemoryKind, NodeAction, SemaphoreId, SignalObject, SignalOperation, StreamId,
    ValueCompare,
};

/// Words of the part codes, in their order.
pub(crate) const PART_KINDS: [&str; 5] = ["copy", "kernel", "signal", "wait", "collective"];

/// Words of the codes of node actions, in their order.
pub(crate) const NODE_ACTIONS: [&str; 13] = [
    "empty",
    "kernel",
    "copy",
    "memset",
    "host function",
    "event record",
    "event wait",
    "allocate",
    "free",
    "child graph",
    "conditional",
    "signals",
    "unknown",
];

/// A signal releases earlier work.
const RELEASES: i64 = 1;

/// The columns of a part behind its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartColumns(pub(crate) [Option<i64>; PartColumns::WIDTH]);

/// Positions in [`PartColumns`].
mod at {
    pub(super) const KIND: usize = 0;
    pub(super) const STREAM: usize = 1;
    pub(super) const KERNEL: usize = 2;
    pub(super) const SOURCE: usize = 3;
    pub(super) const DESTINATION: usize = 4;
    pub(super) const BYTES: usize = 5;
    pub(super) const FLAGS: usize = 6;
    pub(super) const ACCESSES: usize = 7;
    pub(super) const ALLOCATION: usize = 8;
    pub(super) const ADDRESS: usize = 9;
    pub(super) const WIDTH: usize = 10;
    pub(super) const SEMAPHORE: usize = 11;
    pub(super) const VALUE: usize = 12;
    pub(super) const COMPARE: usize = 13;
}

type Misfit = &'static str;

fn kind(value: Option<i64>, name: Misfit) -> Result<MemoryKind, Misfit> {
    value.and_then(|v| MemoryKind::ALL.get(usize::try_from(v).ok()?).copied()).ok_or(name)
}

fn small(value: Option<i64>, name: Misfit) -> Result<u32, Misfit> {
    value.and_then(|v| u32::try_from(v).ok()).ok_or(name)
}

impl PartColumns {
    pub(crate) const WIDTH: usize = 14;

    /// The stream and the allocation that it refers to, as [`ActionColumns::referred`] tells them.
    ///
    /// [`ActionColumns::referred`]: crate::action::ActionColumns::referred
    pub(crate) fn referred(&self) -> impl Iterator<Item = (usize, i64)> {
        let ids = [(0, self.0[at::STREAM]), (2, self.0[at::ALLOCATION])];
        ids.into_iter().filter_map(|(table, id)| Some((table, id?)))
    }

    fn new(kind: i64, flags: i64) -> Self {
        let mut columns = Self::default();
        columns.0[at::KIND] = Some(kind);
        columns.0[at::FLAGS] = Some(flags);
        columns
    }

    pub(crate) fn of_entry(entry: &BatchEntry) -> Self {
        let mut columns = Self::new(0, copy_flags(&entry.copy));
        columns.0[at::SOURCE] = Some(entry.copy.source as i64);
        columns.0[at::DESTINATION] = Some(entry.copy.destination as i64);
        columns.0[at::BYTES] = Some(entry.copy.bytes as i64);
        columns.0[at::ACCESSES] = Some(i64::from(entry.accesses));
        columns
    }

    pub(crate) fn of_member(member: &MemberLaunch) -> Self {
        let mut columns = Self::new(1, 0);
        columns.0[at::STREAM] = Some(i64::from(member.stream.0));
        columns.0[at::KERNEL] = Some(i64::from(member.kernel.0));
        columns.0[at::ACCESSES] = Some(i64::from(member.accesses));
        columns
    }

    pub(crate) fn of_collective(member: &MemberCollective) -> Self {
        let mut columns = Self::new(4, 0);
        columns.0[at::STREAM] = Some(i64::from(member.stream.0));
        columns.0[at::ACCESSES] = Some(i64::from(member.accesses));
        columns
    }

    pub(crate) fn of_signal(operation: &SignalOperation) -> Self {
        let (mut columns, object, value) = match *operation {
            SignalOperation::Signal { object, value, releases } => {
                (Self::new(2, if releases { RELEASES } else { 0 }), object, value)
            }
            SignalOperation::Wait { object, value, compare } => {
                let mut columns = Self::new(3, 0);
                columns.0[at::COMPARE] = Some(compare as i64);
                (columns, object, value)
            }
        };
        match object {
            SignalObject::Memory { allocation, address, width } => {
                columns.0[at::ALLOCATION] = Some(i64::from(allocation.0));
                columns.0[at::ADDRESS] = Some(address as i64);
                columns.0[at::WIDTH] = Some(i64::from(width));
            }
            SignalObject::Semaphore(semaphore) => {
                columns.0[at::SEMAPHORE] = Some(i64::from(semaphore.0));
            }
        }
        columns.0[at::VALUE] = Some(value as i64);
        columns
    }

    pub(crate) fn entry(&self, stream: StreamId) -> Result<BatchEntry, Misfit> {
        let flags = self.0[at::FLAGS].unwrap_or(0);
        Ok(BatchEntry {
            copy: Copy {
                stream,
                synchronous: flags & flag::SYNCHRONOUS != 0,
                source: kind(self.0[at::SOURCE], "op_part.source")?,
                destination: kind(self.0[at::DESTINATION], "op_part.destination")?,
                peer: None,
                bytes: self.0[at::BYTES].ok_or("op_part.bytes")? as u64,
                source_order: source_order(flags),
                sync_memops: flags & flag::SYNC_MEMOPS != 0,
            },
            accesses: small(self.0[at::ACCESSES], "op_part.accesses")?,
        })
    }

    pub(crate) fn member(&self) -> Result<MemberLaunch, Misfit> {
        Ok(MemberLaunch {
            stream: StreamId(small(self.0[at::STREAM], "op_part.stream")?),
            kernel: KernelId(small(self.0[at::KERNEL], "op_part.kernel")?),
            accesses: small(self.0[at::ACCESSES], "op_part.accesses")?,
        })
    }

    pub(crate) fn collective(&self) -> Result<MemberCollective, Misfit> {
        Ok(MemberCollective {
            stream: StreamId(small(self.0[at::STREAM], "op_part.stream")?),
            accesses: small(self.0[at::ACCESSES], "op_part.accesses")?,
        })
    }

    pub(crate) fn signal(&self) -> Result<SignalOperation, Misfit> {
        let object = match self.0[at::SEMAPHORE] {
            Some(_) => SignalObject::Semaphore(SemaphoreId(small(
                self.0[at::SEMAPHORE],
                "op_part.semaphore",
            )?)),
            None => SignalObject::Memory {
                allocation: AllocationId(small(self.0[at::ALLOCATION], "op_part.allocation")?),
                address: self.0[at::ADDRESS].ok_or("op_part.address")? as u64,
                width: small(self.0[at::WIDTH], "op_part.width")?
                    .try_into()
                    .map_err(|_| "op_part.width")?,
            },
        };
        let value = self.0[at::VALUE].ok_or("op_part.value")? as u64;
        match self.0[at::KIND] {
            Some(2) => Ok(SignalOperation::Signal {
                object,
                value,
                releases: self.0[at::FLAGS] == Some(RELEASES),
            }),
            Some(3) => {
                let code = small(self.0[at::COMPARE], "op_part.compare")? as usize;
                let compare = ValueCompare::ALL.get(code).copied().ok_or("op_part.compare")?;
                Ok(SignalOperation::Wait { object, value, compare })
            }
            _ => Err("op_part.kind"),
        }
    }
}

/// The columns of `graph_node` from `action` on, and what lies in the tables beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeColumns {
    pub(crate) action: i64,
    pub(crate) kernel: Option<i64>,
    pub(crate) event: Option<i64>,
    pub(crate) allocation: Option<i64>,
    pub(crate) source: Option<i64>,
    pub(crate) destination: Option<i64>,
    pub(crate) bytes: Option<i64>,
    pub(crate) flags: i64,
    pub(crate) other: Option<i64>,
    pub(crate) bodies: Vec<GraphId>,
    pub(crate) parts: Vec<PartColumns>,
}

impl From<&NodeAction> for NodeColumns {
    fn from(action: &NodeAction) -> Self {
        let number = |n: u32| Some(i64::from(n));
        let none = Self::default();
        match action {
            NodeAction::Empty => none,
            NodeAction::Kernel { kernel, control } => {
                Self { action: 1, kernel: number(kernel.0), flags: control_flags(*control), ..none }
            }
            NodeAction::Copy(copy) => Self {
                action: 2,
                source: Some(copy.source as i64),
                destination: Some(copy.destination as i64),
                bytes: Some(copy.bytes as i64),
                flags: copy_flags(copy),
                ..none
            },
            NodeAction::Memset { destination } => {
                Self { action: 3, destination: Some(*destination as i64), ..none }
            }
            NodeAction::HostFunction => Self { action: 4, ..none },
            NodeAction::EventRecord { event } => Self { action: 5, event: number(event.0), ..none },
            NodeAction::EventWait { event } => Self { action: 6, event: number(event.0), ..none },
            NodeAction::Allocate { allocation } => {
                Self { action: 7, allocation: number(allocation.0), ..none }
            }
            NodeAction::Free { allocation } => {
                Self { action: 8, allocation: number(allocation.0), ..none }
            }
            NodeAction::Child { graph } => Self { action: 9, bodies: vec![*graph], ..none },
            NodeAction::Conditional { kind, bodies } => {
                Self { action: 10, other: Some(*kind as i64), bodies: bodies.clone(), ..none }
            }
            NodeAction::Signals { operations } => Self {
                action: 11,
                parts: operations.iter().map(PartColumns::of_signal).collect(),
                ..none
            },
            NodeAction::Unknown { kind } => {
                Self { action: 12, other: Some(i64::from(*kind)), ..none }
            }
        }
    }
}

impl NodeColumns {
    /// The action, or which column does not fit it. Copies are those of `stream`, which has no
    /// meaning in a graph.
    pub(crate) fn decode(&self) -> Result<NodeAction, Misfit> {
        let event = || small(self.event, "graph_node.event").map(EventId);
        let allocation = || small(self.allocation, "graph_node.allocation").map(AllocationId);
        Ok(match self.action {
            0 => NodeAction::Empty,
            1 => NodeAction::Kernel {
                kernel: KernelId(small(self.kernel, "graph_node.kernel")?),
                control: control(self.flags),
            },
            2 => NodeAction::Copy(Copy {
                stream: StreamId(0),
                synchronous: self.flags & flag::SYNCHRONOUS != 0,
                source: kind(self.source, "graph_node.source")?,
                destination: kind(self.destination, "graph_node.destination")?,
                peer: None,
                bytes: self.bytes.ok_or("graph_node.bytes")? as u64,
                source_order: source_order(self.flags),
                sync_memops: self.flags & flag::SYNC_MEMOPS != 0,
            }),
            3 => NodeAction::Memset {
                destination: kind(self.destination, "graph_node.destination")?,
            },
            4 => NodeAction::HostFunction,
            5 => NodeAction::EventRecord { event: event()? },
            6 => NodeAction::EventWait { event: event()? },
            7 => NodeAction::Allocate { allocation: allocation()? },
            8 => NodeAction::Free { allocation: allocation()? },
            9 => NodeAction::Child { graph: *self.bodies.first().ok_or("graph_body.body")? },
            10 => NodeAction::Conditional {
                kind: usize::try_from(self.other.unwrap_or(-1))
                    .ok()
                    .and_then(|code| ConditionalKind::ALL.get(code).copied())
                    .ok_or("graph_node.other")?,
                bodies: self.bodies.clone(),
            },
            11 => NodeAction::Signals {
                operations: self.parts.iter().map(PartColumns::signal).collect::<Result<_, _>>()?,
            },
            12 => NodeAction::Unknown {
                kind: self.other.and_then(|k| i32::try_from(k).ok()).ok_or("graph_node.other")?,
            },
            _ => return Err("graph_node.action"),
        })
    }
}
