//! Calls beside the driver's by which host threads describe themselves: annotations, names,
//! instrumented loads and stores, synchronisation between threads, cuFile, NCCL.
//!
//! One table of calls and one shape of record serve all of them: some words, whose number and
//! meaning depend on the call, and a text.

use crate::record::{Words, word_at};

macro_rules! calls {
    ($($name:ident = $text:literal: $words:literal,)*) => {
        /// A call by which a host thread describes its actions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum HostCall {
            $(#[doc = concat!("`", $text, "`: ", $words)] $name,)*
        }

        impl HostCall {
            /// All calls in the order of their numbers.
            pub const ALL: &'static [HostCall] = &[$(HostCall::$name,)*];

            /// The name in traces and reports: of the function where there is one.
            pub const fn name(self) -> &'static str {
                match self {
                    $(HostCall::$name => $text,)*
                }
            }
        }
    };
}

calls! {
    // Annotations.
    HostRead = "streamsan_host_read": "`[address, bytes]`",
    HostWrite = "streamsan_host_write": "`[address, bytes]`",
    NameStream = "streamsan_name_stream": "`[stream]`, name",
    NameEvent = "streamsan_name_event": "`[event]`, name",
    NameMemory = "streamsan_name_memory": "`[address]`, name",
    // NVTX names.
    NvtxCuStream = "nvtxNameCuStream": "`[stream]`, name",
    NvtxCuEvent = "nvtxNameCuEvent": "`[event]`, name",
    NvtxCudaStream = "nvtxNameCudaStream": "`[stream]`, name",
    NvtxCudaEvent = "nvtxNameCudaEvent": "`[event]`, name",
    // NVTX memory pools.
    NvtxHeapRegister = "nvtxMemHeapRegister": "`[address, bytes, usage]`, name; the address is the handle",
    NvtxHeapUnregister = "nvtxMemHeapUnregister": "`[heap]`",
    NvtxHeapReset = "nvtxMemHeapReset": "`[heap]`",
    NvtxRegionRegister = "nvtxMemRegionsRegister": "`[address, bytes, heap]`",
    NvtxRegionResize = "nvtxMemRegionsResize": "`[address, bytes]`",
    NvtxRegionUnregister = "nvtxMemRegionsUnregister": "`[address]`",
    NvtxRegionName = "nvtxMemRegionsName": "`[address]`, name",
    // NVTX ranges and marks. The domain is a number of the process, 0 for the default one; the text is
    // the domain's name, of so many bytes, and the name.
    NvtxPush = "nvtxRangePush": "`[domain, bytes of the domain's name]`, names",
    NvtxPop = "nvtxRangePop": "`[domain]`",
    NvtxStart = "nvtxRangeStart": "`[domain, bytes of the domain's name, range]`, names",
    NvtxEnd = "nvtxRangeEnd": "`[range]`",
    NvtxMark = "nvtxMark": "`[domain, bytes of the domain's name]`, names",
    // Instrumented code.
    Touched = "host access": "`[(start, end, mode)...]`, modes as in `RecordedMode`",
    // Synchronisation of host threads. The object is an address or a thread's token.
    MutexAcquired = "pthread_mutex_lock": "`[object]`",
    MutexReleased = "pthread_mutex_unlock": "`[object]`",
    RwlockAcquired = "pthread_rwlock_lock": "`[object]`",
    RwlockReleased = "pthread_rwlock_unlock": "`[object]`",
    SpinAcquired = "pthread_spin_lock": "`[object]`",
    SpinReleased = "pthread_spin_unlock": "`[object]`",
    ConditionWaited = "pthread_cond_wait": "`[object]`",
    ConditionSignalled = "pthread_cond_signal": "`[object]`",
    SemaphoreWaited = "sem_wait": "`[object]`",
    SemaphorePosted = "sem_post": "`[object]`",
    BarrierEntered = "pthread_barrier_wait (entry)": "`[object]`",
    BarrierLeft = "pthread_barrier_wait (exit)": "`[object]`",
    ThreadCreated = "pthread_create": "`[token]`",
    ThreadStarted = "(thread start)": "`[token]`",
    ThreadEnded = "(thread end)": "`[token]`",
    ThreadJoined = "pthread_join": "`[token]`",
    // cuFile.
    FileRead = "cuFileRead": "`[address, bytes]`; result: bytes read",
    FileWrite = "cuFileWrite": "`[address, bytes]`; result: bytes written",
    FileReadAsync = "cuFileReadAsync": "`[address, bytes, stream, current context]`",
    FileWriteAsync = "cuFileWriteAsync": "`[address, bytes, stream, current context]`",
    FileBatchSubmit = "cuFileBatchIOSubmit": "`[batch, (address, bytes, opcode, cookie)...]`",
    FileBatchGetStatus = "cuFileBatchIOGetStatus": "`[batch, cookie of a request that is over]`, at its exit",
    FileBatchDestroy = "cuFileBatchIODestroy": "`[batch]`",
    // NCCL. What is marked \"collective\" has `[phase, stream, current context, (address, bytes,
    // transfer)...]`, with a phase of `CollectivePhase` and transfers of `Transfer`.
    NcclSend = "ncclSend": "collective",
    NcclRecv = "ncclRecv": "collective",
    NcclAllReduce = "ncclAllReduce": "collective",
    NcclBroadcast = "ncclBroadcast": "collective",
    NcclBcast = "ncclBcast": "collective",
    NcclReduce = "ncclReduce": "collective",
    NcclAllGather = "ncclAllGather": "collective",
    NcclReduceScatter = "ncclReduceScatter": "collective",
    NcclAlltoAll = "ncclAlltoAll": "collective",
    NcclGather = "ncclGather": "collective",
    NcclScatter = "ncclScatter": "collective",
    NcclGroupEnd = "ncclGroupEnd": "collective: a group of several kinds of calls",
    NcclQueued = "(queued in a group)": "collective, to be carried out with its group",
    // Memory fenced while the device uses it, and system calls that use such memory.
    FenceTouched = "host access": "`[address, mode as in RecordedMode, 1 where it is a plain move of up to 8 aligned bytes]`",
    SystemRead = "host system call": "`[address, bytes]`: bytes that the kernel has put there, at its return",
    SystemWrite = "host system call": "`[address, bytes]`: bytes that the kernel has taken from there, at its return",
}

