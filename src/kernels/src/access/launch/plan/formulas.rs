//! Expressions in the form in which launches evaluate them: flat, and each as its difference from
//! one that is evaluated before.
//!
//! Stage: the launch, its plan. Invariant: a formula is the expression without the translatable
//! pointer that it is relative to.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::{Conjunction, Role};
use crate::access::domain::condition::Condition;
use crate::access::domain::expression::{ExprId, Index, Symbol, SymbolId, Term};
use crate::access::summary::result::KernelAccess;

/// A product of symbols with its coefficient: where they stand among all factors.
#[derive(Debug, Clone, Copy)]
pub(in crate::access) struct Product {
    pub(in crate::access) coefficient: i64,
    from: u32,
    to: u32,
}

/// An expression, without the pointer that it counts from.
#[derive(Debug, Clone, Copy)]
pub(in crate::access) struct Formula {
    pub(in crate::access) constant: i64,
    from: u32,
    to: u32,
    /// Expressions of one class differ in their constants only.
    pub(in crate::access) class: Option<u32>,
    /// One that is evaluated before, and what makes this one of it.
    change: Option<Delta>,
}

/// The products that one expression has beyond another one.
#[derive(Debug, Clone, Copy)]
struct Delta {
    of: ExprId,
    from: u32,
    to: u32,
}

/// The order in which expressions of accesses are evaluated, those left out that are only parts of
/// others.
pub(super) fn order(
    kernel: &KernelAccess,
    conditions: &[u32],
    conjunctions: &[Conjunction],
    distinct_conditions: &[Condition],
) -> Vec<ExprId> {
    let mut order = Vec::new();
    let mut is_listed = vec![false; kernel.expressions.len()];
    let mut add = |id: ExprId, order: &mut Vec<ExprId>| {
        if !std::mem::replace(&mut is_listed[id.0 as usize], true) {
            order.push(id);
        }
    };
    let no_wraps =
        |id: ExprId| kernel.expressions[id.0 as usize].no_wraps.iter().map(|n| n.expression);
    let mut read = vec![false; conjunctions.len()];
    for (access, &conjunction) in kernel.accesses.iter().zip(conditions) {
        let Some(address) = access.address else { continue };
        if !std::mem::replace(&mut read[conjunction as usize], true) {
            for fact in conjunctions[conjunction as usize].iter() {
                let expression = distinct_conditions[fact as usize].expression;
                no_wraps(expression).for_each(|no_wrap| add(no_wrap, &mut order));
                add(expression, &mut order);
            }
        }
        add(address, &mut order);
        no_wraps(address).for_each(|no_wrap| add(no_wrap, &mut order));
    }
    order
}

/// Expressions by their parts.
#[derive(Debug, Default)]
pub(in crate::access) struct Formulas {
    /// By expression.
    formulas: Vec<Formula>,
    pub(in crate::access) classes: usize,
    products: Vec<Product>,
    factors: Vec<SymbolId>,
    /// Whether the products of an expression are the same whenever they are evaluated.
    same_again: Vec<bool>,
}

/// Number of expressions that are compared to find one to derive an expression from.
const LOOKED_AT: usize = 12;

impl Formulas {
    pub(in crate::access) fn of(&self, expression: ExprId) -> Formula {
        self.formulas[expression.0 as usize]
    }

    /// The products that an expression is the sum of, beside its constant.
    pub(in crate::access) fn products(&self, formula: Formula) -> &[Product] {
        &self.products[formula.from as usize..formula.to as usize]
    }

    /// An expression that is evaluated before another one, and the difference between the two.
    pub(in crate::access) fn change(&self, formula: Formula) -> Option<(ExprId, &[Product])> {
        let Delta { of, from, to } = formula.change?;
        Some((of, &self.products[from as usize..to as usize]))
    }

    /// The symbols of a product.
    pub(in crate::access) fn factors(&self, product: Product) -> &[SymbolId] {
        &self.factors[product.from as usize..product.to as usize]
    }

