//! Predicates that are kept in the bits of general registers.
//!
//! There are seven predicates. Where a kernel needs more, its compiler moves some to a register
//! (`P2R`) and tests their bits later (`R2P`, `ISETP.NE R, RZ`, `LOP3` with a mask). What comes out is
//! the very predicate that went in: instructions in front and behind may have it as their guard, and
//! an address of which they make a half each is known only if that is seen.

use smallvec::{SmallVec, smallvec};

use super::super::condition::Predicate;
use super::super::expression::{ExprId, SymbolId};
use super::super::interpret::{Interpreter, Kind, Sources, State};
use super::interpret::Here;
use super::operation::{NOWHERE, Origin};

/// What is known of the bits of a value that has predicates in it. The others may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Saved {
    /// Bits that are 0.
    zeros: u32,
    /// The predicates in bits, in ascending order of these.
    bits: SmallVec<[(u8, u32); 4]>,
}

impl Saved {
    fn constant(value: i64) -> Saved {
        Saved { zeros: !(value as u32), bits: SmallVec::new() }
    }

    fn forget(&mut self, mask: u32) {
        self.zeros &= !mask;
        self.bits.retain(|(bit, _)| mask >> *bit & 1 == 0);
    }

    fn masked(&self, mask: u32) -> Saved {
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
    fn saved(&self, value: ExprId) -> Option<Saved> {
        if let Some(constant) = self.interner.as_constant(value) {
            return Some(Saved::constant(constant));
        }
        self.interner.lone_symbol(value).and_then(|id| self.look_saved(id)).cloned()
    }

    /// A value of an instruction that has predicates in it.
    fn save(&mut self, here: Here<'_>, sources: Sources, saved: Saved) -> ExprId {
        let top = i64::from(!saved.zeros);
        let bounds = i32::try_from(top).is_ok().then_some((0, top));
        let value = self.fresh(here.place.number, Kind::Opaque, sources, bounds);
        if let Some(id) = self.interner.lone_symbol(value) {
            self.set_saved(id, saved);
        }
        value
    }

    /// Predicates are put into the bits from `first` on of a value.
    pub(super) fn save_predicates(
        &mut self,
        here: Here<'_>,
        (first, mask): (u8, u8),
        state: &State,
    ) -> ExprId {
        let base = self.source(here, 0, state);
        let mut saved = self.saved(base).unwrap_or_default();
        saved.forget(u32::from(mask) << first);
        for (source, bit) in here.lifted.sources.iter().skip(1).zip(bits(mask)) {
            let Origin::Register(register) = source.origin else { continue };
            if let Some(predicate) = state.registers[register as usize].checked_sub(1) {
                saved.bits.push((first + bit, predicate));
            }
        }
        saved.bits.sort_unstable();
        let sources = match self.interner.as_constant(base) {
            Some(_) => smallvec![],
            None => smallvec![base],
        };
        self.save(here, sources, saved)
    }

    /// Predicates become the bits from `first` on of a value.
    pub(super) fn restore_predicates(
        &mut self,
        here: Here<'_>,
        (first, mask): (u8, u8),
        state: &mut State,
    ) {
        let value = self.source(here, 0, state);
        let saved = self.saved(value).unwrap_or_default();
        let constant = self.interner.as_constant(value);
        for (at, bit) in bits(mask).enumerate() {
            let bit = first + bit;
            let kept = saved.bits.iter().find(|kept| kept.0 == bit);
            let predicate = match (constant, kept) {
                (Some(constant), _) => Predicate::always(constant >> bit & 1 == 1),
                (_, Some(&(_, kept))) => self.predicates[kept as usize].clone(),
                _ if saved.zeros >> bit & 1 == 1 => Predicate::always(false),
                _ => Predicate::default(),
            };
            self.put_predicate(here, at, predicate, state);
        }
    }

    /// The predicate that says whether a value is not 0, where it is one that was kept there.
    pub(super) fn kept_predicate(&self, value: ExprId) -> Option<Predicate> {
        self.interner.as_constant(value).is_none().then_some(())?;
        let predicate = self.saved(value)?.not_zero()?;
        Some(self.predicates[predicate as usize].clone())
    }

    /// Some bits of a value become 0.
    pub(super) fn clear_bits(&mut self, here: Here<'_>, value: ExprId, bits: u32) -> ExprId {
        let mut saved = self.saved(value).unwrap_or_default();
        saved.forget(bits);
        saved.zeros |= bits;
        self.save(here, smallvec![value], saved)
    }

    /// The instruction sets a bit of the register that it reads, which was 0, where its guard holds.
    /// Returns whether that is so.
    pub(super) fn save_guard_in(
        &mut self,
        here: Here<'_>,
        (value, bit): (ExprId, u8),
        state: &mut State,
    ) -> bool {
        let Some(&register) = here.lifted.results.first() else { return false };
        let same = register != NOWHERE && state.registers[register as usize] == value.0 + 1;
        let (Some((predicate, negated)), true) = (Self::guard_of(here, state), same) else {
            return false;
        };
        let Some(mut saved) = self.saved(value).filter(|saved| saved.zeros >> bit & 1 == 1) else {
            return false;
        };
        let predicate = match negated {
            true => {
                let opposite = self.predicates[predicate as usize].clone().not();
                self.predicate_id(opposite)
            }
            false => predicate,
        };
        saved.forget(1 << bit);
        saved.bits.push((bit, predicate));
        saved.bits.sort_unstable();
        let value = self.save(here, smallvec![value], saved);
        // Not one of two values: the bit tells which.
        state.registers[register as usize] = value.0 + 1;
        true
    }

    /// Whether there are predicates in the bits of a value.
    pub(super) fn has_predicates(&self, value: ExprId) -> bool {
        self.interner.lone_symbol(value).is_some_and(|id| self.look_saved(id).is_some())
    }

    /// Some bits of a value with predicates in it.
    pub(super) fn masked_predicates(
        &mut self,
        here: Here<'_>,
        value: ExprId,
        mask: i64,
    ) -> Option<ExprId> {
        let saved = self.interner.lone_symbol(value).and_then(|id| self.look_saved(id))?;
        let masked = saved.masked(mask as u32);
        Some(self.save(here, smallvec![value], masked))
    }

    /// As with φs, a block's interpretation depends on it.
    fn look_saved(&self, id: SymbolId) -> Option<&Saved> {
        self.definitions.looked_at(id);
        self.saved.get(&id)
    }

    fn set_saved(&mut self, id: SymbolId, saved: Saved) {
        if self.saved.get(&id) != Some(&saved) {
            self.saved.insert(id, saved);
            self.definitions.changed(id);
        }
    }
}

/// The bits of a mask that are predicates.
pub(super) fn bits(mask: u8) -> impl Iterator<Item = u8> {
    (0..7).filter(move |bit| mask >> bit & 1 == 1)
}
