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
use crate::record::{AccessRecord, Place, Replaces};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::{Basis, ByteRange, Mode, OpSeq};

/// An access that is kept, and what it makes redundant without replacing it.
#[derive(Clone, Debug)]
struct Entry {
    // What every later access looks at, here and not behind the pointer: a buffer that many streams
    // read has long lists.
    op: OpSeq,
    place: Place,
    mode: Mode,
    rank: Basis,
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
    /// Whether the earlier access `op` at `place` happens before the new one, by documented order.
    fn covers(&self, place: Place, op: OpSeq) -> bool;
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
        let (mode, rank, sparse) = (new.access.mode, new.rank(), new.is_sparse());
        let mut visit = |entry: &Entry| {
            if !order.covers(entry.place, entry.op) {
                if entry.op != new.op && kind(mode, entry.mode).is_some() {
                    found.push((Arc::clone(&entry.record), entry.stands_for.clone()));
                }
                return false;
            }
            // Whether the new access is certain to touch what the earlier one touches of the piece.
            let strong =
                rank >= entry.rank && (!sparse || new.access.extent == entry.record.access.extent);
            let replaced = strong && mode.stands_for_all(entry.mode);
            if strong && !replaced {
                stands_for.push(entry.record.id);
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
        let list = match mode {
            Mode::Read | Mode::Atomic => &mut self.reads,
            _ => &mut self.writes,
        };
        let (op, place) = (new.op, new.place);
        list.push(Entry { op, place, mode, rank, record: Arc::clone(new), stands_for });
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

    /// Everything issued before is ordered.
    struct All;
    impl Order for All {
        fn covers(&self, _: Place, _: OpSeq) -> bool {
            true
        }
    }
    /// Nothing is.
    struct None_;
    impl Order for None_ {
        fn covers(&self, _: Place, _: OpSeq) -> bool {
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

    #[test]
    fn a_weaker_access_never_replaces_a_stronger_one() {
        // (earlier, later, whether the earlier one is still reported)
        let table = [
            ((Mode::Write, Basis::Exact), (Mode::MayWrite, Basis::Exact), true),
            ((Mode::Write, Basis::Exact), (Mode::Write, Basis::Inferred), true),
            ((Mode::Write, Basis::Exact), (Mode::Write, Basis::Exact), false),
            ((Mode::MayWrite, Basis::Assumed), (Mode::MayWrite, Basis::Assumed), false),
        ];
        for (earlier, later, kept) in table {
            let mut shadow = Shadow::default();
            for (g, (mode, basis)) in [(1, earlier), (2, later)] {
                let new = Arc::new(record(g, mode, basis));
                shadow.access(ByteRange::new(0, 8), &new, &All, 16, &mut |_, _| {});
            }
            let hits = add(&mut shadow, &None_, 3, Mode::Write, 0, 8);
            assert_eq!(hits.contains(&1), kept, "{earlier:?} {later:?}");
        }
    }
}