    /// Finds for each expression the one evaluated before that it has most in common with.
    pub(super) fn find_changes(&mut self, order: &[ExprId]) {
        let mut least: Vec<Product> = Vec::new();
        let mut change: Vec<Product> = Vec::new();
        let mut before: Vec<ExprId> = Vec::new();
        for &id in order {
            let Formula { from, to, .. } = self.formulas[id.0 as usize];
            let count = (to - from) as usize;
            if !self.same_again[id.0 as usize] || count < 2 {
                continue;
            }
            let mut found = None;
            // A sum made of one product is not looked up faster.
            let mut best = count - 1;
            for &of in before.iter().rev().take(LOOKED_AT) {
                self.difference(of, id, &mut change);
                if change.len() < best {
                    (best, found) = (change.len(), Some(of));
                    std::mem::swap(&mut least, &mut change);
                }
            }
            if let Some(of) = found {
                let from = self.products.len() as u32;
                self.products.append(&mut least);
                let to = self.products.len() as u32;
                self.formulas[id.0 as usize].change = Some(Delta { of, from, to });
            }
            before.push(id);
        }
    }

    /// The products that make `to` of `from`.
    fn difference(&self, from: ExprId, to: ExprId, out: &mut Vec<Product>) {
        let products = |id: ExprId| self.products(self.of(id)).iter();
        out.clear();
        let (mut old, mut new) = (products(from).peekable(), products(to).peekable());
        loop {
            let next = match (old.peek(), new.peek()) {
                (None, None) => return,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(a), Some(b)) => self.factors(**a).cmp(self.factors(**b)),
            };
            let (gone, come) = match next {
                Ordering::Less => (old.next(), None),
                Ordering::Equal => (old.next(), new.next()),
                Ordering::Greater => (None, new.next()),
            };
            let of = |product: Option<&Product>| product.map_or(0, |product| product.coefficient);
            let coefficient = of(come).checked_sub(of(gone));
            let Some(coefficient) = coefficient else {
                // Not a difference that can be told: as many as there are.
                out.extend(products(to));
                return;
            };
            if let Some(product) = come.or(gone).filter(|_| coefficient != 0) {
                out.push(Product { coefficient, ..*product });
            }
        }
    }
}

/// Takes expressions apart, given the words that symbols are the values of.
pub(super) fn formulas(kernel: &KernelAccess, roles: &[Role], symbols: &[Option<u16>]) -> Formulas {
    let mut out = Formulas::default();
    // By what they are but for their constants: the first one, and the class.
    let mut alike: FxHashMap<Vec<&Term>, (usize, Option<u32>)> = FxHashMap::default();
    let varies = |id: &&SymbolId| {
        !matches!(
            kernel.symbols[id.0 as usize],
            Symbol::Param { .. }
                | Symbol::Global(_)
                | Symbol::Index(Index::BlockSize(_) | Index::GridSize(_))
        )
    };
    for (number, (polynomial, &role)) in kernel.expressions.iter().zip(roles).enumerate() {
        let (constant, terms) = match &polynomial.terms[..] {
            [first, rest @ ..] if first.symbols.is_empty() => (first.coefficient, rest),
            all => (0, all),
        };
        let counts_from = match role {
            Role::Plus(word) => Some(word),
            Role::Minus(_) | Role::Bits(_) | Role::None => None,
        };
        let pointer =
            |id: &SymbolId| counts_from.is_some() && symbols[id.0 as usize] == counts_from;
        let terms: Vec<&Term> =
            terms.iter().filter(|term| !term.symbols.iter().any(pointer)).collect();
        let from = out.products.len() as u32;
        for term in &terms {
            let from = out.factors.len() as u32;
            out.factors.extend_from_slice(&term.symbols);
            let to = out.factors.len() as u32;
            out.products.push(Product { coefficient: term.coefficient, from, to });
        }
        let to = out.products.len() as u32;
        // The product of two factors with variables is another variable each time.
        let same_again = terms.iter().all(|term| term.symbols.iter().filter(varies).count() < 2);
        out.same_again.push(same_again);
        let mut class = None;
        if same_again && from != to {
            match alike.entry(terms) {
                Entry::Vacant(place) => {
                    place.insert((number, None));
                }
                Entry::Occupied(mut place) => {
                    let (first, known) = place.get_mut();
                    class = Some(*known.get_or_insert_with(|| {
                        out.classes += 1;
                        out.classes as u32 - 1
                    }));
                    out.formulas[*first].class = class;
                }
            }
        }
        out.formulas.push(Formula { constant, from, to, class, change: None });
    }
    out
}
