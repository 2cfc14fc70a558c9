//! An access as the shadow memory keeps it, with everything that a report needs.
//!
//! Invariant: a record that is kept does not change (only the shared flag `ambiguous` may be
//! raised); a graph's repeated launch gets a new record (`renewed`).

use crate::api_names::Api;
use crate::clock::{Agent, Chain, Part};
use crate::conflict::Effect;
use crate::core::View;
use crate::shadow::Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use streamsan_model::{
    Access, Basis, ByteRange, Extent, KernelId, Mode, OpSeq, ProcessId, StackId, StreamId,
    StridedPattern,
};

/// A strided pattern of at most so many runs is kept run by run, which is exact. A longer pattern
/// is kept as one entry over its hull and compared exactly when a candidate turns up.
const EXPANDED_RUNS: u64 = 64;

/// Where an access happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a host.
    Host(Agent),
    /// In a chain.
    Chain(Chain),
}

impl Place {
    pub(crate) const fn is_host(self) -> bool {
        matches!(self, Self::Host(_))
    }
}

/// The role of an access: the part of an operation that it belongs to, where that limits how far a
/// pair with the access can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// No part that limits the trust.
    #[default]
    Ordinary,
    /// The body of a conditional node, which may not run.
    Conditional,
    /// A stream memory operation that waits for the word: the word is meant to be written
    /// meanwhile.
    Awaited,
    /// A stream memory operation that writes the word: the word is meant to be read meanwhile.
    Signalled,
}

/// Which earlier accesses a mode makes redundant.
pub(crate) trait Replaces {
    /// Whether an access of this mode races with everything that an access of mode `earlier`, which
    /// happens before it, races with.
    fn stands_for_all(self, earlier: Self) -> bool;
}

impl Replaces for Effect {
    fn stands_for_all(self, earlier: Self) -> bool {
        // The host's atomic operations conflict with those of the device's scope. No atomic operation
        // of a device does.
        if earlier.on_host && !self.on_host && self.mode.is_atomic() && earlier.mode.is_atomic() {
            return false;
        }
        self.mode.stands_for_all(earlier.mode)
    }
}

impl Replaces for Mode {
    fn stands_for_all(self, earlier: Self) -> bool {
        match self {
            // Two reads do not conflict, nor do two atomics or two prefetches: each stands only for
            // accesses of its own kind. Strong accesses do not conflict with each other: none of
            // them stands for a weak one.
            Self::Read => matches!(earlier, Self::Read | Self::StrongRead),
            Self::Atomic => earlier.is_atomic(),
            Self::Prefetch | Self::StrongRead | Self::StrongAtomic => earlier == self,
            Self::StrongWrite => earlier.is_strong(),
            Self::Allocate | Self::Free | Self::Discard => true,
            // A prefetch does not conflict with a write, but it does with these.
            _ => !matches!(earlier, Self::Discard | Self::Allocate | Self::Free),
        }
    }
}

/// An access of an operation.
#[derive(Clone, Debug)]
pub(crate) struct AccessRecord {
    /// Unique: an operation may have several accesses.
    pub(crate) id: u64,
    pub(crate) op: OpSeq,
    pub(crate) process: ProcessId,
    pub(crate) place: Place,
    /// The stream that reports show; `None` for the host.
    pub(crate) stream: Option<StreamId>,
    pub(crate) api: Api,
    pub(crate) kernel: Option<KernelId>,
    pub(crate) access: Access,
    /// The stack of the call.
    pub(crate) stack: Option<StackId>,
    /// The view of the access: everything that happens before it.
    pub(crate) view: View,
    /// Whether the call is one of the synchronous forms.
    pub(crate) synchronous: bool,
    /// Whether a call of a synchronous form may return before this access is done.
    pub(crate) has_tail: bool,
    /// The host function in which the access happens: a point in the stream that runs the function.
    pub(crate) function: Option<Arc<Part>>,
    /// The part of an operation that the access belongs to.
    pub(crate) role: Role,
    /// Whether the access may happen at any time from its call to its end in a stream, and no wait
    /// for an outside agent has been seen so far. (Such a wait may be before some accesses of a
    /// stream and not before others.)
    pub(crate) floating: bool,
    /// Added to the access's addresses (with wrap-around) to get those of its shadow memory. Not 0
    /// only where several address ranges stand for the same physical memory.
    pub(crate) shift: u64,
    /// Whether another thread's call on the same stream overlapped, so that their order is not
    /// known. All accesses of the call share it. `None` for calls that nothing can overlap.
    pub(crate) ambiguous: Option<Arc<AtomicBool>>,
}

