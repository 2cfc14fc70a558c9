//! Certain accesses, by the bytes that they touch.
//!
//! Invariant: a segment keeps an antichain of last writes and an antichain of reads and atomics
//! since; all entries touch every byte of the segment.

use super::entry::{Entries, Entry, retain};
use crate::record::{AccessRecord, Place, Replaces};
use crate::shadow::{Limits, Order};
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::{Basis, Mode};

/// Kept accesses that the new one conflicts with.
pub(super) type Found = SmallVec<[Arc<AccessRecord>; 2]>;

/// Accesses to one run of bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    pub(super) end: u64,
    pub(super) writes: Entries,
    pub(super) reads: Entries,
    /// Number of atomics that were put into `reads` and may still be there; 0 for most memory.
    atomics: u32,
    /// Number of reads from which on reads that happen before a new one are removed: twice the
    /// number that was left the last time, so that the search costs little per read.
    room: u32,
}

/// Number of reads below which none is removed.
const ROOM: u32 = if cfg!(test) { 4 } else { 32 };

impl Segment {
    pub(super) fn up_to(end: u64) -> Self {
        Self { end, room: ROOM, ..Self::default() }
    }

    pub(super) fn holds_the_same(&self, other: &Self) -> bool {
        let same = |a: &Entries, b: &Entries| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(&a.record, &b.record))
        };
        same(&self.writes, &other.writes) && same(&self.reads, &other.reads)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.writes.iter().chain(&self.reads)
    }

    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.writes.iter_mut().chain(&mut self.reads)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        self.writes.retain(|entry| keep(entry));
        self.reads.retain(|entry| keep(entry));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.reads.is_empty()
    }

    /// Adds an access to the whole segment. Returns the kept accesses that it conflicts with, and
    /// how many accesses the cap dropped.
    pub(super) fn add(
        &mut self,
        new: &Arc<AccessRecord>,
        order: &impl Order,
        limits: Limits<'_>,
    ) -> (Found, u64) {
        let mut found = Found::new();
        let (mode, rank) = (new.access.mode, new.rank());
        let is_as_strong_as = |entry: &Entry| rank >= entry.rank;
        let mut visit = |entry: &Entry| {
            if !order.covers_access(entry.place, entry.op, entry.mode) {
                if entry.would_conflict_with(new, order) {
                    found.push(Arc::clone(&entry.record));
                }
                return false;
            }
            // All later prefetches are behind an allocation by the host as well.
            let is_allocation = entry.mode == Mode::Allocate && entry.place.is_host();
            let mut earlier = entry.effect();
            if is_allocation {
                earlier.mode = Mode::Write;
            }
            new.effect().stands_for_all(earlier) && is_as_strong_as(entry)
        };
        retain(&mut self.writes, |entry| !visit(entry));
        if mode == Mode::Read {
            // Reads do not conflict. The newest read of a chain stands for all reads of that chain.
            // Reads of other chains that happen before it are removed once something conflicts, or
            // once there are many of them.
            let place = new.place;
            let many = self.reads.len() >= self.room as usize;
            let is_covered = |entry: &Entry| {
                entry.mode == Mode::Read
                    && is_as_strong_as(entry)
                    && (order.covers_access(entry.place, entry.op, entry.mode)
                        || entry.place == place && new.ends_after(&entry.record))
            };
            if many {
                retain(&mut self.reads, |entry| !is_covered(entry));
            } else if self.reads.iter().any(|entry| entry.place == place) {
                retain(&mut self.reads, |entry| entry.place != place || !is_covered(entry));
            }
            if many {
                self.room = (2 * self.reads.len() as u32).max(ROOM);
            }
            if self.atomics != 0 {
                let atomics = self.reads.iter().filter(|entry| entry.mode == Mode::Atomic);
                let unordered = atomics.filter(|entry| entry.is_in_conflict_with(new, order));
                found.extend(unordered.map(|entry| Arc::clone(&entry.record)));
            }
        } else {
            retain(&mut self.reads, |entry| !visit(entry));
        }
        (found, self.push(Entry::of(new), limits))
    }

    /// Adds an older access, unless others stand for it here. Returns how many accesses the cap
    /// dropped.
    pub(super) fn add_older(&mut self, older: &Entry, limits: Limits<'_>) -> u64 {
        let stands_for = |later: &Entry, earlier: &Entry| {
            later.effect().stands_for_all(earlier.effect())
                && later.record.stands_for(&earlier.record)
        };
        // Rows that overlap come here twice.
        let is_kept = |entry: &Entry| Arc::ptr_eq(&entry.record, &older.record);
        if self.entries().any(|entry| is_kept(entry) || stands_for(entry, older)) {
            return 0;
        }
        retain(&mut self.writes, |entry| !stands_for(older, entry));
        retain(&mut self.reads, |entry| !stands_for(older, entry));
        self.push(older.clone(), limits)
    }

    /// Adds an access to a list. Returns how many accesses the cap dropped, the oldest first.
    fn push(&mut self, entry: Entry, limits: Limits<'_>) -> u64 {
        let mode = entry.mode;
        let list = match mode {
            Mode::Read | Mode::StrongRead | Mode::Atomic | Mode::Prefetch => &mut self.reads,
            _ => &mut self.writes,
        };
        let behind = list.iter().rev().take_while(|other| other.op > entry.op).count();
        list.insert(list.len() - behind, entry);
        self.atomics += u32::from(mode == Mode::Atomic);
        if list.len() > limits.cap {
            fold(list, limits);
        }
        if list.len() > limits.cap {
            list.remove(0);
            return 1;
        }
        0
    }
}

/// Drops the accesses that an access of a silent stream stands for. They are of the same context
/// and older: an operation behind the end of that access is behind their end, so the verdict is the
/// same.
fn fold(list: &mut Entries, limits: Limits<'_>) {
    let context = |entry: &Entry| match entry.place {
        Place::Chain(chain) => Some((chain.context, entry.record.process)),
        Place::Host(_) => None,
    };
    let stands_for = |newer: &Entry, older: &Entry| {
        newer.op > older.op
            && newer.mode == older.mode
            && newer.rank >= older.rank
            && context(newer) == context(older)
    };
    // From the newest access on.
    let mut kept: Vec<bool> = vec![true; list.len()];
    let mut silent: SmallVec<[&Entry; 4]> = SmallVec::new();
    for (at, entry) in list.iter().enumerate().rev() {
        kept[at] = !silent.iter().any(|newer| stands_for(newer, entry));
        let may_stand =
            kept[at] && entry.rank >= Basis::Inferred && entry.record.function.is_none();
        if may_stand && !entry.record.is_ambiguous() && limits.is_silent(&entry.record) {
            silent.push(entry);
        }
    }
    drop(silent);
    let mut kept = kept.into_iter();
    retain(list, |_| kept.next().unwrap_or(true));
}
