//! The transfer functions of integer arithmetic of PTX.
//!
//! Stage: lowering. Sums and products are exact modulo a power of two, so narrow registers need no
//! care until their sign or size matters.
//!
//! Invariant: where sign or size matters (widening, division, shifts to the right, minima), the
//! operand gets the no-wrap condition that it lies in the range of its type.

use crate::access::domain::expression::{ExprId, Operator, Symbol};
use crate::access::fixpoint::interpret::{Interpreter, State};
use crate::access::lower::ptx::values::PtxSite;
use crate::ptx::Type;

fn range(ty: Type) -> (i64, i64) {
    match (ty.bits(), ty.is_signed()) {
        (64.., true) => (i64::MIN, i64::MAX),
        (64.., false) => (0, i64::MAX),
        (bits, true) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        (bits, false) => (0, (1 << bits) - 1),
    }
}

impl Interpreter<'_> {
    /// The value as a number of its type, for where that matters.
    fn number(&mut self, value: ExprId, ty: Type) -> Option<ExprId> {
        let (low, high) = range(ty);
        let value = match self.interner.as_constant(value) {
            Some(constant) if !ty.is_signed() && ty.bits() < 64 => {
                self.interner.constant(constant & high)
            }
            _ => self.signed(value, ty),
        };
        if (low, high) == (i64::MIN, i64::MAX) {
            return Some(value);
        }
        self.interner.with_no_wrap(value, low, high)
    }

    /// The result of an instruction, `None` where it is not followed.
    pub(in crate::access) fn arithmetic(
        &mut self,
        site: &PtxSite<'_, '_>,
        state: &State,
    ) -> Option<ExprId> {
        let instruction = site.instruction;
        let ty = *site.types.last()?;
        if site.types.iter().any(|ty| ty.is_float()) || ty.bits() > 64 {
            return None;
        }
        // Saturation and carries are not modular arithmetic.
        if ["sat", "cc", "hi"].iter().any(|word| instruction.has(word)) {
            return None;
        }
        let a = self.operand(site, 1, state);
        let second = |this: &mut Self| {
            let b = this.operand(site, 2, state);
            this.signed(b, ty)
        };
        let wide = instruction.has("wide");
        match instruction.opcode.as_str() {
            "cvt" => {
                let [to, from] = site.types[..] else { return None };
                if to.bits() > from.bits() { self.number(a, from) } else { Some(a) }
            }
            "cvta" => Some(a),
            "add" => {
                let b = second(self);
                self.interner.add(a, b, 1)
            }
            "sub" => {
                let b = second(self);
                self.interner.add(a, b, -1)
            }
            "neg" => {
                let zero = self.interner.constant(0);
                self.interner.add(zero, a, -1)
            }
            "not" => {
                let ones = self.interner.constant(-1);
                self.interner.add(ones, a, -1)
            }
            "mul" | "mad" => {
                let mut a = self.signed(a, ty);
                let mut b = second(self);
                if wide {
                    a = self.number(a, ty)?;
                    b = self.number(b, ty)?;
                }
                let product = self.interner.multiply(a, b)?;
                if instruction.opcode == "mul" {
                    return Some(product);
                }
                let c = self.operand(site, 3, state);
                self.interner.add(product, c, 1)
            }
            "shl" => {
                let by = second(self);
                match self.interner.as_constant(by)? {
                    by if (0..i64::from(ty.bits()).min(63)).contains(&by) => {
                        let factor = self.interner.constant(1 << by);
                        self.interner.multiply(a, factor)
                    }
                    _ => None,
                }
            }
            "shr" => {
                let by = second(self);
                let by = self.interner.as_constant(by).filter(|by| (0..=62).contains(by))?;
                let a = self.number(a, ty)?;
                let divisor = self.interner.constant(1 << by.min(i64::from(ty.bits()) - 1));
                self.interner.limited(Operator::Quotient, a, divisor)
            }
            "div" | "rem" => {
                let b = second(self);
                // Truncation is rounding down where nothing is negative.
                let (_, high) = range(ty);
                let a = self.number(a, ty)?;
                let a = self.interner.with_no_wrap(a, 0, high)?;
                let b = self.interner.with_no_wrap(b, 1, high)?;
                let function = match instruction.opcode.as_str() {
                    "div" => Operator::Quotient,
                    _ => Operator::Remainder,
                };
                self.interner.limited(function, a, b)
            }
            "bfe" => {
                let (at, length) = (second(self), self.operand(site, 3, state));
                let (at, length) =
                    (self.interner.as_constant(at)?, self.interner.as_constant(length)?);
                let fits =
                    at >= 0 && length >= 1 && at.saturating_add(length) < i64::from(ty.bits());
                if ty.is_signed() || !fits {
                    return None;
                }
                let a = self.number(a, ty)?;
                let divisor = self.interner.constant(1 << at);
                let shifted = self.interner.limited(Operator::Quotient, a, divisor)?;
                let size = self.interner.constant(1 << length);
                self.interner.limited(Operator::Remainder, shifted, size)
            }
            "bfi" if ty.bits() == 64 => {
                // An upper half put in front of a lower one.
                let [low, at, length] = [2, 3, 4].map(|at| self.operand(site, at, state));
                let at = (self.interner.as_constant(at)?, self.interner.as_constant(length)?);
                if at == (32, 32) { self.pack(low, a) } else { None }
            }
            "min" | "max" => {
                let b = second(self);
                let (a, b) = (self.number(a, ty)?, self.number(b, ty)?);
                let function =
                    if instruction.opcode == "min" { Operator::Min } else { Operator::Max };
                self.interner.limited(function, a.min(b), a.max(b))
            }
            "and" => {
                let b = second(self);
                self.and(a, b)
            }
            "or" => {
                let b = second(self);
                self.or(a, b).or_else(|| self.or(b, a))
            }
            _ => None,
        }
    }

    pub(in crate::access) fn and(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        let (a, mask) = match (self.interner.as_constant(a), self.interner.as_constant(b)) {
            (_, Some(mask)) => (a, mask),
            (Some(mask), _) => (b, mask),
            _ => return None,
        };
        if mask == -1 {
            return Some(a);
        }
        if (0..i64::MAX).contains(&mask) && (mask + 1).count_ones() == 1 {
            let size = self.interner.constant(mask + 1);
            return self.interner.limited(Operator::Remainder, a, size);
        }
        let below = mask.wrapping_neg();
        if mask < 0 && below > 0 && below.count_ones() == 1 {
            let size = self.interner.constant(below);
            let rest = self.interner.limited(Operator::Remainder, a, size)?;
            return self.interner.add(a, rest, -1);
        }
        if mask >= 0 {
            let mask = self.interner.constant(mask);
            return self.interner.limited(Operator::And, a, mask);
        }
        None
    }

    /// `a | b` is a sum where `b` is smaller than the lowest bit that `a` can have.
    pub(in crate::access) fn or(&mut self, a: ExprId, b: ExprId) -> Option<ExprId> {
        let polynomial = self.interner.get(a);
        let mut low = 62;
        for term in &polynomial.terms {
            let is_pointer = term.symbols.iter().any(|&s| {
                !matches!(self.interner.symbol(s), Symbol::Index(_) | Symbol::Induction(_))
            });
            if is_pointer && term.coefficient == 1 {
                return None;
            }
            low = low.min(term.coefficient.trailing_zeros());
        }
        if low == 0 || polynomial.terms.is_empty() {
            return None;
        }
        let b = self.interner.with_no_wrap(b, 0, (1i64 << low) - 1)?;
        self.interner.add(a, b, 1)
    }
}
