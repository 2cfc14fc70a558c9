//! Findings: pairs of conflicting accesses without an order, and calls that cannot have the effect
//! that they seem to have.

use crate::{Access, AllocationId, ByteRange, Fingerprint, OpSeq, StackId, StreamId};
use serde::{Deserialize, Serialize};

macro_rules! words {
    ($name:ident { $($variant:ident => $word:literal),* $(,)? }) => {
        impl $name {
            /// All values, in the order of their stored codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The stable id that reports, suppressions and exports use.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(s: &str) -> Result<Self, ()> {
                match s {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(()),
                }
            }
        }
    };
}

/// The class of a mistake; each has a stable id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaceClass {
    /// Nothing orders the two streams.
    MissingWait,
    /// The awaited record was made before the conflicting operation: the event was not recorded
    /// again, or only after the wait.
    StaleWait,
    /// The awaited event was recorded on another stream.
    WrongStreamWait,
    /// The event was recorded again elsewhere before it was waited for.
    EventRerecorded,
    /// The wait came before any record of the event, and therefore waits for nothing.
    WaitBeforeRecord,
    /// Legacy default stream against a non-blocking stream.
    LegacyVsNonblocking,
    /// The host reads memory that a device operation may still write.
    HostReadEarly,
    /// The host writes or reuses memory that a device operation may still read.
    HostBufferReuse,
    /// Used before the stream-ordered allocation.
    UseBeforeAlloc,
    /// Used after the free.
    UseAfterFree,
    /// Freed while operations that use it may still run.
    FreeInFlight,
    /// Memory given back to a stream-ordered allocator, which may hand it out again, while a use of
    /// it in another stream may still run.
    AllocatorReuse,
    /// Two unordered nodes of one graph.
    GraphUnordered,
    /// Unordered accesses of two devices.
    PeerUnordered,
    /// Lint: order by stream memory operations only.
    MemopOnlyOrder,
    /// Lint: the legacy stream is used beside non-blocking streams.
    LegacyBesideNonblocking,
    /// Lint: ordered only because a pool handed out the same stream twice.
    PooledStreamAlias,
    /// A synchronous copy from pageable memory has returned, and its last bytes may still be on
    /// their way to the device.
    PageableCopyTail,
}

words!(RaceClass {
    MissingWait => "missing-wait",
    StaleWait => "stale-wait",
    WrongStreamWait => "wrong-stream-wait",
    EventRerecorded => "event-rerecorded",
    WaitBeforeRecord => "wait-before-record",
    LegacyVsNonblocking => "legacy-vs-nonblocking",
    HostReadEarly => "host-read-early",
    HostBufferReuse => "host-buffer-reuse",
    UseBeforeAlloc => "use-before-alloc",
    UseAfterFree => "use-after-free",
    FreeInFlight => "free-in-flight",
    AllocatorReuse => "allocator-reuse",
    GraphUnordered => "graph-unordered",
    PeerUnordered => "peer-unordered",
    MemopOnlyOrder => "memop-only-order",
    LegacyBesideNonblocking => "legacy-beside-nonblocking",
    PooledStreamAlias => "pooled-stream-alias",
    PageableCopyTail => "pageable-copy-tail",
});

/// The kind of conflict (*hazard*), with the later access first: RAW reads what the earlier access
/// wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConflictKind {
    /// Any pair with a free.
    #[serde(rename = "UAF")]
    UseAfterFree,
    /// Any pair with an allocation.
    #[serde(rename = "UBA")]
    UseBeforeAlloc,
    /// Read after write.
    #[serde(rename = "RAW")]
    ReadAfterWrite,
    /// Write after write.
    #[serde(rename = "WAW")]
    WriteAfterWrite,
    /// Write after read.
    #[serde(rename = "WAR")]
    WriteAfterRead,
}

words!(ConflictKind {
    UseAfterFree => "UAF",
    UseBeforeAlloc => "UBA",
    ReadAfterWrite => "RAW",
    WriteAfterWrite => "WAW",
    WriteAfterRead => "WAR",
});

