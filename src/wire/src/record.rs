//! Decoded records as the collector sees them; they borrow from the ring.

use crate::api::Api;
use crate::encode::BlobTag;
use crate::graph::GraphPart;
use crate::host::HostCall;
use crate::image::Image;
use crate::measure_abi::{MeasuredRun, NotMeasured};
use crate::stack::{LoadedObject, StackFrames};

/// Index of a process within the run: dense, in the order in which they were discovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey(pub u32);

/// A host thread within the run: dense, a new one for each start of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey(pub u32);

/// A record and where it came from.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The process that made the call.
    pub process: ProcessKey,
    /// The thread that made the call.
    pub thread: ThreadKey,
    /// Its kernel thread id, which later threads may reuse.
    pub tid: u32,
    /// Global index: strictly increasing over all indexes that one run hands out.
    pub g: u64,
    /// `CLOCK_MONOTONIC` in nanoseconds, close to when `g` was taken.
    pub t_ns: u64,
    /// The event that the record describes.
    pub record: Record<'a>,
}

/// The events that records describe.
#[derive(Debug, Clone, Copy)]
pub enum Record<'a> {
    /// A hooked call is about to enter the driver.
    Begin {
        /// Which call.
        api: Api,
        /// Hooked calls in progress on this thread around this one: above 0 the driver made the
        /// call itself. Host functions and callbacks start at 0 again.
        depth: u8,
        /// `cuCtxGetCurrent` at entry, 0 for none.
        context: u64,
        /// Key of the calling thread's stack, 0 for none: see [`Record::Stack`].
        stack: u64,
        /// The C parameters.
        args: Words<'a>,
        /// The data that pointer parameters point to.
        blobs: Blobs<'a>,
    },
    /// The driver has returned.
    End {
        /// `g` of the BEGIN.
        begin: u64,
        /// Which call.
        api: Api,
        /// The driver's `CUresult`.
        result: i32,
        /// Values behind the out parameters in the order of declaration; stream creations append
        /// the new stream's `cuStreamGetId` (`u64::MAX` where the driver has no such query), as the
        /// further kinds of [`crate::ParamKind`] say.
        /// Empty unless `result` is 0. A null out pointer gives 0.
        outs: Words<'a>,
    },
    /// A kernel is about to be launched for the first time by this handle in this process, or
    /// modules were unloaded since, so that the handle may mean another kernel.
    Kernel {
        /// The handle passed to the launch.
        function: u64,
        /// Mangled name, empty where the driver did not tell.
        name: &'a str,
        /// Layout of the parameters; `None` where the driver has no query (before CUDA 12.4) or
        /// refused it: launches of this kernel then carry no parameter bytes unless packed.
        params: Option<ParamLayout<'a>>,
        /// The module that it is a function of, 0 where the driver did not tell.
        module: u64,
        /// The library that it is a kernel of, 0 where the driver did not tell or it is a function.
        library: u64,
    },
    /// Code that the call at `op` has loaded, before its END. A call may load several images.
    Image {
        /// `g` of the BEGIN.
        op: u64,
        /// The place of the code.
        image: Image<'a>,
    },
    /// Memory that a finished kernel touched, from the simulated driver.
    Accesses {
        /// `g` of the launch's BEGIN.
        op: u64,
        /// Part of the list: sorted and merged within the operation.
        list: AccessList<'a>,
        /// Whether this is the last part of this operation's list.
        complete: bool,
    },
    /// Memory that a finished kernel touched, as instrumented code saw it.
    Measured {
        /// `g` of the launch's BEGIN.
        op: u64,
        /// The node of the launched graph, 0 for a launch of the kernel itself.
        node: u64,
        /// Whether this is the last part of this list.
        complete: bool,
        /// The flags of the list: [`crate::MEASURED_IN_PART`], [`crate::MEASURED_KNOWS_EARLY`].
        flags: u32,
        /// Part of the list.
        runs: RunList<'a>,
    },
    /// A launch was not measured.
    NotMeasured {
        /// `g` of the launch's BEGIN; 0 for everything that the process launches.
        op: u64,
        /// Why.
        reason: NotMeasured,
        /// More about it, in an encoding that is not known.
        detail: &'a [u8],
    },
    /// A host function or stream callback starts on this thread.
    HostFunctionBegin {
        /// `g` of the BEGIN of the call that enqueued it.
        op: u64,
    },
    /// The host function has returned.
    HostFunctionEnd {
        /// `g` of the BEGIN of the call that enqueued it.
        op: u64,
    },
    /// A host thread describes its actions.
    Host {
        /// By which call.
        call: HostCall,
        /// Key of the thread's stack, 0 for none.
        stack: u64,
        /// The arguments, as the call's documentation lists them.
        args: Words<'a>,
        /// A name in the program's encoding, which is not known.
        text: &'a [u8],
    },
    /// A call of [`Record::Host`] that takes time has returned.
    HostReturn {
        /// `g` of its record.
        host: u64,
        /// The call's result: below 0 for a failure.
        result: i64,
    },
    /// An executable or library that frames of stacks lie in.
    Object(LoadedObject<'a>),
    /// The frames that a key of stacks stands for in this process.
    Stack {
        /// The key, not 0.
        key: u64,
        /// Whether there are frames further out.
        truncated: bool,
        /// Its frames, innermost first.
        frames: StackFrames<'a>,
    },
    /// A part of a graph that was read back.
    Graph(GraphPart<'a>),
}

/// A borrowed array of words in shared memory.
#[derive(Clone, Copy)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.0.len() / 8
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The word at `index`, 0 beyond the end.
    pub fn get(&self, index: usize) -> u64 {
        word_at(self.0, index * 8).unwrap_or(0)
    }

    /// All words.
    pub fn iter(&self) -> impl Iterator<Item = u64> + 'a {
        let bytes = self.0;
        (0..bytes.len() / 8).map(move |i| word_at(bytes, i * 8).unwrap_or(0))
    }
}

