//! Whether expressions mean what they say at one launch.

use super::super::expression::ExprId;
use super::super::linear::{Value, are_alike};
use super::super::plan::Role;
use super::Evaluator;

/// Sums that are not negative.
#[derive(Debug)]
pub(in super::super) struct Facts<'a> {
    /// All that there may be, by their numbers; those hold that bear this mark.
    pub(in super::super) sums: &'a [Value],
    pub(in super::super) marks: &'a [u32],
    pub(in super::super) mark: u32,
    /// The list of conditions that they are all of.
    pub(in super::super) set: Option<u32>,
}

impl Facts<'_> {
    pub(in super::super) const NONE: Facts<'static> = Facts { sums: &[], marks: &[], mark: 0, set: None };
}

/// What a fact tells of the value of a need.
#[derive(Debug)]
pub(super) struct Teller {
    fact: u32,
    least: Option<i128>,
    most: Option<i128>,
    /// The one before of the same need.
    before: Option<u32>,
}

impl Evaluator<'_> {
    /// Whether what the expression needs holds, given that some sums are not negative.
    pub(in super::super) fn needs_hold(&mut self, expression: ExprId, known: &Facts<'_>) -> bool {
        let place = expression.0 as usize;
        // Bounds of variables only become narrower, so it holds for good.
        if self.held[place] {
            return true;
        }
        let plan = self.plan;
        let mut always = true;
        for &need in &*plan.needs_of[place] {
            if !self.holds(need as usize, known) {
                return false;
            }
            always &= self.met[need as usize];
        }
        self.held[place] = always;
        true
    }

    /// Whether what the expression needs holds whatever else does.
    pub(in super::super) fn needs_are_met(&mut self, expression: ExprId) -> bool {
        let place = expression.0 as usize;
        let plan = self.plan;
        self.held[place] = self.held[place]
            || plan.needs_of[place].iter().all(|&need| self.is_met(need as usize));
        self.held[place]
    }

    fn is_met(&mut self, at: usize) -> bool {
        if self.met[at] {
            return true;
        }
        let need = self.plan.needs[at];
        let value = self.linear(need.expression);
        let (low, high) = self.interval(value);
        let (least, most) = (i128::from(need.low), i128::from(need.high));
        self.met[at] = match self.plan.roles[need.expression.0 as usize] {
            Role::Plus(word) => {
                let pointer = &mut self.pointers[usize::from(word)];
                let (low, high) = (low + pointer.number(), high + pointer.number());
                let met = least <= low && high <= most;
                if met {
                    pointer.at_least(low, least);
                    pointer.at_most(high, most);
                }
                met
            }
            Role::None | Role::Minus(_) | Role::Bits(_) => least <= low && high <= most,
        };
        self.met[at]
    }

    fn holds(&mut self, at: usize, known: &Facts<'_>) -> bool {
        if self.met[at] {
            return true;
        }
        if let Some(Some(holds)) = self.answer(at, known) {
            return *holds;
        }
        let need = self.plan.needs[at];
        let value = self.linear(need.expression);
        let whole = self.interval(value);
        let (least, most) = (i128::from(need.low), i128::from(need.high));
        let role = self.plan.roles[need.expression.0 as usize];
        let Role::Plus(word) = role else {
            self.met[at] = least <= whole.0 && whole.1 <= most;
            if self.met[at] || known.sums.is_empty() {
                return self.met[at];
            }
            let (low, high) = self.told(at, value, whole, known);
            let holds = least <= low && high <= most;
            if let Some(answer) = self.answer(at, known) {
                *answer = Some(holds);
            }
            return holds;
        };
        let (low, high) = self.told(at, value, whole, known);
        let pointer = &mut self.pointers[usize::from(word)];
        let (below, above) = (low + pointer.number(), high + pointer.number());
        let holds = pointer.at_least(below, least) && pointer.at_most(above, most);
        self.met[at] = holds && (low, high) == whole;
        holds
    }

    /// The place for what the facts of a list say of a need, where there is one.
    fn answer(&mut self, need: usize, known: &Facts<'_>) -> Option<&mut Option<bool>> {
        let set = known.set? as usize;
        self.answers.get_mut(need * self.plan.sets.len() + set)
    }

    /// Between what a need's value lies where some sums are not negative.
    fn told(
        &mut self,
        need: usize,
        value: Value,
        (mut low, mut high): (i128, i128),
        known: &Facts<'_>,
    ) -> (i128, i128) {
        if known.sums.is_empty() {
            return (low, high);
        }
        let (last, looked_at) = &mut self.told[need];
        let sum = self.sums.get(value);
        for (fact, &other) in known.sums.iter().enumerate().skip(*looked_at as usize) {
            let other = self.sums.get(other);
            // The value is the fact plus a number, or a number less the fact.
            let least = are_alike(sum, other, 1).then(|| sum.constant - other.constant);
            let most = are_alike(sum, other, -1).then(|| sum.constant + other.constant);
            if least.is_some() || most.is_some() {
                let before = last.replace(self.tellers.len() as u32);
                self.tellers.push(Teller { fact: fact as u32, least, most, before });
            }
        }
        *looked_at = known.sums.len() as u32;
        let mut next = *last;
        while let Some(teller) = next.map(|at| &self.tellers[at as usize]) {
            if known.marks[teller.fact as usize] == known.mark {
                low = low.max(teller.least.unwrap_or(low));
                high = high.min(teller.most.unwrap_or(high));
            }
            next = teller.before;
        }
        (low, high)
    }
}
