//! Shadow memory: per byte range of an allocation, the accesses that a later one may race with.
//!
//! A segment keeps the antichain of last writes and the antichain of reads and atomics since. A
//! new access removes those that happen before it and that it replaces; what is left is what a
//! still later access must be ordered behind. The normal case, an access to exactly the bytes of an
//! earlier one, touches one segment and splits nothing.
//!
//! Invariants: segments are disjoint and not empty; an access never removes a stronger one (an
//! assumed access may not have happened at all); a sparse pattern removes only its like.

use crate::conflict::kind;
use crate::record::AccessRecord;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::{ByteRange, Mode};

/// An access that is kept, and what it makes redundant without replacing it.
#[derive(Clone, Debug)]
struct Entry {
    record: Arc<AccessRecord>,
    /// Kept accesses that happen before it and are no stronger. They stay, because they conflict
    /// with more than it does (a write with a read, for one); but for a new access that conflicts
    /// with both, it stands for them.
    stands_for: SmallVec<[u64; 2]>,
}

type Entries = SmallVec<[Entry; 2]>;

/// Accesses to one run of bytes.
#[derive(Clone, Debug, Default)]
struct Segment {
    end: u64,
    writes: Entries,
    reads: Entries,
}

/// The shadow of one allocation.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    segments: BTreeMap<u64, Segment>,
    /// The free of the allocation, once issued. Never removed by later accesses: each of them is a
    /// use after free.
    pub(crate) freed: Option<Arc<AccessRecord>>,
}

/// Which earlier accesses the new one is ordered behind.
pub(crate) trait Order {
    /// Whether `earlier` happens before the new access, by documented order.
    fn covers(&self, earlier: &AccessRecord) -> bool;
}

impl Shadow {
    /// Adds an access to `range`. Calls `conflicting` with every kept access to common bytes that
    /// does not happen before it, conflicts with it, and is maximal among those: no other one of
    /// them happens after it. Returns how many accesses the cap dropped.
    pub(crate) fn access(
        &mut self,
        range: ByteRange,
        new: &Arc<AccessRecord>,
        order: &impl Order,
        cap: usize,
        conflicting: &mut impl FnMut(&Arc<AccessRecord>, ByteRange),
    ) -> u64 {
        // The exact hit: no split, no new segment.
        if let Some(segment) = self.segments.get_mut(&range.start)
            && segment.end == range.end
        {
            return segment.add(range, new, order, cap, conflicting);
        }
        self.split_at(range.start);
        self.split_at(range.end);
        self.fill_gaps(range);
        let mut dropped = 0;
        for (&start, segment) in self.segments.range_mut(range.start..range.end) {
            let piece = ByteRange::new(start, segment.end);
            dropped += segment.add(piece, new, order, cap, conflicting);
        }
        self.coalesce(range);
        dropped
    }

    fn split_at(&mut self, at: u64) {
        let Some((_, segment)) = self.segments.range_mut(..at).next_back() else { return };
        if segment.end > at {
            let upper = segment.clone();
            segment.end = at;
            self.segments.insert(at, upper);
        }
    }

    fn fill_gaps(&mut self, range: ByteRange) {
        let mut gaps: SmallVec<[ByteRange; 4]> = SmallVec::new();
        let mut at = range.start;
        for (&start, segment) in self.segments.range(range.start..range.end) {
            if at < start {
                gaps.push(ByteRange::new(at, start));
            }
            at = segment.end;
        }
        if at < range.end {
            gaps.push(ByteRange::new(at, range.end));
        }
        for gap in gaps {
            self.segments.insert(gap.start, Segment { end: gap.end, ..Segment::default() });
        }
    }

    /// Joins neighbours that hold the same accesses, in and at the ends of `range`.
    fn coalesce(&mut self, range: ByteRange) {
        let first =
            self.segments.range(..range.start).next_back().map_or(range.start, |(&start, _)| start);
        let mut starts: SmallVec<[u64; 8]> =
            self.segments.range(first..=range.end).map(|(&start, _)| start).collect();
        starts.reverse();
        // From the right, so that a run collapses into its first segment.
        for pair in starts.windows(2) {
            let (right, left) = (pair[0], pair[1]);
            let (Some(a), Some(b)) = (self.segments.get(&left), self.segments.get(&right)) else {
                continue;
            };
            if a.end == right && a.holds_the_same(b) {
                let end = b.end;
                self.segments.remove(&right);
                if let Some(a) = self.segments.get_mut(&left) {
                    a.end = end;
                }
            }
        }
    }

