//! The transfer functions of comparisons: of 32 bits, of 64 in two steps or in one, and of
//! registers with spilled predicates.
//!
//! Stage: lowering. Invariant: two halves are compared as one value only where both are known to be
//! halves of it.

use super::interpret::SassSite;
use super::operation::{Combine, Order};
use crate::access::domain::condition::{Low, Predicate};
use crate::access::domain::expression::Interner;
use crate::access::fixpoint::interpret::{Interpreter, State};

impl Interpreter<'_> {
    pub(super) fn compare(
        &mut self,
        here: SassSite<'_>,
        (order, signed, extended, combine): (Order, bool, bool, Combine),
        state: &mut State,
    ) {
        let (a, b) = (self.source(here, 0, state), self.source(here, 1, state));
        if matches!(order, Order::Equal | Order::Differs)
            && !extended
            && self.interner.as_constant(b) == Some(0)
            && let Some(spilled) = self.spilled_predicate(a)
        {
            let value = if order == Order::Differs { spilled } else { spilled.not() };
            return self.put_spilled(here, value, (combine, 2), state);
        }
        let mut low = None;
        let value = if extended {
            let halves = match self.predicate_source(here, 3, state).low {
                Some(Low::Compare(x, y)) => (self.join(x, a), self.join(y, b)),
                _ => (None, None),
            };
            match halves {
                (Some(x), Some(y)) => {
                    Predicate::compare(&mut self.interner, order.word(), signed, 64, x, y)
                }
                _ => Predicate::default(),
            }
        } else {
            low = Some(Low::Compare(a, b));
            let (a, b) = (self.shortened(a), self.shortened(b));
            Predicate::compare(&mut self.interner, order.word(), signed, 32, a, b)
        };
        self.put_compared(here, value, (combine, 2), low, state);
    }

    pub(super) fn compare_pairs(
        &mut self,
        here: SassSite<'_>,
        (order, signed, combine): (Order, bool, Combine),
        state: &mut State,
    ) {
        let [a, a_high, b, b_high] = [0, 1, 2, 3].map(|at| self.source(here, at, state));
        let value = match (self.join(a, a_high), self.join(b, b_high)) {
            (Some(a), Some(b)) => {
                Predicate::compare(&mut self.interner, order.word(), signed, 64, a, b)
            }
            _ => Predicate::default(),
        };
        self.put_compared(here, value, (combine, 4), None, state);
    }

    /// The results of a comparison, combined with the predicate that is source `with`.
    fn put_compared(
        &mut self,
        here: SassSite<'_>,
        value: Predicate,
        (combine, with): (Combine, usize),
        low: Option<Low>,
        state: &mut State,
    ) {
        let other = self.predicate_source(here, with, state);
        let with = |value: Predicate, interner: &mut Interner| match combine {
            Combine::And => value.and(&other, interner),
            Combine::Or => value.or(other.clone(), interner),
            Combine::Other => Predicate::default(),
        };
        let mut first = with(value.clone(), &mut self.interner);
        first.low = low;
        let second = with(value.not(), &mut self.interner);
        self.put_predicate(here, 0, first, state);
        self.put_predicate(here, 1, second, state);
    }

    /// Like [`Self::put_compared`], for a comparison whose predicate was spilled to a register.
    fn put_spilled(
        &mut self,
        here: SassSite<'_>,
        value: Predicate,
        (combine, with): (Combine, usize),
        state: &mut State,
    ) {
        let other = self.predicate_source(here, with, state);
        if !(combine == Combine::And && other.constant() == Some(true)) {
            return self.put_compared(here, value, (combine, with), None, state);
        }
        let opposite = value.clone().not();
        self.put_predicate(here, 0, value, state);
        self.put_predicate(here, 1, opposite, state);
    }
}
