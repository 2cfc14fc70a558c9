//! The shadow memories of all allocations, and the conflicts of the operation in hand.

use crate::conflict;
use crate::core::View;
use crate::record::{AccessRecord, EXPANDED_RUNS, Place};
use crate::shadow::Shadow;
use std::collections::VecDeque;
use std::sync::Arc;
use streamsan_model::{AllocationId, ByteRange, ConflictKind, Extent, Mode};

/// An unordered conflicting predecessor of an access.
#[derive(Clone, Debug)]
pub(crate) struct Conflict {
    pub(crate) kind: ConflictKind,
    pub(crate) earlier: Arc<AccessRecord>,
    pub(crate) later: Arc<AccessRecord>,
    pub(crate) overlap: ByteRange,
    /// Whether incidental order separates them.
    pub(crate) latent: bool,
    /// Up to which issue index the later access is behind the earlier one's chain; 0 for nothing.
    pub(crate) knows: u64,
}

/// Frees that are remembered, so that a use of the memory after its free is told.
const REMEMBERED_FREES: usize = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    shadows: Vec<Option<Box<Shadow>>>,
    /// Freed allocations, the oldest first.
    freed: VecDeque<AllocationId>,
    /// Of the operation in hand; taken by the conclusion.
    pub(crate) conflicts: Vec<Conflict>,
}

/// What a touch cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) overflows: u64,
}

impl Memory {
    fn shadow(&mut self, id: AllocationId) -> &mut Shadow {
        if self.shadows.len() <= id.index() {
            self.shadows.resize_with(id.index() + 1, || None);
        }
        self.shadows[id.index()].get_or_insert_default()
    }

    /// Checks an access against what is kept, and keeps it.
    pub(crate) fn touch(&mut self, new: &Arc<AccessRecord>, view: &View, cap: usize) -> Spent {
        let mut found = std::mem::take(&mut self.conflicts);
        let shadow = self.shadow(new.access.allocation);
        let mut note = |earlier: &Arc<AccessRecord>, piece: ByteRange, latent: bool| {
            if earlier.op == new.op {
                return;
            }
            let Some(kind) = conflict::kind(new.access.mode, earlier.access.mode) else { return };
            // A run of an expanded pattern is exact by itself; a sparse side is asked again.
            let overlap = if new.is_sparse() || earlier.is_sparse() {
                conflict::common_bytes(&new.access.extent, &earlier.access.extent, piece)
            } else {
                Some(piece)
            };
            if let Some(overlap) = overlap {
                let (earlier, later) = (Arc::clone(earlier), Arc::clone(new));
                let knows = match earlier.place {
                    Place::Host => 0,
                    Place::Chain(chain) => view.known(chain),
                };
                found.push(Conflict { kind, earlier, later, overlap, latent, knows });
            }
        };
        // CUDA: "any submission of p after the free returns is undefined", ordered or not.
        if let Some(freed) = &shadow.freed
            && (freed.place != Place::Host || new.place != Place::Host)
        {
            note(freed, new.access.extent.hull(), false);
        }
        let mut overflows = 0;
        let mut each = |range: ByteRange| {
            if range.is_empty() {
                return;
            }
            overflows += shadow.access(range, new, view, cap, &mut |earlier, piece| {
                note(earlier, piece, view.covers_incidentally(earlier));
            });
        };
        match &new.access.extent {
            Extent::Range(range) => each(*range),
            Extent::Strided(p) if p.rows.saturating_mul(p.slices) <= EXPANDED_RUNS => {
                p.runs().for_each(&mut each);
            }
            Extent::Strided(p) => each(p.hull()),
        }
        if new.access.mode == Mode::Free {
            shadow.freed = Some(Arc::clone(new));
            self.freed.push_back(new.access.allocation);
        }
        if self.freed.len() > REMEMBERED_FREES
            && let Some(oldest) = self.freed.pop_front()
            && let Some(Some(shadow)) = self.shadows.get_mut(oldest.index())
        {
            shadow.freed = None;
        }
        self.conflicts = found;
        Spent { overflows }
    }

    /// Whether the allocation has been touched, is not known to be done with, and not freed.
    pub(crate) fn is_in_use(&self, id: AllocationId) -> bool {
        matches!(self.shadows.get(id.index()), Some(Some(shadow)) if shadow.freed.is_none())
    }

    /// Forgets accesses for which `dead` holds, and allocations without any.
    pub(crate) fn prune(&mut self, dead: &impl Fn(&AccessRecord) -> bool) {
        for slot in &mut self.shadows {
            if let Some(shadow) = slot {
                shadow.prune(dead);
                if shadow.is_empty() {
                    *slot = None;
                }
            }
        }
    }

    pub(crate) fn segments(&self) -> u64 {
        self.shadows.iter().flatten().map(|shadow| shadow.segments() as u64).sum()
    }
}
