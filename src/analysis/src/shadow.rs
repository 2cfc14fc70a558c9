//! Shadow memory: per byte range of an allocation, the accesses that a later one may race with.
//!
//! A segment keeps the antichain of last writes and the antichain of reads and atomics since. A
//! new access removes those that happen before it and that it replaces; what is left is what a
//! still later access must be ordered behind. The normal case, an access to exactly the bytes of an
//! earlier one, touches one segment and splits nothing.
//!
//! An access that may not touch all of its extent, or touches rows of it, is kept as one entry beside
//! the segments.
//!
//! Some accesses that a later one may race with are not kept, because another access stands for
//! them:
//! - Copies of one stream may read a source in pageable memory at any time up to their end. The
//!   newest such read stands for all of them: an operation behind its end is behind the end of the
//!   others, so a finding has the same severity with any of them. (A program copies from one place
//!   thousands of times before it waits for anything.)
//! - Where there are many reads, those that happen before a new one are dropped, as with streams
//!   that come and go.
//! - Beyond the limit, an access of a destroyed, silent stream stands for older accesses of its
//!   kind and context. Only a wait for the whole context can be behind such an access, and that
//!   wait is behind the older ones too.
//!
//! Invariants: segments are disjoint and not empty; an access never removes a stronger one (an
//! assumed access may not have happened at all); a sparse pattern removes only patterns of its own
//! extent; the findings do not depend on where an access is kept. The antichains generalise the
//! single last write and the read set of FastTrack (PLDI 2009).

mod beside;
mod entry;
mod newest;
mod segment;
#[cfg(test)]
mod tests;
mod wide;

use crate::record::{AccessRecord, Place, runs};
use beside::Beside;
use entry::Entry;
use newest::Newest;
use segment::{Found, Segment};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::{Basis, ByteRange, Extent, Mode, OpSeq, Table};
use wide::Wide;

/// The shadow of one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    segments: BTreeMap<u64, Segment>,
    /// The accesses outside the segments; `None` while there are none, as in most memory.
    others: Option<Box<Others>>,
    /// The free of the allocation, once issued. Later accesses never remove it: each of them is a
    /// use after free.
    pub(crate) freed: Option<Arc<AccessRecord>>,
    /// The lease by which a graph's launches keep the shadow up to date without reading it.
    pub(crate) lease: Option<Leased>,
}

/// Accesses beside the segments.
#[derive(Clone, Debug, Default)]
struct Others {
    wide: Wide,
    /// The newest accesses in the segments, so that the segments need not be searched each time.
    newest: Newest,
}

/// A shadow whose newest entries are those of an executable graph's launches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leased {
    pub(crate) lease: u64,
    /// The launch whose entries the shadow holds.
    pub(crate) op: OpSeq,
    /// The part of the graph's summary that the shadow belongs to.
    pub(crate) item: u32,
}

/// Limits on what is kept for each byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    /// The most unordered last writes, and the most unordered reads and atomics.
    pub(crate) cap: usize,
    /// The silent streams: destroyed, and no call ever told another agent how far they have come.
    /// Only a wait for all work of their context can wait for their work.
    pub(crate) silent: &'a Table<()>,
}

impl Limits<'_> {
    /// Limits with `cap` accesses and no silent streams.
    pub(crate) fn new(cap: usize) -> Self {
        static NONE: Table<()> = Table::new();
        Self { cap, silent: &NONE }
    }

    fn is_silent(&self, record: &AccessRecord) -> bool {
        record.stream.is_some_and(|stream| self.silent.contains(stream.index()))
    }
}

/// The earlier accesses that a new access is ordered behind.
pub(crate) trait Order {
    /// Whether the earlier access `op` at `place` happens before the new access by documented
    /// order.
    fn covers(&self, place: Place, op: OpSeq) -> bool;

    /// Like [`Order::covers`], for an access of a known mode: reads may be known further.
    fn covers_access(&self, place: Place, op: OpSeq, mode: Mode) -> bool {
        let _ = mode;
        self.covers(place, op)
    }
}

impl Shadow {
    /// Adds an access to `extent`. Calls `conflicting` with every kept access to common bytes that
    /// does not happen before the new one, conflicts with it, and is maximal among those (no other
    /// one of them happens after it). Returns how many accesses the cap dropped.
    pub(crate) fn access(
        &mut self,
        extent: &Extent,
        new: &Arc<AccessRecord>,
        order: &impl Order,
        limits: Limits<'_>,
        conflicting: &mut impl FnMut(&Arc<AccessRecord>, ByteRange),
    ) -> u64 {
        let hull = extent.hull();
        if hull.is_empty() {
            return 0;
        }
        let mut beside = match &self.others {
            Some(others) => others.wide.conflicts(hull, new, order),
            None => Beside::default(),
        };
        if let Extent::Range(range) = extent
            && new.rank() >= Basis::Inferred
        {
            let dropped = self.put(*range, new, order, limits, &mut beside, conflicting);
            beside.finish(conflicting);
            if let Some(others) = &mut self.others {
                others.newest.add(new.op, new.place, new.access.mode);
                others.wide.replace(hull, new, order);
            }
            return dropped;
        }
        if !beside.is_empty() || !self.others().newest.happen_before(new, order) {
            for range in runs(extent) {
                self.look(range, new, order, &mut beside, conflicting);
            }
            beside.finish(conflicting);
        }
        let wide = &mut self.others().wide;
        wide.replace(hull, new, order);
        wide.add(hull, new);
        let surplus = wide.take_surplus();
        surplus.into_iter().map(|entry| self.lay_down(&entry, limits)).sum()
    }