impl ConflictKind {
    /// The words for a headline.
    pub const fn long_description(self) -> &'static str {
        match self {
            Self::UseAfterFree => "use-after-free",
            Self::UseBeforeAlloc => "use-before-allocation",
            Self::ReadAfterWrite => "read-after-write",
            Self::WriteAfterWrite => "write-after-write",
            Self::WriteAfterRead => "write-after-read",
        }
    }
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// No documented order separates the pair.
    Race,
    /// Only behaviour that is not guaranteed orders the pair.
    Latent,
    /// No conflict, but a call that cannot have the effect that it seems to have.
    Lint,
}

words!(Severity { Race => "race", Latent => "latent", Lint => "lint" });

/// How certain it is that the two accesses touch the same bytes in conflicting ways. Ordered from
/// the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Anything weaker than `Likely`.
    Possible,
    /// Both accesses at least inferred, or the overlap holds the anchor of each anchored access.
    Likely,
    /// Both accesses exact.
    Certain,
}

words!(Confidence { Possible => "possible", Likely => "likely", Certain => "certain" });

/// The threshold from which on findings fail the build (`--fail-on`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Threshold {
    /// Races that are certain.
    Certain,
    /// Races that are at least likely.
    #[default]
    Likely,
    /// Every race.
    Possible,
    /// Every race and every latent finding.
    Latent,
    /// Everything.
    Lint,
}

words!(Threshold {
    Certain => "certain",
    Likely => "likely",
    Possible => "possible",
    Latent => "latent",
    Lint => "lint",
});

impl Threshold {
    /// Whether a finding reaches the threshold and so fails the build.
    pub fn is_reached_by(self, finding: &Finding) -> bool {
        match (self, finding.severity) {
            (Self::Certain, Severity::Race) => finding.confidence >= Confidence::Certain,
            (Self::Likely, Severity::Race) => finding.confidence >= Confidence::Likely,
            (_, Severity::Race) => true,
            (Self::Latent | Self::Lint, Severity::Latent) => true,
            (Self::Lint, Severity::Lint) => true,
            _ => false,
        }
    }
}

/// One side of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingAccess {
    /// The operation.
    pub op: OpSeq,
    /// The stream of the operation; `None` for the host.
    pub stream: Option<StreamId>,
    /// Exact entry point.
    pub api: String,
    /// Kernel name, for launches.
    pub kernel: Option<String>,
    /// The access of the operation.
    pub access: Access,
    /// The stack of the call, where recorded; for a node of a graph, the stack of the call that
    /// made the node.
    pub stack: Option<StackId>,
}

/// The edge that would order the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedEdge {
    /// Record an event behind this operation ...
    pub record_after_op: OpSeq,
    /// ... on this stream (`None`: the host must have finished it, nothing to record).
    pub on_stream: Option<StreamId>,
    /// ... and wait for it before this operation ...
    pub wait_before_op: OpSeq,
    /// ... in this stream (`None`: on the host).
    pub in_stream: Option<StreamId>,
}

/// One pair of unordered conflicting operations on one allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Equal for all occurrences of one mistake.
    pub fingerprint: Fingerprint,
    /// Race, latent or lint.
    pub severity: Severity,
    /// The class of the mistake.
    pub class: RaceClass,
    /// The kind of conflict.
    pub kind: ConflictKind,
    /// How certain the conflict is.
    pub confidence: Confidence,
    /// The allocation that both operations touch.
    pub allocation: AllocationId,
    /// The bytes that both operations touch (the hull, for strided accesses).
    pub overlap: ByteRange,
    /// The earlier operation of the pair (by issue order).
    pub first: FindingAccess,
    /// The later operation of the pair, at which the finding is reported.
    pub second: FindingAccess,
    /// The issue index up to which the second side knows the first side's stream, if at all: the
    /// newest operation of that stream that the second side is ordered behind, or the context
    /// synchronisation that covered the stream. An order would need at least `first.op`.
    pub knows: Option<OpSeq>,
    /// The event operation that comes nearest to ordering the pair and falls short, if any. For
    /// `stale-wait` it is the record, or the wait if the event was recorded again after the wait.
    /// For `wait-before-record` it is the wait.
    pub nearest: Option<OpSeq>,
    /// The call that orders the pair in this run although no documentation guarantees it (`latent`
    /// only).
    pub masked_by: Option<OpSeq>,
    /// The edge that would order the pair.
    pub proposed_edge: Option<ProposedEdge>,
}
