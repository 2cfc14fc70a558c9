//! Spilled predicates: those that are kept in the bits of general registers.
//!
//! Stage: lowering. There are seven predicates. Where a kernel has more, its compiler moves some to
//! a register (`P2R`) and tests their bits later (`R2P`, `ISETP.NE R, RZ`, `LOP3` with a mask).
//! Instructions before the spill and after the reload may have the same predicate as their guard.
//! If each of them makes one half of an address, the address is known only if the two predicates
//! are known to be the same.
//!
//! Invariant: a reloaded predicate is the very predicate that was spilled, or it is unknown.

use smallvec::{SmallVec, smallvec};

use super::interpret::SassSite;
use super::operation::{NOWHERE, SourceValue};
use crate::access::domain::condition::Predicate;
use crate::access::domain::expression::{ExprId, SymbolId};
use crate::access::fixpoint::interpret::{Interpreter, Kind, Sources, State};

/// The known bits of a value that holds predicates. The other bits may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::access) struct SpilledPredicates {
    /// Bits that are 0.
    zeros: u32,
    /// The predicates in bits, in ascending order of these.
    bits: SmallVec<[(u8, u32); 4]>,
}

impl SpilledPredicates {
    fn constant(value: i64) -> SpilledPredicates {
        SpilledPredicates { zeros: !(value as u32), bits: SmallVec::new() }
    }

    fn forget(&mut self, mask: u32) {
        self.zeros &= !mask;
        self.bits.retain(|(bit, _)| mask >> *bit & 1 == 0);
    }

    fn masked(&self, mask: u32) -> SpilledPredicates {
        let mut kept = self.clone();
        kept.forget(!mask);
        kept.zeros |= !mask;
        kept
    }

    /// The predicate that says whether the value is not 0.
    fn not_zero(&self) -> Option<u32> {
        match self.bits[..] {
            [(bit, predicate)] if self.zeros == !(1 << bit) => Some(predicate),
            _ => None,
        }
    }
}

