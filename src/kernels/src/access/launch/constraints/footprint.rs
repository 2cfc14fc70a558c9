//! Redundant constraints, and the footprints of accesses under the remaining ones.
//!
//! Stage: the launch. Invariant: a constraint is dropped only where another one of the set implies
//! it.

use std::ops::Range;

use smallvec::SmallVec;

use super::{ConstraintScratch, ConstraintSet, Constraints, FoundFootprint, Meaning, ReducedSet};
use crate::access::launch::affine::{Affine, AffineId, are_alike, least_difference};
use crate::access::launch::evaluator::Evaluator;
use crate::access::launch::strided::{AccessTarget, Footprint, footprint};

/// Number of constraints for which implications among them are remembered.
const MOST_NOTED: usize = 512;

impl Constraints<'_> {
    /// Drops redundant constraints: those that another one implies.
    pub(super) fn drop_implied(
        &mut self,
        evaluator: &Evaluator<'_>,
        sums: &mut SmallVec<[u32; 8]>,
    ) {
        let mut at = 0;
        while at < sums.len() {
            let own = sums[at];
            if sums.iter().any(|&other| other != own && self.implies(other, own, evaluator)) {
                sums.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Whether `other` implies `own`: its expression is never above that of `own`.
    fn implies(&mut self, other: u32, own: u32, evaluator: &Evaluator<'_>) -> bool {
        let ConstraintScratch { constraints, implied, .. } = &mut *self.scratch;
        let (other, own) = (other as usize, own as usize);
        if !constraints[own].may_exceed(&constraints[other]) {
            return false;
        }
        let find = || {
            let (own, other) =
                (evaluator.get(constraints[own].sum), evaluator.get(constraints[other].sum));
            least_difference(own, other, &evaluator.affines.variables) >= 0
        };
        let (more, less) = (own.max(other), own.min(other));
        if more >= MOST_NOTED {
            return find();
        }
        // Pairs with the first, with the second, and so on.
        let place = more * more + 2 * less + usize::from(own > other);
        if implied.len() <= place {
            implied.resize((more + 1) * (more + 1), 0);
        }
        if implied[place] == 0 {
            implied[place] = 1 + u8::from(find());
        }
        implied[place] == 2
    }

    /// The bytes `address .. address + length` where the conditions of a conjunction hold, and
    /// whether they need not be the same for others of its reduced set.
    pub(in crate::access) fn footprint(
        &mut self,
        at: u32,
        address: AffineId,
        length: i128,
        evaluator: &mut Evaluator<'_>,
    ) -> (Footprint, bool) {
        let Some(set) = self.scratch.sets[at as usize] else { return (Footprint::Anywhere, false) };
        let reduced = set.reduced as usize;
        let mut place = self.scratch.reduced_sets[reduced].last;
        let own = evaluator.get(address);
        while let Some(found) = place.map(|place| &self.scratch.known[place as usize]) {
            let other = evaluator.get(found.address);
            if found.length == length
                && found.set.is_none_or(|only| only == at)
                && are_alike(own, other)
            {
                let further = own.constant - other.constant;
                return (found.footprint.further(further), found.set.is_some());
            }
            place = found.before;
        }
        let (mut iterations, mut only) = (SmallVec::<[(u32, bool); 2]>::new(), None);
        let open = {
            let ReducedSet { from, to, .. } = self.scratch.reduced_sets[reduced];
            from as usize..to as usize
        };
        let inductions = self.inductions(open.clone(), address, evaluator);
        if !inductions.is_empty() {
            only = Some(at);
            let telling = self.telling(at, evaluator);
            for (variable, header) in inductions {
                iterations.push((variable, evaluator.iterations_are_constrained(header, &telling)));
            }
        }
        let scratch = &mut *self.scratch;
        let constraints: SmallVec<[Affine<'_>; 8]> = scratch.open[open]
            .iter()
            .map(|&sum| evaluator.get(scratch.constraints[sum as usize].sum))
            .collect();
        let target = AccessTarget {
            address: evaluator.get(address),
            constraints: &constraints,
            length,
            variables: &evaluator.affines.variables,
            iterations: &iterations,
        };
        let found = footprint(&target, &mut scratch.patterns);
        let before = scratch.reduced_sets[reduced].last.replace(scratch.known.len() as u32);
        scratch.known.push(FoundFootprint { address, length, set: only, footprint: found, before });
        (found, only.is_some())
    }

    /// The induction variables in an address and in sums whose iterations are not known to be all
    /// made, with their loops.
    fn inductions(
        &self,
        open: Range<usize>,
        address: AffineId,
        evaluator: &Evaluator<'_>,
    ) -> SmallVec<[(u32, u32); 2]> {
        let mut inductions: SmallVec<[(u32, u32); 2]> = SmallVec::new();
        if !evaluator.has_loops() {
            return inductions;
        }
        let sums =
            self.scratch.open[open].iter().map(|&sum| self.scratch.constraints[sum as usize].sum);
        for &(number, _) in sums.chain([address]).flat_map(|sum| evaluator.get(sum).terms) {
            let variable = &evaluator.affines.variables[number as usize];
            let Some(header) = variable.header else { continue };
            if !variable.full && !inductions.contains(&(number, header)) {
                inductions.push((number, header));
            }
        }
        inductions
    }

    /// The constraints of a conjunction that no other one implies.
    fn telling(&mut self, at: u32, evaluator: &Evaluator<'_>) -> SmallVec<[AffineId; 8]> {
        let Some(ConstraintSet { from, to, .. }) = self.scratch.sets[at as usize] else {
            return SmallVec::new();
        };
        let mut sums: SmallVec<[u32; 8]> = self.scratch.all[from as usize..to as usize].into();
        for place in self.plan.conjunctions[at as usize].iter() {
            let Meaning::Affine(more, count, _) = self.scratch.meanings[place as usize] else {
                continue;
            };
            for sum in &more[..usize::from(count)] {
                if !sums.contains(sum) {
                    sums.push(*sum);
                }
            }
        }
        self.drop_implied(evaluator, &mut sums);
        sums.iter().map(|&sum| self.scratch.constraints[sum as usize].sum).collect()
    }
}
