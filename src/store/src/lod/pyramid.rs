//! Buckets of one axis, filled in one pass.

use super::detail::{Packed, Packer};
use super::scan::slot;
use super::{ALL_LANES, STEP};
use streamsan_model::{Axis, OpGroup};

/// A row of `lod`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LodRow {
    pub(super) axis: i64,
    pub(super) shift: u8,
    pub(super) lane: i64,
    pub(super) bucket: u64,
    pub(super) operations: u64,
    pub(super) first: u64,
    pub(super) groups: i64,
    pub(super) findings: u64,
    pub(super) detail: Option<Vec<u8>>,
}

/// The data of an operation that an axis needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Its row, and the place of this among all rows.
    pub(super) lane: i64,
    pub(super) slot: usize,
    pub(super) g: u64,
    pub(super) group: OpGroup,
    /// Its position on the axis.
    pub(super) at: u64,
}

impl LodRow {
    /// Adds another part of the same bucket, and answers whether it is one.
    pub(super) fn takes(&mut self, other: &mut Self) -> bool {
        let key = |row: &Self| (row.axis, row.shift, row.lane, row.bucket);
        let is_same = key(self) == key(other);
        if is_same {
            self.operations += other.operations;
            self.first = self.first.min(other.first);
            self.groups |= other.groups;
            self.findings += other.findings;
            if self.detail.is_none() {
                self.detail = other.detail.take();
            }
        }
        is_same
    }
}

/// A bucket that is being filled.
#[derive(Clone, Copy, Debug)]
struct Open {
    bucket: u64,
    operations: u64,
    first: u64,
    groups: i64,
    findings: u64,
}

impl Open {
    fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.first = self.first.min(other.first);
        self.groups |= other.groups;
        self.findings += other.findings;
    }
}

#[derive(Debug, Default)]
struct Lane {
    code: i64,
    /// The open bucket of each level that was reached, the finest first.
    open: Vec<Option<Open>>,
    packer: Packer,
}

/// Where the levels of an axis lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) axis: Axis,
    /// Shift of the finest level.
    pub(super) base: u8,
    /// Shift of the coarsest level.
    pub(super) top: u8,
}

/// Most buckets of a row at the coarsest level.
const FEW: u64 = 64;
/// Buckets of all rows together: at least half as many on a long axis.
const OVERALL: usize = 4096;
/// Operations of a bucket of the finest level, on an average.
const PER_ROW: usize = 32;
/// Number of rows that a small trace may have, whatever its number of operations.
const SMALL: usize = 4096;

impl Levels {
    /// Levels for positions below `end`, chosen so that operations like those of the sample (row and
    /// position) take a 32nd part as many rows at the
    /// finest level.
    pub(super) fn choose(axis: Axis, end: u64, sample: &[(i64, u64)]) -> Self {
        Self { axis, base: Self::base(sample), top: 0 }.up_to(end)
    }

    /// Levels for operations like those of the sample, wherever the axis ends.
    pub(super) fn unbounded(axis: Axis, sample: &[(i64, u64)]) -> Self {
        Self { axis, base: Self::base(sample), top: Self::HIGHEST }
    }

    /// The levels for positions below `end`.
    pub(super) fn up_to(self, end: u64) -> Self {
        let mut top = self.base;
        while top < Self::HIGHEST && end >> top >= FEW {
            top += STEP;
        }
        Self { top, ..self }
    }

    const HIGHEST: u8 = 62;

    fn count(self) -> usize {
        usize::from((self.top - self.base) / STEP) + 1
    }

    /// Findings that became known after their operations, as rows that are added to those there are;
    /// each point with the number of its findings.
    pub(super) fn findings(self, mut points: Vec<(Point, u64)>) -> Vec<LodRow> {
        points.sort_unstable_by_key(|(point, _)| (point.lane, point.at));
        let mut rows: Vec<LodRow> = Vec::new();
        for shift in (self.base..=self.top).step_by(STEP.into()) {
            // Buckets of the level before become those of this one.
            points.dedup_by(|(point, findings), (kept, sum)| {
                let key = |point: &Point| (point.lane, point.at >> shift);
                let is_same = key(point) == key(kept);
                if is_same {
                    kept.g = kept.g.min(point.g);
                    *sum += *findings;
                }
                is_same
            });
            rows.extend(points.iter().map(|&(point, findings)| LodRow {
                axis: self.axis as i64,
                shift,
                lane: point.lane,
                bucket: point.at >> shift,
                operations: 0,
                first: point.g,
                groups: 0,
                findings,
                detail: None,
            }));
        }
        rows
    }

    fn base(sample: &[(i64, u64)]) -> u8 {
        let most = SMALL.max(sample.len() / PER_ROW);
        let rows = |shift: u8| {
            let mut buckets: Vec<_> =
                sample.iter().map(|&(lane, at)| (lane, at >> shift)).collect();
            buckets.sort_unstable();
            buckets.dedup();
            buckets.len()
        };
        let mut base = 0;
        while base < Self::HIGHEST && sample.len() > most && rows(base) > most {
            base += STEP;
        }
        base
    }
}

/// Fills the buckets of one axis. Positions of a row ascend, or nearly do: a bucket may be given
/// out in several parts, which add up.
#[derive(Debug)]
pub(super) struct Pyramid {
    levels: Levels,
    /// By place among all rows.
    lanes: Vec<Lane>,
}

/// All rows of one axis together, in one level that becomes coarser as the axis grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Overall {
    buckets: Vec<Option<Open>>,
    pub(super) shift: u8,
    /// Buckets below this one were given out by [`Overall::changed`] and are as they were.
    unchanged: usize,
    /// The shift then.
    given_shift: u8,
}

