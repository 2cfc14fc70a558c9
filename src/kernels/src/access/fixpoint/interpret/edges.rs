//! The edges between blocks: the conditions on each edge, and the infeasible edges.
//!
//! Stage: the fixpoint. An edge on which two conditions contradict each other is infeasible, under
//! the no-wrap conditions of both.
//!
//! Invariant: where an infeasible edge is dropped, every register that differs on the other edges
//! gets these no-wrap conditions.

use super::{Interpreter, State};
use crate::access::domain::condition::{Condition, Relation};
use crate::access::domain::expression::{ExprId, MINUS_ONE};
use crate::access::fixpoint::grid_control::Passed;
use crate::access::lower::steps::Flow;

/// Conditions of a place that are kept at most.
const MAX_CONDITIONS: usize = 40;

/// When control goes from one block to another.
enum Branch {
    Always,
    /// Where a predicate has this value.
    On(u32, bool),
    Unknown,
}

impl Interpreter<'_> {
    /// The state on the edge from one block to another.
    pub(in crate::access) fn edge(
        &self,
        from: usize,
        to: usize,
        outs: &[Option<(State, State)>],
    ) -> Option<State> {
        let (_, state) = outs[from].as_ref()?;
        let mut state = state.clone();
        match self.branch(from, to) {
            Branch::Always => {}
            Branch::On(register, value) => self.assume(&mut state, register, value),
            Branch::Unknown => state.exact = false,
        }
        Some(state)
    }

    /// When control goes from one block to another.
    fn branch(&self, from: usize, to: usize) -> Branch {
        let block = &self.graph.blocks[from];
        let several = block.successors.iter().any(|&s| s != to);
        if !several || block.first == block.end {
            return Branch::Always;
        }
        let step = &self.flat.steps[block.end - 1];
        match (step.guard, &step.flow) {
            (Some((register, negated)), Flow::To(_) | Flow::Out) => {
                // Both by the branch and past it: nothing follows.
                if block.successors.iter().filter(|&&s| s == to).count() > 1 {
                    return Branch::Unknown;
                }
                let taken = block.successors.last() != Some(&to);
                Branch::On(register, negated != taken)
            }
            _ => Branch::Unknown,
        }
    }

    /// Marks an edge as infeasible where what was just learned on it contradicts the path
    /// condition.
    pub(super) fn mark_infeasible(&mut self, from: usize, to: usize, state: &mut State) {
        let Branch::On(register, value) = self.branch(from, to) else { return };
        let id = state.registers[register as usize];
        let Some(predicate) = id.checked_sub(1).map(|id| &self.predicates[id as usize]) else {
            return;
        };
        let learned = if value { &predicate.when_true } else { &predicate.when_false };
        let pairs = learned.conditions.iter().find_map(|new| {
            let other =
                state.path.iter().find(|condition| new.contradicts(condition, &self.interner))?;
            Some((new.expression, other.expression))
        });
        let Some((a, b)) = pairs else { return };
        let contradiction = self.interner.with_no_wraps_of(MINUS_ONE, a);
        let contradiction = contradiction
            .and_then(|contradiction| self.interner.with_no_wraps_of(contradiction, b));
        state.path.extend(
            contradiction.map(|expression| Condition { expression, relation: Relation::AtLeast }),
        );
    }

    /// Drops the infeasible edges into a block. Values that differ on them get the no-wrap
    /// conditions under which the others are all edges.
    pub(super) fn drop_infeasible(&mut self, block: usize, incoming: &mut Vec<State>) {
        let contradiction = |this: &Self, state: &State| {
            let contradiction =
                state.path.iter().find(|condition| condition.is_contradiction(&this.interner));
            contradiction.map(|contradiction| contradiction.expression)
        };
        let contradictions: Vec<Option<ExprId>> =
            incoming.iter().map(|state| contradiction(self, state)).collect();
        if !contradictions.iter().any(Option::is_some) || contradictions.iter().all(Option::is_some)
        {
            return;
        }
        let no_wraps =
            contradictions.iter().flatten().try_fold(MINUS_ONE, |all, &contradiction| {
                self.interner.with_no_wraps_of(all, contradiction)
            });
        let Some(no_wraps) = no_wraps else { return };
        let (gone, mut kept): (Vec<_>, Vec<_>) = std::mem::take(incoming)
            .into_iter()
            .zip(contradictions)
            .partition(|(_, contradiction)| contradiction.is_some());
        for (state, _) in &mut kept {
            let passed = gone.iter().map(|(other, _)| other.passed);
            state.passed = passed.fold(state.passed, Passed::on_all);
            if self.interner.get(no_wraps).no_wraps.is_empty() {
                continue;
            }
            for condition in std::mem::take(&mut state.path) {
                let shared = gone.iter().all(|(other, _)| other.path.contains(&condition));
                let expression = match shared {
                    true => Some(condition.expression),
                    false => self.interner.with_no_wraps_of(condition.expression, no_wraps),
                };
                state.exact &= expression.is_some();
                state
                    .path
                    .extend(expression.map(|expression| Condition { expression, ..condition }));
            }
            for register in 0..state.registers.len() {
                let Some(value) = state.registers[register].checked_sub(1) else { continue };
                let differs = |(other, _): &(State, _)| other.registers[register] != value + 1;
                if !self.live[block].has(register as u32) || !gone.iter().any(differs) {
                    continue;
                }
                state.registers[register] = if self.flat.registers[register] {
                    let predicate = self.predicates[value as usize].clone();
                    let predicate = predicate.with_no_wraps_of(no_wraps, &mut self.interner);
                    self.predicate_id(predicate) + 1
                } else {
                    self.interner
                        .with_no_wraps_of(ExprId(value), no_wraps)
                        .map_or(0, |value| value.0 + 1)
                };
            }
        }
        incoming.extend(kept.into_iter().map(|(state, _)| state));
    }

    /// Adds what follows from a predicate being `value`.
    pub(in crate::access) fn assume(&self, state: &mut State, register: u32, value: bool) {
        let known = self.implied(state, register, value);
        state.exact &= known.complete;
        if state.path.len() + known.conditions.len() > MAX_CONDITIONS {
            state.exact = false;
            return;
        }
        state.path.extend(known.conditions.iter().copied());
    }
}
