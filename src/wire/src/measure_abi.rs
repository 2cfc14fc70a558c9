//! The C interface by which a measuring library, and the simulated driver, hand over the bytes that
//! kernels touched. The functions are the runtime's, found by name with `dlsym`:
//!
//! ```c
//! void streamsan_op_measured(uint64_t op, const struct StreamsanRun *list, size_t count,
//!                            uint32_t flags);
//! void streamsan_node_accesses(uint64_t op, uint64_t node, const struct StreamsanRun *list,
//!                              size_t count, uint32_t flags);
//! void streamsan_not_measured(uint64_t op, uint32_t reason, const char *detail);
//! ```
//!
//! `op` is what `streamsan_current_op` gave during the launching call, `node` the `CUgraphNode` of
//! the launched graph. An empty list says that the kernel touched nothing. There is one list for a
//! launch or node; a second one is ignored. `detail` is UTF-8, may be null, and at most
//! [`LONGEST_DETAIL`] bytes of it are taken.
//!
//! Invariant: the functions may be called on any thread and call no driver function.
//!
//! Deliberately absent: which kernels are measured ([`crate::Selection`]).

/// A bit of `flags` of a list: the kernel also touches memory in ways that nobody saw. What was
/// concluded stays beside the runs.
pub const MEASURED_IN_PART: u32 = 1;

/// Bytes of a detail that are taken.
pub const LONGEST_DETAIL: usize = 512;

/// A bit of `flags` of a list: [`MeasuredRun::EARLY`] is set where it holds. Without this flag a
/// kernel that waits for its prerequisite grids keeps what was concluded for the time before that
/// wait.
pub const MEASURED_KNOWS_EARLY: u32 = 2;

/// Rows of equal width that a kernel touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MeasuredRun {
    /// First byte.
    pub start: u64,
    /// Bytes of each row, not 0.
    pub width: u64,
    /// Bytes from the begin of one row to the begin of the next; no less than `width` where there is
    /// more than one row.
    pub pitch: u64,
    /// Number of rows, not 0; 1 for a range.
    pub rows: u64,
    /// 0 read, 1 write, 2 atomic, 3 read and write.
    pub mode: u32,
    /// [`MeasuredRun::EARLY`] and [`MeasuredRun::HULL`].
    pub flags: u32,
}

impl MeasuredRun {
    /// Before the kernel's wait for its prerequisite grids (`griddepcontrol.wait`).
    pub const EARLY: u32 = 1;
    /// An upper bound: what was touched lies inside, and not every byte inside was touched.
    pub const HULL: u32 = 2;

    /// Whether there is a byte, rows do not overlap, and all lie in the address space.
    pub fn is_valid(&self) -> bool {
        let rows_apart = self.rows == 1 || self.pitch >= self.width;
        let end = self.rows.checked_sub(1).and_then(|rows| {
            let last = self.start.checked_add(rows.checked_mul(self.pitch)?)?;
            last.checked_add(self.width)
        });
        self.width > 0 && rows_apart && end.is_some()
    }
}

/// Why a launch was not measured, or nothing in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum NotMeasured {
    /// None of the others; the detail tells.
    Other = 0,
    /// No log or ring was free.
    NoRoom = 1,
    /// The kernel had not ended when the process ended.
    DidNotEnd = 2,
    /// The kernel touches memory by instructions that the API does not see, and nothing bounds them.
    NotMeasurable = 3,
    /// The patched launch failed and was made again without patches.
    LaunchFailed = 4,
    /// The kernel was dropped for its cost.
    TooCostly = 5,
    /// The kernel is in a graph that was launched from the device.
    DeviceGraph = 6,
    /// NVIDIA's library was not found.
    NoLibrary = 7,
    /// The subscription was refused, or the program has an injected library of its own.
    NoSubscription = 8,
    /// The library has a version that is not known, and the self-test failed.
    UnknownVersion = 9,
    /// The patches could not be assembled.
    NoAssembler = 10,
    /// The kernel's module could not be patched.
    NotPatched = 11,
}

impl NotMeasured {
    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 12] = [
        Self::Other,
        Self::NoRoom,
        Self::DidNotEnd,
        Self::NotMeasurable,
        Self::LaunchFailed,
        Self::TooCostly,
        Self::DeviceGraph,
        Self::NoLibrary,
        Self::NoSubscription,
        Self::UnknownVersion,
        Self::NoAssembler,
        Self::NotPatched,
    ];

    /// The reason of a code; a code of a later version is [`NotMeasured::Other`].
    pub fn from_u32(code: u32) -> Self {
        Self::ALL.get(code as usize).copied().unwrap_or(Self::Other)
    }

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Other => "for another reason",
            Self::NoRoom => "no log was free",
            Self::DidNotEnd => "the kernel did not end before its process",
            Self::NotMeasurable => "the kernel uses instructions that measuring does not see",
            Self::LaunchFailed => "the patched launch failed and was made again without patches",
            Self::TooCostly => {
                "measuring takes at most half of the time that passes, which was used up"
            }
            Self::DeviceGraph => "the device launched the kernel's graph",
            Self::NoLibrary => "NVIDIA's Compute Sanitizer library was not found",
            Self::NoSubscription => "another tool holds the subscription to the driver",
            Self::UnknownVersion => "the Compute Sanitizer library has an unknown version",
            Self::NoAssembler => "nothing could assemble the patches",
            Self::NotPatched => "the kernel's module could not be patched",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MeasuredRun, NotMeasured};

    #[test]
    fn codes_are_places_in_the_list() {
        for (at, reason) in (0..).zip(NotMeasured::ALL) {
            assert_eq!(reason as u32, at);
            assert_eq!(NotMeasured::from_u32(at), reason);
        }
        assert_eq!(NotMeasured::from_u32(1000), NotMeasured::Other);
    }

    #[test]
    fn runs_without_a_byte_or_beyond_the_end_are_no_runs() {
        let run = MeasuredRun { start: 64, width: 4, pitch: 8, rows: 3, mode: 0, flags: 0 };
        assert!(run.is_valid());
        assert!(MeasuredRun { rows: 1, pitch: 0, ..run }.is_valid());
        for bad in [
            MeasuredRun { width: 0, ..run },
            MeasuredRun { rows: 0, ..run },
            MeasuredRun { pitch: 3, ..run },
            MeasuredRun { rows: u64::MAX, ..run },
            MeasuredRun { start: u64::MAX - 8, ..run },
        ] {
            assert!(!bad.is_valid(), "{bad:?}");
        }
    }

    #[test]
    fn a_run_is_laid_out_as_c_does() {
        assert_eq!((size_of::<MeasuredRun>(), align_of::<MeasuredRun>()), (40, 8));
    }
}
