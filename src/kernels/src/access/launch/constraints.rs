//! The path conditions of a kernel's accesses at one launch, as constraints: affine expressions
//! that are not negative.
//!
//! Stage: the launch. Accesses share most of their conditions, one by one and whole conjunctions of
//! them. Each condition is therefore evaluated once a launch, when an access first needs it. In a
//! conjunction only conditions count that some thread may fail: tautologies and uninformative
//! conditions are skipped. Conjunctions with the same remaining conditions share one reduced set,
//! and the footprint under that set is computed once for all accesses that differ in a constant
//! only.
//!
//! Invariant: a constraint set is implied by its conjunction. A conjunction counts as contradictory
//! only if no thread meets it.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use rustc_hash::FxHasher;
use smallvec::{SmallVec, smallvec};

use crate::access::domain::condition::{Condition, Relation};
use crate::access::launch::affine::{Affine, AffineClass, AffineId, FAR};
use crate::access::launch::evaluator::{ClassBounds, Evaluator, ImpliedBounds, fill};
use crate::access::launch::hash_index::HashIndex;
use crate::access::launch::plan::{Plan, numbers};
use crate::access::launch::strided::{Footprint, StridedScratch};

mod footprint;

/// A constraint: a sum that is not negative where a condition holds.
#[derive(Debug, Clone, Copy)]
struct Constraint {
    sum: AffineId,
    constant: i128,
    /// `None` where it is a number.
    class: Option<AffineClass>,
    /// Whether the sum is exactly what was added.
    plain: bool,
    low: i128,
    high: i128,
    /// The last time that it was marked as one that holds.
    mark: u32,
}

impl Constraint {
    /// Whether this sum may never be below the other one: then neither end is. Sums near to where
    /// numbers are cut have no true ends.
    fn may_exceed(&self, other: &Constraint) -> bool {
        let near = |constraint: &Constraint| constraint.low > -FAR / 4 && constraint.high < FAR / 4;
        !near(self) || !near(other) || (self.low >= other.low && self.high >= other.high)
    }
}

/// The meaning of one condition.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// One or two constraints with their number, and whether they express the whole condition.
    Affine([u32; 2], u8, bool),
    /// This constraint, where others prove the no-wrap conditions of the condition.
    Conditional(u32),
    Uninformative,
}

/// Facts about 64 conditions, as bits.
#[derive(Debug, Clone, Copy, Default)]
struct ConditionBits {
    read: u64,
    /// Tautologies: every thread meets them.
    tautologies: u64,
    /// Contradictions: no thread meets them.
    contradictions: u64,
    /// Conditions that are uninformative whatever else is known.
    always_uninformative: u64,
    /// These too, and those whose no-wrap conditions no known sum proves.
    uninformative: u64,
}

/// The constraint set of a conjunction.
#[derive(Debug, Clone, Copy)]
struct ConstraintSet {
    /// Where the constraints stand among those of all conjunctions, those of tautologies left out.
    from: u32,
    to: u32,
    /// The reduced set of the constraints.
    reduced: u32,
    /// Whether they are equivalent to the conjunction.
    exact: bool,
    /// Whether they contradict each other.
    contradictory: bool,
}

const CONTRADICTION: ConstraintSet =
    ConstraintSet { from: 0, to: 0, reduced: 0, exact: true, contradictory: true };

/// Number of remembered pairs of conditions that contradict each other.
const MOST_PAIRS: usize = 16;

/// A reduced set: constraints that some values violate, and none implies another. All others would
/// only keep variables apart.
#[derive(Debug, Clone, Copy)]
struct ReducedSet {
    from: u32,
    to: u32,
    /// The last place in `known`.
    last: Option<u32>,
}

/// The footprints of accesses. Accesses whose sums differ in a constant only and that have the same
/// width share a footprint, shifted by the difference.
#[derive(Debug)]
struct FoundFootprint {
    address: AffineId,
    length: i128,
    /// The only conjunction that it holds for, where the iterations of a loop depend on it.
    set: Option<u32>,
    footprint: Footprint,
    /// The one before of the same reduced set.
    before: Option<u32>,
}

