//! Synchronisation edges, as the engine derives them and the trace keeps them.

use crate::OpSeq;
use serde::{Deserialize, Serialize};

/// How far an ordering can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Tier {
    /// NVIDIA's documentation guarantees the order.
    Documented,
    /// The documentation says only that the call may synchronise, or drivers synchronise without a
    /// promise.
    Incidental,
}

impl Tier {
    /// The word that reports print.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Documented => "documented",
            Self::Incidental => "incidental",
        }
    }
}

/// The cause of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EdgeKind {
    /// An event's record to a stream's or context's wait on it.
    EventWait,
    /// An event's record to the host that synchronised with or successfully queried it.
    EventHost,
    /// The last operation of a stream to the host that synchronised with or queried the stream.
    StreamHost,
    /// The operations of a context to the host that synchronised with it.
    ContextHost,
    /// Legacy default stream to blocking stream, or the other way.
    LegacyBarrier,
    /// A call that blocks the host until its own operation is done.
    Blocking,
    /// An operation to the host function behind it, and the function to what follows.
    HostFunction,
    /// A peer copy and the work of the two devices around it.
    PeerCopy,
    /// A launch of an executable graph to the next one.
    GraphLaunch,
    /// A stream memory operation or semaphore signal to the wait that it satisfies.
    Signal,
    /// The streams of a launch on several devices.
    MultiDeviceLaunch,
    /// Host thread to host thread.
    HostThreads,
    /// A batch of file transfers to the host that saw it complete.
    FileBatch,
    /// A stream's former user to its next user, where a stream pool handed the stream out again.
    StreamPool,
    /// The streams of a group of collective operations.
    CollectiveGroup,
}

impl EdgeKind {
    /// All kinds, in the order of their stored codes.
    pub const ALL: [Self; 15] = [
        Self::EventWait,
        Self::EventHost,
        Self::StreamHost,
        Self::ContextHost,
        Self::LegacyBarrier,
        Self::Blocking,
        Self::HostFunction,
        Self::PeerCopy,
        Self::GraphLaunch,
        Self::Signal,
        Self::MultiDeviceLaunch,
        Self::HostThreads,
        Self::FileBatch,
        Self::StreamPool,
        Self::CollectiveGroup,
    ];

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::EventWait => "event wait",
            Self::EventHost => "event to host",
            Self::StreamHost => "stream to host",
            Self::ContextHost => "context to host",
            Self::LegacyBarrier => "legacy stream barrier",
            Self::Blocking => "blocking call",
            Self::HostFunction => "host function",
            Self::PeerCopy => "peer copy",
            Self::GraphLaunch => "graph launch",
            Self::Signal => "signal",
            Self::MultiDeviceLaunch => "multi-device launch",
            Self::HostThreads => "host threads",
            Self::FileBatch => "file batch",
            Self::StreamPool => "stream pool",
            Self::CollectiveGroup => "collective group",
        }
    }
}

/// `from` happens before `to`. An edge to the host puts `from` before everything that is issued
/// after `to` returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Edge {
    /// The earlier operation.
    pub from: OpSeq,
    /// The later operation.
    pub to: OpSeq,
    /// The cause of the edge.
    pub kind: EdgeKind,
    /// How far the order can be relied on.
    pub tier: Tier,
}