impl Pyramid {
    pub(super) fn new(levels: Levels) -> Self {
        Self { levels, lanes: Vec::new() }
    }

    pub(super) fn levels(&self) -> Levels {
        self.levels
    }

    /// Adds an operation; full buckets go to `rows`.
    pub(super) fn add(&mut self, point: Point, findings: u64, rows: &mut Vec<LodRow>) {
        let Point { lane, slot: place, g, group, at } = point;
        let levels = self.levels;
        let row = slot(&mut self.lanes, place);
        if row.open.is_empty() {
            row.open.push(None);
            row.code = lane;
        }
        let new = Open {
            bucket: at >> levels.base,
            operations: 1,
            first: g,
            groups: 1 << group as i64,
            findings,
        };
        match &mut row.open[0] {
            Some(open) if open.bucket == new.bucket => open.merge(&new),
            _ => {
                row.close(levels, 0, rows);
                row.open[0] = Some(new);
            }
        }
        if levels.axis == Axis::Logical {
            row.packer.push(new.bucket << levels.base, Packed { at, g, group });
        }
    }

    /// Emits the remaining rows, now that the end of the axis is known.
    pub(super) fn finish_at(mut self, end: u64, rows: &mut Vec<LodRow>) {
        self.levels = self.levels.up_to(end);
        self.finish(rows);
    }

    /// Emits the remaining rows.
    pub(super) fn finish(mut self, rows: &mut Vec<LodRow>) {
        for row in &mut self.lanes {
            let mut level = 0;
            while level < row.open.len().min(self.levels.count()) {
                row.close(self.levels, level, rows);
                level += 1;
            }
        }
    }
}

impl Overall {
    pub(super) fn add(&mut self, at: u64, g: u64, group: OpGroup, findings: u64) {
        let one = Open { bucket: 0, operations: 1, first: g, groups: 1 << group as i64, findings };
        self.merge(at, one);
    }

    /// Findings that became known after their operation.
    pub(super) fn add_findings(&mut self, at: u64, g: u64, findings: u64) {
        self.merge(at, Open { bucket: 0, operations: 0, first: g, groups: 0, findings });
    }

    fn merge(&mut self, at: u64, one: Open) {
        while at >> self.shift >= OVERALL as u64 {
            self.halve();
        }
        let one = Open { bucket: at >> self.shift, ..one };
        let place = one.bucket as usize;
        self.unchanged = self.unchanged.min(place);
        if self.buckets.len() <= place {
            self.buckets.resize(place + 1, None);
        }
        match &mut self.buckets[place] {
            Some(open) => open.merge(&one),
            empty => *empty = Some(one),
        }
    }

    /// Makes one bucket out of two.
    fn halve(&mut self) {
        self.shift += 1;
        self.unchanged = 0;
        let pairs = self.buckets.chunks(2).map(|pair| {
            let mut both: Option<Open> = None;
            for open in pair.iter().flatten() {
                let coarser = Open { bucket: open.bucket >> 1, ..*open };
                match &mut both {
                    Some(both) => both.merge(&coarser),
                    None => both = Some(coarser),
                }
            }
            both
        });
        self.buckets = pairs.collect();
    }

    /// Whether its shift has grown since [`Overall::changed`].
    pub(super) fn is_coarser(&self) -> bool {
        self.shift != self.given_shift
    }

    /// The rows that have changed since the last call.
    pub(super) fn changed(&mut self, levels: Levels) -> Vec<LodRow> {
        let first = std::mem::replace(&mut self.unchanged, self.buckets.len());
        self.given_shift = self.shift;
        let changed = self.buckets[first..].iter().flatten();
        changed.map(|o| o.row(levels, self.shift, ALL_LANES, None)).collect()
    }

    /// The same rows without any finding.
    pub(super) fn without_findings(mut self) -> Self {
        self.buckets.iter_mut().flatten().for_each(|open| open.findings = 0);
        self.unchanged = 0;
        self
    }

    /// Its rows of `lod`.
    pub(super) fn rows(&self, levels: Levels) -> impl Iterator<Item = LodRow> {
        self.buckets.iter().flatten().map(move |o| o.row(levels, self.shift, ALL_LANES, None))
    }
}

impl Open {
    fn row(&self, levels: Levels, shift: u8, lane: i64, detail: Option<Vec<u8>>) -> LodRow {
        LodRow {
            axis: levels.axis as i64,
            shift,
            lane,
            bucket: self.bucket,
            operations: self.operations,
            first: self.first,
            groups: self.groups,
            findings: self.findings,
            detail,
        }
    }
}

impl Lane {
    /// Gives out the open bucket of a level and adds it to the next coarser one.
    fn close(&mut self, levels: Levels, level: usize, rows: &mut Vec<LodRow>) {
        let Some(open) = self.open[level].take() else { return };
        let detail = (level == 0 && levels.axis == Axis::Logical).then(|| self.packer.take());
        let shift = levels.base + STEP * level as u8;
        rows.push(open.row(levels, shift, self.code, detail));
        if level + 1 == levels.count() {
            return;
        }
        if level + 1 == self.open.len() {
            self.open.push(None);
        }
        let coarser = Open { bucket: open.bucket >> STEP, ..open };
        if let Some(above) = &mut self.open[level + 1]
            && above.bucket == coarser.bucket
        {
            above.merge(&coarser);
            return;
        }
        self.close(levels, level + 1, rows);
        self.open[level + 1] = Some(coarser);
    }
}
