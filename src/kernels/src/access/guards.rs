//! What the conditions of a kernel's accesses say at one launch.
//!
//! Accesses share most of their conditions, one by one and whole lists of them: each is looked at
//! once a launch, when an access first asks for it.

use smallvec::{SmallVec, smallvec};

use super::condition::{Condition, Relation};
use super::evaluator::Evaluator;
use super::linear::{FAR, Linear, are_alike, least_difference};
use super::pattern::{Reached, reached};
use super::plan::Plan;

/// Numbers of sums that are not negative.
type Sums = SmallVec<[u32; 8]>;

/// A sum that is not negative where a condition holds.
#[derive(Debug)]
struct Guard {
    sum: Linear,
    low: i128,
    high: i128,
}

impl Guard {
    /// Whether this sum may never be below the other one: then neither end is. Sums near to where
    /// numbers are cut have no true ends.
    fn may_exceed(&self, other: &Guard) -> bool {
        let near = |guard: &Guard| guard.low > -FAR / 4 && guard.high < FAR / 4;
        !near(self) || !near(other) || (self.low >= other.low && self.high >= other.high)
    }
}

/// What one condition says.
#[derive(Debug, Clone)]
enum Fact {
    /// These sums are not negative, and whether that is all of it.
    Says(SmallVec<[u32; 2]>, bool),
    /// It may say something where others hold.
    Perhaps,
    Nothing,
}

/// What a list of conditions says.
#[derive(Debug)]
struct Set {
    /// Sums that are not negative.
    all: Sums,
    /// Those of them that no other one implies.
    telling: Sums,
    /// Those of these that are negative somewhere: others would only keep variables apart.
    open: Sums,
    /// Whether they say all of it.
    exact: bool,
    /// Whether they never hold together.
    never: bool,
    /// Which counters of loops take exactly the values that the telling ones admit.
    rounds: SmallVec<[(u32, bool); 2]>,
    /// What accesses reach: of sums that differ in a number only, and as many bytes, it is the same
    /// so much further.
    reached: Vec<(Linear, i128, Reached)>,
}

/// The conditions of a kernel at one launch.
#[derive(Debug)]
pub(super) struct Guards<'p> {
    plan: &'p Plan,
    sums: Vec<Guard>,
    facts: Vec<Option<Fact>>,
    sets: Vec<Option<Set>>,
}

impl<'p> Guards<'p> {
    pub(super) fn new(plan: &'p Plan) -> Self {
        let sets = std::iter::repeat_with(|| None).take(plan.sets.len()).collect();
        Self { plan, sums: Vec::new(), facts: vec![None; plan.facts.len()], sets }
    }

    /// Looks at the conditions of a list.
    pub(super) fn look(&mut self, set: usize, evaluator: &mut Evaluator<'_>) {
        if self.sets[set].is_none() {
            self.sets[set] = Some(self.read(set, evaluator));
        }
    }

    /// Whether the conditions of a list say all of what they are; `None` where they never hold
    /// together.
    pub(super) fn said(&self, set: usize) -> Option<bool> {
        self.sets[set].as_ref().filter(|set| !set.never).map(|set| set.exact)
    }

    /// The sums that are not negative.
    pub(super) fn known(&self, set: usize) -> SmallVec<[&Linear; 8]> {
        self.sums_of(self.sets[set].iter().flat_map(|set| &set.all))
    }