/// The domain of the ranges that streamsan's own functions for tests record, and of their marks for
/// allowed findings.
pub const TEST_DOMAIN: &str = "streamsan/test";
/// See [`TEST_DOMAIN`].
pub const ALLOW_DOMAIN: &str = "streamsan/allow";

/// When the transfers of a collective's record are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectivePhase {
    /// By this call.
    Now,
    /// By the end of the thread's group.
    Queued,
    /// By this call, which ends the group: all that was queued for the stream, and for the other
    /// streams of its context that stand where transfers stand otherwise.
    GroupEnd,
    /// Not at all: what was queued for the stream is forgotten.
    Dropped,
}

impl CollectivePhase {
    /// The inverse of `as u64`.
    pub fn from_word(word: u64) -> Option<Self> {
        [Self::Now, Self::Queued, Self::GroupEnd, Self::Dropped]
            .get(usize::try_from(word).ok()?)
            .copied()
    }
}

/// The direction of a collective's access to a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// Reads it.
    Send,
    /// Writes it.
    Receive,
    /// The range is not known: the communicator did not answer, or the type is a new one.
    Unknown,
}

impl Transfer {
    /// The inverse of `as u64`.
    pub fn from_word(word: u64) -> Self {
        match word {
            0 => Self::Send,
            1 => Self::Receive,
            _ => Self::Unknown,
        }
    }
}

/// How a call orders host threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostOrder {
    /// A thread that acquires the object later knows everything that this thread has done.
    Release,
    /// The thread knows what was released into the object.
    Acquire,
}

