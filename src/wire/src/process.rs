//! The process file: the identity of a process, its losses, and its counters.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::control::ABI_VERSION;
use crate::entry::ENTRY_POINTS;
use crate::fences::FenceCounters;
use crate::python::PythonRefusal;

/// Entry points beyond the known ones that a process can count.
pub const UNKNOWN_SLOTS: usize = 64;

/// Longest recorded name of an unknown entry point, its NUL included.
pub const UNKNOWN_NAME_BYTES: usize = 80;

/// Bytes of a process file.
pub const PROCESS_BYTES: usize = 32 * 1024;

const COUNTERS: usize = 1024;
const FIRST_UNKNOWN: usize = COUNTERS - UNKNOWN_SLOTS;
const EXE_BYTES: usize = 1024;
const ARGS_BYTES: usize = 8192;
const MAGIC: u64 = 0x7373_6563_6f72_7073;

/// Name of an entry point that this version does not know.
pub type UnknownEntry = [u8; UNKNOWN_NAME_BYTES];

/// The arguments of a process, each ending in NUL, cut at the size of the file's field.
pub type ArgumentsText = [u8; ARGS_BYTES];

/// The mapped process file.
#[repr(C)]
pub struct ProcessFile {
    magic: u64,
    version: u32,
    /// Number of the process, which its file names bear.
    pub number: u32,
    /// Process id.
    pub pid: u32,
    /// Its parent's process id.
    pub parent: u32,
    /// Start time in clock ticks since boot: tells a reused process id apart.
    pub start_time: u64,
    /// PID namespace that `pid` counts in, as [`crate::pid_namespace`] tells it.
    pub pid_namespace: u64,
    /// Rings created so far; each exists completely before this counts it.
    pub rings: AtomicU32,
    /// Slots of `unknown` in use; each is filled before this counts it.
    pub unknown_used: AtomicU32,
    /// Records that did not fit.
    pub dropped: AtomicU64,
    /// Nanoseconds that its threads have waited for room, all together.
    pub waited_ns: AtomicU64,
    /// Look-ups of unknown entry points beyond [`UNKNOWN_SLOTS`].
    pub unknown_overflow: AtomicU64,
    /// Why its Python frames are not read, as [`PythonRefusal::to_word`] says it.
    pub python: AtomicU32,
    /// How much host memory was fenced.
    pub fences: FenceCounters,
    /// Calls of each entry point, by [`crate::EntryPoint`] number; unknown ones at the end.
    pub counters: [AtomicU64; COUNTERS],
    /// Names of unknown entry points.
    pub unknown: [UnknownEntry; UNKNOWN_SLOTS],
    exe_len: u32,
    args_len: u32,
    exe: [u8; EXE_BYTES],
    args: ArgumentsText,
}

const _: () = assert!(size_of::<ProcessFile>() <= PROCESS_BYTES);
const _: () = assert!(ENTRY_POINTS <= FIRST_UNKNOWN);

impl ProcessFile {
    /// Index into `counters` of the unknown entry point in `slot`.
    pub const fn unknown_counter(slot: usize) -> usize {
        FIRST_UNKNOWN + slot
    }

    /// Number of counters.
    pub const COUNTERS: usize = COUNTERS;

    /// Why its Python frames are not read, if it has any and they are not.
    pub fn python_refusal(&self) -> Option<PythonRefusal> {
        PythonRefusal::from_word(self.python.load(Ordering::Relaxed))
    }

    /// Marks the file as complete in layout.
    pub fn stamp(&mut self) {
        self.magic = MAGIC;
        self.version = ABI_VERSION;
    }

    /// Whether a runtime of this version filled the file.
    pub fn usable(&self) -> bool {
        self.magic == MAGIC && self.version == ABI_VERSION
    }

    /// Sets path and arguments (each ending in NUL), cut to what fits.
    pub fn set_command(&mut self, exe: &[u8], args: &[u8]) {
        let (exe_len, args_len) = (exe.len().min(EXE_BYTES), args.len().min(ARGS_BYTES));
        self.exe[..exe_len].copy_from_slice(&exe[..exe_len]);
        self.args[..args_len].copy_from_slice(&args[..args_len]);
        self.exe_len = exe_len as u32;
        self.args_len = args_len as u32;
    }

    /// Path of the executable.
    pub fn exe(&self) -> &[u8] {
        &self.exe[..(self.exe_len as usize).min(EXE_BYTES)]
    }

    /// Arguments.
    pub fn args(&self) -> impl Iterator<Item = &[u8]> {
        let args = &self.args[..(self.args_len as usize).min(ARGS_BYTES)];
        args.strip_suffix(b"\0").unwrap_or(args).split(|byte| *byte == 0)
    }

    /// Name and calls of each unknown entry point that was looked up.
    pub fn unknown_calls(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let used = (self.unknown_used.load(Ordering::Acquire) as usize).min(UNKNOWN_SLOTS);
        self.unknown[..used].iter().enumerate().map(|(slot, name)| {
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            (name, self.counters[Self::unknown_counter(slot)].load(Ordering::Relaxed))
        })
    }
}

impl core::fmt::Debug for ProcessFile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ProcessFile").field("pid", &self.pid).finish_non_exhaustive()
    }
}
