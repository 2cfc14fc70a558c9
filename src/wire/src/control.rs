//! The control file, which all processes of a run share.

use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::stack::StackMode;

/// Version of every layout in this crate; runtime and collector must agree.
pub const ABI_VERSION: u32 = 8;

/// Names the run directory to the runtime.
pub const RUN_DIR_VARIABLE: &str = "STREAMSAN_RUN_DIR";

/// Name of the control file inside the run directory.
pub const CONTROL_FILE: &str = "control";

pub(crate) const CONTROL_MAGIC: u64 = 0x6e61_736d_6165_7274;

/// The mapped control file.
#[derive(Debug)]
#[repr(C)]
pub struct Control {
    pub(crate) magic: u64,
    pub(crate) version: u32,
    /// Process id of the collector.
    pub collector: u32,
    /// Data bytes of each ring, a power of two.
    pub ring_bytes: u64,
    /// Not 0 once the collector reads no more.
    pub closed: AtomicU32,
    /// Process numbers handed out. A number whose file never appears died while saying hello.
    pub processes: AtomicU32,
    /// Processes that finished saying hello.
    pub attached: AtomicU32,
    /// Processes that found the directory and could not say hello.
    pub failed: AtomicU32,
    /// A [`ClockSource`].
    pub(crate) clock: u32,
    /// A [`StackMode`].
    pub(crate) stacks: u32,
    /// PID namespace that `collector` counts in, as [`crate::pid_namespace`] tells it.
    pub collector_namespace: u64,
    /// How long the collector may do nothing before it counts as stuck, in milliseconds.
    pub patience_ms: u32,
    /// Not 0 where host memory is fenced while the device uses it.
    pub(crate) host_accesses: u32,
    /// The next global index; the first one handed out is 1.
    pub g: AtomicU64,
    _line_of_g: [u64; 7],
    /// Changes with each step that the collector gets on: with records taken, operations handed on,
    /// rows written to the disk while it waits for that. It does not while it only looks, so that who
    /// waits for room behind a record that never comes is not kept for ever.
    pub progress: AtomicU64,
    _rest: [u64; 7],
}

/// The unit of times in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockSource {
    /// `CLOCK_MONOTONIC` in nanoseconds.
    Monotonic = 0,
    /// The processor's counter of ticks ([`crate::ticks`]).
    Ticks = 1,
}

impl Control {
    /// The unit of times in records.
    #[inline]
    pub fn clock(&self) -> ClockSource {
        if self.clock == ClockSource::Ticks as u32 {
            ClockSource::Ticks
        } else {
            ClockSource::Monotonic
        }
    }

    /// The stacks that are recorded.
    #[inline]
    pub fn stacks(&self) -> StackMode {
        StackMode::from_word(self.stacks)
    }

    /// Whether host memory is fenced while the device uses it.
    #[inline]
    pub fn fences(&self) -> bool {
        self.host_accesses != 0
    }

    /// Bytes of the file.
    pub const BYTES: usize = 4096;

    /// Whether a runtime of this version can use the file.
    pub fn usable(&self) -> bool {
        self.magic == CONTROL_MAGIC
            && self.version == ABI_VERSION
            && self.ring_bytes.is_power_of_two()
    }
}

const _: () = assert!(size_of::<Control>() <= Control::BYTES);
const _: () = assert!(core::mem::offset_of!(Control, g) == 64);
const _: () = assert!(core::mem::offset_of!(Control, progress) == 128);
