//! The transfer functions of machine code that computes, on symbolic values of 32 bits.
//!
//! Stage: lowering; the fixpoint calls `machine_step` for each step of a block.
//!
//! Invariant: as in PTX: a guarded assignment is a gated φ, and a result that is not followed is
//! opaque.

use std::rc::Rc;

use smallvec::smallvec;

use super::operation::{BankWord, Lifted, LiftedSource, NOWHERE, Operation, SourceValue};
use crate::access::domain::condition::{Low, Predicate};
use crate::access::domain::expression::{ExprId, Operator, Symbol};
use crate::access::fixpoint::interpret::{Interpreter, Kind, Sources, State};
use crate::access::lower::ptx::values::AssignSite;

const SIGNED: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
pub(super) const UNSIGNED: (i64, i64) = (0, u32::MAX as i64);

/// Values under one guard that are looked through, one behind the other.
const MAX_GUARDED: usize = 8;

/// A step with its operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct SassSite<'a> {
    pub(super) lifted: &'a Lifted,
    pub(super) place: AssignSite,
}

impl Interpreter<'_> {
    /// Interprets one step.
    pub(in crate::access) fn machine_step(
        &mut self,
        place: AssignSite,
        lifted: &Rc<Lifted>,
        state: &mut State,
    ) {
        let here = SassSite { lifted, place };
        if self.machine_memory(here, state) {
            return;
        }
        let value = match &lifted.operation {
            Operation::Move => {
                let values: Vec<ExprId> =
                    (0..lifted.results.len()).map(|at| self.source(here, at, state)).collect();
                for (at, value) in values.into_iter().enumerate() {
                    self.put(here, at, value, state);
                }
                return;
            }
            Operation::Add { extended } => return self.add(here, *extended, state),
            Operation::AddPairs => return self.add_pairs(here, state),
            Operation::Multiply { half, signed, extended } => {
                return self.machine_multiply(here, *half, *signed, *extended, state);
            }
            &Operation::Scale { shift, half, extended, signed } => {
                self.scale(here, (shift, half, extended, signed), state)
            }
            &Operation::Shift { left, signed, upper, wide } => {
                self.machine_shift(here, (left, signed, upper, wide), state)
            }
            Operation::Logic { table } => {
                if self.spill_guard(here, *table, state) {
                    return;
                }
                self.machine_logic(here, *table, state)
            }
            Operation::PredicateLogic { tables } => {
                for (at, &table) in tables.iter().enumerate() {
                    let value = self.predicate_table(here, table, state);
                    self.put_predicate(here, at, value, state);
                }
                return;
            }
            Operation::Choose { pair } => return self.choose_machine(here, *pair, state),
            Operation::Extreme { signed, sum } => self.extreme(here, *signed, *sum, state),
            &Operation::Compare { order, signed, extended, combine } => {
                return self.compare(here, (order, signed, extended, combine), state);
            }
            &Operation::ComparePairs { order, signed, combine } => {
                return self.compare_pairs(here, (order, signed, combine), state);
            }
            &Operation::SpillPredicates { first, mask } => {
                Some(self.spill_predicates(here, (first, mask), state))
            }
            &Operation::ReloadPredicates { first, mask } => {
                return self.reload_predicates(here, (first, mask), state);
            }
            Operation::Permute => self.permute(here, state),
            Operation::Absolute => {
                let a = self.source(here, 0, state);
                self.interner.with_no_wrap(a, 0, SIGNED.1)
            }
            Operation::Special(index) => index.map(|index| self.interner.of(Symbol::Index(index))),
            Operation::Window => Some(self.interner.of(Symbol::Window)),
            Operation::Shuffle => {
                let value = self.source(here, 0, state);
                let differs = self.interner.mentions(value, &|symbol| {
                    !matches!(
                        symbol,
                        Symbol::Param { .. } | Symbol::Global(_) | Symbol::Function(..)
                    )
                });
                (!differs).then_some(value)
            }
            _ => None,
        };
        match value {
            Some(value) => self.put(here, 0, value, state),
            None => self.put_opaque(here, state),
        }
    }

    /// The value of a word of a constant bank.
    fn word(&mut self, here: SassSite<'_>, word: BankWord) -> ExprId {
        match word {
            BankWord::Param(offset) => {
                self.interner.of(Symbol::Param { offset, width: 4, signed: true })
            }
            BankWord::ParamBlock { offset, upper } => {
                let block = self.interner.of(Symbol::ParamBlock);
                let block = self.interner.offset(block, offset).unwrap_or(block);
                if upper { self.interner.upper(block) } else { block }
            }
            BankWord::Index(index) => self.interner.of(Symbol::Index(index)),
            BankWord::Window => self.interner.of(Symbol::Window),
            BankWord::Address { global, addend, upper } => {
                let base = self.interner.of(Symbol::Global(global));
                let address = self.interner.offset(base, addend).unwrap_or(base);
                if upper { self.interner.upper(address) } else { address }
            }
            BankWord::Variable { global, offset } => {
                let base = self.interner.of(Symbol::Global(global));
                let address = self.interner.offset(base, offset).unwrap_or(base);
                self.fresh(here.place.number, Kind::Loaded(4), smallvec![address], None)
            }
            BankWord::Literal(value) => self.interner.constant(value),
            BankWord::Driver => self.fresh(here.place.number, Kind::Driver, smallvec![], None),
            BankWord::Unknown => self.fresh(here.place.number, Kind::Opaque, smallvec![], None),
        }
    }

    /// A value as it is where the guard of the instruction holds: what an instruction with the
    /// same guard assigned is there.
    fn under_guard(&self, here: SassSite<'_>, mut value: ExprId, state: &State) -> ExprId {
        let Some((guard, negated)) = here.place.guard else { return value };
        let predicate = state.registers[guard as usize];
        if predicate == 0 {
            return value;
        }
        // In a loop an old value may be this very φ, of the iteration before: it stays.
        for _ in 0..MAX_GUARDED {
            match self.interner.lone_symbol(value).and_then(|id| self.look_at_guarded_phi(id)) {
                Some(&(by, not, [old, new])) if by == predicate => {
                    value = if not == negated { new } else { old };
                }
                _ => break,
            }
        }
        value
    }

    /// A source before anything is done to it.
    pub(super) fn raw(
        &mut self,
        here: SassSite<'_>,
        source: LiftedSource,
        state: &State,
    ) -> ExprId {
        match source.origin {
            SourceValue::Register(register) => match state.registers[register as usize] {
                _ if self.flat.registers[register as usize] => {
                    self.fresh(here.place.number, Kind::Opaque, smallvec![], None)
                }
                0 => self.fresh(here.place.number, Kind::Opaque, smallvec![], None),
                id => self.under_guard(here, ExprId(id - 1), state),
            },
            SourceValue::Constant(value) => self.interner.constant(value),
            SourceValue::Word(word) => self.word(here, word),
            SourceValue::Always(_) | SourceValue::Other => {
                self.fresh(here.place.number, Kind::Opaque, smallvec![], None)
            }
        }
    }

    /// The value of a source.
    pub(super) fn source(&mut self, here: SassSite<'_>, at: usize, state: &State) -> ExprId {
        let Some(&source) = here.lifted.sources.get(at) else { return self.interner.constant(0) };
        let mut value = self.raw(here, source, state);
        let modifier = source.modifier;
        if modifier.absolute {
            value = match self.interner.as_constant(value) {
                Some(constant) => self.interner.constant(constant.abs()),
                None => self.fresh(here.place.number, Kind::Opaque, smallvec![value], None),
            };
        }
        let start = match (modifier.not, modifier.minus) {
            (true, _) => -1,
            (_, true) => 0,
            _ => return value,
        };
        let start = self.interner.constant(start);
        match self.interner.add(start, value, -1) {
            Some(changed) => self.shortened(changed),
            None => self.fresh(here.place.number, Kind::Opaque, smallvec![value], None),
        }
    }

    /// A constant as a signed number of 32 bits.
    pub(super) fn shortened(&mut self, value: ExprId) -> ExprId {
        match self.interner.as_constant(value) {
            Some(constant) => self.interner.constant(i64::from(constant as i32)),
            None => value,
        }
    }

    /// The predicate that a source is.
    pub(super) fn predicate_source(
        &self,
        here: SassSite<'_>,
        at: usize,
        state: &State,
    ) -> Predicate {
        let Some(source) = here.lifted.sources.get(at) else { return Predicate::always(true) };
        let value = match source.origin {
            SourceValue::Register(register) => match state.registers[register as usize] {
                0 => Predicate::default(),
                _ if !self.flat.registers[register as usize] => Predicate::default(),
                id => self.predicates[id as usize - 1].clone(),
            },
            SourceValue::Always(value) => Predicate::always(value),
            _ => Predicate::default(),
        };
        if source.modifier.not { value.not() } else { value }
    }

    /// All sources that are no predicates.
    pub(super) fn all_sources(&mut self, here: SassSite<'_>, state: &State) -> Sources {
        let mut out = Sources::new();
        let one = |this: &mut Self, at: usize| {
            let value = this.source(here, at, state);
            this.interner.as_constant(value).is_some_and(|value| value.abs() == 1)
        };
        // A product is no pointer any more.
        let scaled = match here.lifted.operation {
            Operation::Multiply { .. } => [!one(self, 1), !one(self, 0)],
            Operation::Scale { shift, .. } => [shift > 0, false],
            _ => [false, false],
        };
        for (at, source) in here.lifted.sources.iter().enumerate() {
            let scale_upper =
                at == 2 && matches!(here.lifted.operation, Operation::Scale { shift: 1.., .. });
            if scaled.get(at) == Some(&true) || scale_upper {
                continue;
            }
            let followed = match source.origin {
                SourceValue::Register(register) => {
                    !self.flat.registers[register as usize]
                        && state.registers[register as usize] != 0
                }
                SourceValue::Word(BankWord::Unknown) => false,
                SourceValue::Word(_) => true,
                _ => false,
            };
            if followed {
                out.push(self.raw(here, *source, state));
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Assigns a result.
    pub(super) fn put(&mut self, here: SassSite<'_>, at: usize, value: ExprId, state: &mut State) {
        let Some(&register) = here.lifted.results.get(at) else { return };
        if register == NOWHERE {
            return;
        }
        let value = self.shortened(value);
        self.write(here.place, register, at as u16, value, state);
    }

    pub(super) fn put_predicate(
        &mut self,
        here: SassSite<'_>,
        at: usize,
        value: Predicate,
        state: &mut State,
    ) {
        let Some(&register) = here.lifted.results.get(at) else { return };
        if register == NOWHERE || !self.flat.registers[register as usize] {
            return;
        }
        let made = Some((here.place.number as u32, at as u16));
        // A copy is the predicate that it was copied from.
        let place = value.place.or(made);
        let mut value = value;
        let value = match (here.place.guard, value.low.take()) {
            (None, low) => {
                // Compilers test the same again where a predicate is not at hand any more.
                Some(Predicate { place: place.filter(|_| !value.is_told()), low, ..value })
            }
            // The old value may stay; an instruction under the same guard does not see it.
            (Some(_), Some(Low::Carry(lows, None))) => {
                let under = Self::guard_of(here, state);
                let low = under.map(|under| Low::Carry(lows, Some(under)));
                Some(Predicate { place, low, ..Predicate::default() })
            }
            _ => self
                .guarded_predicate(here, register, value, state)
                .map(|value| Predicate { place: made, ..value }),
        };
        state.registers[register as usize] = value.map_or(0, |value| self.predicate_id(value) + 1);
    }

    /// A predicate behind an instruction with a guard, where the old or the new value is constant.
    fn guarded_predicate(
        &mut self,
        here: SassSite<'_>,
        register: u32,
        new: Predicate,
        state: &State,
    ) -> Option<Predicate> {
        let (guard, negated) = here.place.guard?;
        let old = state.registers[register as usize].checked_sub(1)?;
        let old = self.predicates[old as usize].clone();
        if state.registers[guard as usize] == 0
            || new.constant().is_none() && old.constant().is_none()
        {
            return None;
        }
        let (kept, made) =
            (self.implied(state, guard, negated), self.implied(state, guard, !negated));
        let inputs = [(&new, made), (&old, kept)]
            .map(|(value, known)| (value, known.conditions, known.complete));
        Some(Predicate::phi(&inputs, &mut self.interner))
    }

    /// The predicate that guards an instruction, and whether it is negated.
    pub(super) fn guard_of(here: SassSite<'_>, state: &State) -> Option<(u32, bool)> {
        let (register, negated) = here.place.guard?;
        let predicate = state.registers[register as usize].checked_sub(1)?;
        Some((predicate, negated))
    }

    /// Assigns both halves of a 64-bit value to the first two results.
    pub(super) fn put_pair(
        &mut self,
        here: SassSite<'_>,
        at: usize,
        value: ExprId,
        state: &mut State,
    ) {
        let (low, high) = (self.interner.low(value), self.interner.upper(value));
        self.put(here, at, low, state);
        self.put(here, at + 1, high, state);
    }

    /// All results become something of the sources.
    pub(super) fn put_opaque(&mut self, here: SassSite<'_>, state: &mut State) {
        let sources = self.all_sources(here, state);
        let bounds = match &here.lifted.operation {
            Operation::Opaque { bounds, .. } => *bounds,
            _ => None,
        };
        let keeps = matches!(here.lifted.operation, Operation::Opaque { keeps: true, .. });
        for (at, &register) in here.lifted.results.iter().enumerate() {
            if register == NOWHERE {
                continue;
            }
            if self.flat.registers[register as usize] {
                self.put_predicate(here, at, Predicate::default(), state);
                continue;
            }
            let mut sources = Sources::from_slice(&sources);
            if keeps && let Some(old) = state.registers[register as usize].checked_sub(1) {
                sources.push(ExprId(old));
                sources.sort();
                sources.dedup();
            }
            let symbol = Symbol::Site(here.place.number as u32, 1000 + at as u16);
            let bounds = bounds.filter(|_| !keeps);
            let value = self.define(symbol, Kind::Opaque, sources, bounds);
            self.put(here, at, value, state);
        }
    }

    /// The value as a number of 32 bits, for where that matters.
    pub(super) fn number32(&mut self, value: ExprId, signed: bool) -> Option<ExprId> {
        let (low, high) = if signed { SIGNED } else { UNSIGNED };
        if let Some(constant) = self.interner.as_constant(value) {
            let constant =
                if signed { i64::from(constant as i32) } else { i64::from(constant as u32) };
            return Some(self.interner.constant(constant));
        }
        self.interner.with_no_wrap(value, low, high)
    }

    fn choose_machine(&mut self, here: SassSite<'_>, pair: bool, state: &mut State) {
        let predicate = self.predicate_source(here, here.lifted.sources.len() - 1, state);
        let inputs = |a, b, p: &Predicate| [(a, p.when_true.clone()), (b, p.when_false.clone())];
        if pair {
            let [a, a_high, b, b_high] = [0, 1, 2, 3].map(|at| self.source(here, at, state));
            if let (Some(a), Some(b)) = (self.join(a, a_high), self.join(b, b_high)) {
                let symbol = Symbol::Site(here.place.number as u32, 0);
                let value = self.define_gated_phi(symbol, inputs(a, b, &predicate));
                return self.put_pair(here, 0, value, state);
            }
            return self.put_opaque(here, state);
        }
        let (a, b) = (self.source(here, 0, state), self.source(here, 1, state));
        let value = match here.lifted.sources[2].origin {
            SourceValue::Always(value) if value != here.lifted.sources[2].modifier.not => a,
            SourceValue::Always(_) => b,
            _ if a == b => a,
            _ => {
                let symbol = Symbol::Site(here.place.number as u32, 0);
                self.define_gated_phi(symbol, inputs(a, b, &predicate))
            }
        };
        self.put(here, 0, value, state);
    }

    fn extreme(
        &mut self,
        here: SassSite<'_>,
        signed: bool,
        sum: bool,
        state: &State,
    ) -> Option<ExprId> {
        let which = here.lifted.sources.last()?;
        let SourceValue::Always(value) = which.origin else { return None };
        let function = if value != which.modifier.not { Operator::Min } else { Operator::Max };
        let mut a = self.source(here, 0, state);
        let mut b = self.source(here, 1, state);
        if sum {
            a = self.interner.add(a, b, 1)?;
            b = self.source(here, 2, state);
        }
        let (a, b) = (self.number32(a, signed)?, self.number32(b, signed)?);
        self.interner.limited(function, a.min(b), a.max(b))
    }

    /// Bytes of two values; zero-extended parts are followed.
    fn permute(&mut self, here: SassSite<'_>, state: &State) -> Option<ExprId> {
        let [a, selector, b] = [0, 1, 2].map(|at| self.source(here, at, state));
        let selector = self.interner.as_constant(selector)?;
        let picks: [i64; 4] = [0, 4, 8, 12].map(|shift| selector >> shift & 0xf);
        match picks {
            [0, 1, 2, 3] => return Some(a),
            [4, 5, 6, 7] => return Some(b),
            _ => {}
        }
        let zeros =
            [self.interner.as_constant(a) == Some(0), self.interner.as_constant(b) == Some(0)];
        let is_zero = |pick: i64| zeros[usize::from(pick & 4 != 0)];
        let first = picks[0];
        if first >= 8 || is_zero(first) {
            return None;
        }
        let same = |pick: i64, at: i64| pick == first + at && pick & 4 == first & 4;
        let count = (1..4).take_while(|&at| same(picks[at as usize], at)).count() + 1;
        if !picks[count..].iter().all(|&pick| is_zero(pick)) {
            return None;
        }
        let value = if first & 4 == 0 { a } else { b };
        let shifted = match first & 3 {
            0 => value,
            bytes => {
                let value = self.number32(value, false)?;
                let divisor = self.interner.constant(1 << (8 * bytes));
                self.interner.limited(Operator::Quotient, value, divisor)?
            }
        };
        let size = self.interner.constant(1 << (8 * count));
        self.interner.limited(Operator::Remainder, shifted, size)
    }
}