impl AccessRecord {
    /// The parts that decide which accesses it conflicts with.
    pub(crate) fn effect(&self) -> Effect {
        Effect { mode: self.access.mode, on_host: self.place.is_host() }
    }

    /// The basis that a later access needs to replace this one in the shadow memory.
    pub(crate) fn rank(&self) -> Basis {
        match self.access.basis {
            _ if self.is_uncertain() => Basis::Assumed,
            // Both are what happened: either may stand for the other.
            Basis::Measured => Basis::Exact,
            basis => basis,
        }
    }

    /// Whether one of the two happens in a host function and the function's place in its stream
    /// orders them, although the host made the access at another time: after work behind the
    /// function was issued.
    pub(crate) fn is_ordered_by_function(&self, earlier: &Self, order: &impl Order) -> bool {
        self.is_in_function_before(&earlier.view) || earlier.is_in_function_before(order)
    }

    /// Whether the access happens in a host function that `order` puts before the new access.
    fn is_in_function_before(&self, order: &impl Order) -> bool {
        self.function
            .as_ref()
            .is_some_and(|function| order.covers(Place::Chain(function.chain), OpSeq(function.g)))
    }

    /// The same access of a later launch.
    pub(crate) fn renewed(&self, later: &Self) -> Self {
        Self {
            id: self.id,
            kernel: self.kernel,
            access: self.access.clone(),
            role: self.role,
            shift: self.shift,
            ..later.clone()
        }
    }

    /// Whether the access may not happen, or not as the record says.
    pub(crate) fn is_uncertain(&self) -> bool {
        matches!(self.role, Role::Conditional | Role::Awaited) || self.access.mode == Mode::MayWrite
    }

    /// Whether both touch the same bytes of the shadow memory.
    pub(crate) fn has_extent_of(&self, other: &Self) -> bool {
        self.shift == other.shift && self.access.extent == other.access.extent
    }

    /// The access's extent in the addresses of its shadow memory.
    pub(crate) fn placed_extent(&self) -> Extent {
        match self.access.extent {
            Extent::Range(range) => Extent::Range(shifted(range, self.shift)),
            Extent::Strided(p) => {
                Extent::Strided(StridedPattern { start: p.start.wrapping_add(self.shift), ..p })
            }
        }
    }

    /// Whether the access's extent has gaps that the shadow memory does not show.
    pub(crate) fn is_sparse(&self) -> bool {
        matches!(&self.access.extent, Extent::Strided(p) if p.rows.saturating_mul(p.slices) > EXPANDED_RUNS)
    }

    /// Whether the access happens after the `earlier` access and certainly touches what that one
    /// touches (of the bytes at hand). Then a conflict with both is reported for this access only.
    pub(crate) fn stands_for(&self, earlier: &Self) -> bool {
        self.rank() >= earlier.rank()
            && (!self.is_sparse() || self.has_extent_of(earlier))
            && self.op > earlier.op
            && (self.view.covers_access(earlier.place, earlier.op, earlier.access.mode)
                || earlier.is_in_function_before(&self.view)
                || self.ends_after(earlier))
    }

    /// Whether both are reads of one stream that may happen at any time from the call to the end of
    /// a copy. Such reads have no order. But an operation behind the end of the later read is
    /// behind the end of the earlier one, so everything that conflicts with the earlier read
    /// conflicts with both, and is as bad. A call that another call may overlap has no certain
    /// place, so the rule does not hold for it.
    pub(crate) fn ends_after(&self, earlier: &Self) -> bool {
        self.floating
            && earlier.floating
            && self.place == earlier.place
            && self.op > earlier.op
            && self.access.mode == Mode::Read
            && earlier.access.mode == Mode::Read
            && self.ambiguous.is_none()
    }

