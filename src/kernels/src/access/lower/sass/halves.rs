//! Values of 64 bits in two registers: the lower one holds the polynomial itself, which means its
//! lowest 32 bits, and the upper one [`Operator::Upper`] of it.
//!
//! Stage: lowering. Invariant: [`Interner::join`] gives a value only where the two registers are
//! its halves, under no-wrap conditions if need be.

use crate::access::domain::expression::{
    ExprId, Interner, Operator, Provenance, Symbol, SymbolId, Term,
};

const UNSIGNED: i64 = u32::MAX as i64;
/// The first number of the φs that a step makes of two φs of halves.
pub(super) const WHOLE: u16 = 400;

impl Interner {
    /// A polynomial that is equal to this one modulo 2^32, the same for all that are.
    pub(in crate::access) fn low(&mut self, a: ExprId) -> ExprId {
        let terms = &self.get(a).terms;
        let wide = |interner: &Interner, id: SymbolId| match interner.symbol(id) {
            Symbol::Param { width: 8, .. } => true,
            Symbol::Site(_, WHOLE..) => interner.lower_phis.contains_key(&id),
            _ => false,
        };
        let fits = |c: i64| i64::from(c as i32) == c;
        let known = terms
            .iter()
            .all(|t| fits(t.coefficient) && !t.symbols.iter().any(|&id| wide(self, id)));
        if known {
            return a;
        }
        let mut out: Vec<Term> = Vec::new();
        for mut term in terms.clone() {
            for id in &mut term.symbols {
                match self.symbol(*id) {
                    Symbol::Param { offset, width: 8, .. } => {
                        *id = self.symbol_id(Symbol::Param { offset, width: 4, signed: true });
                    }
                    Symbol::Site(_, WHOLE..) => {
                        *id = self.lower_phis.get(id).copied().unwrap_or(*id);
                    }
                    _ => {}
                }
            }
            term.symbols.sort();
            term.coefficient = i64::from(term.coefficient as i32);
            out.push(term);
        }
        let no_wraps = self.get(a).no_wraps.clone();
        self.normal(out, no_wraps).unwrap_or(a)
    }

    /// The upper 32 bits of a 64-bit value.
    pub(in crate::access) fn upper(&mut self, a: ExprId) -> ExprId {
        if let Some(value) = self.as_constant(a) {
            return self.constant(value >> 32);
        }
        let zero = self.constant(0);
        self.function(Operator::Upper, a, zero)
    }

    /// The expression of which `a` is the upper half.
    pub(in crate::access) fn as_upper(&self, a: ExprId) -> Option<ExprId> {
        match self.as_symbol(a) {
            Some(Symbol::Function(Operator::Upper, whole, _)) => Some(whole),
            _ => None,
        }
    }

    /// Whether two values have the same lowest 32 bits, as far as is known.
    fn same_low(&mut self, a: ExprId, b: ExprId) -> bool {
        let (a, b) = (self.low(a), self.low(b));
        self.bare(a) == self.bare(b)
    }

    /// The 64-bit value of two halves, where it is known what they are halves of.
    pub(in crate::access) fn join(&mut self, low: ExprId, high: ExprId) -> Option<ExprId> {
        if let (Some(l), Some(h)) = (self.as_constant(low), self.as_constant(high)) {
            return Some(self.constant(h << 32 | (l & UNSIGNED)));
        }
        if let Some(whole) = self.as_upper(high) {
            return self.join_upper(low, whole);
        }
        if self.as_constant(high) == Some(0) {
            return self.with_no_wrap(low, 0, UNSIGNED);
        }
        if let Some(whole) = self.join_shifted(low, high) {
            return Some(whole);
        }
        let word = |symbol| match symbol {
            Some(Symbol::Param { offset, width: 4, .. }) => Some(offset),
            _ => None,
        };
        if let (Some(a), Some(b)) = (word(self.as_symbol(low)), word(self.as_symbol(high)))
            && b == a + 4
        {
            return Some(self.of(Symbol::Param { offset: a, width: 8, signed: true }));
        }
        if let Some(symbol @ (Symbol::Window | Symbol::ParamBlock)) = self.as_symbol(high) {
            let is = |s: Symbol| s == symbol;
            return match self.mentions(low, &is) {
                true => Some(low),
                // Shared memory of another block: the window begins at a multiple of 2^32.
                false => (symbol == Symbol::Window).then(|| self.of(symbol)),
            };
        }
        self.join_products(low, high)
    }

    /// `x << n` and the bits of `x` that this moves out, `x >> (32 - n)`.
    fn join_shifted(&mut self, low: ExprId, high: ExprId) -> Option<ExprId> {
        let Some(Symbol::Function(Operator::Quotient, of, by)) = self.as_symbol(high) else {
            return None;
        };
        let by = self.as_constant(by).filter(|by| (2..1 << 32).contains(by))?;
        let factor = (by.count_ones() == 1).then(|| self.constant((1 << 32) / by))?;
        let whole = self.multiply(of, factor)?;
        if !self.same_low(low, whole) {
            return None;
        }
        self.with_no_wraps_of(whole, low)
    }

