//! The choice of the conflicting accesses that are reported: the maximal ones, byte by byte.
//!
//! Invariant: on every byte, a conflicting access is reported exactly if no other one there happens
//! after it.

use super::entry::Entry;
use super::segment::Found;
use crate::clock::Clock;
use crate::record::{AccessRecord, Place, runs};
use smallvec::SmallVec;
use std::sync::Arc;
use streamsan_model::ByteRange;

/// Number of accesses up to which each is compared with each.
const FEW: usize = if cfg!(test) { 2 } else { 16 };

/// The work that any of many accesses is behind. With thousands of streams without any order, all
/// accesses conflict and none of them stands for another one.
struct Known(Clock);

impl Known {
    fn of(records: &[Arc<AccessRecord>]) -> Self {
        let mut known = Clock::default();
        for record in records {
            known.join(&record.view.know.documented);
            if let Some((chain, upto)) = record.view.own {
                known.raise(chain, upto);
            }
        }
        Self(known)
    }

    /// Whether one of the accesses may be behind `record`; if not, none of them stands for it.
    fn may_cover(&self, record: &AccessRecord) -> bool {
        let Place::Chain(chain) = record.place else { return true };
        record.function.is_some() || record.floating || self.0.covers_reads(chain, record.op.0)
    }
}

/// Conflicting accesses that lie beside the segments.
#[derive(Debug, Default)]
pub(super) struct Beside {
    all: Vec<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    record: Arc<AccessRecord>,
    runs: SmallVec<[ByteRange; 1]>,
    /// The range to report for the access, while it goes on.
    told: Option<ByteRange>,
}

impl Candidate {
    fn has(&self, piece: ByteRange) -> bool {
        self.runs.iter().any(|run| run.covers(piece))
    }
}

impl Beside {
    pub(super) fn of<'a>(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let candidate = |entry: &Entry| Candidate {
            record: Arc::clone(&entry.record),
            runs: runs(&entry.record.placed_extent()).collect(),
            told: None,
        };
        let mut all: Vec<Candidate> = entries.map(candidate).collect();
        // Accesses that others stand for everywhere need no check piece by piece.
        let mut at = all.len();
        while at > 0 {
            at -= 1;
            let own = &all[at];
            let hidden = all.iter().any(|other| {
                own.runs.iter().all(|run| other.has(*run)) && other.record.stands_for(&own.record)
            });
            if hidden {
                all.remove(at);
            }
        }
        Self { all }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Reports the maximal ones among these accesses and `found`; all accesses of `found` touch the
    /// whole piece. Pieces come in ascending order.
    pub(super) fn tell(
        &mut self,
        piece: ByteRange,
        found: &Found,
        conflicting: &mut impl FnMut(&Arc<AccessRecord>, ByteRange),
    ) {
        if self.all.is_empty() {
            let known = (found.len() > FEW).then(|| Known::of(found));
            for earlier in found {
                let may_be_hidden = known.as_ref().is_none_or(|known| known.may_cover(earlier));
                if !(may_be_hidden && found.iter().any(|other| other.stands_for(earlier))) {
                    conflicting(earlier, piece);
                }
            }
            return;
        }
        let mut cuts: SmallVec<[u64; 8]> = SmallVec::from_slice(&[piece.start, piece.end]);
        let ends = self.all.iter().flat_map(|own| &own.runs).flat_map(|run| [run.start, run.end]);
        cuts.extend(ends.filter(|end| (piece.start..piece.end).contains(end)));
        cuts.sort_unstable();
        cuts.dedup();
        for cut in cuts.windows(2) {
            self.tell_whole(ByteRange::new(cut[0], cut[1]), found, conflicting);
        }
    }

    /// Like `tell`, for a piece in which no run begins or ends.
    fn tell_whole(
        &mut self,
        piece: ByteRange,
        found: &Found,
        conflicting: &mut impl FnMut(&Arc<AccessRecord>, ByteRange),
    ) {
        let here: SmallVec<[usize; 8]> =
            (0..self.all.len()).filter(|&at| self.all[at].has(piece)).collect();
        let is_hidden = |all: &[Candidate], record: &AccessRecord| {
            found.iter().any(|other| other.stands_for(record))
                || here.iter().any(|&at| all[at].record.stands_for(record))
        };
        for earlier in found {
            if !is_hidden(&self.all, earlier) {
                conflicting(earlier, piece);
            }
        }
        for &at in &here {
            if is_hidden(&self.all, &self.all[at].record) {
                continue;
            }
            let own = &mut self.all[at];
            match &mut own.told {
                Some(told) if told.end == piece.start => told.end = piece.end,
                told => {
                    if let Some(told) = told.replace(piece) {
                        conflicting(&own.record, told);
                    }
                }
            }
        }
    }

    /// Reports the ranges that are still open.
    pub(super) fn finish(self, conflicting: &mut impl FnMut(&Arc<AccessRecord>, ByteRange)) {
        for own in &self.all {
            if let Some(told) = own.told {
                conflicting(&own.record, told);
            }
        }
    }
}