    pub(crate) fn is_ambiguous(&self) -> bool {
        self.ambiguous.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// The ranges in which the shadow memory keeps an extent.
pub(crate) fn runs(extent: &Extent) -> impl Iterator<Item = ByteRange> {
    let (hull, rows) = match extent {
        Extent::Strided(p) if p.rows.saturating_mul(p.slices) <= EXPANDED_RUNS => (None, Some(*p)),
        extent => (Some(extent.hull()), None),
    };
    let rows = rows.into_iter().flat_map(|pattern| pattern.runs());
    hull.into_iter().chain(rows).filter(|range| !range.is_empty())
}

/// The range shifted to other addresses, with wrap-around.
pub(crate) fn shifted(range: ByteRange, shift: u64) -> ByteRange {
    let start = range.start.wrapping_add(shift);
    ByteRange::with_len(start, range.len())
}

#[cfg(test)]
mod tests {
    use super::Replaces;
    use crate::conflict::{Effect, kind};
    use streamsan_model::Mode;

    #[test]
    fn who_stands_for_another_races_with_all_that_the_other_races_with() {
        let effects = Mode::ALL
            .into_iter()
            .flat_map(|mode| [false, true].map(|on_host| Effect { mode, on_host }));
        let effects: Vec<Effect> = effects.collect();
        for &mode in &effects {
            for &earlier in &effects {
                // The end of a life conflicts with every use, and nothing else is like it.
                let is_life = matches!(earlier.mode, Mode::Allocate | Mode::Free);
                // Two accesses of the host are never judged.
                let races_with = |other: Effect, later: Effect| {
                    !(other.on_host && later.on_host) && kind(later, other).is_some()
                };
                let all = effects.iter().filter(|later| !(mode.on_host && later.on_host));
                let all = all.copied();
                let all = all.filter(|later| races_with(earlier, *later)).collect::<Vec<_>>();
                if mode.stands_for_all(earlier) && !is_life {
                    let missed = all.iter().find(|later| !races_with(mode, **later));
                    assert_eq!(missed, None, "{mode:?} for {earlier:?}");
                }
            }
        }
    }

    #[test]
    fn a_joined_mode_races_with_all_that_one_of_the_two_races_with() {
        let uses = [
            Mode::Read,
            Mode::Write,
            Mode::ReadWrite,
            Mode::Atomic,
            Mode::MayWrite,
            Mode::StrongRead,
            Mode::StrongWrite,
            Mode::StrongAtomic,
        ];
        for (a, b) in uses.into_iter().flat_map(|a| uses.map(|b| (a, b))) {
            let joined = a.joined(b);
            assert_eq!(joined, b.joined(a));
            assert_eq!(joined.writes(), a.writes() || b.writes(), "{a:?} and {b:?}");
            for later in Mode::ALL {
                let conflicts = |with| {
                    let effect = |mode| Effect { mode, on_host: false };
                    kind(effect(later), effect(with)).is_some()
                };
                let one = conflicts(a) || conflicts(b);
                assert!(!one || conflicts(joined), "{later:?} after {a:?} and {b:?}");
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod test_support {
    use super::*;
    use streamsan_model::{AllocationId, ContextId};

    pub(crate) fn record(g: u64, mode: Mode, basis: Basis) -> AccessRecord {
        AccessRecord {
            id: g,
            op: OpSeq(g),
            process: ProcessId(0),
            place: Place::Chain(Chain { slot: 0, context: ContextId(0) }),
            stream: None,
            api: Api::default(),
            kernel: None,
            stack: None,
            view: View::default(),
            access: Access {
                allocation: AllocationId(0),
                extent: Extent::Range(ByteRange::new(0, 1)),
                mode,
                basis,
            },
            synchronous: false,
            has_tail: false,
            function: None,
            role: Role::Ordinary,
            floating: false,
            shift: 0,
            ambiguous: None,
        }
    }
}
