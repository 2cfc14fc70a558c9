//! Calls that consist of several parts.
//!
//! The accesses of such a call stand in the operation's list, part by part. Invariant: the parts'
//! counts of accesses add up to the length of that list.

use crate::{AllocationId, Copy, KernelId, SemaphoreId, StreamId};
use serde::{Deserialize, Serialize};

/// When a copy reads its source (`CUmemcpySrcAccessOrder`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SourceOrder {
    /// In stream order.
    #[default]
    Stream,
    /// On the host during the call, before it returns, out of stream order.
    DuringCall,
    /// At any time from the call to the copy's end, out of stream order.
    Any,
}

impl SourceOrder {
    /// All values, in the order of their stored codes.
    pub const ALL: [Self; 3] = [Self::Stream, Self::DuringCall, Self::Any];

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Stream => "in stream order",
            Self::DuringCall => "during the call",
            Self::Any => "at any time",
        }
    }
}

/// Copies without an order among themselves (`cuMemcpyBatchAsync`, `cuMemcpy3DBatchAsync`,
/// `cuMemBatchDecompressAsync`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The stream that carries all of them.
    pub stream: StreamId,
    /// The copies; their `stream` is the batch's.
    pub entries: Vec<BatchEntry>,
}

/// One copy of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchEntry {
    pub copy: Copy,
    /// Number of the operation's accesses that belong to this copy.
    pub accesses: u32,
}

/// `cuLaunchCooperativeKernelMultiDevice`: one kernel a device, each in a stream of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultiDeviceLaunch {
    /// Every kernel waits for the earlier work of all the streams (not with
    /// `CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC`).
    pub waits_before: bool,
    /// Later work of all the streams waits for every kernel (not with
    /// `CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC`).
    pub holds_back_after: bool,
    /// The kernels.
    pub launches: Vec<MemberLaunch>,
}

/// One kernel of a [`MultiDeviceLaunch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberLaunch {
    /// The stream of the kernel.
    pub stream: StreamId,
    pub kernel: KernelId,
    /// Number of the operation's accesses that belong to this kernel.
    pub accesses: u32,
}

/// Collective operations of one group in several streams (`ncclGroupEnd`): one operation of all of
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveGroup {
    /// The parts of the group, one for each stream.
    pub members: Vec<MemberCollective>,
}

/// The part of a [`CollectiveGroup`] in one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberCollective {
    pub stream: StreamId,
    /// Number of the operation's accesses that belong to this part.
    pub accesses: u32,
}

/// Stream memory operations or external semaphores: one call, one stream, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    pub stream: StreamId,
    /// The single operations, in order.
    pub operations: Vec<SignalOperation>,
}

/// The object that carries a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SignalObject {
    /// A word of memory (`cuStreamWriteValue32`).
    Memory {
        allocation: AllocationId,
        /// Address of the word's first byte.
        address: u64,
        /// Width of the word in bytes: 4 or 8.
        width: u8,
    },
    /// An external semaphore.
    Semaphore(SemaphoreId),
}

/// One stream memory operation, one use of an external semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalOperation {
    /// The stream sets the value once its earlier work is done.
    Signal {
        object: SignalObject,
        value: u64,
        /// Whether a stream that sees the value also sees the earlier work (not with
        /// `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`).
        releases: bool,
    },
    /// The stream goes on once the value is there.
    Wait { object: SignalObject, value: u64, compare: ValueCompare },
}

/// When a wait for a value is over (`CUstreamWaitValue_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ValueCompare {
    /// `(int)(*addr - value) >= 0`, cyclic in the word's width.
    #[default]
    GreaterOrEqual,
    /// `*addr == value`.
    Equal,
    /// `(*addr & value) != 0`.
    And,
    /// `~(*addr | value) != 0`.
    Nor,
}

impl ValueCompare {
    /// All values, in the order of their stored codes (the driver's).
    pub const ALL: [Self; 4] = [Self::GreaterOrEqual, Self::Equal, Self::And, Self::Nor];

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::GreaterOrEqual => "at least",
            Self::Equal => "equal to",
            Self::And => "any bit of",
            Self::Nor => "a zero bit beside",
        }
    }

    /// Whether `found` ends a wait for `wanted` in a word of `width` bytes.
    pub const fn is_met_by(self, found: u64, wanted: u64, width: u8) -> bool {
        let mask = if width == 4 { u32::MAX as u64 } else { u64::MAX };
        match self {
            Self::GreaterOrEqual if width == 4 => {
                (found as u32).wrapping_sub(wanted as u32) as i32 >= 0
            }
            Self::GreaterOrEqual => found.wrapping_sub(wanted) as i64 >= 0,
            Self::Equal => found & mask == wanted & mask,
            Self::And => found & wanted & mask != 0,
            Self::Nor => !(found | wanted) & mask != 0,
        }
    }
}

/// A kernel launch that also records an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LaunchEventKind {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`: may fire once all blocks have triggered.
    Programmatic,
    /// The same with `triggerAtBlockStart`: may fire once all blocks have begun.
    BlockStart,
    /// `CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT`: fires about when all blocks have begun.
    LaunchCompletion,
}

/// The accesses that a managed allocation is attached to (`cuStreamAttachMemAsync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Attachment {
    /// Any stream and the host.
    Global,
    /// The host only.
    Host,
    /// One stream; the program promises that no other stream touches it.
    Single,
}

impl Attachment {
    /// All values, in the order of their stored codes.
    pub const ALL: [Self; 3] = [Self::Global, Self::Host, Self::Single];

    /// The word of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Host => "host",
            Self::Single => "single stream",
        }
    }
}
