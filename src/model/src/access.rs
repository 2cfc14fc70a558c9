//! The accesses of operations: which bytes an operation touches, in which mode, and on which
//! evidence.

use crate::{AllocationId, ByteRange};
use serde::{Deserialize, Serialize};

/// One access of an operation to one allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The allocation (generation) that is touched.
    pub allocation: AllocationId,
    /// The touched bytes, as addresses of the process.
    pub extent: Extent,
    /// Whether the access reads, writes, allocates, ...
    pub mode: Mode,
    /// The evidence for the access.
    pub basis: Basis,
}

/// The bytes that an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Extent {
    /// Every byte of a range.
    Range(ByteRange),
    /// Rows of equal width at a fixed pitch (2-D and 3-D copies and memsets).
    Strided(StridedPattern),
}

/// `slices` times `rows` runs of `width` bytes: the run (slice, row) begins at
/// `start + slice * slice_pitch + row * pitch`.
///
/// Invariants: no count is zero, `width <= pitch` when there is more than one row, and
/// `rows * pitch <= slice_pitch` when there is more than one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StridedPattern {
    /// Address of the first byte.
    pub start: u64,
    /// Touched bytes in each row.
    pub width: u64,
    /// Bytes from the begin of one row to the begin of the next.
    pub pitch: u64,
    /// Rows in a slice.
    pub rows: u64,
    /// Bytes from the begin of one slice to the begin of the next.
    pub slice_pitch: u64,
    /// Number of slices (1 for a 2-D pattern).
    pub slices: u64,
}

impl StridedPattern {
    /// The smallest range that holds the pattern.
    pub fn hull(&self) -> ByteRange {
        let last = self
            .slices
            .saturating_sub(1)
            .saturating_mul(self.slice_pitch)
            .saturating_add(self.rows.saturating_sub(1).saturating_mul(self.pitch));
        ByteRange::with_len(self.start, last.saturating_add(self.width))
    }

    /// The runs in ascending order, cut at the end of the address space. Their number is `rows *
    /// slices`: check the counts of a pattern from an untrusted trace before you iterate.
    pub fn runs(&self) -> impl Iterator<Item = ByteRange> + use<> {
        let p = *self;
        (0..p.slices).flat_map(move |slice| {
            (0..p.rows).map(move |row| {
                let slice = p.start.saturating_add(slice.saturating_mul(p.slice_pitch));
                let start = slice.saturating_add(row.saturating_mul(p.pitch));
                ByteRange::with_len(start, p.width)
            })
        })
    }
}

impl Extent {
    /// The extent of a 2-D or 3-D pattern, simplified to a range where its runs touch each other.
    /// `None` when it holds no byte.
    pub fn strided(mut p: StridedPattern) -> Option<Self> {
        if p.width == 0 || p.rows == 0 || p.slices == 0 {
            return None;
        }
        if p.rows == 1 || p.pitch == p.width {
            // Rows without gaps are one row; a slice's rows then become the rows of the pattern.
            p = StridedPattern {
                width: p.width * p.rows,
                rows: p.slices,
                pitch: if p.slices == 1 { p.width * p.rows } else { p.slice_pitch },
                slices: 1,
                slice_pitch: 0,
                ..p
            };
            if p.rows == 1 || p.pitch == p.width {
                return Some(Self::Range(ByteRange::with_len(p.start, p.width * p.rows)));
            }
        } else if p.slices == 1 || p.slice_pitch == p.rows * p.pitch {
            p = StridedPattern { rows: p.rows * p.slices, slices: 1, slice_pitch: 0, ..p };
        }
        Some(Self::Strided(p))
    }

    /// The smallest range that holds every byte touched.
    pub fn hull(&self) -> ByteRange {
        match self {
            Self::Range(range) => *range,
            Self::Strided(pattern) => pattern.hull(),
        }
    }
}

/// The effect of an access on the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes.
    ReadWrite,
    /// Atomic read-modify-write: no conflict with another atomic, a conflict with anything else.
    Atomic,
    /// Unknown: the access may read and may write.
    MayWrite,
    /// The begin of the memory's life: a write of the whole generation.
    Allocate,
    /// The end of the memory's life: a write of the whole generation.
    Free,
    /// Moves the bytes without changing them (managed memory): conflicts with a discard only.
    Prefetch,
    /// Throws the bytes away (managed memory): conflicts with everything, prefetches included.
    Discard,
    /// Reads by strong operations at system scope only (see [`Mode::is_strong`]).
    StrongRead,
    /// Writes by strong operations at system scope only.
    StrongWrite,
    /// Atomic read-modify-write at system scope only, or by the host.
    StrongAtomic,
}

impl Mode {
    /// All modes, in the order of their stored codes.
    pub const ALL: [Self; 12] = [
        Self::Read,
        Self::Write,
        Self::ReadWrite,
        Self::Atomic,
        Self::MayWrite,
        Self::Allocate,
        Self::Free,
        Self::Prefetch,
        Self::Discard,
        Self::StrongRead,
        Self::StrongWrite,
        Self::StrongAtomic,
    ];

    /// Whether the bytes' old values may be read.
    pub const fn reads(self) -> bool {
        matches!(self.weak(), Self::Read | Self::ReadWrite | Self::Atomic | Self::MayWrite)
    }