/// Scratch memory for what the conditions of one launch say, for the next one to use again.
#[derive(Debug, Default)]
pub(in crate::access) struct ConstraintScratch {
    constraints: Vec<Constraint>,
    constraint_numbers: HashIndex,
    meanings: Vec<Meaning>,
    /// The facts of each block of 64 conditions.
    blocks: Vec<ConditionBits>,
    /// Number of sums at the last search for uninformative conditions.
    uninformative_at: usize,
    sets: Vec<Option<ConstraintSet>>,
    /// Constraints of all conjunctions.
    all: Vec<u32>,
    reduced_sets: Vec<ReducedSet>,
    reduced_index: HashIndex,
    /// Constraints of all reduced sets.
    open: Vec<u32>,
    /// The rest of each conjunction without the conditions that every thread meets: its place and
    /// its constraint set.
    remaining: Vec<(u32, u32, ConstraintSet)>,
    remaining_index: HashIndex,
    /// Conditions of all these.
    remaining_conditions: Vec<u32>,
    classes: Vec<ClassBounds>,
    /// How often sums were marked, and the conjunction of the last mark.
    marked: (u32, Option<u32>),
    /// Two that are marked contradict each other.
    contradicted: bool,
    /// Conditions that contradict each other, as bits of one block.
    pairs: Vec<(u32, u64)>,
    known: Vec<FoundFootprint>,
    /// Two bits for each pair of sums: whether it is known whether the one implies the other, and
    /// whether it does.
    implied: Vec<u8>,
    patterns: StridedScratch,
}

/// The conditions of a kernel at one launch.
#[derive(Debug)]
pub(in crate::access) struct Constraints<'p> {
    plan: &'p Plan,
    scratch: &'p mut ConstraintScratch,
}

fn hash(sums: &[u32]) -> u64 {
    let mut hash = FxHasher::default();
    sums.hash(&mut hash);
    hash.finish()
}

impl<'p> Constraints<'p> {
    pub(in crate::access) fn new(plan: &'p Plan, scratch: &'p mut ConstraintScratch) -> Self {
        scratch.constraints.clear();
        scratch.constraint_numbers.clear(plan.distinct_conditions.len());
        fill(&mut scratch.meanings, plan.distinct_conditions.len(), Meaning::Uninformative);
        fill(
            &mut scratch.blocks,
            plan.distinct_conditions.len().div_ceil(64),
            ConditionBits::default(),
        );
        scratch.uninformative_at = 0;
        fill(&mut scratch.sets, plan.conjunctions.len(), None);
        scratch.all.clear();
        scratch.reduced_sets.clear();
        scratch.reduced_index.clear(plan.conjunctions.len());
        scratch.open.clear();
        scratch.remaining.clear();
        scratch.remaining_index.clear(plan.conjunctions.len());
        scratch.remaining_conditions.clear();
        scratch.classes.clear();
        scratch.marked = (0, None);
        scratch.pairs.clear();
        scratch.known.clear();
        scratch.implied.clear();
        Self { plan, scratch }
    }

    /// Looks at the conditions of a conjunction. Its reduced set and whether they say all of what
    /// they are; `None` where they never hold together.
    pub(in crate::access) fn look(
        &mut self,
        set: u32,
        evaluator: &mut Evaluator<'_>,
    ) -> Option<(u32, bool)> {
        let place = set as usize;
        let set = match self.scratch.sets[place] {
            Some(set) => set,
            None => {
                let set = self.read(place, evaluator);
                self.scratch.sets[place] = Some(set);
                set
            }
        };
        (!set.contradictory).then_some((set.reduced, set.exact))
    }

