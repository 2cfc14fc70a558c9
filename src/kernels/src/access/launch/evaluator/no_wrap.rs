//! Proving the no-wrap conditions of expressions at one launch, by intervals and by the bounds that
//! path conditions imply.
//!
//! Stage: the launch. Invariant: a proven condition holds for every thread that meets the implied
//! bounds; a condition that was proven without bounds holds for every thread.

use super::Evaluator;
use crate::access::domain::expression::ExprId;
use crate::access::launch::affine::AffineId;
use crate::access::launch::plan::Role;

/// Between what values of one class of sums lie where some sums of it are not negative.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::access) struct ClassBounds {
    /// The mark that holds or held.
    pub(in crate::access) mark: u32,
    pub(in crate::access) low: Option<i128>,
    pub(in crate::access) high: Option<i128>,
    /// The conditions that say so, where they do so in any conjunction.
    pub(in crate::access) places: (Option<u32>, Option<u32>),
    /// These sums are exactly what was added.
    pub(in crate::access) plain: bool,
    /// There is a sum of this class.
    pub(in crate::access) any: bool,
}

/// Sums that are not negative, as what they tell: by class, where it bears this mark.
#[derive(Debug)]
pub(in crate::access) struct ImpliedBounds<'a> {
    pub(in crate::access) classes: &'a [ClassBounds],
    pub(in crate::access) mark: u32,
}

impl ImpliedBounds<'_> {
    pub(in crate::access) const NONE: ImpliedBounds<'static> =
        ImpliedBounds { classes: &[], mark: 0 };
}

impl Evaluator<'_> {
    /// Whether the no-wrap conditions of an expression hold, given that some sums are not negative.
    pub(in crate::access) fn no_wraps_hold(
        &mut self,
        expression: ExprId,
        given: &ImpliedBounds<'_>,
    ) -> bool {
        let place = expression.0 as usize;
        // Bounds of variables only become narrower, so it holds for good.
        if self.proven_expressions[place] {
            return true;
        }
        let plan = self.plan;
        let mut always = true;
        for &no_wrap in &*plan.no_wraps_of[place] {
            if !self.holds(no_wrap as usize, given) {
                return false;
            }
            always &= self.proven[no_wrap as usize];
        }
        self.proven_expressions[place] = always;
        true
    }

    /// Whether the no-wrap conditions of an expression hold, whatever other conditions do.
    pub(in crate::access) fn no_wraps_are_proven(&mut self, expression: ExprId) -> bool {
        let place = expression.0 as usize;
        let plan = self.plan;
        self.proven_expressions[place] = self.proven_expressions[place]
            || plan.no_wraps_of[place].iter().all(|&no_wrap| self.is_proven(no_wrap as usize));
        self.proven_expressions[place]
    }

    fn is_proven(&mut self, at: usize) -> bool {
        if self.proven[at] {
            return true;
        }
        let no_wrap = self.plan.no_wraps[at];
        let value = self.affine(no_wrap.expression);
        let (low, high) = self.interval(value);
        let (least, most) = (i128::from(no_wrap.low), i128::from(no_wrap.high));
        self.proven[at] = match self.plan.roles[no_wrap.expression.0 as usize] {
            Role::Plus(word) => {
                let pointer = &mut self.pointers[usize::from(word)];
                let (low, high) = (low + pointer.number(), high + pointer.number());
                let proven = least <= low && high <= most;
                if proven {
                    pointer.at_least(low, least);
                    pointer.at_most(high, most);
                }
                proven
            }
            Role::None | Role::Minus(_) | Role::Bits(_) => least <= low && high <= most,
        };
        self.proven[at]
    }

    fn holds(&mut self, at: usize, given: &ImpliedBounds<'_>) -> bool {
        if self.proven[at] {
            return true;
        }
        let no_wrap = self.plan.no_wraps[at];
        let value = self.affine(no_wrap.expression);
        let whole = self.interval(value);
        let (least, most) = (i128::from(no_wrap.low), i128::from(no_wrap.high));
        let role = self.plan.roles[no_wrap.expression.0 as usize];
        let Role::Plus(word) = role else {
            self.proven[at] = least <= whole.0 && whole.1 <= most;
            let (low, high) = self.implied(value, whole, given);
            return self.proven[at] || (least <= low && high <= most);
        };
        let (low, high) = self.implied(value, whole, given);
        let pointer = &mut self.pointers[usize::from(word)];
        let (below, above) = (low + pointer.number(), high + pointer.number());
        let holds = pointer.at_least(below, least) && pointer.at_most(above, most);
        self.proven[at] = holds && (low, high) == whole;
        holds
    }

    /// Between what a value lies where some sums are not negative.
    fn implied(
        &mut self,
        value: AffineId,
        (low, high): (i128, i128),
        given: &ImpliedBounds<'_>,
    ) -> (i128, i128) {
        if given.classes.is_empty() || low == high {
            return (low, high);
        }
        let class = self.affines.class(value);
        match given.classes.get(class.number as usize) {
            Some(implied) if implied.mark == given.mark => {
                let constant = self.get(value).constant;
                let (least, most) = match class.negated {
                    false => (implied.low, implied.high),
                    true => (implied.high.map(|high| -high), implied.low.map(|low| -low)),
                };
                let least = least.map_or(low, |least| low.max(least + constant));
                (least, most.map_or(high, |most| high.min(most + constant)))
            }
            _ => (low, high),
        }
    }

    /// Whether the no-wrap conditions of an expression may hold where sums of these classes are not
    /// negative.
    pub(in crate::access) fn may_be_implied(
        &mut self,
        expression: ExprId,
        classes: &[ClassBounds],
    ) -> bool {
        let plan = self.plan;
        plan.no_wraps_of[expression.0 as usize].iter().all(|&no_wrap| {
            self.proven[no_wrap as usize] || {
                let value = self.affine(plan.no_wraps[no_wrap as usize].expression);
                self.get(value).as_number().is_none() && {
                    let class = self.affines.class(value).number as usize;
                    classes.get(class).is_some_and(|class| class.any)
                }
            }
        })
    }
}
