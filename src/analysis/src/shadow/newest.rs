//! The newest accesses of a shadow, by place, as a quick test whether any kept access can be
//! unordered with a new access.
//!
//! Nearly every access is ordered behind all earlier accesses to its allocation, and then no kept
//! access need be read. An access that was kept once counts until the shadow is emptied.
//!
//! Invariant: the test may fail although every such access has been replaced meanwhile; it never
//! succeeds where a kept access is unordered.

use crate::record::{AccessRecord, Place};
use crate::shadow::Order;
use smallvec::SmallVec;
use streamsan_model::{Mode, OpSeq};

/// Number of places that are told apart; memory that more places touch is always searched.
const MOST_PLACES: usize = if cfg!(test) { 3 } else { 8 };

#[derive(Clone, Debug, Default)]
pub(super) struct Newest {
    places: SmallVec<[Latest; 2]>,
    more: bool,
}

/// The newest accesses at a place.
#[derive(Clone, Copy, Debug)]
struct Latest {
    place: Place,
    any: Pair,
    /// The newest accesses that may conflict with a read.
    changes: Pair,
}

/// The newest operation and the newest one before it: an operation is not compared with itself.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    newest: Option<OpSeq>,
    before: Option<OpSeq>,
}

impl Pair {
    fn add(&mut self, op: OpSeq) {
        if Some(op) > self.newest {
            self.before = self.newest.replace(op);
        } else if Some(op) != self.newest && Some(op) > self.before {
            self.before = Some(op);
        }
    }

    fn other_than(&self, op: OpSeq) -> Option<OpSeq> {
        if self.newest == Some(op) { self.before } else { self.newest }
    }
}

impl Newest {
    /// Notes that an access of `mode` is kept.
    pub(super) fn add(&mut self, op: OpSeq, place: Place, mode: Mode) {
        let at = match self.places.iter().position(|latest| latest.place == place) {
            Some(at) => at,
            None if self.places.len() == MOST_PLACES => {
                self.more = true;
                return;
            }
            None => {
                let (any, changes) = (Pair::default(), Pair::default());
                self.places.push(Latest { place, any, changes });
                self.places.len() - 1
            }
        };
        let latest = &mut self.places[at];
        latest.any.add(op);
        if mode != Mode::Read {
            latest.changes.add(op);
        }
    }

    /// Whether all kept accesses that may conflict with `new` happen before it.
    pub(super) fn happen_before(&self, new: &AccessRecord, order: &impl Order) -> bool {
        !self.more
            && self.places.iter().all(|latest| {
                let pair = if new.access.mode == Mode::Read { latest.changes } else { latest.any };
                pair.other_than(new.op).is_none_or(|op| order.covers(latest.place, op))
            })
    }
}