    fn join_upper(&mut self, low: ExprId, whole: ExprId) -> Option<ExprId> {
        if self.same_low(low, whole) {
            return self.with_no_wraps_of(whole, low);
        }
        // The parameters lie in one bank: code adds to the lower half alone.
        if (self.provenance(low) & self.provenance(whole)) & Provenance::PARAM_BLOCK != 0 {
            return self.with_no_wraps_of(low, whole);
        }
        // The lower half was rounded down to a power of two.
        let lowered = self.low(whole);
        let difference = self.add(low, lowered, -1)?;
        let [term] = &self.get(difference).terms[..] else { return None };
        let (-1, &[symbol]) = (term.coefficient, &term.symbols[..]) else { return None };
        match self.symbol(symbol) {
            Symbol::Function(Operator::Remainder, inner, size)
                if self.as_constant(size).is_some_and(|s| s > 0 && s.count_ones() == 1) =>
            {
                if !self.same_low(inner, whole) {
                    return None;
                }
                let rest = self.function(Operator::Remainder, inner, size);
                self.add(whole, rest, -1)
            }
            _ => None,
        }
    }

    /// `upper(q) + upper(x) * y + ...`: a product of 64-bit values, where the factors that it has
    /// the upper halves of are no larger than 32 bits, so that these are zero.
    fn join_products(&mut self, low: ExprId, high: ExprId) -> Option<ExprId> {
        let terms = self.get(high).terms.clone();
        let mut whole = None;
        let mut small = Vec::new();
        let mut none = Vec::new();
        for term in &terms {
            let uppers = term.symbols.iter().filter_map(|&id| match self.symbol(id) {
                Symbol::Function(Operator::Upper, x, _) => Some(x),
                _ => None,
            });
            let uppers: Vec<ExprId> = uppers.collect();
            match (&uppers[..], term.coefficient, &term.symbols[..]) {
                (&[x], 1, [_]) if whole.is_none() && self.same_low(x, low) => whole = Some(x),
                (&[x, ..], ..) => small.push(x),
                // The upper half of a parameter of 64 bits is a factor.
                (_, _, [_, _, ..]) => none.push(*term.symbols.iter().find(|&&id| {
                    matches!(self.symbol(id), Symbol::Param { offset, width: 4, .. } if offset % 8 == 4)
                })?),
                _ => return None,
            }
        }
        let mut out = match whole {
            Some(whole) => self.with_no_wraps_of(whole, low)?,
            None => self.with_no_wrap(low, 0, UNSIGNED)?,
        };
        out = self.with_no_wraps_of(out, high)?;
        for x in small {
            let x = self.with_no_wrap(x, 0, UNSIGNED)?;
            out = self.with_no_wraps_of(out, x)?;
        }
        for id in none {
            let x = self.of(self.symbol(id));
            let x = self.with_no_wrap(x, 0, 0)?;
            out = self.with_no_wraps_of(out, x)?;
        }
        Some(out)
    }

    /// The sum of 64-bit values whose lower and upper halves were added, the carry included.
    /// The marks say which are subtracted.
    pub(in crate::access) fn wide_sum(
        &mut self,
        lows: &[(ExprId, bool)],
        highs: &[(ExprId, bool)],
    ) -> Option<ExprId> {
        let zero = self.constant(0);
        let is_zero =
            |interner: &Interner, x: &&(ExprId, bool)| interner.as_constant(x.0) != Some(0);
        let mut lows: Vec<_> = lows.iter().filter(|x| is_zero(self, x)).copied().collect();
        let highs: Vec<_> = highs.iter().filter(|x| is_zero(self, x)).copied().collect();
        if highs.len() > 3 || lows.len() > 3 {
            return None;
        }
        while lows.len() < highs.len() {
            lows.push((zero, false));
        }
        let mut highs = highs;
        while highs.len() < lows.len() {
            highs.push((zero, false));
        }
        const ORDERS: [[usize; 3]; 6] =
            [[0, 1, 2], [1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]];
        'orders: for order in ORDERS {
            let order: Vec<usize> = order.into_iter().filter(|&at| at < lows.len()).collect();
            let mut sum = zero;
            for (&(low, minus), &at) in lows.iter().zip(&order) {
                let (mut high, mut not) = highs[at];
                if let (true, false, Some(ones)) = (minus, not, self.as_constant(high)) {
                    // All ones are the upper half of a value that is subtracted from zero.
                    (high, not) = (self.constant(!ones), true);
                }
                let Some(one) = (minus == not).then(|| self.join(low, high)).flatten() else {
                    continue 'orders;
                };
                let factor = if minus { -1 } else { 1 };
                let Some(next) = self.add(sum, one, factor) else { continue 'orders };
                sum = next;
            }
            return Some(sum);
        }
        None
    }
}
