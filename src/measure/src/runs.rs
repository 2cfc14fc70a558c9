//! Byte ranges made few: joined, and those of one length at one distance counted as rows.
//!
//! Invariant: the runs hold every byte of the ranges. Runs that are not hulls hold no other byte.

use std::ops::Range;
use streamsan_wire::MeasuredRun;

/// Most runs of one launch; what is beyond them is given as hulls.
const MOST_RUNS: usize = 4096;
/// Hulls at the end of a list that was cut.
const HULLS: usize = 64;

/// Sorts ranges and joins those that touch or overlap.
pub(crate) fn join(ranges: &mut Vec<Range<u64>>) {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut kept = 0;
    for at in 0..ranges.len() {
        let next = ranges[at].clone();
        if kept > 0 && next.start <= ranges[kept - 1].end {
            ranges[kept - 1].end = ranges[kept - 1].end.max(next.end);
        } else {
            ranges[kept] = next;
            kept += 1;
        }
    }
    ranges.truncate(kept);
}

/// The runs of joined ranges by mode (0 read, 1 write, 2 atomic).
pub(crate) fn runs(by_mode: &[Vec<Range<u64>>]) -> Vec<MeasuredRun> {
    let mut found = Vec::new();
    let lists = by_mode.iter().filter(|ranges| !ranges.is_empty()).count().max(1);
    for (mode, ranges) in (0..).zip(by_mode) {
        add(ranges, mode, MOST_RUNS / lists, &mut found);
    }
    found
}

fn add(ranges: &[Range<u64>], mode: u32, most: usize, found: &mut Vec<MeasuredRun>) {
    let first = found.len();
    let mut at = 0;
    while at < ranges.len() {
        if found.len() - first == most - HULLS && !ends_within(&ranges[at..], HULLS) {
            hulls(&ranges[at..], mode, found);
            return;
        }
        let count = rows(&ranges[at..]);
        let pitch = if count > 1 { ranges[at + 1].start - ranges[at].start } else { 0 };
        let (start, width) = (ranges[at].start, ranges[at].end - ranges[at].start);
        let pitch = pitch.max(width);
        found.push(MeasuredRun { start, width, pitch, rows: count as u64, mode, flags: 0 });
        at += count;
    }
}

/// Number of ranges from the first on with its length, each at the distance of the second.
fn rows(ranges: &[Range<u64>]) -> usize {
    let length = |range: &Range<u64>| range.end - range.start;
    let (Some(first), Some(second)) = (ranges.first(), ranges.get(1)) else { return 1 };
    if length(first) != length(second) {
        return 1;
    }
    let pitch = second.start - first.start;
    let alike = |pair: &[Range<u64>]| {
        length(&pair[1]) == length(first) && pair[1].start - pair[0].start == pitch
    };
    1 + ranges.windows(2).take_while(|pair| alike(pair)).count()
}

fn ends_within(mut ranges: &[Range<u64>], most: usize) -> bool {
    for _ in 0..most {
        if ranges.is_empty() {
            return true;
        }
        ranges = &ranges[rows(ranges)..];
    }
    ranges.is_empty()
}

fn hulls(ranges: &[Range<u64>], mode: u32, found: &mut Vec<MeasuredRun>) {
    for part in ranges.chunks(ranges.len().div_ceil(HULLS)) {
        let (start, end) = (part[0].start, part[part.len() - 1].end);
        let width = end - start;
        let flags = if part.len() > 1 { MeasuredRun::HULL } else { 0 };
        found.push(MeasuredRun { start, width, pitch: width, rows: 1, mode, flags });
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "lists of byte ranges")]
mod tests {
    use super::*;

    fn joined(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut ranges = ranges.to_vec();
        join(&mut ranges);
        ranges
    }

    fn expanded(runs: &[MeasuredRun]) -> Vec<Range<u64>> {
        let rows = |run: &MeasuredRun| {
            let (start, pitch, width) = (run.start, run.pitch, run.width);
            (0..run.rows).map(move |row| start + row * pitch..start + row * pitch + width)
        };
        joined(&runs.iter().flat_map(rows).collect::<Vec<_>>())
    }

    #[test]
    fn ranges_that_touch_are_joined() {
        assert_eq!(joined(&[8..12, 0..4, 4..6, 11..20, 30..31]), [0..6, 8..20, 30..31]);
        assert_eq!(joined(&[]), []);
        assert_eq!(joined(&[0..10, 2..3]), [0..10]);
    }

    #[test]
    fn equal_distances_are_rows() {
        let columns: Vec<_> = (0..50).map(|row| 100 + row * 16..104 + row * 16).collect();
        let found = runs(&[columns, Vec::new(), vec![0..7]]);
        let run = |start, width, pitch, rows, mode| MeasuredRun {
            start,
            width,
            pitch,
            rows,
            mode,
            flags: 0,
        };
        assert_eq!(found, [run(100, 4, 16, 50, 0), run(0, 7, 7, 1, 2)]);
    }

    #[test]
    fn runs_hold_the_same_bytes() {
        // Gaps and lengths from a generator, so that rows begin and end everywhere.
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut at = 0;
            let ranges: Vec<_> = (0..next(60))
                .map(|_| {
                    let start = at + 1 + next(3);
                    at = start + 1 + next(2);
                    start..at
                })
                .collect();
            let found = runs(std::slice::from_ref(&ranges));
            assert!(found.iter().all(|run| run.flags == 0 && run.pitch >= run.width));
            assert_eq!(expanded(&found), ranges);
        }
    }

    #[test]
    fn a_long_list_ends_in_hulls() {
        // No two distances in a row are equal.
        let ranges: Vec<_> = (0..20_000u64).map(|at| at * at * 2..at * at * 2 + 1).collect();
        let found = runs(std::slice::from_ref(&ranges));
        assert_eq!(found.len(), MOST_RUNS);
        let hulls: Vec<_> = found.iter().filter(|run| run.flags == MeasuredRun::HULL).collect();
        assert_eq!(hulls.len(), HULLS);
        let held = expanded(&found);
        assert!(ranges.iter().all(|range| {
            held.iter().any(|held| held.start <= range.start && range.end <= held.end)
        }));
    }
}
