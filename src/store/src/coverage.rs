//! Coverage: the calls and kernels that the recording saw, those that it only counted, and its
//! losses.

use streamsan_model::{HostAccesses, IncompleteReason, KernelGap};

/// How an entry point is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Treatment {
    /// Its calls are recorded as operations.
    Recorded,
    /// Only counted: it neither orders nor touches memory.
    Harmless,
    /// Only counted, although it may order or touch memory.
    NotUnderstood,
}

impl Treatment {
    /// All treatments, in the order of their stored codes.
    pub const ALL: [Self; 3] = [Self::Recorded, Self::Harmless, Self::NotUnderstood];

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Harmless => "harmless",
            Self::NotUnderstood => "not understood",
        }
    }
}

/// Calls of one driver entry point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPoint {
    /// Exact name, `cuMemcpyHtoDAsync_v2` for example.
    pub name: String,
    /// How the engine treats the entry point.
    pub treatment: Treatment,
    /// Number of calls.
    pub calls: u64,
}

/// How often something was not known of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelCount {
    /// The kind of gap.
    pub gap: KernelGap,
    /// The kernel, or the reason why an image was not kept.
    pub name: String,
    /// Number of launches, or of images.
    pub count: u64,
}

/// Kinds of counts about the launches of kernels that were to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MeasuredKind {
    /// Launches of a kernel of which every byte was seen.
    Whole,
    /// Launches of a kernel of which some accesses were seen; the others are as concluded.
    InPart,
    /// Launches of a kernel that was to be measured and was not.
    Not,
    /// Launches of a kernel that were measured whole and follow pointers which they load from
    /// memory: another input may lead elsewhere.
    FollowsPointers,
    /// Launches that were not measured, by reason.
    WhyNot,
    /// Processes in which nothing was measured, by reason.
    Off,
    /// Launches of a kernel that touched bytes outside of what its code was read to touch.
    Outside,
}

impl MeasuredKind {
    /// All kinds, in the order of their stored codes.
    pub const ALL: [Self; 7] = [
        Self::Whole,
        Self::InPart,
        Self::Not,
        Self::FollowsPointers,
        Self::WhyNot,
        Self::Off,
        Self::Outside,
    ];
}

/// How many launches of a kernel were measured, or why not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeasuredCount {
    /// The counted outcome.
    pub kind: MeasuredKind,
    /// The kernel, or the reason.
    pub name: String,
    /// Number of launches, or of processes.
    pub count: u64,
}

/// Coverage of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Entry points that were called; sorted by name when read.
    pub entry_points: Vec<EntryPoint>,
    /// Records lost because a ring stayed full.
    pub dropped: u64,
    /// Pairs of overlapping calls of two threads on one stream or event, whose order is ambiguous.
    pub ambiguous: u64,
    /// Counts of kernels with missing knowledge; sorted when read.
    pub kernels: Vec<KernelCount>,
    /// How far the host's own loads and stores were watched; `None` where nothing needed watching,
    /// and in traces before schema 7.
    pub host_accesses: Option<HostAccesses>,
    /// Counts of kernels that were to be measured; sorted when read. Empty where none was.
    pub measured: Vec<MeasuredCount>,
    /// Why a run without findings cannot be called clean, as the collector knows it. A reader adds
    /// [`IncompleteReason::TruncatedTrace`] by itself (see [`crate::Reader::incomplete_reasons`]).
    pub reasons: Vec<IncompleteReason>,
}
