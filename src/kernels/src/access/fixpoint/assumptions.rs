//! The assumptions about loops: how registers recur and which conditions are invariant, guessed at
//! the head and checked by the next pass.
//!
//! Stage: the fixpoint; the assumptions take the place of a widening operator. A register is free
//! at first. If a pass shows that every back edge brings the head's value plus one invariant step,
//! the register is the add-recurrence of this step ([`Recurrence::AddRec`]). If not, it is ⊤
//! ([`Recurrence::Any`]): a loop φ, which is anything that its sources may become.
//!
//! Invariants: no register leaves ⊤. The result of the last pass rests only on assumptions that the
//! pass confirmed.

use crate::access::domain::condition::{Condition, Implied, Predicate, Relation};
use crate::access::domain::expression::{ExprId, Interner, Operator, Symbol};
use crate::access::domain::path_condition::PathCondition;
use crate::access::fixpoint::interpret::{BackEdge, Interpreter, Kind, Recurrence, State, States};
use crate::access::lower::control_flow::Loop;
use crate::access::lower::steps::Step;

impl Interpreter<'_> {
    /// Registers and path condition at the head of a loop.
    pub(in crate::access) fn head(&mut self, at: usize, state: &mut State) {
        let Loop { header, natural, .. } = self.graph.loops[at];
        let body = self.graph.loops[at].body.clone();
        if !natural {
            state.exact = false;
            state.path.retain(|condition| !self.changes_in(&body, condition.expression));
        }
        let induction = self.interner.of(Symbol::Induction(header as u32));
        let done = self.head_pairs(at, state);
        for index in 0..self.assigned[at].len() {
            let register = self.assigned[at][index];
            let place = register as usize;
            if done.contains(&register) {
                continue;
            }
            if !self.live[header].has(register) {
                continue;
            }
            if self.flat.registers[place] {
                if !self.is_assumed_invariant(header, &body, register, state) {
                    state.registers[place] = 0;
                }
                continue;
            }
            let start = state.registers[place].checked_sub(1).map(ExprId);
            let key = (header, register);
            let followed = start.is_some() && !self.given_up;
            let first = if followed { Recurrence::Free } else { Recurrence::Any };
            if self.given_up {
                self.recurrences.insert(key, Recurrence::Any);
            }
            let recurrence = *self.recurrences.entry(key).or_insert(first);
            // A loop with several entries has no iterations to count; a register that all of its
            // back edges bring as it came stays.
            if !natural && followed && recurrence != Recurrence::Any {
                continue;
            }
            let value = match (recurrence, start) {
                (Recurrence::AddRec(step), Some(start)) => self
                    .interner
                    .multiply(step, induction)
                    .and_then(|sum| self.interner.add(start, sum, 1)),
                _ => None,
            };
            let value = value.unwrap_or_else(|| {
                if recurrence != Recurrence::Free {
                    self.recurrences.insert(key, Recurrence::Any);
                }
                let symbol = Symbol::Phi(header as u32, register);
                self.define(symbol, Kind::LoopPhi, start.into_iter().collect(), None)
            });
            state.registers[place] = value.0 + 1;
        }
        if let Some(path) = self.invariants.get(&header) {
            state.path.extend(path.iter().copied());
        }
    }

    /// Whether a predicate is assumed to be invariant: every iteration gives it back as it found
    /// it. It is spilled to a general register meanwhile.
    fn is_assumed_invariant(
        &mut self,
        header: usize,
        body: &[bool],
        register: u32,
        state: &State,
    ) -> bool {
        let outer = state.registers[register as usize].checked_sub(1).is_some_and(|id| {
            let predicate = &self.predicates[id as usize];
            let known = [&predicate.when_true, &predicate.when_false];
            let mut conditions = known.into_iter().flat_map(|known| known.conditions.iter());
            // For a step: φs count down from the end.
            let made = predicate.place.and_then(|(step, _)| self.block_of.get(step as usize));
            !made.is_some_and(|&block| body[block])
                && !conditions.any(|condition| self.changes_in(body, condition.expression))
        });
        let first = if self.given_up || !outer { Recurrence::Any } else { Recurrence::Free };
        let recurrence = self.recurrences.entry((header, register)).or_insert(first);
        if first == Recurrence::Any {
            *recurrence = first;
        }
        *recurrence == Recurrence::Free
    }

    /// Like [`Self::check_recurrence`], for a register that is assumed to be invariant.
    fn check_invariant(
        &mut self,
        (header, register): (usize, u32),
        body: &[bool],
        entry: &State,
        backs: &[State],
    ) -> bool {
        let (key, place) = ((header, register), register as usize);
        let (start, recurrence) = (entry.registers[place], self.recurrences.get(&key).copied());
        let values = backs.iter().map(|back| back.registers[place]);
        let same = values.clone().all(|value| value == start);
        if same && (self.flat.registers[place] || start == 0 || recurrence == Some(Recurrence::Any))
        {
            return false;
        }
        if same {
            let start = ExprId(start - 1);
            if !self.changes_in(body, start) {
                return false;
            }
            // The value is what an outer loop made of it, and the next pass may know more of that.
            if recurrence != Some(Recurrence::Doubted(start)) {
                self.recurrences.insert(key, Recurrence::Doubted(start));
                return true;
            }
        } else if !self.flat.registers[place] {
            let more: Vec<ExprId> = values.filter_map(|id| id.checked_sub(1)).map(ExprId).collect();
            let symbol = self.interner.symbol_id(Symbol::Phi(header as u32, register));
            self.definitions.add_sources(symbol, &more);
        }
        self.recurrences.insert(key, Recurrence::Any) != Some(Recurrence::Any)
    }

    /// Checks the assumptions about loops against a pass, and withdraws those that fail. Returns
    /// whether any assumption changed.
    pub(in crate::access) fn check_assumptions(&mut self, outs: &States, eager: bool) -> bool {
        let mut changed = false;
        for at in 0..self.graph.loops.len() {
            let Loop { header, natural, .. } = self.graph.loops[at];
            let body = self.graph.loops[at].body.clone();
            let latches = self.graph.loops[at].latches.clone();
            let backs: Vec<State> =
                latches.iter().filter_map(|&latch| self.edge(latch, header, outs)).collect();
            let Some((entry, _)) = &outs[header] else { continue };
            for index in 0..self.assigned[at].len() {
                let register = self.assigned[at][index];
                changed |= match natural && !self.flat.registers[register as usize] {
                    true => self.check_recurrence(header, &body, register, entry, &backs, eager),
                    false => self.check_invariant((header, register), &body, entry, &backs),
                };
            }
            let mut back_edge = backs.first().map(|s| s.path.clone()).unwrap_or_default();
            for other in backs.iter().skip(1) {
                back_edge.keep_shared(&other.path);
            }
            let start = self.start_condition(header, outs);
            let wanted = if natural {
                self.find_invariants(header, &body, &back_edge, &start, &entry.path)
            } else {
                PathCondition::default()
            };
            let invariants = self.invariants.entry(header).or_default();
            let mut kept = wanted;
            if !eager {
                kept.keep_shared(invariants);
            }
            changed |= *invariants != kept;
            *invariants = kept;
            let single_test = self.single_test(at, outs);
            self.loops.insert(header, BackEdge { back_edge, single_test });
        }
        changed
    }

    fn start_condition(&self, header: usize, outs: &States) -> PathCondition {
        let mut states = self.graph.blocks[header]
            .predecessors
            .iter()
            .filter(|&&p| !self.graph.is_back(p, header))
            .filter_map(|&p| self.edge(p, header, outs));
        let mut path = states.next().map(|s| s.path).unwrap_or_default();
        for other in states {
            path.keep_shared(&other.path);
        }
        path
    }

    fn check_recurrence(
        &mut self,
        header: usize,
        body: &[bool],
        register: u32,
        entry: &State,
        backs: &[State],
        eager: bool,
    ) -> bool {
        let place = register as usize;
        let key = (header, register);
        if !self.given_up && self.is_lower_half(header, register) {
            return false;
        }
        let halves = match self.half_values(header, register, entry, backs) {
            _ if self.given_up => None,
            Err(true) => return true,
            Err(false) => None,
            Ok(values) => Some(values),
        };
        let Some(&recurrence) = self.recurrences.get(&key) else { return false };
        let (head, values): (ExprId, Vec<u32>) = match halves {
            Some((head, values)) => (head, values.iter().map(|value| value.0 + 1).collect()),
            None => match entry.registers[place] {
                0 => return false,
                id => (ExprId(id - 1), backs.iter().map(|back| back.registers[place]).collect()),
            },
        };
        if recurrence != Recurrence::Any && !values.contains(&0) {
            let mut steps: Vec<Option<ExprId>> =
                values.iter().map(|&id| self.interner.add(ExprId(id - 1), head, -1)).collect();
            steps.dedup();
            if let [Some(step)] = steps[..] {
                let step = self.interner.bare(step);
                match recurrence {
                    Recurrence::AddRec(known) if known == step => return false,
                    _ if eager && !self.changes_in(body, step) => {
                        self.recurrences.insert(key, Recurrence::AddRec(step));
                        return true;
                    }
                    _ => {}
                }
            }
        }
        let more: Vec<ExprId> =
            values.iter().filter(|&&id| id != 0).map(|&id| ExprId(id - 1)).collect();
        let symbol = self.interner.symbol_id(Symbol::Phi(header as u32, register));
        self.definitions.add_sources(symbol, &more);
        self.recurrences.insert(key, Recurrence::Any) != Some(Recurrence::Any)
    }

    /// Invariants: conditions of the back edge that also hold at the head in every iteration. They
    /// are among the conditions that hold before the first iteration.
    fn find_invariants(
        &mut self,
        header: usize,
        body: &[bool],
        back_edge: &PathCondition,
        start: &PathCondition,
        at_head: &PathCondition,
    ) -> PathCondition {
        let induction = self.interner.symbol_id(Symbol::Induction(header as u32));
        let before = self.interner.of(Symbol::Induction(header as u32));
        let before = self.interner.offset(before, -1);
        let zero = self.interner.constant(0);
        let mut out = PathCondition::default();
        for condition in back_edge.iter() {
            let is_induction = |symbol| symbol == Symbol::Induction(header as u32);
            // Other values of the former iteration do not exist any more.
            let gone = |symbol| !is_induction(symbol) && self.born_in(body, symbol);
            if at_head.contains(condition)
                || self.interner.mentions(condition.expression, &gone)
                || !self.interner.mentions(condition.expression, &is_induction)
                || condition.relation != Relation::AtLeast
            {
                continue;
            }
            let to = |with: Option<ExprId>, e, interner: &mut Interner| {
                interner.substitute(e, &mut |s| if s == induction { with } else { None })
            };
            let Some(invariant) = to(before, condition.expression, &mut self.interner) else {
                continue;
            };
            let Some(first) = to(Some(zero), invariant, &mut self.interner) else { continue };
            let reason = start.iter().find(|known| {
                known.relation == Relation::AtLeast
                    && self
                        .interner
                        .add(first, known.expression, -1)
                        .and_then(|slack| self.interner.as_constant(slack))
                        .is_some_and(|slack| slack >= 0)
            });
            let expression = match reason {
                Some(known) => self.interner.with_no_wraps_of(invariant, known.expression),
                None if self.interner.as_constant(first).is_some_and(|v| v >= 0) => Some(invariant),
                None => None,
            };
            out.extend(
                expression.map(|expression| Condition { expression, relation: condition.relation }),
            );
        }
        out
    }

    /// Whether the loop has one exit, taken on a single condition that is followed.
    fn single_test(&self, at: usize, outs: &States) -> bool {
        let Some(from) = self.graph.loops[at].sole_exit else { return false };
        let Some((_, out)) = &outs[from] else { return false };
        let step: &Step<'_> = &self.flat.steps[self.graph.blocks[from].end - 1];
        let Some((register, _)) = step.guard else { return false };
        match out.registers[register as usize] {
            0 => false,
            id => {
                let Predicate { when_true, when_false, .. } = &self.predicates[id as usize - 1];
                // Where several things may end the loop, no one of them says its trip count.
                let one = |known: &Implied| {
                    known.conditions.iter().all(|condition| {
                        let symbol = self.interner.as_symbol(condition.expression);
                        !matches!(symbol, Some(Symbol::Function(Operator::Max, ..)))
                    })
                };
                let complete = when_true.complete && when_false.complete;
                complete && one(when_true) && one(when_false)
            }
        }
    }
}
