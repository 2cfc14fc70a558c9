//! The counts of a process about the fences around host memory that its device uses: how much of it
//! was fenced, and why the rest was not.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counters of a process, in its process file.
#[derive(Debug)]
#[repr(C)]
pub struct FenceCounters {
    /// Asynchronous operations whose page-locked or managed memory could be fenced.
    pub qualified: AtomicU64,
    /// The fenced ones of these: all of their bytes or some.
    pub fenced: AtomicU64,
    /// The ones of those that were fenced in part only.
    pub partly: AtomicU64,
    /// Touches of the program inside fences.
    pub touches: AtomicU64,
    /// Touches of the driver itself.
    pub driver_touches: AtomicU64,
    /// Allocations that are no longer fenced, since host and device talk through them.
    pub left_alone: AtomicU64,
    /// Operations of which no byte was fenced.
    pub skipped: AtomicU64,
    /// Ranges that were not fenced, or not all of them, by the number of a [`NotFenced`].
    pub not_fenced: [AtomicU64; NotFenced::ALL.len()],
    /// Allocations left alone, by the number of a [`LeftAlone`].
    pub alone: [AtomicU64; LeftAlone::ALL.len()],
    /// Why nothing is fenced any more: an [`Unwatched`] as number, 0 for none.
    pub stopped: AtomicU32,
    /// Who was seen to make system calls that cannot be looked at: bits of [`OwnCalls`].
    pub own_calls: AtomicU32,
}

/// Why a range was not fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum NotFenced {
    /// Fences have taken their share of the time, and operations of this kind were looked at before.
    Budget = 0,
    /// Too many touches at once.
    Storm = 1,
    /// No room in the table of fences.
    Full = 2,
    /// Its allocation is left alone.
    LeftAlone = 3,
    /// Pages that other memory shares, or memory under a kernel, beside [`OwnCalls`].
    OwnCalls = 4,
    /// The process has as many mappings split by fences as it may have.
    Mappings = 5,
    /// A system call of another thread uses its pages at that moment.
    InUse = 6,
    /// Nothing of it fills a page, or its pages hold other things of the program.
    Pages = 7,
}

impl NotFenced {
    /// All of them, by their number.
    pub const ALL: [Self; 8] = [
        Self::Budget,
        Self::Storm,
        Self::Full,
        Self::LeftAlone,
        Self::OwnCalls,
        Self::Mappings,
        Self::InUse,
        Self::Pages,
    ];

    /// Words for a report, after a number of ranges.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Budget => "passed over to save time, after the first 64 of their kind",
            Self::Storm => "passed over after too many touches at once",
            Self::Full => "passed over for want of room",
            Self::LeftAlone => "in allocations that are left alone",
            Self::OwnCalls => "beside code that makes system calls of its own",
            Self::Mappings => "passed over since too many mappings were split",
            Self::InUse => "used by a system call of another thread",
            Self::Pages => "without a page of their own",
        }
    }
}

/// Why an allocation is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum LeftAlone {
    /// The host touches it while kernels use it.
    Kernels = 0,
    /// The host touches what lies beside the bytes of copies.
    Beside = 1,
    /// It was touched often enough to be known.
    Touches = 2,
    /// The system refuses to protect it.
    Refused = 3,
    /// The program has changed its mapping or protection.
    Remapped = 4,
    /// A communication library, or cuDNN, made it for itself.
    Library = 5,
}

impl LeftAlone {
    /// All of them, by their number.
    pub const ALL: [Self; 6] =
        [Self::Kernels, Self::Beside, Self::Touches, Self::Refused, Self::Remapped, Self::Library];

    /// Words for a report, after a number of allocations.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Kernels => "which the host touches while kernels use it",
            Self::Beside => "which the host touches beside what is copied",
            Self::Touches => "which the host touches all the time",
            Self::Refused => "which the system refuses to protect",
            Self::Remapped => "whose mapping the program has changed",
            Self::Library => "which a communication library or cuDNN made for itself",
        }
    }
}

/// Code whose system calls cannot be looked at before they fail: pages that other memory shares, and
/// memory under a kernel, are not fenced beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum OwnCalls {
    /// The process has an io_uring.
    IoUring = 1,
    /// A Go runtime is loaded.
    Go = 2,
}

