//! Trip counts: the bounds of induction variables at one launch.
//!
//! Stage: the launch. Another iteration follows only while the conditions of the back edge hold, so
//! each condition that is affine in the induction variable bounds it.
//!
//! Invariant: a bound is taken only if the no-wrap conditions of its condition hold in all the
//! iterations that it admits. The variable is `full` only if every thread makes all these
//! iterations.

use super::{Evaluator, ImpliedBounds};
use crate::access::domain::condition::Relation;
use crate::access::domain::expression::ExprId;
use crate::access::launch::affine::{AffineId, FAR, LaunchVariable};
use crate::access::summary::result::KernelAccess;

impl Evaluator<'_> {
    /// Whether there are loops at all.
    pub(in crate::access) fn has_loops(&self) -> bool {
        !self.kernel.loops.is_empty()
    }

    /// The induction variable of a loop: another iteration follows only while the conditions of the
    /// back edge hold.
    pub(super) fn induction(&mut self, place: usize, header: u32) -> AffineId {
        let variable = self.affines.variables.len() as u32;
        let unbounded = LaunchVariable { low: 0, high: FAR, full: false, header: Some(header) };
        let value = self.affines.variable(unbounded);
        self.values[place] = value.0 + 1;
        let kernel = self.kernel;
        let Some(l) = kernel.loops.iter().find(|l| l.header == header) else { return value };
        let mut best = (FAR, false);
        // Whether every condition that the first iteration may miss is missed by no thread.
        let mut begins = true;
        for condition in &l.back_edge {
            if !kernel.mentions_induction(condition.expression, place) {
                continue;
            }
            let affine = self.affine(condition.expression);
            let sum = self.get(affine);
            let (step, constant) = (sum.coefficient(variable), sum.constant);
            if step == 0 {
                continue;
            }
            let alone = sum.terms.len() == 1;
            let (least, most) = self.affines.interval_without(affine, variable);
            begins &= condition.relation != Relation::AtLeast || step < 0 || least >= 0;
            let last = match condition.relation {
                // One that holds later only: there is no later where the first iteration misses it.
                Relation::AtLeast if step > 0 && most < 0 => 0,
                // iteration `k` is followed by another only while `rest + step * k >= 0`.
                Relation::AtLeast if step < 0 && most < FAR => {
                    if most < 0 {
                        0
                    } else {
                        most / -step + 1
                    }
                }
                Relation::Differs if alone && constant % step == 0 => -constant / step,
                _ => continue,
            };
            if last < 0 || last >= best.0 {
                continue;
            }
            // The no-wrap conditions of the condition must hold in all the iterations that it
            // admits.
            let known = self.affines.len();
            self.affines.bound(variable, last);
            if self.no_wraps_hold(condition.expression, &ImpliedBounds::NONE) {
                best = (last, l.single_test && alone);
            } else {
                self.forget(known);
                self.affines.bound(variable, best.0);
            }
        }
        self.affines.bound(variable, best.0);
        self.affines.variables[variable as usize].full = best.1 && begins;
        value
    }

    /// Whether exactly the iterations that pass `constraints` are those that the loop makes.
    pub(in crate::access) fn iterations_are_constrained(
        &mut self,
        header: u32,
        constraints: &[AffineId],
    ) -> bool {
        let kernel = self.kernel;
        let Some(l) = kernel.loops.iter().find(|l| l.header == header && l.single_test) else {
            return false;
        };
        let Some(variable) = self.affines.variables.iter().position(|v| v.header == Some(header))
        else {
            return false;
        };
        let variable = variable as u32;
        let mut back_edge =
            l.back_edge.iter().filter(|condition| condition.relation == Relation::AtLeast);
        let begins = back_edge.clone().all(|condition| {
            let affine = self.affine(condition.expression);
            let step = self.get(affine).coefficient(variable);
            step <= 0 || self.affines.interval_without(affine, variable).0 >= 0
        });
        begins
            && back_edge.any(|condition| {
                let affine = self.affine(condition.expression);
                let affine = self.get(affine);
                let step = affine.coefficient(variable);
                step != 0
                    && constraints.iter().any(|&constraint| {
                        let constraint = self.get(constraint);
                        constraint.terms == affine.terms
                            && (constraint.constant == affine.constant
                                || constraint.constant == affine.constant - step)
                    })
            })
    }
}

impl KernelAccess {
    fn mentions_induction(&self, expression: ExprId, place: usize) -> bool {
        self.expressions[expression.0 as usize]
            .terms
            .iter()
            .any(|term| term.symbols.iter().any(|s| s.0 as usize == place))
    }
}