    /// The bounds that an evaluated conjunction implies, without tautologies.
    pub(in crate::access) fn implied(&mut self, at: u32) -> ImpliedBounds<'_> {
        if self.scratch.marked.1 != Some(at) {
            self.mark_none(Some(at));
            let own = self.scratch.sets[at as usize];
            let own = own.map_or(0..0, |set| set.from as usize..set.to as usize);
            for at in own {
                self.mark(self.scratch.all[at], None);
            }
        }
        self.implied_bounds()
    }

    /// The bounds that the marked constraints imply.
    fn implied_bounds(&self) -> ImpliedBounds<'_> {
        ImpliedBounds { classes: &self.scratch.classes, mark: self.scratch.marked.0 }
    }

    fn mark_none(&mut self, set: Option<u32>) {
        self.scratch.marked = (self.scratch.marked.0 + 1, set);
        self.scratch.contradicted = false;
    }

    /// Marks a constraint as one that holds, in any conjunction with the condition `place`, if
    /// there is one. Returns whether it was not marked before.
    fn mark(&mut self, sum: u32, place: Option<u32>) -> bool {
        let ConstraintScratch { constraints, classes, marked, contradicted, pairs, .. } =
            &mut *self.scratch;
        let constraint = &mut constraints[sum as usize];
        if std::mem::replace(&mut constraint.mark, marked.0) == marked.0 {
            return false;
        }
        if let Some(class) = constraint.class {
            let told = &mut classes[class.number as usize];
            if told.mark != marked.0 {
                *told = ClassBounds {
                    mark: marked.0,
                    any: true,
                    plain: true,
                    ..ClassBounds::default()
                };
            }
            told.plain &= constraint.plain;
            match class.negated {
                true if told.high.is_none_or(|high| constraint.constant < high) => {
                    (told.high, told.places.1) = (Some(constraint.constant), place);
                }
                false if told.low.is_none_or(|low| -constraint.constant > low) => {
                    (told.low, told.places.0) = (Some(-constraint.constant), place);
                }
                _ => {}
            }
            if told.plain && told.low > told.high && told.high.is_some() {
                *contradicted = true;
                if let (Some(a), Some(b)) = told.places
                    && a / 64 == b / 64
                    && pairs.len() < MOST_PAIRS
                {
                    pairs.push((a / 64, 1 << (a % 64) | 1 << (b % 64)));
                }
            }
        }
        true
    }

    /// Whether no other marked constraint of the same class implies this one.
    fn is_closest(&self, constraint: &Constraint) -> bool {
        let Some(class) = constraint.class else { return true };
        let told = &self.scratch.classes[class.number as usize];
        let closest = match class.negated {
            true => told.high == Some(constraint.constant),
            false => told.low == Some(-constraint.constant),
        };
        closest || !told.plain
    }

    fn number(&mut self, sum: AffineId, evaluator: &mut Evaluator<'_>) -> u32 {
        let Affine { constant, terms } = evaluator.get(sum);
        let class = (!terms.is_empty()).then(|| evaluator.affines.class(sum));
        let mut hash = FxHasher::default();
        (constant as u64, class).hash(&mut hash);
        let ConstraintScratch { constraints, constraint_numbers, classes, .. } = &mut *self.scratch;
        let plain = evaluator.affines.is_plain(sum);
        let same = |at: usize| {
            let Constraint { constant: other, class: of, plain: as_plain, .. } = constraints[at];
            (other, of, as_plain) == (constant, class, plain)
        };
        let (number, new) = constraint_numbers.number(hash.finish(), same);
        if new {
            let (low, high) = evaluator.interval(sum);
            constraints.push(Constraint { sum, constant, class, plain, low, high, mark: 0 });
            if let Some(AffineClass { number, .. }) = class {
                if classes.len() <= number as usize {
                    classes.resize(number as usize + 1, ClassBounds::default());
                }
                classes[number as usize].any = true;
            }
        }
        number as u32
    }

    /// Reads one condition: its meaning, and the bits that say so. Returns whether some thread may
    /// meet it.
    fn look_at(&mut self, place: usize, evaluator: &mut Evaluator<'_>) -> bool {
        let condition = self.plan.distinct_conditions[place];
        let meaning = if evaluator.no_wraps_hold(condition.expression, &ImpliedBounds::NONE) {
            self.meaning_of(&condition, evaluator)
        } else if condition.relation == Relation::AtLeast {
            let sum = evaluator.affine(condition.expression);
            Meaning::Conditional(self.number(sum, evaluator))
        } else {
            Meaning::Uninformative
        };
        let ConstraintScratch { meanings, constraints, blocks, .. } = &mut *self.scratch;
        meanings[place] = meaning;
        let (block, bit) = (&mut blocks[place / 64], 1 << (place % 64));
        block.read |= bit;
        match meaning {
            Meaning::Affine(sums, count, whole) => {
                let mut own =
                    sums[..usize::from(count)].iter().map(|&sum| constraints[sum as usize]);
                if own.clone().any(|constraint| constraint.high < 0) {
                    block.contradictions |= bit;
                } else if whole && own.all(|constraint| constraint.low >= 0) {
                    block.tautologies |= bit;
                }
            }
            Meaning::Conditional(_) => {}
            Meaning::Uninformative => {
                block.always_uninformative |= bit;
                block.uninformative |= bit;
            }
        }
        block.contradictions & bit == 0
    }

    /// The meaning of a condition, as constraints.
    fn meaning_of(&mut self, condition: &Condition, evaluator: &mut Evaluator<'_>) -> Meaning {
        if condition.relation == Relation::AtLeast {
            let sum = evaluator.affine(condition.expression);
            return Meaning::Affine([self.number(sum, evaluator), 0], 1, true);
        }
        let (value, (low, high)) = evaluator.compared(condition);
        let sums = &mut *evaluator.affines;
        let differs = condition.relation == Relation::Differs;
        let sums: SmallVec<[AffineId; 2]> = match (differs, low, high) {
            // By how much it is another number plays no part, and a pointer may be in it.
            (false, low, high) if low > 0 || high < 0 => smallvec![sums.number(-1)],
            (false, ..) => smallvec![value, sums.less(0, value)],
            (true, 0, 0) => smallvec![sums.number(-1)],
            (true, low, high) if low > 0 || high < 0 => smallvec![],
            (true, 0, _) => smallvec![sums.more(value, -1)],
            (true, _, 0) => smallvec![sums.less(-1, value)],
            (true, ..) => return Meaning::Affine([0; 2], 0, false),
        };
        let mut numbers = [0; 2];
        for (number, &sum) in numbers.iter_mut().zip(&sums) {
            *number = self.number(sum, evaluator);
        }
        Meaning::Affine(numbers, sums.len() as u8, true)
    }

    /// Adds what a condition says to the last conjunction, and to any other that it is in if there
    /// is a place of it; whether that is all of it.
    fn add(&mut self, meaning: Meaning, place: Option<u32>) -> bool {
        let Meaning::Affine(sums, count, whole) = meaning else { return false };
        for &sum in &sums[..usize::from(count)] {
            if self.mark(sum, place) {
                self.scratch.all.push(sum);
            }
        }
        whole
    }

    fn read(&mut self, at: usize, evaluator: &mut Evaluator<'_>) -> ConstraintSet {
        let plan = self.plan;
        let parts = plan.conjunctions[at].blocks();
        let ConstraintScratch { blocks, pairs, .. } = &*self.scratch;
        let contradictory = |&(block, bits): &(u32, u64)| {
            let has = |&(of, both): &(u32, u64)| of == block && bits & both == both;
            bits & blocks[block as usize].contradictions != 0 || pairs.iter().any(has)
        };
        if parts.iter().any(contradictory) {
            return CONTRADICTION;
        }
        for &(block, bits) in parts {
            for place in numbers(block, bits & !self.scratch.blocks[block as usize].read) {
                if !self.look_at(place as usize, evaluator) {
                    return CONTRADICTION;
                }
            }
        }
        let ConstraintScratch {
            blocks,
            meanings,
            constraints,
            classes,
            uninformative_at,
            remaining_conditions,
            ..
        } = &mut *self.scratch;
        if std::mem::replace(uninformative_at, constraints.len()) != constraints.len() {
            blocks.iter_mut().for_each(|block| block.uninformative = block.always_uninformative);
        }
        let (from, mut exact) = (remaining_conditions.len(), true);
        for &(number, bits) in parts {
            let block = &mut blocks[number as usize];
            for place in numbers(number, bits & !(block.tautologies | block.uninformative)) {
                let expression = plan.distinct_conditions[place as usize].expression;
                if let Meaning::Conditional(_) = meanings[place as usize]
                    && !evaluator.may_be_implied(expression, classes)
                {
                    block.uninformative |= 1 << (place % 64);
                } else {
                    remaining_conditions.push(place);
                }
            }
            exact &= bits & block.uninformative == 0;
        }
        let ConstraintScratch { remaining, remaining_index, remaining_conditions, .. } =
            &mut *self.scratch;
        let own = &remaining_conditions[from..];
        let same = |at: usize| {
            remaining_conditions[remaining[at].0 as usize..remaining[at].1 as usize] == *own
        };
        let (number, new) = remaining_index.number(hash(own), same);
        if !new {
            remaining_conditions.truncate(from);
            let set = remaining[number].2;
            return ConstraintSet { exact: exact && set.exact, ..set };
        }
        let to = remaining_conditions.len();
        let set = self.put_together(from..to, evaluator);
        self.scratch.remaining.push((from as u32, to as u32, set));
        ConstraintSet { exact: exact && set.exact, ..set }
    }

    /// The constraint set of conditions, given where they are listed.
    fn put_together(
        &mut self,
        remaining_conditions: Range<usize>,
        evaluator: &mut Evaluator<'_>,
    ) -> ConstraintSet {
        self.mark_none(None);
        let (from, mut exact) = (self.scratch.all.len(), true);
        for at in remaining_conditions.clone() {
            let place = self.scratch.remaining_conditions[at];
            let meaning = self.scratch.meanings[place as usize];
            exact &= matches!(meaning, Meaning::Conditional(_)) || self.add(meaning, Some(place));
            if self.scratch.contradicted {
                self.scratch.all.truncate(from);
                return CONTRADICTION;
            }
        }
        // Some conditions may prove the no-wrap conditions of others.
        for at in remaining_conditions {
            let place = self.scratch.remaining_conditions[at] as usize;
            let Meaning::Conditional(sum) = self.scratch.meanings[place] else { continue };
            let holds = evaluator.no_wraps_hold(
                self.plan.distinct_conditions[place].expression,
                &self.implied_bounds(),
            );
            exact &= holds && self.add(Meaning::Affine([sum, 0], 1, true), None);
        }
        let mut open: SmallVec<[u32; 8]> = SmallVec::new();
        let mut contradictory = self.scratch.contradicted;
        for &sum in &self.scratch.all[from..] {
            let constraint = &self.scratch.constraints[sum as usize];
            contradictory |= constraint.high < 0;
            if constraint.low < 0 && self.is_closest(constraint) {
                open.push(sum);
            }
        }
        if !contradictory {
            // A condition that is never negative implies none that is.
            self.drop_implied(evaluator, &mut open);
        }
        let (from, to) = (from as u32, self.scratch.all.len() as u32);
        ConstraintSet { from, to, reduced: self.reduced(&open), exact, contradictory }
    }

    fn reduced(&mut self, sums: &[u32]) -> u32 {
        let ConstraintScratch { reduced_sets, reduced_index, open, .. } = &mut *self.scratch;
        let same =
            |at: usize| open[reduced_sets[at].from as usize..reduced_sets[at].to as usize] == *sums;
        let (number, new) = reduced_index.number(hash(sums), same);
        if new {
            let from = open.len() as u32;
            open.extend_from_slice(sums);
            reduced_sets.push(ReducedSet { from, to: open.len() as u32, last: None });
        }
        number as u32
    }
}

#[cfg(test)]
mod tests;