impl std::fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The data that a call's pointer parameters point to.
#[derive(Clone, Copy)]
pub struct Blobs<'a>(&'a [u8]);

impl<'a> Blobs<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes that parameter `index` points to (strings without NUL); `None` for null pointers
    /// and for parameters that nothing is read through.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.find(u32::try_from(index).ok()?)
    }

    /// The launched kernel's parameter bytes, packed at their layout offsets.
    pub fn kernel_params(&self) -> Option<&'a [u8]> {
        self.find(BlobTag::KERNEL_PARAMS)
    }

    /// The `CUlaunchAttribute` array of a `cuLaunchKernelEx`, 72 bytes each.
    pub fn launch_attributes(&self) -> Option<&'a [u8]> {
        self.find(BlobTag::LAUNCH_ATTRIBUTES)
    }

    /// Parameter bytes of kernel `index` of a launch on several devices.
    pub fn member_params(&self, index: usize) -> Option<&'a [u8]> {
        self.find(BlobTag::MEMBER_PARAMS.checked_add(u32::try_from(index).ok()?)?)
    }

    /// All blobs with their tags: parameter indices, or the constants of [`BlobTag`].
    pub fn iter(&self) -> impl Iterator<Item = (u32, &'a [u8])> + 'a {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let head = word_at(rest, 0)?;
            let (tag, len) = (head as u32, (head >> 32) as usize);
            let bytes = rest.get(8..8usize.checked_add(len)?)?;
            rest = rest.get(8 + len.next_multiple_of(8)..).unwrap_or(&[]);
            Some((tag, bytes))
        })
    }

    fn find(&self, tag: u32) -> Option<&'a [u8]> {
        self.iter().find(|(t, _)| *t == tag).map(|(_, bytes)| bytes)
    }
}

impl std::fmt::Debug for Blobs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Offsets and sizes of a kernel's parameters in bytes.
#[derive(Clone, Copy)]
pub struct ParamLayout<'a>(&'a [u8]);

impl<'a> ParamLayout<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.0.len() / 8
    }

    /// Whether the kernel has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `(offset, size)` of parameter `index`.
    pub fn get(&self, index: usize) -> Option<(u32, u32)> {
        word_at(self.0, index.checked_mul(8)?).map(|w| (w as u32, (w >> 32) as u32))
    }

    /// `(offset, size)` of every parameter.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let this = *self;
        (0..this.len()).filter_map(move |i| this.get(i))
    }
}

impl std::fmt::Debug for ParamLayout<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// How a kernel touched a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedMode {
    /// Loads only.
    Read,
    /// At least one plain store.
    Write,
    /// Atomic operations only.
    Atomic,
    /// Loads only, each a strong operation at system scope.
    StrongRead,
    /// Stores only, each a strong operation at system scope.
    StrongWrite,
    /// Atomic operations at system scope only.
    StrongAtomic,
}

impl RecordedMode {
    /// Decodes the `mode` of `struct StreamsanAccess`.
    pub fn from_u32(mode: u32) -> Option<Self> {
        match mode {
            0 => Some(Self::Read),
            1 => Some(Self::Write),
            2 => Some(Self::Atomic),
            3 => Some(Self::StrongRead),
            4 => Some(Self::StrongWrite),
            5 => Some(Self::StrongAtomic),
            _ => None,
        }
    }
}

/// A half-open byte range that a kernel touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// How.
    pub mode: RecordedMode,
    /// Before the kernel's wait for its prerequisite grids (`griddepcontrol.wait`).
    pub early: bool,
}

/// Ranges that a kernel touched.
#[derive(Clone, Copy)]
pub struct AccessList<'a>(&'a [u8]);

impl<'a> AccessList<'a> {
    pub(crate) const ENTRY: usize = 24;

    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.0.len() / Self::ENTRY
    }

    /// Whether the kernel touched nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All ranges; entries with an unknown mode are taken as writes.
    pub fn iter(&self) -> impl Iterator<Item = Access> + 'a {
        self.0.chunks_exact(Self::ENTRY).filter_map(|entry| {
            let word = word_at(entry, 16)?;
            let mode = word as u32;
            Some(Access {
                start: word_at(entry, 0)?,
                end: word_at(entry, 8)?,
                mode: RecordedMode::from_u32(mode).unwrap_or(RecordedMode::Write),
                early: word >> 32 != 0,
            })
        })
    }
}

impl std::fmt::Debug for AccessList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Rows of bytes that a kernel touched, as they lie in shared memory.
#[derive(Clone, Copy)]
pub struct RunList<'a>(&'a [u8]);

impl<'a> RunList<'a> {
    const ENTRY: usize = size_of::<MeasuredRun>();

    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// All runs that can be: those without a byte, with rows that overlap, or beyond the end of the
    /// address space are left out.
    pub fn iter(&self) -> impl Iterator<Item = MeasuredRun> + 'a {
        self.0.chunks_exact(Self::ENTRY).filter_map(|entry| {
            let word = |index: usize| word_at(entry, 8 * index);
            let last = word(4)?;
            let run = MeasuredRun {
                start: word(0)?,
                width: word(1)?,
                pitch: word(2)?,
                rows: word(3)?,
                mode: last as u32,
                flags: (last >> 32) as u32,
            };
            run.is_valid().then_some(run)
        })
    }
}

impl std::fmt::Debug for RunList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The little-endian word at byte `at`.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(chunk.try_into().ok()?))
}