impl HostCall {
    /// The inverse of `as u16`.
    #[inline]
    pub fn from_u16(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether the call takes time, so that a [`crate::Record::HostReturn`] follows.
    pub const fn returns(self) -> bool {
        matches!(
            self,
            Self::FileRead
                | Self::FileWrite
                | Self::FileReadAsync
                | Self::FileWriteAsync
                | Self::FileBatchSubmit
        ) || self.is_collective()
    }

    /// Whether the call begins an NVTX range, or is a mark.
    pub const fn names_a_range(self) -> bool {
        matches!(self, Self::NvtxPush | Self::NvtxStart | Self::NvtxMark)
    }

    /// Whether the call is one of NCCL that carries out transfers.
    pub const fn is_collective(self) -> bool {
        matches!(
            self,
            Self::NcclSend
                | Self::NcclRecv
                | Self::NcclAllReduce
                | Self::NcclBroadcast
                | Self::NcclBcast
                | Self::NcclReduce
                | Self::NcclAllGather
                | Self::NcclReduceScatter
                | Self::NcclAlltoAll
                | Self::NcclGather
                | Self::NcclScatter
                | Self::NcclGroupEnd
        )
    }

    /// Whether a finding can be about the call, so that its stack is worth knowing.
    pub const fn is_worth_a_stack(self) -> bool {
        matches!(
            self,
            Self::HostRead
                | Self::HostWrite
                | Self::NvtxRegionRegister
                | Self::NvtxRegionUnregister
                | Self::FenceTouched
                | Self::SystemRead
                | Self::SystemWrite
        ) || self.returns()
    }

    /// The call's order of host threads; `None` for calls that order none.
    pub const fn order(self) -> Option<HostOrder> {
        Some(match self {
            Self::MutexReleased
            | Self::RwlockReleased
            | Self::SpinReleased
            | Self::ConditionSignalled
            | Self::SemaphorePosted
            | Self::BarrierEntered
            | Self::ThreadCreated
            | Self::ThreadEnded => HostOrder::Release,
            Self::MutexAcquired
            | Self::RwlockAcquired
            | Self::SpinAcquired
            | Self::ConditionWaited
            | Self::SemaphoreWaited
            | Self::BarrierLeft
            | Self::ThreadStarted
            | Self::ThreadJoined => HostOrder::Acquire,
            _ => return None,
        })
    }
}

/// Bytes after the leading words of a record with so many words and bytes of text.
#[inline]
pub const fn host_body(words: usize, text: usize) -> usize {
    16 + 8 * words + text.next_multiple_of(8)
}

/// Key of the stack, words and text of a host record's body:
/// `[words | text bytes << 32, stack, words..., text]`.
pub(crate) fn decode_body(body: &[u8]) -> Option<(u64, Words<'_>, &[u8])> {
    let sizes = word_at(body, 0)?;
    let words = 8 * (sizes as u32 as usize);
    let text = (sizes >> 32) as usize;
    let at = 16usize.checked_add(words)?;
    let text = body.get(at..at.checked_add(text)?)?;
    Some((word_at(body, 8)?, Words::new(body.get(16..at)?), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_call() {
        for (number, call) in HostCall::ALL.iter().enumerate() {
            assert_eq!(HostCall::from_u16(number as u16), Some(*call));
        }
        assert_eq!(HostCall::from_u16(HostCall::ALL.len() as u16), None);
    }

    #[test]
    fn only_calls_of_libraries_take_time() {
        for call in HostCall::ALL {
            let library = ["cuFile", "nccl"].iter().any(|l| call.name().starts_with(l));
            assert!(!call.returns() || library, "{}", call.name());
            assert!(!(call.returns() && call.order().is_some()), "{}", call.name());
        }
    }

    #[test]
    fn bodies_that_lie_about_their_size_are_refused() {
        let body = |words: u64, text: u64, rest: usize| {
            let mut bytes = (words | text << 32).to_le_bytes().to_vec();
            bytes.extend(vec![7; rest]);
            decode_body(&bytes).map(|(_, words, text)| (words.len(), text.len()))
        };
        assert_eq!(body(2, 3, 32), Some((2, 3)));
        assert_eq!(body(2, 3, 26), None);
        assert_eq!(body(u64::from(u32::MAX), u64::from(u32::MAX), 64), None);
        assert!(decode_body(&[]).is_none());
    }
}
