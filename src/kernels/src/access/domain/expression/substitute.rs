//! Substitution: expressions with some of their symbols replaced.
//!
//! Stage: the domain; the fixpoint puts exit values in, the summary the inputs of φs.
//!
//! Invariant: the result has the no-wrap conditions of the expression, with the symbols replaced
//! there too, and those of the inserted expressions.

use rustc_hash::FxHashMap as HashMap;
use smallvec::smallvec;

use super::{ExprId, Interner, NoWrap, Polynomial, Symbol, SymbolId, Term, Terms};

impl Interner {
    /// `a` with every occurrence of some symbols replaced, inside functions and no-wrap conditions
    /// too. `None` from `replace` keeps the symbol.
    pub(in crate::access) fn substitute(
        &mut self,
        a: ExprId,
        replace: &mut impl FnMut(SymbolId) -> Option<ExprId>,
    ) -> Option<ExprId> {
        self.substitute_in(a, replace, &mut HashMap::default())
    }

    /// Like [`Interner::substitute`]. Expressions share parts, so each part is substituted once:
    /// `done` holds the results of this substitution so far.
    pub(in crate::access) fn substitute_in(
        &mut self,
        a: ExprId,
        replace: &mut impl FnMut(SymbolId) -> Option<ExprId>,
        done: &mut HashMap<ExprId, Option<ExprId>>,
    ) -> Option<ExprId> {
        if let Some(&known) = done.get(&a) {
            return known;
        }
        let result = self.substitute_new(a, replace, done);
        done.insert(a, result);
        result
    }

    fn substitute_new(
        &mut self,
        a: ExprId,
        replace: &mut impl FnMut(SymbolId) -> Option<ExprId>,
        done: &mut HashMap<ExprId, Option<ExprId>>,
    ) -> Option<ExprId> {
        if self.stays(a, replace, done)? {
            return Some(a);
        }
        let Polynomial { terms, no_wraps } = self.get(a).clone();
        let (mut all, mut wanted) = (Terms::with_capacity(terms.len()), Vec::new());
        for term in terms {
            let mut product = None;
            for (at, &symbol) in term.symbols.iter().enumerate() {
                let factor = match (replace(symbol), self.symbol(symbol)) {
                    (Some(expression), _) => Some(expression),
                    (None, Symbol::Function(function, x, y)) => {
                        let new_x = self.substitute_in(x, replace, done)?;
                        let new_y = self.substitute_in(y, replace, done)?;
                        ((new_x, new_y) != (x, y)).then(|| self.function(function, new_x, new_y))
                    }
                    _ => None,
                };
                product = match (product, factor) {
                    (None, None) => None,
                    (None, Some(factor)) => {
                        // The symbols in front of the first that changes have not changed.
                        let symbols = term.symbols[..at].into();
                        let front = Term { symbols, coefficient: term.coefficient };
                        let front = self.normal_of(smallvec![front], Vec::new())?;
                        Some(self.multiply(front, factor)?)
                    }
                    (Some(product), factor) => {
                        let factor = factor.unwrap_or_else(|| self.alone(symbol));
                        Some(self.multiply(product, factor)?)
                    }
                };
            }
            match product {
                None => all.push(term),
                Some(product) => {
                    let Polynomial { terms, no_wraps } = self.get(product);
                    all.extend(terms.iter().cloned());
                    wanted.extend_from_slice(no_wraps);
                }
            }
        }
        for no_wrap in no_wraps {
            let expression = self.substitute_in(no_wrap.expression, replace, done)?;
            wanted.extend_from_slice(&self.get(expression).no_wraps);
            wanted.push(NoWrap { expression: self.bare(expression), ..no_wrap });
        }
        self.normal_of(all, wanted)
    }

    /// Whether a replacement leaves an expression as it is; `None` where a part of it would be too
    /// large.
    fn stays(
        &mut self,
        a: ExprId,
        replace: &mut impl FnMut(SymbolId) -> Option<ExprId>,
        done: &mut HashMap<ExprId, Option<ExprId>>,
    ) -> Option<bool> {
        for term in 0..self.get(a).terms.len() {
            for at in 0..self.get(a).terms[term].symbols.len() {
                let id = self.get(a).terms[term].symbols[at];
                if replace(id).is_some() {
                    return Some(false);
                }
                if let Symbol::Function(_, x, y) = self.symbol(id)
                    && (self.substitute_in(x, replace, done)? != x
                        || self.substitute_in(y, replace, done)? != y)
                {
                    return Some(false);
                }
            }
        }
        for no_wrap in 0..self.get(a).no_wraps.len() {
            let needed = self.get(a).no_wraps[no_wrap].expression;
            if self.substitute_in(needed, replace, done)? != needed {
                return Some(false);
            }
        }
        Some(true)
    }
}