    /// The accesses outside the segments, created at the first use.
    fn others(&mut self) -> &mut Others {
        let segments = &self.segments;
        self.others.get_or_insert_with(|| {
            let mut newest = Newest::default();
            for entry in segments.values().flat_map(Segment::entries) {
                newest.add(entry.op, entry.place, entry.mode);
            }
            Box::new(Others { wide: Wide::default(), newest })
        })
    }

    /// Adds an access that touches all of `range`.
    fn put(
        &mut self,
        range: ByteRange,
        new: &Arc<AccessRecord>,
        order: &impl Order,
        limits: Limits<'_>,
        beside: &mut Beside,
        conflicting: &mut impl FnMut(&Arc<AccessRecord>, ByteRange),
    ) -> u64 {
        // The exact match: no split, no new segment.
        if let Some(segment) = self.segments.get_mut(&range.start)
            && segment.end == range.end
        {
            let (found, dropped) = segment.add(new, order, limits);
            beside.tell(range, &found, conflicting);
            return dropped;
        }
        self.split_at(range.start);
        self.split_at(range.end);
        self.fill_gaps(range);
        let mut all_dropped = 0;
        for (&start, segment) in self.segments.range_mut(range.start..range.end) {
            let (found, dropped) = segment.add(new, order, limits);
            beside.tell(ByteRange::new(start, segment.end), &found, conflicting);
            all_dropped += dropped;
        }
        self.coalesce(range);
        all_dropped
    }

    /// Reports the conflicts in `range` of an access that the segments do not hold.
    fn look(
        &self,
        range: ByteRange,
        new: &Arc<AccessRecord>,
        order: &impl Order,
        beside: &mut Beside,
        conflicting: &mut impl FnMut(&Arc<AccessRecord>, ByteRange),
    ) {
        let none = Found::new();
        let mut tell = |piece: ByteRange, found: &Found| {
            if !piece.is_empty() {
                beside.tell(piece, found, conflicting);
            }
        };
        let first = self.segments.range(..=range.start).next_back();
        let first = first.filter(|(_, segment)| segment.end > range.start);
        let from = first.map_or(range.start, |(&start, _)| start);
        // Segments without a relevant access count as missing.
        let mut told = range.start;
        for (&start, segment) in self.segments.range(from..range.end) {
            let unordered = segment.entries().filter(|entry| entry.is_in_conflict_with(new, order));
            let found: Found = unordered.map(|entry| Arc::clone(&entry.record)).collect();
            if found.is_empty() {
                continue;
            }
            let piece = ByteRange::new(start.max(range.start), segment.end.min(range.end));
            tell(ByteRange::new(told, piece.start), &none);
            tell(piece, &found);
            told = piece.end;
        }
        tell(ByteRange::new(told, range.end), &none);
    }

    /// Adds an older access to the segments, beside the accesses since.
    fn lay_down(&mut self, entry: &Entry, limits: Limits<'_>) -> u64 {
        let mut dropped = 0;
        self.others().newest.add(entry.op, entry.place, entry.mode);
        for range in runs(&entry.record.placed_extent()) {
            self.split_at(range.start);
            self.split_at(range.end);
            self.fill_gaps(range);
            for (_, segment) in self.segments.range_mut(range.start..range.end) {
                dropped += segment.add_older(entry, limits);
            }
            self.coalesce(range);
        }
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
            self.segments.insert(gap.start, Segment::up_to(gap.end));
        }
    }

    /// Joins neighbouring segments that hold the same accesses, within `range` and at its ends.
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

    /// Turns the entries of the operation `op` into those of a later operation that touches the
    /// same bytes.
    pub(crate) fn renew(&mut self, op: OpSeq, later: &AccessRecord) {
        // An access has entries in several segments; entries are compared by pointer.
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
        let mut renew_entry = |entry: &mut Entry| {
            if entry.op == op {
                renew(&mut entry.record);
                (entry.op, entry.place) = (later.op, later.place);
            }
        };
        for segment in self.segments.values_mut() {
            for entry in segment.entries_mut() {
                renew_entry(entry);
            }
        }
        if let Some(others) = &mut self.others {
            others.wide.renew(renew_entry);
            for entry in self.segments.values().flat_map(Segment::entries) {
                others.newest.add(entry.op, entry.place, entry.mode);
            }
        }
        if let Some(freed) = self.freed.as_mut().filter(|freed| freed.op == op) {
            renew(freed);
        }
    }

    /// Begins another life of the memory: accesses of the former life are not compared with later
    /// ones.
    pub(crate) fn begin_generation(&mut self) {
        self.segments.clear();
        self.others = None;
        self.freed = None;
    }

    /// Forgets accesses for which `dead` holds.
    pub(crate) fn prune(&mut self, dead: &impl Fn(&AccessRecord) -> bool) {
        self.segments.retain(|_, segment| {
            segment.retain(|entry| !dead(&entry.record));
            !segment.is_empty()
        });
        if self.segments.is_empty() {
            // There are many shadows of freed memory, and an emptied map keeps the room of some
            // segments.
            self.segments = BTreeMap::new();
        }
        if let Some(others) = &mut self.others {
            others.wide.retain(|entry| !dead(&entry.record));
            if others.wide.is_empty() {
                self.others = None;
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.others.is_none() && self.freed.is_none()
    }

    /// Number of segments and of entries beside them.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len() + self.others.as_ref().map_or(0, |others| others.wide.len())
    }
}
