//! Accesses that do not touch all bytes of one range, or that do not certainly do so.
//!
//! An uncertain access is often bounded only by its allocation, a pool of many tensors; a pattern
//! of rows is many ranges. One entry stands for such an access, instead of an entry in each of many
//! segments. A later access replaces the entries that lie wholly in its extent; an entry that lies
//! there partly stays and is checked where something conflicts.
//!
//! Invariant: findings do not depend on whether an access is kept here or in segments.

use super::beside::Beside;
use super::entry::Entry;
use super::newest::Newest;
use crate::record::{AccessRecord, Replaces};
use crate::shadow::Order;
use std::sync::Arc;
use streamsan_model::{ByteRange, Extent};

/// Number of entries that are kept; beyond it the oldest ones go into segments.
const MOST: usize = if cfg!(test) { 8 } else { 1024 };

#[derive(Clone, Debug, Default)]
pub(super) struct Wide {
    entries: Vec<WideEntry>,
    newest: Newest,
}

#[derive(Clone, Debug)]
struct WideEntry {
    hull: ByteRange,
    entry: Entry,
}

impl Wide {
    /// The accesses in `hull` that `new` conflicts with.
    pub(super) fn conflicts(
        &self,
        hull: ByteRange,
        new: &AccessRecord,
        order: &impl Order,
    ) -> Beside {
        if self.entries.is_empty() || self.newest.happen_before(new, order) {
            return Beside::default();
        }
        let meets = |wide: &&WideEntry| wide.hull.start < hull.end && hull.start < wide.hull.end;
        let met = self.entries.iter().filter(meets).map(|wide| &wide.entry);
        Beside::of(met.filter(|entry| entry.is_in_conflict_with(new, order)))
    }

    /// Drops the accesses that `new` stands for.
    pub(super) fn replace(&mut self, hull: ByteRange, new: &AccessRecord, order: &impl Order) {
        if self.entries.is_empty() {
            return;
        }
        let rank = new.rank();
        let has_gaps = matches!(new.access.extent, Extent::Strided(_));
        self.entries.retain(|WideEntry { hull: own, entry }| {
            !(hull.covers(*own)
                && rank >= entry.rank
                && new.effect().stands_for_all(entry.effect())
                && (!has_gaps || new.has_extent_of(&entry.record))
                && (order.covers_access(entry.place, entry.op, entry.mode)
                    || new.stands_for(&entry.record)))
        });
    }

    pub(super) fn add(&mut self, hull: ByteRange, new: &Arc<AccessRecord>) {
        let entry = Entry::of(new);
        self.newest.add(entry.op, entry.place, entry.mode);
        self.entries.push(WideEntry { hull, entry });
    }

    /// Takes the oldest entries, where there are too many.
    pub(super) fn take_surplus(&mut self) -> Vec<Entry> {
        if self.entries.len() <= MOST {
            return Vec::new();
        }
        self.entries.drain(..MOST / 4).map(|wide| wide.entry).collect()
    }

    /// Calls `renew` with each entry; `renew` may change everything but the entry's extent.
    pub(super) fn renew(&mut self, mut renew: impl FnMut(&mut Entry)) {
        for WideEntry { entry, .. } in &mut self.entries {
            renew(entry);
            self.newest.add(entry.op, entry.place, entry.mode);
        }
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(|wide| keep(&wide.entry));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
