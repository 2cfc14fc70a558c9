//! An access as the shadow memory's lists keep it: the fields that every later access reads, and a
//! pointer to the record.
//!
//! Invariant: the copied fields are those of the record.

use crate::conflict::{Effect, kind};
use crate::record::{AccessRecord, Place};
use crate::shadow::Order;
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::{Basis, Mode, OpSeq};

/// An access that is kept.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    // The fields that every later access reads lie here and not behind the pointer: a buffer that
    // many streams read has long lists.
    pub(super) op: OpSeq,
    pub(super) place: Place,
    pub(super) mode: Mode,
    pub(super) rank: Basis,
    pub(super) record: Arc<AccessRecord>,
}

pub(super) type Entries = SmallVec<[Entry; 2]>;

impl Entry {
    pub(super) fn of(new: &Arc<AccessRecord>) -> Self {
        Self {
            op: new.op,
            place: new.place,
            mode: new.access.mode,
            rank: new.rank(),
            record: Arc::clone(new),
        }
    }

    /// The parts that decide which accesses it conflicts with.
    pub(super) fn effect(&self) -> Effect {
        Effect { mode: self.mode, on_host: self.place.is_host() }
    }

    /// Whether the entry conflicts with `new`, which looks back by `order`, and does not happen
    /// before it.
    pub(super) fn is_in_conflict_with(&self, new: &AccessRecord, order: &impl Order) -> bool {
        !order.covers_access(self.place, self.op, self.mode) && self.would_conflict_with(new, order)
    }

    /// Whether the entry conflicts with `new`, given that it does not happen before `new`.
    pub(super) fn would_conflict_with(&self, new: &AccessRecord, order: &impl Order) -> bool {
        // Host against host is never reported.
        let both_on_host = self.place.is_host() && new.place.is_host();
        self.op != new.op
            && !both_on_host
            && kind(new.effect(), self.effect()).is_some()
            && !new.is_ordered_by_function(&self.record, order)
    }
}

/// Removes entries and keeps the order. `SmallVec::retain` looks up the place of the list for each
/// entry.
pub(super) fn retain(entries: &mut Entries, mut keep: impl FnMut(&Entry) -> bool) {
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
