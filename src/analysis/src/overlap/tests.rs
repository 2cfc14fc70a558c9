//! The overlap of two patterns, against counting byte by byte, and for patterns that are too large
//! to count.

use super::*;

fn pattern(start: u64, width: u64, rows: (u64, u64), slices: (u64, u64)) -> StridedPattern {
    let ((pitch, rows), (slice_pitch, slices)) = (rows, slices);
    StridedPattern { start, width, pitch, rows, slice_pitch, slices }
}

fn bytes(extent: &Extent) -> Vec<u64> {
    let runs = match extent {
        Extent::Range(range) => vec![*range],
        Extent::Strided(pattern) => pattern.runs().collect(),
    };
    let mut bytes: Vec<u64> = runs.into_iter().flat_map(|run| run.start..run.end).collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

fn counted(a: &Extent, b: &Extent, piece: ByteRange) -> Option<ByteRange> {
    let other = bytes(b);
    let common = bytes(a).into_iter().filter(|&x| piece.contains(x));
    let common: Vec<u64> = common.filter(|x| other.binary_search(x).is_ok()).collect();
    Some(ByteRange::new(*common.first()?, *common.last()? + 1))
}

/// Pseudo-random numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn pattern(&mut self) -> StridedPattern {
        let width = 1 + self.below(6);
        let rows = (width + self.below(20), 1 + self.below(9));
        let slices = (rows.0 * rows.1 + self.below(30), 1 + self.below(4));
        pattern(self.below(60), width, rows, slices)
    }
}

#[test]
fn common_bytes_agree_with_counting() {
    let mut numbers = Numbers(1);
    for round in 0..6_000 {
        let a = numbers.pattern();
        let mut b = numbers.pattern();
        match round % 4 {
            0 => {
                (b.pitch, b.rows, b.slice_pitch) = (a.pitch, a.rows, a.slice_pitch);
                b.width = b.width.min(b.pitch);
            }
            1 => {
                (b.pitch, b.slice_pitch) = (a.pitch, b.slice_pitch.max(a.pitch * b.rows));
                b.width = b.width.min(b.pitch);
            }
            _ => {}
        }
        let (start, length) = (numbers.below(200), numbers.below(200));
        let piece = ByteRange::with_len(start, length);
        let (a, mut b) = (Extent::Strided(a), Extent::Strided(b));
        if round % 7 == 0 {
            b = Extent::Range(b.hull());
        }
        assert_eq!(common_bytes(&a, &b, piece), counted(&a, &b, piece), "{a:?} {b:?} {piece:?}");
        assert_eq!(common_bytes(&b, &a, piece), counted(&a, &b, piece), "{b:?} {a:?} {piece:?}");
    }
}

#[test]
fn rows_without_number_are_compared_at_once() {
    const MANY: u64 = 1 << 36;
    let all = ByteRange::new(0, u64::MAX);
    let rows = |start, width, pitch| Extent::Strided(pattern(start, width, (pitch, MANY), (0, 1)));
    // Columns of one matrix; columns at unlike pitches that never meet, and that do only far away.
    let column = rows(0, 4, 1024);
    assert_eq!(common_bytes(&column, &rows(4, 4, 1024), all), None);
    assert_eq!(
        common_bytes(&column, &rows(2, 4, 1024), all),
        Some(ByteRange::new(2, 1024 * (MANY - 1) + 4))
    );
    assert_eq!(common_bytes(&column, &rows(4, 4, 2048), all), None);
    assert_eq!(common_bytes(&rows(0, 1, 1 << 20), &rows(1, 1, (1 << 20) + 2), all), None);
    let (a, b) = (rows(0, 1, 1 << 20), rows((1 << 19) + 1, 1, (1 << 20) + 1));
    let first = ((1 << 20) - (1 << 19) - 1) * ((1 << 20) + 1) + (1 << 19) + 1;
    assert_eq!(common_bytes(&a, &b, all).map(|common| common.start), Some(first));
    // Boxes of one array.
    let boxes = |start| Extent::Strided(pattern(start, 8, (64, 1 << 20), (1 << 26, 1 << 30)));
    assert_eq!(common_bytes(&boxes(0), &boxes(8), all), None);
    assert!(common_bytes(&boxes(0), &boxes(7), all).is_some());
}

#[test]
fn patterns_beyond_the_address_space_are_compared() {
    let far = pattern(u64::MAX - 10, u64::MAX, (u64::MAX, u64::MAX), (u64::MAX, u64::MAX));
    let all = ByteRange::new(0, u64::MAX);
    let far = Extent::Strided(far);
    assert!(common_bytes(&far, &far, all).is_some());
    let flat = Extent::Strided(pattern(0, 1, (0, 9), (0, 9)));
    assert_eq!(common_bytes(&flat, &flat, all), Some(ByteRange::new(0, 1)));
}