/// Why a process is not watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Unwatched {
    /// The library that keeps the program's signal handlers was not loaded.
    NoLibrary = 1,
    /// The program sets a handler for SIGSEGV that could not be kept.
    OwnHandler = 2,
    /// The driver touches page-locked memory by itself.
    DriverTouches = 3,
    /// The kernel refuses to change the protection of such memory.
    Refused = 4,
}

impl Unwatched {
    /// The inverse of `as u32`; `None` for 0 and what is not known.
    pub const fn from_word(word: u32) -> Option<Self> {
        match word {
            1 => Some(Self::NoLibrary),
            2 => Some(Self::OwnHandler),
            3 => Some(Self::DriverTouches),
            4 => Some(Self::Refused),
            _ => None,
        }
    }

    /// Words for a report.
    pub const fn description(self) -> &'static str {
        match self {
            Self::NoLibrary => {
                "the library that keeps the program's signal handlers was not loaded"
            }
            Self::OwnHandler => "the program handles SIGSEGV itself",
            Self::DriverTouches => "the driver touches page-locked memory by itself",
            Self::Refused => "the system refuses to protect such memory",
        }
    }
}

/// [`FenceCounters`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FenceCounts {
    /// As in [`FenceCounters`].
    pub qualified: u64,
    /// As in [`FenceCounters`].
    pub fenced: u64,
    /// As in [`FenceCounters`].
    pub partly: u64,
    /// As in [`FenceCounters`].
    pub touches: u64,
    /// As in [`FenceCounters`].
    pub left_alone: u64,
    /// As in [`FenceCounters`].
    pub skipped: u64,
    /// As in [`FenceCounters`].
    pub not_fenced: [u64; NotFenced::ALL.len()],
    /// As in [`FenceCounters`].
    pub alone: [u64; LeftAlone::ALL.len()],
    /// As in [`FenceCounters`].
    pub stopped: Option<Unwatched>,
    /// As in [`FenceCounters`].
    pub own_calls: u32,
}

impl FenceCounts {
    /// Both together; why the first of them stopped that did.
    pub fn with(self, other: Self) -> Self {
        Self {
            qualified: self.qualified + other.qualified,
            fenced: self.fenced + other.fenced,
            partly: self.partly + other.partly,
            touches: self.touches + other.touches,
            left_alone: self.left_alone + other.left_alone,
            skipped: self.skipped + other.skipped,
            not_fenced: sum(self.not_fenced, other.not_fenced),
            alone: sum(self.alone, other.alone),
            stopped: self.stopped.or(other.stopped),
            own_calls: self.own_calls | other.own_calls,
        }
    }
}

fn sum<const N: usize>(first: [u64; N], second: [u64; N]) -> [u64; N] {
    core::array::from_fn(|index| first[index] + second[index])
}

impl FenceCounters {
    /// The present counts.
    pub fn read(&self) -> FenceCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FenceCounts {
            qualified: of(&self.qualified),
            fenced: of(&self.fenced),
            partly: of(&self.partly),
            touches: of(&self.touches),
            left_alone: of(&self.left_alone),
            skipped: of(&self.skipped),
            not_fenced: core::array::from_fn(|index| of(&self.not_fenced[index])),
            alone: core::array::from_fn(|index| of(&self.alone[index])),
            stopped: Unwatched::from_word(self.stopped.load(Ordering::Relaxed)),
            own_calls: self.own_calls.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_lead_back_from_their_numbers() {
        for word in 0..8 {
            if let Some(reason) = Unwatched::from_word(word) {
                assert_eq!(reason as u32, word);
                assert!(!reason.description().is_empty());
            }
        }
        assert_eq!(Unwatched::from_word(0), None);
    }

    #[test]
    fn reasons_stand_at_their_numbers() {
        assert!(NotFenced::ALL.iter().enumerate().all(|(at, reason)| *reason as usize == at));
        assert!(LeftAlone::ALL.iter().enumerate().all(|(at, reason)| *reason as usize == at));
    }
}
