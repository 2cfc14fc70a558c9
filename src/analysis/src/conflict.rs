//! When two accesses conflict, of what kind, and how sure we are.

use crate::record::{AccessRecord, Role};
use streamsan_model::{Basis, ByteRange, Confidence, ConflictKind, Extent, Mode, StridedPattern};

/// The kind of conflict of a later access with an earlier one to common bytes, if it is one.
/// Pairs with the free or the allocation win, then RAW, WAW, WAR.
pub(crate) fn kind(later: Mode, earlier: Mode) -> Option<ConflictKind> {
    match (later, earlier) {
        (Mode::Free, _) | (_, Mode::Free) => Some(ConflictKind::UseAfterFree),
        (Mode::Allocate, _) | (_, Mode::Allocate) => Some(ConflictKind::UseBeforeAlloc),
        // Atomic operations are ordered among themselves by the memory system.
        (Mode::Atomic, Mode::Atomic) => None,
        // Moving managed memory is coherent with every use of it; throwing it away is not, not even
        // with moving it. Driver API, `cuMemDiscardBatchAsync`.
        (Mode::Prefetch, Mode::Discard) => Some(ConflictKind::ReadAfterWrite),
        (Mode::Discard, Mode::Prefetch) => Some(ConflictKind::WriteAfterRead),
        (Mode::Prefetch, _) | (_, Mode::Prefetch) => None,
        _ if later.reads() && earlier.writes() => Some(ConflictKind::ReadAfterWrite),
        _ if later.writes() && earlier.writes() => Some(ConflictKind::WriteAfterWrite),
        _ if later.writes() => Some(ConflictKind::WriteAfterRead),
        _ => None,
    }
}

/// `certain` when both accesses are exact, `likely` when both are at least inferred or the overlap
/// holds the anchor of each anchored one, `possible` otherwise. What stands in the body of a
/// conditional node is `likely` at most, for the body may not run. A word that a stream memory
/// operation waits for, or writes while the host reads it, is there to be used so: `possible` at most.
pub(crate) fn confidence(a: &AccessRecord, b: &AccessRecord, overlap: ByteRange) -> Confidence {
    if a.is_ambiguous() || b.is_ambiguous() || is_polled(a, b) || is_polled(b, a) {
        return Confidence::Possible;
    }
    side(a, overlap).min(side(b, overlap))
}

/// Whether the host looks at a word that a stream memory operation writes: it may look until it sees
/// the value. Driver API, `cuStreamWriteValue32`.
fn is_polled(word: &AccessRecord, host: &AccessRecord) -> bool {
    word.role == Role::Signalled && host.place.is_host() && host.access.mode.reads()
}

fn side(record: &AccessRecord, overlap: ByteRange) -> Confidence {
    let access = &record.access;
    let known = match access.basis {
        _ if record.role == Role::Awaited || access.mode == Mode::MayWrite => Confidence::Possible,
        Basis::Exact => Confidence::Certain,
        Basis::Inferred => Confidence::Likely,
        Basis::Anchored if overlap.contains(access.extent.hull().start) => Confidence::Likely,
        Basis::Anchored | Basis::Assumed => Confidence::Possible,
    };
    match record.role {
        Role::Conditional => known.min(Confidence::Likely),
        _ => known,
    }
}

/// The hull of the bytes that both extents touch within `piece`, exactly.
pub(crate) fn common_bytes(a: &Extent, b: &Extent, piece: ByteRange) -> Option<ByteRange> {
    match (a, b) {
        (Extent::Range(a), Extent::Range(b)) => a.intersection(*b)?.intersection(piece),
        (Extent::Range(range), Extent::Strided(pattern))
        | (Extent::Strided(pattern), Extent::Range(range)) => {
            pattern_in(pattern, range.intersection(piece)?)
        }
        (Extent::Strided(a), Extent::Strided(b)) => {
            // Walk the pattern with fewer runs; the other one answers run by run.
            let (walked, asked) =
                if a.rows * a.slices <= b.rows * b.slices { (a, b) } else { (b, a) };
            walked.runs().filter_map(|run| pattern_in(asked, run.intersection(piece)?)).reduce(hull)
        }
    }
}

/// The smallest range around two.
pub(crate) fn hull(a: ByteRange, b: ByteRange) -> ByteRange {
    ByteRange::new(a.start.min(b.start), a.end.max(b.end))
}

/// The hull of the bytes of `pattern` within `range`. Looks at the slices that reach into the range
/// and, in each, at the first and the last row that do.
fn pattern_in(pattern: &StridedPattern, range: ByteRange) -> Option<ByteRange> {
    let slice_bytes = (pattern.rows - 1) * pattern.pitch + pattern.width;
    let slices = indices(pattern.start, pattern.slice_pitch, pattern.slices, slice_bytes, range)?;
    slices
        .filter_map(|slice| {
            let start = pattern.start + slice * pattern.slice_pitch;
            let mut rows = indices(start, pattern.pitch, pattern.rows, pattern.width, range)?;
            let run = |row: u64| ByteRange::with_len(start + row * pattern.pitch, pattern.width);
            let first = rows.next()?;
            let last = rows.last().unwrap_or(first);
            hull(run(first), run(last)).intersection(range)
        })
        .reduce(hull)
}

