//! Accesses that do not touch all bytes of one range, or of which that is not certain.
//!
//! What is not certain is often bounded by its allocation only, a pool of many tensors; rows are many
//! ranges. Neither need be laid down segment by segment: one entry stands for all of it. A later
//! access replaces what lies in its extent altogether; what lies there in part stays, and is sorted
//! out where something conflicts.

use super::beside::Beside;
use super::entry::Entry;
use super::newest::Newest;
use crate::record::{AccessRecord, Replaces};
use crate::shadow::Order;
use std::sync::Arc;
use streamsan_model::{ByteRange, Extent};

/// Entries that are kept; beyond it the oldest ones are laid down in segments after all.
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
    /// What `new` is in conflict with in `hull`.
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

    /// Drops what `new` stands for.
    pub(super) fn replace(&mut self, hull: ByteRange, new: &AccessRecord, order: &impl Order) {
        if self.entries.is_empty() {
            return;
        }
        let (mode, rank) = (new.access.mode, new.rank());
        let has_gaps = matches!(new.access.extent, Extent::Strided(_));
        self.entries.retain(|WideEntry { hull: own, entry }| {
            !(hull.covers(*own)
                && rank >= entry.rank
                && mode.stands_for_all(entry.mode)
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

    /// The oldest entries, where there are too many.
    pub(super) fn take_surplus(&mut self) -> Vec<Entry> {
        if self.entries.len() <= MOST {
            return Vec::new();
        }
        self.entries.drain(..MOST / 4).map(|wide| wide.entry).collect()
    }

    /// Calls `renew` with the entries of which it may change everything but their extent.
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
