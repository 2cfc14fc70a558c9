//! The bytes that two extents have in common.
//!
//! A trace may name any number of rows, so nothing here iterates over rows. Two patterns of the
//! same pitches have a pattern in common. With different pitches, the search leaps from row to row
//! by modular arithmetic (the Euclidean algorithm). Some patterns in slices pass each other
//! thousands of times; where a bounded number of steps does not decide, they are taken to meet: a
//! reader can check a pair that is reported, and cannot check one that is not.
//!
//! Invariant: the result is never smaller than the common bytes.

use streamsan_model::{ByteRange, Extent, StridedPattern};

/// Number of steps after which two patterns are taken to meet.
const STEPS: u32 = 1 << 14;
/// Number of steps before the search leaps: most pairs need no more.
const WALKED: u32 = 8;
/// The most distances between rows of one pitch that are looked at, and the most slices that lie
/// over each other. No copy and no matrix makes more.
const MOST: i128 = 16;

/// The hull of the bytes that both extents touch within `piece`.
pub(crate) fn common_bytes(a: &Extent, b: &Extent, piece: ByteRange) -> Option<ByteRange> {
    if let (Extent::Range(a), Extent::Range(b)) = (a, b) {
        return a.intersection(*b)?.intersection(piece);
    }
    let (a, b) = (Runs::of(a)?, Runs::of(b)?);
    let window = Window {
        start: i128::from(piece.start).max(a.start).max(b.start),
        end: i128::from(piece.end).min(a.end()).min(b.end()),
    };
    if window.start >= window.end {
        return None;
    }
    let (start, end) = match of_same_pitches(&a, &b, window) {
        Some(common) => common?,
        None => {
            let first = first_common(&a, &b, window)?;
            let last = first_common(&a.mirrored(), &b.mirrored(), window.mirrored())?;
            (first, -last)
        }
    };
    Some(ByteRange::new(u64::try_from(start).ok()?, u64::try_from(end).ok()?))
}

/// The range in which common bytes are searched.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: i128,
    end: i128,
}

impl Window {
    fn mirrored(self) -> Self {
        Self { start: -self.end, end: -self.start }
    }
}

/// `count` equal parts, `pitch` bytes apart.
#[derive(Clone, Copy, Debug)]
struct Level {
    pitch: i128,
    count: i128,
}

/// An extent as runs of bytes in two levels; the inner level has the smaller pitch.
#[derive(Clone, Copy, Debug)]
struct Runs {
    start: i128,
    width: i128,
    inner: Level,
    outer: Level,
}

impl Runs {
    fn of(extent: &Extent) -> Option<Self> {
        let hull = extent.hull();
        let one = StridedPattern {
            start: hull.start,
            width: hull.len(),
            pitch: 0,
            rows: 1,
            slice_pitch: 0,
            slices: 1,
        };
        let p = match extent {
            Extent::Strided(pattern) => *pattern,
            Extent::Range(_) => one,
        };
        if p.width == 0 || p.rows == 0 || p.slices == 0 {
            return None;
        }
        // No more rows than the address space holds.
        let level = |pitch: u64, count: u64| Level {
            pitch: i128::from(pitch),
            count: i128::from(u64::MAX.checked_div(pitch).map_or(1, |most| count.min(most))),
        };
        let (rows, slices) = (level(p.pitch, p.rows), level(p.slice_pitch, p.slices));
        let levels = if slices.count > 1 && slices.pitch < rows.pitch && rows.count > 1 {
            (slices, rows)
        } else {
            (rows, slices)
        };
        Some(Self::new(i128::from(p.start), i128::from(p.width), levels))
    }

    fn new(start: i128, width: i128, (inner, outer): (Level, Level)) -> Self {
        let once = |pitch| Level { pitch, count: 1 };
        let inner = if inner.count > 1 { inner } else { once(width) };
        let slice = (inner.count - 1) * inner.pitch + width;
        let outer = if outer.count > 1 { outer } else { once(slice) };
        Self { start, width, inner, outer }
    }

    /// Bytes from the start of a slice to its end.
    fn slice(&self) -> i128 {
        (self.inner.count - 1) * self.inner.pitch + self.width
    }

    fn end(&self) -> i128 {
        self.start + (self.outer.count - 1) * self.outer.pitch + self.slice()
    }

    /// The same runs, mirrored: the byte at `x` becomes the byte at `-x - 1`.
    fn mirrored(self) -> Self {
        Self { start: -self.end(), ..self }
    }

    fn is_in_slices(&self) -> bool {
        self.outer.count > 1 && self.inner.count > 1
    }

    /// The only level of runs that lie in no slices.
    fn rows(&self) -> Level {
        if self.inner.count > 1 { self.inner } else { self.outer }
    }

    /// The first byte at or behind `x`.
    fn next(&self, x: i128) -> Option<i128> {
        if x <= self.start {
            return Some(self.start);
        }
        if x >= self.end() {
            return None;
        }
        let (offset, slice, pitch) = (x - self.start, self.slice(), self.outer.pitch);
        // Slices that begin before `x` and end behind it.
        let last = (offset / pitch).min(self.outer.count - 1);
        let first = if offset < slice { 0 } else { (offset - slice) / pitch + 1 };
        if last - first > MOST {
            return Some(x);
        }
        let of_slice = |slice: i128| {
            let offset = offset - slice * pitch;
            let row = (offset / self.inner.pitch).min(self.inner.count - 1);
            let into = offset - row * self.inner.pitch;
            if into < self.width { x } else { x - into + self.inner.pitch }
        };
        let inside = (first..=last).map(of_slice).min();
        let behind = self.start + (last + 1) * pitch;
        let behind = (last + 1 < self.outer.count).then_some(behind);
        inside.into_iter().chain(behind).min()
    }

