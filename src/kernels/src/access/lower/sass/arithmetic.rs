//! The transfer functions of sums, products and shifts of machine code: values of 64 bits are made
//! by instructions on their halves, with a carry between them.
//!
//! Stage: lowering. Invariant: an upper half is followed only where the instruction that made its
//! carry is known.

use smallvec::smallvec;

use super::interpret::{SassSite, UNSIGNED};
use super::operation::{Half, SourceValue};
use crate::access::domain::condition::{Low, Lows, Predicate};
use crate::access::domain::expression::{ExprId, Operator, Symbol};
use crate::access::fixpoint::interpret::{Interpreter, State};

impl Interpreter<'_> {
    /// The summands of the instruction that made the carry.
    fn carried(&self, here: SassSite<'_>, from: usize, state: &State) -> Option<Lows> {
        let mut found: Option<&Low> = None;
        for source in here.lifted.sources.iter().skip(from) {
            match source.origin {
                SourceValue::Always(value) if value == source.modifier.not => {}
                SourceValue::Register(register) if !source.modifier.not => {
                    let id = state.registers[register as usize].checked_sub(1)?;
                    let low = self.predicates.get_index(id as usize)?.low.as_ref()?;
                    if found.is_some_and(|known| known != low) {
                        return None;
                    }
                    found = Some(low);
                }
                _ => return None,
            }
        }
        match found? {
            Low::Carry(lows, None) => Some(lows.clone()),
            Low::Carry(lows, under) if *under == Self::guard_of(here, state) => Some(lows.clone()),
            _ => None,
        }
    }

    /// The raw value of a source and whether it is subtracted, constants turned.
    fn part(
        &mut self,
        here: SassSite<'_>,
        at: usize,
        upper: bool,
        state: &State,
    ) -> (ExprId, bool) {
        let source = here.lifted.sources[at];
        let turned = if upper { source.modifier.not } else { source.modifier.minus };
        let raw = self.raw(here, source, state);
        let other =
            source.modifier.absolute || (turned != (source.modifier.not || source.modifier.minus));
        if !turned || other || self.interner.as_constant(raw).is_some() {
            return (self.source(here, at, state), false);
        }
        (raw, true)
    }

    pub(super) fn add(&mut self, here: SassSite<'_>, extended: bool, state: &mut State) {
        let parts: Lows = (0..3).map(|at| self.part(here, at, extended, state)).collect();
        if extended {
            let lows = self.carried(here, 3, state);
            let sum = lows.and_then(|lows| self.wide_sum(&lows, &parts));
            match sum {
                Some(sum) => {
                    let upper = self.interner.upper(sum);
                    self.put_first_only(here, upper, state);
                }
                None => self.put_opaque(here, state),
            }
            return;
        }
        let mut sum = Some(self.interner.constant(0));
        for &(value, minus) in &parts {
            sum = sum.and_then(|sum| self.interner.add(sum, value, if minus { -1 } else { 1 }));
        }
        match sum {
            Some(sum) => {
                let low = self.interner.low(sum);
                self.put_first_only(here, low, state);
            }
            None => self.put_opaque(here, state),
        }
        self.put_carries(here, 1, parts, state);
    }

    /// Assigns the first result; the predicates behind it become unknown.
    fn put_first_only(&mut self, here: SassSite<'_>, value: ExprId, state: &mut State) {
        self.put(here, 0, value, state);
        self.put_carries(here, 1, Lows::new(), state);
    }

    fn put_carries(&mut self, here: SassSite<'_>, from: usize, parts: Lows, state: &mut State) {
        let low = (!parts.is_empty()).then_some(Low::Carry(parts, None));
        let predicate = Predicate { low, ..Predicate::default() };
        for at in from..here.lifted.results.len() {
            self.put_predicate(here, at, predicate.clone(), state);
        }
    }

    pub(super) fn add_pairs(&mut self, here: SassSite<'_>, state: &mut State) {
        let mut sum = Some(self.interner.constant(0));
        for at in (0..here.lifted.sources.len()).step_by(2) {
            let minus = here.lifted.sources[at].modifier.minus;
            let low = self.raw(here, here.lifted.sources[at], state);
            let high = match here.lifted.sources.get(at + 1) {
                Some(&source) => self.raw(here, source, state),
                None => self.interner.constant(0),
            };
            let value = self.join(low, high);
            let factor = if minus { -1 } else { 1 };
            sum = match (sum, value) {
                (Some(sum), Some(value)) => self.interner.add(sum, value, factor),
                _ => None,
            };
        }
        match sum {
            Some(sum) => self.put_pair(here, 0, sum, state),
            None => self.put_opaque(here, state),
        }
    }

    pub(super) fn machine_multiply(
        &mut self,
        here: SassSite<'_>,
        half: Half,
        signed: bool,
        extended: bool,
        state: &mut State,
    ) {
        let (a, b) = (self.source(here, 0, state), self.source(here, 1, state));
        if half == Half::Low {
            if extended {
                let upper = self.multiply_extended(here, a, b, state);
                return match upper {
                    Some(upper) => self.put_first_only(here, upper, state),
                    None => self.put_opaque(here, state),
                };
            }
            let product = self.interner.multiply(a, b);
            let c = self.source(here, 2, state);
            let sum = product.and_then(|product| self.interner.add(product, c, 1));
            return match sum {
                Some(sum) => {
                    let low = self.interner.low(sum);
                    self.put(here, 0, low, state);
                    self.put_carries(here, 2, Lows::new(), state);
                }
                None => self.put_opaque(here, state),
            };
        }
        let product = match (self.number32(a, signed), self.number32(b, signed)) {
            (Some(a), Some(b)) if !extended => self.interner.multiply(a, b),
            _ => None,
        };
        // A minus is in front of both halves.
        let sign = if here.lifted.sources[2].modifier.minus { -1 } else { 1 };
        let halves = [2, 3].map(|at| match here.lifted.sources[at] {
            source if sign < 0 => self.raw(here, source, state),
            _ => self.source(here, at, state),
        });
        let added = self.join(halves[0], halves[1]);
        let sum = match (product, added) {
            (Some(product), Some(added)) => self.interner.add(product, added, sign),
            _ => None,
        };
        match (sum, half) {
            (Some(sum), Half::Both) => {
                self.put_pair(here, 0, sum, state);
                self.put_carries(here, 2, Lows::new(), state);
            }
            (Some(sum), _) => {
                let divisor = self.interner.constant(1 << 32);
                match self.interner.limited(Operator::Quotient, sum, divisor) {
                    Some(upper) => self.put(here, 0, upper, state),
                    None => self.put_opaque(here, state),
                }
                self.put_carries(here, 2, Lows::new(), state);
            }
            (None, _) => {
                self.put_opaque(here, state);
                // The lower half needs no carry.
                if let (Half::Both, Some(product)) = (half, product)
                    && let Some(sum) = self.interner.add(product, halves[0], sign)
                {
                    let low = self.interner.low(sum);
                    self.put(here, 0, low, state);
                }
            }
        }
    }

    /// `a * b + c + carry` where one factor is 0 or 1: a sum of upper halves.
    fn multiply_extended(
        &mut self,
        here: SassSite<'_>,
        a: ExprId,
        b: ExprId,
        state: &State,
    ) -> Option<ExprId> {
        let lows = self.carried(here, 4, state)?;
        let mut highs = vec![self.part(here, 2, true, state)];
        match (self.interner.as_constant(a), self.interner.as_constant(b)) {
            (Some(0), _) | (_, Some(0)) => {}
            (_, Some(1)) => highs.push((a, false)),
            (Some(1), _) => highs.push((b, false)),
            _ => return None,
        }
        let sum = self.wide_sum(&lows, &highs)?;
        Some(self.interner.upper(sum))
    }

    pub(super) fn scale(
        &mut self,
        here: SassSite<'_>,
        (shift, half, extended, signed): (u32, Half, bool, bool),
        state: &mut State,
    ) -> Option<ExprId> {
        let factor = self.interner.constant(1 << shift);
        let a = self.source(here, 0, state);
        if half == Half::Low {
            let scaled = self.interner.multiply(a, factor);
            let (b, minus) = self.part(here, 1, false, state);
            let sum =
                scaled.and_then(|scaled| self.interner.add(scaled, b, if minus { -1 } else { 1 }));
            let parts =
                scaled.map(|scaled| smallvec![(scaled, false), (b, minus)]).unwrap_or_default();
            let sum = sum.map(|sum| self.interner.low(sum));
            match sum {
                Some(sum) => self.put(here, 0, sum, state),
                None => self.put_opaque(here, state),
            }
            self.put_carries(here, 1, parts, state);
            return None.or(sum);
        }
        let carried = extended.then(|| self.carried(here, 3, state));
        self.put_carries(here, 1, Lows::new(), state);
        let b = self.source(here, 1, state);
        if let Some(carried) = carried {
            let mut lows = carried?;
            lows.retain(|low| self.interner.as_constant(low.0) != Some(0));
            let whole = if signed {
                self.number32(a, true)?
            } else {
                let c = self.source(here, 2, state);
                self.join(a, c)?
            };
            let mut scaled = vec![self.interner.multiply(whole, factor)?];
            if signed && shift == 1 {
                // All bits are the sign: of the value, and of its remainder if it is shifted to the
                // right.
                scaled.push(whole);
                scaled.extend(lows.iter().filter_map(|low| self.shifted_right(low.0, a)));
            }
            return scaled.into_iter().find_map(|scaled| self.scaled_sum(scaled, b, &lows));
        }
        let c = self.source(here, 2, state);
        let divisor = self.interner.constant(1 << (32 - shift.min(32)));
        if signed {
            let a = self.number32(a, true)?;
            let quotient = self.interner.limited(Operator::Quotient, a, divisor)?;
            let parts = smallvec![(quotient, false), (b, false)];
            self.put_carries(here, 1, parts, state);
            return self.interner.add(b, quotient, 1);
        }
        if self.interner.as_constant(c) == Some(0) {
            if let Some(of) = self.interner.as_upper(a) {
                // The addend that rounds a negative number towards zero; nothing where it is not
                // negative.
                let of = self.interner.with_no_wrap(of, 0, UNSIGNED.1)?;
                return self.interner.with_no_wraps_of(b, of);
            }
            let a = self.number32(a, false)?;
            let quotient = self.interner.limited(Operator::Quotient, a, divisor)?;
            return self.interner.add(b, quotient, 1);
        }
        let whole = self.join(a, c)?;
        let scaled = self.interner.multiply(whole, factor)?;
        let upper = self.interner.upper(scaled);
        self.interner.add(b, upper, 1)
    }

    /// The upper half of a sum of two values, one of which is known.
    fn scaled_sum(
        &mut self,
        scaled: ExprId,
        upper: ExprId,
        lows: &[(ExprId, bool)],
    ) -> Option<ExprId> {
        let &[first, second] = lows else { return None };
        let (other, minus) = match (self.is_low(first, scaled), self.is_low(second, scaled)) {
            (true, _) => second,
            (_, true) => first,
            _ => return None,
        };
        if minus {
            return None;
        }
        let added = self.join(other, upper)?;
        let sum = self.interner.add(scaled, added, 1)?;
        Some(self.interner.upper(sum))
    }

    /// `low`, where it is `value` divided by a power of two, as a signed number.
    fn shifted_right(&mut self, low: ExprId, value: ExprId) -> Option<ExprId> {
        let Some(Symbol::Function(Operator::Quotient, of, by)) = self.interner.as_symbol(low)
        else {
            return None;
        };
        let signed = self.number32(value, true)?;
        (of == signed && self.interner.as_constant(by).is_some()).then_some(low)
    }

    fn is_low(&mut self, (value, minus): (ExprId, bool), whole: ExprId) -> bool {
        let (a, b) = (self.interner.low(value), self.interner.low(whole));
        !minus && self.interner.bare(a) == self.interner.bare(b)
    }

    pub(super) fn machine_shift(
        &mut self,
        here: SassSite<'_>,
        (left, signed, upper, wide): (bool, bool, bool, bool),
        state: &State,
    ) -> Option<ExprId> {
        let [low, by, high] = [0, 1, 2].map(|at| self.source(here, at, state));
        let by = self.interner.as_constant(by).filter(|by| (0..32).contains(by))?;
        let factor = self.interner.constant(1 << by);
        if left {
            if !upper {
                let value = self.interner.multiply(low, factor)?;
                return Some(self.interner.low(value));
            }
            let whole = self.join(low, high)?;
            let value = self.interner.multiply(whole, factor)?;
            return Some(self.interner.upper(value));
        }
        if by == 0 {
            return Some(if upper { high } else { low });
        }
        if upper {
            if let Some(whole) = self.interner.as_upper(high) {
                let whole =
                    if signed { whole } else { self.interner.with_no_wrap(whole, 0, i64::MAX)? };
                let value = self.interner.limited(Operator::Quotient, whole, factor)?;
                return Some(self.interner.upper(value));
            }
            let value = self.number32(high, signed)?;
            return if by == 31 && signed {
                Some(self.interner.upper(value))
            } else {
                self.interner.limited(Operator::Quotient, value, factor)
            };
        }
        if !wide && self.interner.as_constant(high) == Some(0) {
            let value = self.number32(low, false)?;
            return self.interner.limited(Operator::Quotient, value, factor);
        }
        let whole = self.join(low, high)?;
        let value = self.interner.limited(Operator::Quotient, whole, factor)?;
        Some(self.interner.low(value))
    }
}