    /// Forgets accesses for which `dead` holds.
    pub(crate) fn prune(&mut self, dead: &impl Fn(&AccessRecord) -> bool) {
        self.segments.retain(|_, segment| {
            segment.writes.retain(|entry| !dead(&entry.record));
            segment.reads.retain(|entry| !dead(&entry.record));
            !segment.writes.is_empty() || !segment.reads.is_empty()
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.freed.is_none()
    }

    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }
}

impl Segment {
    fn holds_the_same(&self, other: &Self) -> bool {
        let same = |a: &Entries, b: &Entries| {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| Arc::ptr_eq(&a.record, &b.record) && a.stands_for == b.stands_for)
        };
        same(&self.writes, &other.writes) && same(&self.reads, &other.reads)
    }

    fn add(
        &mut self,
        piece: ByteRange,
        new: &Arc<AccessRecord>,
        order: &impl Order,
        cap: usize,
        conflicting: &mut impl FnMut(&Arc<AccessRecord>, ByteRange),
    ) -> u64 {
        let mut stands_for = SmallVec::new();
        let mut found: SmallVec<[Found; 2]> = SmallVec::new();
        let mut visit = |entry: &Entry| {
            let earlier = &entry.record;
            if !order.covers(earlier) {
                if earlier.op != new.op && kind(new.access.mode, earlier.access.mode).is_some() {
                    found.push((Arc::clone(earlier), entry.stands_for.clone()));
                }
                return false;
            }
            let replaced = new.replaces(earlier);
            if !replaced && new.is_as_strong_as(earlier) {
                stands_for.push(earlier.id);
            }
            replaced
        };
        self.writes.retain(|entry| !visit(entry));
        self.reads.retain(|entry| !visit(entry));
        for (earlier, _) in &found {
            if !found.iter().any(|(_, stands_for)| stands_for.contains(&earlier.id)) {
                conflicting(earlier, piece);
            }
        }
        let list = match new.access.mode {
            Mode::Read | Mode::Atomic => &mut self.reads,
            _ => &mut self.writes,
        };
        list.push(Entry { record: Arc::clone(new), stands_for });
        if list.len() > cap {
            list.remove(0);
            return 1;
        }
        0
    }
}

/// An unordered conflicting access and what it stands for.
type Found = (Arc<AccessRecord>, SmallVec<[u64; 2]>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::test_support::record;
    use streamsan_model::Basis;

    /// Everything issued before is ordered.
    struct All;
    impl Order for All {
        fn covers(&self, _: &AccessRecord) -> bool {
            true
        }
    }
    /// Nothing is.
    struct None_;
    impl Order for None_ {
        fn covers(&self, _: &AccessRecord) -> bool {
            false
        }
    }

    fn add(
        shadow: &mut Shadow,
        order: &impl Order,
        g: u64,
        mode: Mode,
        a: u64,
        b: u64,
    ) -> Vec<u64> {
        let new = Arc::new(record(g, mode, Basis::Exact));
        let mut hits = Vec::new();
        shadow.access(ByteRange::new(a, b), &new, order, 16, &mut |entry, _| hits.push(entry.op.0));
        hits.dedup();
        hits
    }

    #[test]
    fn an_ordered_write_replaces_what_it_covers() {
        let mut shadow = Shadow::default();
        add(&mut shadow, &All, 1, Mode::Write, 0, 100);
        add(&mut shadow, &All, 2, Mode::Read, 0, 50);
        assert_eq!(shadow.segments(), 2);
        add(&mut shadow, &All, 3, Mode::Write, 0, 100);
        assert_eq!(shadow.segments(), 1, "the segments join again");
        assert_eq!(add(&mut shadow, &None_, 4, Mode::Write, 10, 20), [3]);
    }

    #[test]
    fn unordered_writes_stay_side_by_side() {
        let mut shadow = Shadow::default();
        add(&mut shadow, &None_, 1, Mode::Write, 0, 10);
        assert_eq!(add(&mut shadow, &None_, 2, Mode::Write, 0, 10), [1]);
        assert_eq!(add(&mut shadow, &None_, 3, Mode::Write, 5, 15), [1, 2]);
    }

    #[test]
    fn a_read_replaces_reads_and_leaves_writes_and_atomics() {
        let mut shadow = Shadow::default();
        add(&mut shadow, &All, 1, Mode::Write, 0, 10);
        add(&mut shadow, &All, 2, Mode::Atomic, 0, 10);
        add(&mut shadow, &All, 3, Mode::Read, 0, 10);
        add(&mut shadow, &All, 4, Mode::Read, 0, 10);
        // The write at 1 happens before the others, which stand for it.
        assert_eq!(add(&mut shadow, &None_, 5, Mode::Write, 0, 10), [4]);
        assert_eq!(add(&mut shadow, &None_, 6, Mode::Read, 0, 10), [5, 2]);
    }

    #[test]
    fn disjoint_ranges_do_not_meet() {
        let mut shadow = Shadow::default();
        add(&mut shadow, &None_, 1, Mode::Write, 0, 10);
        assert!(add(&mut shadow, &None_, 2, Mode::Write, 10, 20).is_empty());
    }
}
