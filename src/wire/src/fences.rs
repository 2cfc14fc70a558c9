//! What a process tells of the fences around host memory that its device uses: how much of it was
//! fenced, and why the rest was not.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counters of a process, in its process file.
#[derive(Debug)]
#[repr(C)]
pub struct FenceCounters {
    /// Asynchronous operations whose page-locked or managed memory could be fenced.
    pub qualified: AtomicU64,
    /// Of these: fenced, all of their bytes or some.
    pub fenced: AtomicU64,
    /// Of those: fenced in part only.
    pub partly: AtomicU64,
    /// Touches of the program inside fences.
    pub touches: AtomicU64,
    /// Touches of the driver itself.
    pub driver_touches: AtomicU64,
    /// Allocations that are no longer fenced, since host and device talk through them.
    pub left_alone: AtomicU64,
    /// Operations not fenced: no room in the table, or a budget.
    pub skipped: AtomicU64,
    /// Why nothing is fenced any more: an [`Unwatched`] as number, 0 for none.
    pub stopped: AtomicU32,
    _rest: u32,
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
    pub stopped: Option<Unwatched>,
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
            stopped: self.stopped.or(other.stopped),
        }
    }
}

impl FenceCounters {
    /// What they are now.
    pub fn read(&self) -> FenceCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FenceCounts {
            qualified: of(&self.qualified),
            fenced: of(&self.fenced),
            partly: of(&self.partly),
            touches: of(&self.touches),
            left_alone: of(&self.left_alone),
            skipped: of(&self.skipped),
            stopped: Unwatched::from_word(self.stopped.load(Ordering::Relaxed)),
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
}