/// The indices `i < count` for which `[start + i * pitch, + width)` meets `range`.
fn indices(
    start: u64,
    pitch: u64,
    count: u64,
    width: u64,
    range: ByteRange,
) -> Option<std::ops::Range<u64>> {
    if range.is_empty() || range.end <= start {
        return None;
    }
    if count == 1 || pitch == 0 {
        return ByteRange::with_len(start, width).intersection(range).map(|_| 0..1);
    }
    // The last index that begins before the range ends, and the first that ends behind its start.
    let end = ((range.end - 1 - start) / pitch + 1).min(count);
    let first =
        if range.start < start + width { 0 } else { (range.start - start - width) / pitch + 1 };
    (first < end).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::test_support::record;

    #[test]
    fn kinds() {
        use ConflictKind::*;
        use Mode::*;
        let table = [
            (Read, Read, None),
            (Read, Write, Some(ReadAfterWrite)),
            (Write, Read, Some(WriteAfterRead)),
            (Write, Write, Some(WriteAfterWrite)),
            (ReadWrite, Write, Some(ReadAfterWrite)),
            (ReadWrite, Read, Some(WriteAfterRead)),
            (Read, ReadWrite, Some(ReadAfterWrite)),
            (Atomic, Atomic, None),
            (Atomic, Read, Some(WriteAfterRead)),
            (Read, Atomic, Some(ReadAfterWrite)),
            (MayWrite, Read, Some(WriteAfterRead)),
            (MayWrite, MayWrite, Some(ReadAfterWrite)),
            (Write, Free, Some(UseAfterFree)),
            (Free, Read, Some(UseAfterFree)),
            (Read, Allocate, Some(UseBeforeAlloc)),
            (Prefetch, Write, None),
            (Write, Prefetch, None),
            (Prefetch, Prefetch, None),
            (Prefetch, Discard, Some(ReadAfterWrite)),
            (Discard, Prefetch, Some(WriteAfterRead)),
            (Discard, Read, Some(WriteAfterRead)),
            (Read, Discard, Some(ReadAfterWrite)),
            (Discard, Discard, Some(WriteAfterWrite)),
            (Discard, Atomic, Some(WriteAfterWrite)),
            (Prefetch, Free, Some(UseAfterFree)),
            (Allocate, Prefetch, Some(UseBeforeAlloc)),
        ];
        for (later, earlier, expected) in table {
            assert_eq!(kind(later, earlier), expected, "{later:?} after {earlier:?}");
        }
    }

    /// Two tensors in one allocation of the driver, of whose accesses only the begins are certain.
    #[test]
    fn neighbours_are_possible_and_one_begin_for_two_is_likely() {
        use Basis::{Anchored, Assumed, Exact, Inferred};
        use Confidence::{Certain, Likely, Possible};
        const END: u64 = 4096;
        let table = [
            // What each says of itself: the overlap is what both may touch.
            ((Anchored, 0, END), (Anchored, 1024, END), Possible),
            ((Anchored, 1024, END), (Anchored, 0, END), Possible),
            ((Anchored, 1024, END), (Anchored, 1024, END), Likely),
            ((Anchored, 0, END), (Exact, 1024, 2048), Possible),
            ((Anchored, 1024, END), (Exact, 1024, 2048), Likely),
            ((Anchored, 1024, END), (Exact, 0, 2048), Likely),
            ((Anchored, 1024, END), (Inferred, 0, 1025), Likely),
            // What lies below the begin is no more than assumed.
            ((Assumed, 0, 1024), (Anchored, 0, END), Possible),
            ((Assumed, 0, END), (Exact, 0, END), Possible),
            ((Inferred, 0, 1025), (Inferred, 1024, END), Likely),
            ((Exact, 0, 1025), (Exact, 1024, END), Certain),
        ];
        for (a, b, expected) in table {
            let side = |g, (basis, start, end): (Basis, u64, u64)| {
                let mut side = record(g, Mode::Write, basis);
                side.access.extent = Extent::Range(ByteRange::new(start, end));
                side
            };
            let (first, second) = (side(1, a), side(2, b));
            let piece = ByteRange::new(0, END);
            let overlap = common_bytes(&first.access.extent, &second.access.extent, piece);
            let overlap = overlap.expect("they meet");
            assert_eq!(confidence(&first, &second, overlap), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn common_bytes_of_patterns_agree_with_counting() {
        let patterns = [
            StridedPattern { start: 0, width: 4, pitch: 16, rows: 5, slice_pitch: 0, slices: 1 },
            StridedPattern { start: 4, width: 4, pitch: 16, rows: 5, slice_pitch: 0, slices: 1 },
            StridedPattern { start: 2, width: 4, pitch: 16, rows: 3, slice_pitch: 64, slices: 3 },
            StridedPattern { start: 30, width: 3, pitch: 7, rows: 9, slice_pitch: 0, slices: 1 },
        ];
        let bytes = |p: &StridedPattern| p.runs().flat_map(|r| r.start..r.end).collect::<Vec<_>>();
        for a in &patterns {
            for b in &patterns {
                for (start, end) in [(0, 500), (0, 20), (33, 47), (60, 61), (100, 140)] {
                    let common: Vec<u64> = bytes(a)
                        .into_iter()
                        .filter(|x| bytes(b).contains(x) && (start..end).contains(x))
                        .collect();
                    let expected = common.first().map(|_| {
                        ByteRange::new(
                            *common.iter().min().expect("not empty"),
                            *common.iter().max().expect("not empty") + 1,
                        )
                    });
                    let got = common_bytes(
                        &Extent::Strided(*a),
                        &Extent::Strided(*b),
                        ByteRange::new(start, end),
                    );
                    assert_eq!(got, expected, "{a:?} {b:?} {start}..{end}");
                }
            }
        }
    }
}
