//! Whether a launch touched bytes that its code was read not to touch: the check of every measured
//! launch against the analysis of kernels.
//!
//! The analysis claims that all bytes of a launch lie in what it concludes, if the kernel's code is
//! understood and the kernel stays within its memory. A measured byte outside is therefore an access
//! out of bounds, or an error of the analysis; reports say so.
//!
//! Deliberately absent: launches with gaps, of which nothing is claimed (the caller's decision).

use super::MADE_UP;
use std::collections::BTreeMap;
use streamsan_model::{Access, AllocationId, Basis, ByteRange, Extent};

/// Runs of one pattern that are looked at one by one. Of a longer pattern the hull counts where it was
/// concluded, and the first and the last run where it was measured: nothing is called outside that is
/// not.
const MOST_RUNS: u64 = 1 << 12;

/// Whether a measured byte is not among the concluded ones, be it read or written.
pub(super) fn is_outside(measured: &[Access], concluded: &[Access]) -> bool {
    // The place of a variable at a made-up address is not known, so it may be anywhere.
    if concluded.iter().any(|access| access.extent.hull().start >= MADE_UP) {
        return false;
    }
    let reads = by_allocation(concluded.iter().filter(|access| access.mode.reads()));
    let writes = by_allocation(concluded.iter().filter(|access| access.mode.writes()));
    // Bytes of no allocation are assumed.
    let known = measured.iter().filter(|access| access.basis == Basis::Measured);
    known.into_iter().any(|access| {
        let covers = |all: &BTreeMap<AllocationId, Vec<ByteRange>>| {
            let all = all.get(&access.allocation).map_or(&[][..], Vec::as_slice);
            measured_runs(&access.extent).into_iter().all(|run| holds(all, run))
        };
        (access.mode.reads() && !covers(&reads)) || (access.mode.writes() && !covers(&writes))
    })
}

/// The concluded bytes of each allocation: sorted, and no two ranges touch.
fn by_allocation<'a>(
    accesses: impl Iterator<Item = &'a Access>,
) -> BTreeMap<AllocationId, Vec<ByteRange>> {
    let mut all = BTreeMap::<AllocationId, Vec<ByteRange>>::new();
    for access in accesses {
        let ranges = all.entry(access.allocation).or_default();
        match &access.extent {
            Extent::Strided(p) if p.rows.saturating_mul(p.slices) <= MOST_RUNS => {
                ranges.extend(p.runs());
            }
            extent => ranges.push(extent.hull()),
        }
    }
    for ranges in all.values_mut() {
        ranges.sort_by_key(|range| range.start);
        let mut joined: Vec<ByteRange> = Vec::with_capacity(ranges.len());
        for range in ranges.drain(..) {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        *ranges = joined;
    }
    all
}

fn measured_runs(extent: &Extent) -> Vec<ByteRange> {
    match extent {
        Extent::Range(range) => vec![*range],
        Extent::Strided(p) if p.rows.saturating_mul(p.slices) <= MOST_RUNS => p.runs().collect(),
        Extent::Strided(p) => {
            let end = p.hull().end;
            vec![
                ByteRange::with_len(p.start, p.width),
                ByteRange::new(end.saturating_sub(p.width), end),
            ]
        }
    }
}

/// Whether one of sorted ranges holds all of a run.
fn holds(ranges: &[ByteRange], run: ByteRange) -> bool {
    let behind = ranges.partition_point(|range| range.start <= run.start);
    behind.checked_sub(1).is_some_and(|at| run.end <= ranges[at].end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use streamsan_model::{Mode, StridedPattern};

    fn access(allocation: u32, start: u64, len: u64, mode: Mode, basis: Basis) -> Access {
        let extent = Extent::Range(ByteRange::with_len(start, len));
        Access { allocation: AllocationId(allocation), extent, mode, basis }
    }

    fn measured(start: u64, len: u64, mode: Mode) -> Access {
        access(1, start, len, mode, Basis::Measured)
    }

    #[test]
    fn a_byte_must_be_concluded_in_its_allocation_with_its_effect() {
        let concluded = [
            access(1, 0, 64, Mode::Read, Basis::Inferred),
            access(1, 64, 64, Mode::Read, Basis::Anchored),
            access(1, 256, 64, Mode::MayWrite, Basis::Assumed),
            access(2, 512, 64, Mode::Write, Basis::Anchored),
        ];
        for (access, expected) in [
            (measured(32, 64, Mode::Read), false),
            (measured(32, 64, Mode::Write), true),
            (measured(96, 33, Mode::Read), true),
            (measured(256, 64, Mode::Atomic), false),
            (measured(255, 2, Mode::Read), true),
            (measured(512, 4, Mode::Write), true),
            (access(2, 512, 4, Mode::Write, Basis::Measured), false),
            (access(2, 512, 4, Mode::Read, Basis::Measured), true),
            (access(9, 0, 4, Mode::Read, Basis::Assumed), false),
        ] {
            assert_eq!(
                is_outside(std::slice::from_ref(&access), &concluded),
                expected,
                "{access:?}"
            );
        }
    }

    #[test]
    fn rows_are_compared_one_by_one() {
        let rows = |start, rows| {
            let pattern =
                StridedPattern { start, width: 4, pitch: 16, rows, slice_pitch: 0, slices: 1 };
            Extent::strided(pattern).expect("bytes")
        };
        let of = |extent, basis| Access { extent, ..access(1, 0, 1, Mode::Write, basis) };
        let concluded = [of(rows(0, 8), Basis::Inferred)];
        assert!(!is_outside(&[of(rows(16, 7), Basis::Measured)], &concluded));
        assert!(is_outside(&[of(rows(16, 8), Basis::Measured)], &concluded), "one row more");
        assert!(is_outside(&[of(rows(4, 2), Basis::Measured)], &concluded), "between the rows");
        let many = [of(rows(0, 2 * MOST_RUNS), Basis::Inferred)];
        assert!(!is_outside(&[of(rows(32, MOST_RUNS + 1), Basis::Measured)], &many));
        assert!(is_outside(&[of(rows(32, 2 * MOST_RUNS), Basis::Measured)], &many));
    }

    #[test]
    fn a_variable_whose_place_is_not_known_may_be_anywhere() {
        let concluded = [access(3, MADE_UP, 8, Mode::Write, Basis::Inferred)];
        assert!(!is_outside(&[measured(0, 4, Mode::Write)], &concluded));
        assert!(is_outside(&[measured(0, 4, Mode::Write)], &[]));
    }
}
