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

/// An access that is kept.
#[derive(Clone, Debug)]
struct Entry {
    // What every later access looks at, here and not behind the pointer: a buffer that many streams
    // read has long lists.
    op: OpSeq,
    place: Place,
    mode: Mode,
    rank: Basis,
    record: Arc<AccessRecord>,
}

type Entries = SmallVec<[Entry; 2]>;

/// Accesses to one run of bytes.
#[derive(Clone, Debug, Default)]
struct Segment {
    end: u64,
    writes: Entries,
    reads: Entries,
    /// Atomics that were ever put into `reads` and may still be there; 0 for most memory.
    atomics: u32,
}

/// The shadow of one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    segments: BTreeMap<u64, Segment>,
    /// The free of the allocation, once issued. Never removed by later accesses: each of them is a
    /// use after free.
    pub(crate) freed: Option<Arc<AccessRecord>>,
    /// Whose launches keep it up to date without looking at it.
    pub(crate) lease: Option<Leased>,
}

/// A shadow whose newest entries are those of an executable graph's launches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leased {
    pub(crate) lease: u64,
    /// The launch whose entries it holds.
    pub(crate) op: OpSeq,
    /// Which part of the graph's summary it belongs to.
    pub(crate) item: u32,
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

    /// Makes the entries of the operation `op` those of a later one that touches the same.
    pub(crate) fn renew(&mut self, op: OpSeq, later: &AccessRecord) {
        // An access has entries in several segments, which compare by pointer.
        let mut renewed: SmallVec<[(Arc<AccessRecord>, Arc<AccessRecord>); 4]> = SmallVec::new();
        let mut renew = |record: &mut Arc<AccessRecord>| {
            if let Some((_, new)) = renewed.iter().find(|(old, _)| Arc::ptr_eq(old, record)) {
                *record = Arc::clone(new);
                return;
            }
            let new = Arc::new(record.renewed(later));
            let old = std::mem::replace(record, Arc::clone(&new));
            renewed.push((old, new));
        };
        for segment in self.segments.values_mut() {
            let entries = segment.writes.iter_mut().chain(&mut segment.reads);
            for entry in entries.filter(|entry| entry.op == op) {
                renew(&mut entry.record);
                (entry.op, entry.place) = (later.op, later.place);
            }
        }
        if let Some(freed) = self.freed.as_mut().filter(|freed| freed.op == op) {
            renew(freed);
        }
    }

    /// The memory's life begins again: what was done to it before is not compared with what comes.
    pub(crate) fn begin_generation(&mut self) {
        self.segments.clear();
        self.freed = None;
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

/// Removes entries, in order. `SmallVec::retain` asks for each entry where the list lies.
fn retain(entries: &mut Entries, mut keep: impl FnMut(&Entry) -> bool) {
    let list = entries.as_mut_slice();
    let Some(first) = list.iter().position(|entry| !keep(entry)) else { return };
    let mut kept = first;
    for at in first + 1..list.len() {
        if keep(&list[at]) {
            list.swap(kept, at);
            kept += 1;
        }
    }
    entries.truncate(kept);
}

impl Segment {
    fn holds_the_same(&self, other: &Self) -> bool {
        let same = |a: &Entries, b: &Entries| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(&a.record, &b.record))
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
        let mut found: SmallVec<[Arc<AccessRecord>; 2]> = SmallVec::new();
        let (mode, rank, sparse) = (new.access.mode, new.rank(), new.is_sparse());
        // Whether the new access is certain to touch what the entry touches of the piece.
        let is_as_strong_as =
            |entry: &Entry| rank >= entry.rank && (!sparse || new.has_extent_of(&entry.record));
        let mut visit = |entry: &Entry| {
            if !order.covers(entry.place, entry.op) {
                // Host against host is never reported.
                let both_on_host = entry.place.is_host() && new.place.is_host();
                if entry.op != new.op
                    && !both_on_host
                    && kind(mode, entry.mode).is_some()
                    && !new.is_ordered_by_function(&entry.record, order)
                {
                    found.push(Arc::clone(&entry.record));
                }
                return false;
            }
            // What the host has allocated, all later prefetches are behind as well.
            let is_allocation = entry.mode == Mode::Allocate && entry.place.is_host();
            let earlier = if is_allocation { Mode::Write } else { entry.mode };
            mode.stands_for_all(earlier) && is_as_strong_as(entry)
        };
        retain(&mut self.writes, |entry| !visit(entry));
        if mode == Mode::Read {
            // Reads do not conflict. Of its own chain the newest one stands for all; those of
            // others that happen before it are sorted out once something conflicts.
            let place = new.place;
            retain(&mut self.reads, |entry| {
                entry.place != place
                    || entry.mode != Mode::Read
                    || !is_as_strong_as(entry)
                    || !order.covers(entry.place, entry.op)
            });
            self.atomics(new, order, &mut found);
        } else {
            retain(&mut self.reads, |entry| !visit(entry));
        }
        for earlier in &found {
            if !found.iter().any(|other| other.stands_for(earlier)) {
                conflicting(earlier, piece);
            }
        }
        let list = match mode {
            Mode::Read | Mode::Atomic | Mode::Prefetch => &mut self.reads,
            _ => &mut self.writes,
        };
        list.push(Entry { op: new.op, place: new.place, mode, rank, record: Arc::clone(new) });
        self.atomics += u32::from(mode == Mode::Atomic);
        if list.len() > cap {
            list.remove(0);
            return 1;
        }
        0
    }

    /// The atomics that a read conflicts with.
    fn atomics(
        &self,
        new: &AccessRecord,
        order: &impl Order,
        found: &mut SmallVec<[Arc<AccessRecord>; 2]>,
    ) {
        if self.atomics == 0 {
            return;
        }
        for entry in self.reads.iter().filter(|entry| entry.mode == Mode::Atomic) {
            let both_on_host = entry.place.is_host() && new.place.is_host();
            if entry.op != new.op && !both_on_host && !order.covers(entry.place, entry.op) {
                found.push(Arc::clone(&entry.record));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::View;
    use crate::record::test_support::record;

    /// Behind everything issued before.
    const ORDERED: bool = true;
    /// Behind nothing.
    const UNORDERED: bool = false;

    /// Adds an access and tells what it conflicts with.
    fn add(shadow: &mut Shadow, ordered: bool, g: u64, mode: Mode, a: u64, b: u64) -> Vec<u64> {
        add_of(shadow, ordered, g, (mode, Basis::Exact), a, b)
    }

    fn add_of(
        shadow: &mut Shadow,
        ordered: bool,
        g: u64,
        (mode, basis): (Mode, Basis),
        a: u64,
        b: u64,
    ) -> Vec<u64> {
        let mut new = record(g, mode, basis);
        if let (true, Place::Chain(chain)) = (ordered, new.place) {
            new.view = View { own: Some((chain, g - 1)), ..View::default() };
        }
        let (new, mut hits) = (Arc::new(new), Vec::new());
        let view = new.view.clone();
        shadow.access(ByteRange::new(a, b), &new, &view, 16, &mut |entry, _| hits.push(entry.op.0));
        hits.sort_unstable();
        hits.dedup();
        hits
    }

    #[test]
    fn an_ordered_write_replaces_what_it_covers() {
        let mut shadow = Shadow::default();
        add(&mut shadow, ORDERED, 1, Mode::Write, 0, 100);
        add(&mut shadow, ORDERED, 2, Mode::Read, 0, 50);
        assert_eq!(shadow.segments(), 2);
        add(&mut shadow, ORDERED, 3, Mode::Write, 0, 100);
        assert_eq!(shadow.segments(), 1, "the segments join again");
        assert_eq!(add(&mut shadow, UNORDERED, 4, Mode::Write, 10, 20), [3]);
    }

    #[test]
    fn unordered_writes_stay_side_by_side() {
        let mut shadow = Shadow::default();
        add(&mut shadow, UNORDERED, 1, Mode::Write, 0, 10);
        assert_eq!(add(&mut shadow, UNORDERED, 2, Mode::Write, 0, 10), [1]);
        assert_eq!(add(&mut shadow, UNORDERED, 3, Mode::Write, 5, 15), [1, 2]);
    }

    #[test]
    fn a_read_replaces_reads_and_leaves_writes_and_atomics() {
        let mut shadow = Shadow::default();
        add(&mut shadow, ORDERED, 1, Mode::Write, 0, 10);
        add(&mut shadow, ORDERED, 2, Mode::Atomic, 0, 10);
        add(&mut shadow, ORDERED, 3, Mode::Read, 0, 10);
        add(&mut shadow, ORDERED, 4, Mode::Read, 0, 10);
        // The write at 1 happens before the others, which stand for it.
        assert_eq!(add(&mut shadow, UNORDERED, 5, Mode::Write, 0, 10), [4]);
        assert_eq!(add(&mut shadow, UNORDERED, 6, Mode::Read, 0, 10), [2, 5]);
    }

    #[test]
    fn disjoint_ranges_do_not_meet() {
        let mut shadow = Shadow::default();
        add(&mut shadow, UNORDERED, 1, Mode::Write, 0, 10);
        assert!(add(&mut shadow, UNORDERED, 2, Mode::Write, 10, 20).is_empty());
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
            add_of(&mut shadow, ORDERED, 1, earlier, 0, 8);
            add_of(&mut shadow, ORDERED, 2, later, 0, 8);
            let hits = add(&mut shadow, UNORDERED, 3, Mode::Write, 0, 8);
            assert_eq!(hits.contains(&1), kept, "{earlier:?} {later:?}");
        }
    }
}