    /// The hull of the runs' bytes in the window.
    fn within(&self, window: Window) -> Option<(i128, i128)> {
        let first = self.next(window.start).filter(|&first| first < window.end)?;
        let from_behind = window.mirrored();
        let last = self.mirrored().next(from_behind.start).filter(|&at| at < from_behind.end)?;
        Some((first, -last))
    }
}

/// The bytes that runs of the same pitches have in common; `None` where the pitches differ or the
/// runs overlap each other. Rows that meet at one distance of their numbers form a pattern again.
fn of_same_pitches(a: &Runs, b: &Runs, window: Window) -> Option<Option<(i128, i128)>> {
    let levels = [a.inner, a.outer, b.inner, b.outer];
    let pitches = || levels.iter().filter(|level| level.count > 1).map(|level| level.pitch);
    let (small, large) = (pitches().min()?, pitches().max()?);
    if pitches().any(|pitch| pitch != small && pitch != large) {
        return None;
    }
    let count = |runs: &Runs, pitch: i128| {
        let levels = [runs.inner, runs.outer];
        let mut of_pitch = levels.iter().filter(|l| l.count > 1 && l.pitch == pitch);
        // Two levels of one pitch form no pattern with distances.
        let found = of_pitch.next().map_or(1, |level| level.count);
        of_pitch.next().is_none().then_some(found)
    };
    let (a_small, b_small) = (count(a, small)?, count(b, small)?);
    let (a_large, b_large) =
        if large == small { (1, 1) } else { (count(a, large)?, count(b, large)?) };
    let apart = b.start - a.start;
    let (below, above) = (-b.width, a.width);
    let (least, most) = (1 - a_small, b_small - 1);
    let large_steps = steps(
        apart,
        large,
        (below - most * small, above - least * small),
        (1 - a_large, b_large - 1),
    )?;
    let mut common: Option<(i128, i128)> = None;
    for v in large_steps {
        for u in steps(apart + v * large, small, (below, above), (least, most))? {
            let apart = apart + u * small + v * large;
            let (i, j) = ((-u).max(0), (-v).max(0));
            let shared =
                |own: i128, other: i128, step: i128| own.min(other - step) - (-step).max(0);
            let start = a.start + i * small + j * large + apart.max(0);
            let width = a.width.min(apart + b.width) - apart.max(0);
            let inner = Level { pitch: small, count: shared(a_small, b_small, u) };
            let outer = Level { pitch: large, count: shared(a_large, b_large, v) };
            let met = Runs::new(start, width, (inner, outer));
            if let Some((start, end)) = met.within(window) {
                common = Some(common.map_or((start, end), |c| (c.0.min(start), c.1.max(end))));
            }
        }
    }
    Some(common)
}

/// The `n` of `range` for which `apart + n * pitch` lies strictly between `below` and `above`;
/// `None` where there are many.
fn steps(
    apart: i128,
    pitch: i128,
    (below, above): (i128, i128),
    (least, most): (i128, i128),
) -> Option<std::ops::RangeInclusive<i128>> {
    let first = (below - apart).div_euclid(pitch) + 1;
    let last = -(apart - above).div_euclid(pitch) - 1;
    let range = first.max(least)..=last.min(most);
    (range.end() - range.start() < MOST).then_some(range)
}

/// The first byte of the window that is in both extents; the start of the window where the search
/// does not decide.
fn first_common(a: &Runs, b: &Runs, window: Window) -> Option<i128> {
    let mut x = window.start;
    for step in 0..STEPS {
        let in_a = a.next(x)?;
        let in_b = b.next(in_a)?;
        if in_b >= window.end {
            return None;
        }
        if in_a == in_b {
            return Some(in_a);
        }
        x = in_b;
        if step >= WALKED && !a.is_in_slices() && !b.is_in_slices() {
            x += leap(b, a, x)?;
        }
    }
    Some(window.start)
}

/// The number of rows from the row of `walked` that begins at `x` to the first one that meets a row
/// of `met`, if both patterns were endless.
fn leap(walked: &Runs, met: &Runs, x: i128) -> Option<i128> {
    let (step, pitch) = (walked.rows().pitch, met.rows().pitch);
    // The two rows meet where this is not above `most`.
    let place = (x - met.start + walked.width - 1).rem_euclid(pitch);
    let most = met.width + walked.width - 2;
    if place <= most {
        return Some(0);
    }
    let least = pitch - place;
    first_in(step, pitch, least, least + most).map(|n| n * step)
}

/// The least `n` for which `n * step` modulo `modulus` lies in `least..=most`, in the manner of the
/// Euclidean algorithm: if no multiple lies there before the first turn, the search goes on among
/// the turns, with the remainder as the new modulus.
fn first_in(step: i128, modulus: i128, least: i128, most: i128) -> Option<i128> {
    if least == 0 {
        return Some(0);
    }
    let step = step % modulus;
    if step == 0 {
        return None;
    }
    if 2 * step > modulus {
        return first_in(modulus - step, modulus, modulus - most, modulus - least);
    }
    let n = (least + step - 1) / step;
    if n * step <= most {
        return Some(n);
    }
    let turns = first_in(modulus % step, step, (-most).rem_euclid(step), (-least).rem_euclid(step));
    turns.map(|turns| (least + modulus * turns + step - 1) / step)
}

#[cfg(test)]
mod tests;
