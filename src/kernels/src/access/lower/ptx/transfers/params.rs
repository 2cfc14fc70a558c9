//! Words of the parameter block that are chosen by an index: a gated φ of the words, with a gate
//! for each where a launch can decide it.
//!
//! Stage: lowering; both front ends use it.
//!
//! Invariant: every word that the index may reach is an input of the φ.

use super::MAX_PARAMS;
use crate::access::domain::condition::{Condition, Implied, Relation};
use crate::access::domain::expression::{ExprId, Index, Operator, Symbol, SymbolId, Term};
use crate::access::fixpoint::interpret::Interpreter;

/// Number of words up to which each gets a gate.
const MAX_GIVEN: u32 = 24;
/// Depth of operations up to which an index is analysed.
const MAX_DEPTH: u32 = 8;
/// Number of elements behind a parameter's end within which an array may begin: `a[i - 1]` begins
/// in front of `a`.
const MAX_BACK: u32 = 8;

/// Where an index leads in the parameter block: every `step` bytes of `first..end`.
struct Span {
    first: u32,
    end: u32,
    step: u32,
}

impl Interpreter<'_> {
    /// The greatest value of a product of symbols none of which is negative. The outer `None` where
    /// one may be negative, the inner `None` where nothing bounds them.
    fn greatest(&self, term: &Term) -> Option<Option<i64>> {
        let mut all = Some(1i64);
        for &id in &term.symbols {
            let one = match self.interner.symbol(id) {
                Symbol::Index(Index::Lane) => Some(31),
                Symbol::Index(_) | Symbol::Induction(_) => None,
                Symbol::Function(Operator::Remainder, _, size) => {
                    self.interner.as_constant(size).map(|size| size - 1)
                }
                Symbol::Function(Operator::And, _, mask) => {
                    Some(self.interner.as_constant(mask).filter(|&mask| mask >= 0)?)
                }
                _ => match self.definitions.get(&id)?.bounds {
                    Some((0.., high)) => Some(high),
                    _ => return None,
                },
            };
            all = all.and_then(|all| all.checked_mul(one?));
        }
        Some(all)
    }

    /// Whether a product, its coefficient left aside, is never negative.
    pub(in crate::access) fn positive(&self, term: &Term) -> bool {
        self.greatest(term).is_some()
    }

    /// Whether a launch determines the values of an index: a sum of indices, iterations and
    /// functions of arguments alone.
    fn is_told_by_launch(&self, index: ExprId) -> bool {
        let terms = &self.interner.get(index).terms;
        terms.iter().flat_map(|term| &term.symbols).all(|&id| match self.interner.symbol(id) {
            Symbol::Index(_) | Symbol::Induction(_) => true,
            _ => self.is_of_arguments(id, MAX_DEPTH),
        })
    }

    fn is_of_arguments(&self, id: SymbolId, depth: u32) -> bool {
        let all = |expression| {
            let terms = &self.interner.get(expression).terms;
            let mut symbols = terms.iter().flat_map(|term| &term.symbols);
            symbols.all(|&id| self.is_of_arguments(id, depth - 1))
        };
        match self.interner.symbol(id) {
            Symbol::Param { .. } => true,
            Symbol::Function(_, a, b) if depth > 0 => all(a) && all(b),
            _ => false,
        }
    }

    /// From the constant of an index on, where nothing that is added to it is negative, to its
    /// greatest value or the end of the parameter there; else everywhere.
    fn param_span(&self, index: ExprId) -> Span {
        let size = self.params_size.min(MAX_PARAMS);
        let all = Span { first: 0, end: size, step: 8 };
        let (mut first, mut more, mut step) = (0, Some(0i64), 0);
        for term in &self.interner.get(index).terms {
            if term.symbols.is_empty() {
                first = term.coefficient;
                continue;
            }
            let Some(greatest) = self.greatest(term).filter(|_| term.coefficient > 0) else {
                return all;
            };
            more = more.and_then(|more| more.checked_add(greatest?.checked_mul(term.coefficient)?));
            step = gcd(step, term.coefficient);
        }
        let Ok(first) = u32::try_from(first) else { return all };
        let step = match u32::try_from(step) {
            Ok(step @ 8..) if step % 8 == 0 && first % 8 == 0 => step,
            _ => 8,
        };
        let most = more.and_then(|more| u32::try_from(more).ok()?.checked_add(first + 1));
        let end = match self.param_ends.get(first as usize / 8) {
            Some(&end) if end.saturating_sub(first) / step >= MAX_BACK => end,
            _ => size,
        };
        let end = most.map_or(end, |most| most.min(end));
        Span { first: first / 8 * 8, end, step }
    }

    /// The words that are loaded where an index, in bytes of the parameter block, leads, `further`
    /// bytes behind it; and what holds where it is which of them, if that is known.
    pub(in crate::access) fn chosen_words(
        &mut self,
        index: Option<ExprId>,
        further: u32,
    ) -> Vec<(ExprId, Implied)> {
        let all = Span { first: 0, end: self.params_size.min(MAX_PARAMS), step: 8 };
        let Span { first, end, step } = index.map_or(all, |index| self.param_span(index));
        let few = end.saturating_sub(first) / step <= MAX_GIVEN;
        // A word that an unknown index may choose may be of no use any more.
        let complete = index.is_some_and(|index| self.is_told_by_launch(index));
        let mut words = Vec::new();
        for offset in (first..end).step_by(step as usize) {
            let symbol = Symbol::Param { offset: offset + further, width: 8, signed: true };
            let at = index
                .filter(|_| few)
                .and_then(|index| self.interner.offset(index, -i64::from(offset)));
            let known = at.map(|expression| {
                let conditions = vec![Condition { expression, relation: Relation::Equal }].into();
                Implied { conditions, complete }
            });
            words.push((self.interner.of(symbol), known.unwrap_or_default()));
        }
        words
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