    /// Whether the bytes may be changed.
    pub const fn writes(self) -> bool {
        !matches!(self.weak(), Self::Read | Self::Prefetch)
    }

    /// Whether every instruction of the access is one strong operation whose scope is the system,
    /// so that two such accesses do not race.
    ///
    /// On the device these are `ld` and `st` with `.relaxed`, `.acquire` or `.release` and `.sys`,
    /// `.volatile` and `.mmio` ones, and `atom` and `red` with `.sys`. On the host they are atomic
    /// instructions and plain moves of up to 8 aligned bytes, which is what `std::atomic` and
    /// `volatile` become. Sources: PTX ISA, Memory Consistency Model (Scope; Morally strong
    /// operations; Conflict and Data-races: two morally strong operations are no data race); CUDA C++
    /// Programming Guide, Atomic Functions, and libcu++, `thread_scope_system` (host threads are in
    /// the system's scope).
    pub const fn is_strong(self) -> bool {
        matches!(self, Self::StrongRead | Self::StrongWrite | Self::StrongAtomic)
    }

    /// The effect on the bytes, whatever the strength of the operations: what reports say and
    /// suppressions name.
    #[must_use]
    pub const fn weak(self) -> Self {
        match self {
            Self::StrongRead => Self::Read,
            Self::StrongWrite => Self::Write,
            Self::StrongAtomic => Self::Atomic,
            mode => mode,
        }
    }

    /// Whether all of the access is atomic read-modify-write operations.
    pub const fn is_atomic(self) -> bool {
        matches!(self.weak(), Self::Atomic)
    }

    /// The mode of one access that stands for two to the same bytes. It conflicts with everything
    /// that one of the two conflicts with.
    #[must_use]
    pub const fn joined(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a as u8 == b as u8 => a,
            (Self::MayWrite, b) if !b.writes() => Self::MayWrite,
            (a, Self::MayWrite) if !a.writes() => Self::MayWrite,
            (a, b) if !a.writes() && !b.writes() => Self::Read,
            _ => Self::ReadWrite,
        }
    }

    /// The word that reports print.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "read-write",
            Self::Atomic => "atomic",
            Self::MayWrite => "may-write",
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::Prefetch => "prefetch",
            Self::Discard => "discard",
            Self::StrongRead => "strong-read",
            Self::StrongWrite => "strong-write",
            Self::StrongAtomic => "strong-atomic",
        }
    }
}

/// The evidence for an access, ordered from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Basis {
    /// A parameter word looks like a pointer; nothing is known of its use.
    Assumed,
    /// The mode is known and the start address is certain; only the allocation bounds the extent.
    Anchored,
    /// Mode and range are concluded from the kernel's code.
    Inferred,
    /// Copies, memsets, allocation and free, host API ranges, the simulator's interpreter.
    Exact,
    /// The bytes that the kernel touched in this launch, seen by instrumented code. Counts as
    /// [`Basis::Exact`] wherever evidence is weighed.
    Measured,
}

impl Basis {
    /// All bases, in the order of their stored codes.
    pub const ALL: [Self; 5] =
        [Self::Assumed, Self::Anchored, Self::Inferred, Self::Exact, Self::Measured];

    /// Whether an access of this basis may be to more bytes than were touched.
    pub const fn is_weak(self) -> bool {
        matches!(self, Self::Assumed | Self::Anchored)
    }

    /// The word that reports print.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Assumed => "assumed",
            Self::Anchored => "anchored",
            Self::Inferred => "inferred",
            Self::Exact => "exact",
            Self::Measured => "measured",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, StridedPattern};
    use crate::ByteRange;

    const P: StridedPattern =
        StridedPattern { start: 100, width: 4, pitch: 16, rows: 3, slice_pitch: 64, slices: 2 };

    #[test]
    fn hull_and_runs_agree() {
        let runs: Vec<_> = P.runs().collect();
        assert_eq!(runs.len(), 6);
        assert_eq!(P.hull(), ByteRange::new(100, runs[5].end));
    }

    #[test]
    fn patterns_without_gaps_become_ranges() {
        let full = StridedPattern { width: 16, slice_pitch: 48, ..P };
        assert_eq!(Extent::strided(full), Some(Extent::Range(ByteRange::with_len(100, 96))));
        assert_eq!(Extent::strided(StridedPattern { width: 0, ..P }), None);
    }

    #[test]
    fn simplification_keeps_the_bytes() {
        for (width, pitch, rows, slice_pitch, slices) in [
            (4, 16, 3, 48, 2),
            (16, 16, 3, 64, 2),
            (4, 16, 1, 64, 2),
            (4, 16, 3, 0, 1),
            (4, 4, 1, 4, 3),
        ] {
            let p = StridedPattern { start: 7, width, pitch, rows, slice_pitch, slices };
            let bytes = |e: Extent| -> Vec<u64> {
                let runs = match e {
                    Extent::Range(r) => vec![r],
                    Extent::Strided(p) => p.runs().collect(),
                };
                runs.into_iter().flat_map(|r| r.start..r.end).collect()
            };
            let simplified = Extent::strided(p).expect("not empty");
            assert_eq!(bytes(simplified), bytes(Extent::Strided(p)));
        }
    }
}