    fn sums_of<'s>(&self, of: impl Iterator<Item = &'s u32>) -> SmallVec<[&Linear; 8]> {
        of.map(|&at| &self.sums[at as usize].sum).collect()
    }

    fn number(&mut self, sum: Linear, evaluator: &Evaluator<'_>) -> u32 {
        match self.sums.iter().position(|known| known.sum == sum) {
            Some(at) => at as u32,
            None => {
                let (low, high) = evaluator.interval(&sum);
                self.sums.push(Guard { sum, low, high });
                self.sums.len() as u32 - 1
            }
        }
    }

    /// Looks at one condition.
    fn look_at(&mut self, place: usize, evaluator: &mut Evaluator<'_>) {
        if self.facts[place].is_some() {
            return;
        }
        let condition = self.plan.facts[place];
        let fact = if evaluator.needs_hold(condition.expression, &[]) {
            self.says(&condition, evaluator)
        } else if condition.relation == Relation::AtLeast {
            Fact::Perhaps
        } else {
            Fact::Nothing
        };
        self.facts[place] = Some(fact);
    }

    /// A condition as sums that are not negative.
    fn says(&mut self, condition: &Condition, evaluator: &mut Evaluator<'_>) -> Fact {
        if condition.relation == Relation::AtLeast {
            let sum = evaluator.linear(condition.expression);
            let sum = evaluator.get(sum).clone();
            return Fact::Says(smallvec![self.number(sum, evaluator)], true);
        }
        let (value, (low, high)) = evaluator.compared(condition);
        let sum = evaluator.get(value);
        let negated = |more: i128| {
            let mut negated = Linear::number(more);
            negated.add(sum, -1);
            negated
        };
        let one = |mut sum: Linear, more: i128| {
            sum.constant += more;
            smallvec![sum]
        };
        let differs = condition.relation == Relation::Differs;
        let sums: SmallVec<[Linear; 2]> = match (differs, low, high) {
            // By how much it is another number plays no part, and a pointer may be in it.
            (false, low, high) if low > 0 || high < 0 => smallvec![Linear::number(-1)],
            (false, ..) => smallvec![sum.clone(), negated(0)],
            (true, 0, 0) => smallvec![Linear::number(-1)],
            (true, low, high) if low > 0 || high < 0 => smallvec![],
            (true, 0, _) => one(sum.clone(), -1),
            (true, _, 0) => smallvec![negated(-1)],
            (true, ..) => return Fact::Says(smallvec![], false),
        };
        Fact::Says(sums.into_iter().map(|sum| self.number(sum, evaluator)).collect(), true)
    }

    fn read(&mut self, at: usize, evaluator: &mut Evaluator<'_>) -> Set {
        let (mut all, mut exact) = (Sums::new(), true);
        let mut later: SmallVec<[u32; 4]> = SmallVec::new();
        let add = |all: &mut Sums, sums: &[u32]| {
            for &sum in sums {
                if !all.contains(&sum) {
                    all.push(sum);
                }
            }
        };
        let plan = self.plan;
        for &fact in &plan.sets[at] {
            self.look_at(fact as usize, evaluator);
            match &self.facts[fact as usize] {
                Some(Fact::Says(sums, whole)) => {
                    add(&mut all, sums);
                    exact &= whole;
                }
                Some(Fact::Perhaps) => later.push(fact),
                Some(Fact::Nothing) | None => exact = false,
            }
        }
        // What some conditions say may be what others need.
        for fact in later {
            let condition = plan.facts[fact as usize];
            if !evaluator.needs_hold(condition.expression, &self.sums_of(all.iter())) {
                exact = false;
                continue;
            }
            if let Fact::Says(sums, whole) = self.says(&condition, evaluator) {
                add(&mut all, &sums);
                exact &= whole;
            }
        }
        let sum = |at: u32| &self.sums[at as usize];
        let never = all.iter().any(|&at| sum(at).high < 0);
        let mut telling = all.clone();
        if !never {
            self.drop_implied(evaluator, &mut telling);
        }
        let open = telling.iter().copied().filter(|&at| sum(at).low < 0).collect();
        Set { all, telling, open, exact, never, rounds: SmallVec::new(), reached: Vec::new() }
    }

    /// Drops sums that another one implies.
    fn drop_implied(&self, evaluator: &Evaluator<'_>, sums: &mut Sums) {
        let mut at = 0;
        while at < sums.len() {
            let own = &self.sums[sums[at] as usize];
            let implied = sums.iter().enumerate().any(|(number, &other)| {
                let other = &self.sums[other as usize];
                number != at && own.may_exceed(other) && {
                    least_difference(&own.sum, &other.sum, &evaluator.variables) >= 0
                }
            });
            if implied {
                sums.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// The bytes `address .. address + length` where the conditions of a list hold.
    pub(super) fn reached(
        &mut self,
        at: usize,
        address: &Linear,
        length: i128,
        evaluator: &mut Evaluator<'_>,
    ) -> Reached {
        let Some(set) = &mut self.sets[at] else { return Reached::Anywhere };
        let sums = &self.sums;
        let known = set
            .reached
            .iter()
            .find(|(other, bytes, _)| *bytes == length && are_alike(address, other, 1));
        if let Some((other, _, reached)) = known {
            return reached.further(address.constant - other.constant);
        }
        let of = |list: &Sums| -> SmallVec<[&Linear; 8]> {
            list.iter().map(|&at| &sums[at as usize].sum).collect()
        };
        let open = of(&set.open);
        // Counters whose rounds are not known to be all made.
        for &(variable, _) in open.iter().copied().chain([address]).flat_map(|sum| &sum.terms) {
            let Some(header) = evaluator.variables[variable as usize].header else { continue };
            if !evaluator.variables[variable as usize].full
                && !set.rounds.iter().any(|known| known.0 == variable)
            {
                let made = evaluator.rounds_are_guarded(header, &of(&set.telling));
                set.rounds.push((variable, made));
            }
        }
        let found = reached(address, &open, &evaluator.variables, &set.rounds, length, true);
        set.reached.push((address.clone(), length, found));
        found
    }
}
