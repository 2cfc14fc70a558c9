//! One access as the shadow memory keeps it: what a report needs, should it come to one.

use crate::clock::Chain;
use crate::core::View;
use crate::shadow::Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use streamsan_model::{Access, Basis, Extent, KernelId, Mode, OpSeq, ProcessId, StreamId};

/// Runs of a strided pattern up to which it is kept run by run, which is exact. Longer patterns
/// are kept as one entry over their hull and compared exactly when a candidate turns up.
pub(crate) const EXPANDED_RUNS: u64 = 64;

/// Where an access happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the host of its process.
    Host,
    /// In a chain.
    Chain(Chain),
}

/// What a mode makes redundant.
pub(crate) trait Replaces {
    /// Whether an access of this mode races with whatever an earlier access of mode `earlier`, that
    /// happens before it, races with.
    fn stands_for_all(self, earlier: Mode) -> bool;
}

impl Replaces for Mode {
    fn stands_for_all(self, earlier: Mode) -> bool {
        match self {
            // Two reads do not conflict, nor do two atomics: each only stands for its like.
            Self::Read => earlier == Self::Read,
            Self::Atomic => earlier == Self::Atomic,
            _ => true,
        }
    }
}

/// An access of an operation.
#[derive(Debug)]
pub(crate) struct AccessRecord {
    /// Unique: an operation may have several accesses.
    pub(crate) id: u64,
    pub(crate) op: OpSeq,
    pub(crate) process: ProcessId,
    pub(crate) place: Place,
    /// The stream of reports; `None` for the host.
    pub(crate) stream: Option<StreamId>,
    pub(crate) api: Arc<str>,
    pub(crate) kernel: Option<KernelId>,
    pub(crate) access: Access,
    /// What happens before it.
    pub(crate) view: View,
    /// Whether the call is one of the synchronous forms.
    pub(crate) synchronous: bool,
    /// Another thread's call on the same stream overlapped, so their order is not known.
    pub(crate) ambiguous: AtomicBool,
}

impl AccessRecord {
    /// How much it takes to replace this access in the shadow memory.
    pub(crate) fn rank(&self) -> Basis {
        if self.access.mode == Mode::MayWrite { Basis::Assumed } else { self.access.basis }
    }

    /// Whether its extent has gaps that the shadow memory does not show.
    pub(crate) fn is_sparse(&self) -> bool {
        matches!(&self.access.extent, Extent::Strided(p) if p.rows.saturating_mul(p.slices) > EXPANDED_RUNS)
    }

    /// Whether it happens after an `earlier` access and is certain to touch what that one touches
    /// (of the bytes in hand), so that whatever conflicts with both is told of this one only.
    pub(crate) fn stands_for(&self, earlier: &Self) -> bool {
        self.rank() >= earlier.rank()
            && (!self.is_sparse() || self.access.extent == earlier.access.extent)
            && self.op > earlier.op
            && self.process == earlier.process
            && self.view.covers(earlier.place, earlier.op)
    }

    pub(crate) fn is_ambiguous(&self) -> bool {
        self.ambiguous.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_ambiguous(&self) {
        self.ambiguous.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
pub(crate) mod test_support {
    use super::*;
    use streamsan_model::{AllocationId, ByteRange, ContextId};

    pub(crate) fn record(g: u64, mode: Mode, basis: Basis) -> AccessRecord {
        AccessRecord {
            id: g,
            op: OpSeq(g),
            process: ProcessId(0),
            place: Place::Chain(Chain { slot: 0, context: ContextId(0) }),
            stream: None,
            api: "test".into(),
            kernel: None,
            view: View::default(),
            access: Access {
                allocation: AllocationId(0),
                extent: Extent::Range(ByteRange::new(0, 1)),
                mode,
                basis,
            },
            synchronous: false,
            ambiguous: AtomicBool::new(false),
        }
    }
}