impl Interpreter<'_> {
    fn spilled(&self, value: ExprId) -> Option<SpilledPredicates> {
        if let Some(constant) = self.interner.as_constant(value) {
            return Some(SpilledPredicates::constant(constant));
        }
        self.interner.lone_symbol(value).and_then(|id| self.look_at_spilled(id)).cloned()
    }

    /// A value of an instruction that has predicates in it.
    fn spill(
        &mut self,
        here: SassSite<'_>,
        sources: Sources,
        spilled: SpilledPredicates,
    ) -> ExprId {
        let top = i64::from(!spilled.zeros);
        let bounds = i32::try_from(top).is_ok().then_some((0, top));
        let value = self.fresh(here.place.number, Kind::Opaque, sources, bounds);
        if let Some(id) = self.interner.lone_symbol(value) {
            self.set_spilled(id, spilled);
        }
        value
    }

    /// Predicates are spilled to the bits from `first` on of a value.
    pub(super) fn spill_predicates(
        &mut self,
        here: SassSite<'_>,
        (first, mask): (u8, u8),
        state: &State,
    ) -> ExprId {
        let base = self.source(here, 0, state);
        let mut spilled = self.spilled(base).unwrap_or_default();
        spilled.forget(u32::from(mask) << first);
        for (source, bit) in here.lifted.sources.iter().skip(1).zip(bits(mask)) {
            let SourceValue::Register(register) = source.origin else { continue };
            if let Some(predicate) = state.registers[register as usize].checked_sub(1) {
                spilled.bits.push((first + bit, predicate));
            }
        }
        spilled.bits.sort_unstable();
        let sources = match self.interner.as_constant(base) {
            Some(_) => smallvec![],
            None => smallvec![base],
        };
        self.spill(here, sources, spilled)
    }

    /// Predicates are reloaded from the bits from `first` on of a value.
    pub(super) fn reload_predicates(
        &mut self,
        here: SassSite<'_>,
        (first, mask): (u8, u8),
        state: &mut State,
    ) {
        let value = self.source(here, 0, state);
        let spilled = self.spilled(value).unwrap_or_default();
        let constant = self.interner.as_constant(value);
        for (at, bit) in bits(mask).enumerate() {
            let bit = first + bit;
            let kept = spilled.bits.iter().find(|kept| kept.0 == bit);
            let predicate = match (constant, kept) {
                (Some(constant), _) => Predicate::always(constant >> bit & 1 == 1),
                (_, Some(&(_, kept))) => self.predicates[kept as usize].clone(),
                _ if spilled.zeros >> bit & 1 == 1 => Predicate::always(false),
                _ => Predicate::default(),
            };
            self.put_predicate(here, at, predicate, state);
        }
    }

    /// The predicate that says whether a value is not 0, where it is one that was spilled there.
    pub(super) fn spilled_predicate(&self, value: ExprId) -> Option<Predicate> {
        self.interner.as_constant(value).is_none().then_some(())?;
        let predicate = self.spilled(value)?.not_zero()?;
        Some(self.predicates[predicate as usize].clone())
    }

    /// Some bits of a value become 0.
    pub(super) fn clear_bits(&mut self, here: SassSite<'_>, value: ExprId, bits: u32) -> ExprId {
        let mut spilled = self.spilled(value).unwrap_or_default();
        spilled.forget(bits);
        spilled.zeros |= bits;
        self.spill(here, smallvec![value], spilled)
    }

    /// The instruction sets a bit of the register that it reads, which was 0, where its guard
    /// holds. Returns whether that is so.
    pub(super) fn spill_guard_in(
        &mut self,
        here: SassSite<'_>,
        (value, bit): (ExprId, u8),
        state: &mut State,
    ) -> bool {
        let Some(&register) = here.lifted.results.first() else { return false };
        let same = register != NOWHERE && state.registers[register as usize] == value.0 + 1;
        let (Some((predicate, negated)), true) = (Self::guard_of(here, state), same) else {
            return false;
        };
        let Some(mut spilled) = self.spilled(value).filter(|spilled| spilled.zeros >> bit & 1 == 1)
        else {
            return false;
        };
        let predicate = match negated {
            true => {
                let opposite = self.predicates[predicate as usize].clone().not();
                self.predicate_id(opposite)
            }
            false => predicate,
        };
        spilled.forget(1 << bit);
        spilled.bits.push((bit, predicate));
        spilled.bits.sort_unstable();
        let value = self.spill(here, smallvec![value], spilled);
        // Not one of two values: the bit tells which.
        state.registers[register as usize] = value.0 + 1;
        true
    }

    /// Whether there are predicates in the bits of a value.
    pub(super) fn has_predicates(&self, value: ExprId) -> bool {
        self.interner.lone_symbol(value).is_some_and(|id| self.look_at_spilled(id).is_some())
    }

    /// Some bits of a value with predicates in it.
    pub(super) fn masked_predicates(
        &mut self,
        here: SassSite<'_>,
        value: ExprId,
        mask: i64,
    ) -> Option<ExprId> {
        let spilled = self.interner.lone_symbol(value).and_then(|id| self.look_at_spilled(id))?;
        let masked = spilled.masked(mask as u32);
        Some(self.spill(here, smallvec![value], masked))
    }

    /// Like the look-up of φs: a block's interpretation depends on the result.
    fn look_at_spilled(&self, id: SymbolId) -> Option<&SpilledPredicates> {
        self.definitions.looked_at(id);
        self.spilled.get(&id)
    }

    fn set_spilled(&mut self, id: SymbolId, spilled: SpilledPredicates) {
        if self.spilled.get(&id) != Some(&spilled) {
            self.spilled.insert(id, spilled);
            self.definitions.changed(id);
        }
    }
}

/// The bits of a mask that are predicates.
pub(super) fn bits(mask: u8) -> impl Iterator<Item = u8> {
    (0..7).filter(move |bit| mask >> bit & 1 == 1)
}
