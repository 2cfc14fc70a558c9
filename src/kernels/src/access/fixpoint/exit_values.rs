//! Loop exit values: behind a loop, the number of its last iteration replaces its induction
//! variable.
//!
//! Stage: the fixpoint, on the edges that leave a loop. A loop with one exit, tested once an
//! iteration, ends in the first iteration in which the test succeeds. Where the test is affine in
//! the induction variable, the number of that iteration is a quotient of invariant values (the trip
//! count). The no-wrap conditions of the test have to hold in every iteration; as the test is
//! affine, the first and the last iteration suffice. Source: the closed form of chains of
//! recurrences of the first degree (Bachmann, Wang and Zima, ISSAC 1994).
//!
//! Invariant: no symbol of the loop outlives the loop. An unknown exit value is a symbol of its own
//! ([`Symbol::ExitValue`]): one of the values of the loop.

use rustc_hash::FxHashMap as HashMap;
use smallvec::{SmallVec, smallvec};

use crate::access::domain::condition::{Condition, Implied, Relation};
use crate::access::domain::expression::{
    ExprId, Interner, NoWrap, Operator, Polynomial, Provenance, Symbol, SymbolId, Term,
};
use crate::access::fixpoint::interpret::{Interpreter, Kind, State};
use crate::access::lower::steps::Flow;

/// An expression as `rest + slope * induction`, the induction variable of a loop.
struct Line {
    rest: ExprId,
    slope: ExprId,
}

impl Interner {
    /// Takes an expression apart, its no-wrap conditions left aside; `None` where it is not linear.
    fn line(&mut self, of: ExprId, induction: SymbolId) -> Option<Line> {
        let (mut rest, mut slope) = (Vec::new(), Vec::new());
        for term in self.get(of).terms.clone() {
            let Some(at) = term.symbols.iter().position(|&id| id == induction) else {
                rest.push(term);
                continue;
            };
            let mut symbols = term.symbols;
            symbols.remove(at);
            slope.push(Term { symbols, coefficient: term.coefficient });
        }
        let line =
            Line { rest: self.normal(rest, Vec::new())?, slope: self.normal(slope, Vec::new())? };
        let wanted = self.symbol(induction);
        let occurs = |e| self.mentions(e, &|symbol| symbol == wanted);
        (!occurs(line.rest) && !occurs(line.slope)).then_some(line)
    }

    /// The quotient, rounded down; what the divisor divides without a rest is taken out.
    fn quotient(&mut self, of: ExprId, by: ExprId) -> Option<ExprId> {
        let Some(divisor) = self.as_constant(by) else {
            return match self.as_constant(of) {
                Some(0) => Some(of),
                _ => self.limited(Operator::Quotient, of, by),
            };
        };
        let Polynomial { terms, no_wraps } = self.get(of).clone();
        let (even, rest): (Vec<Term>, Vec<Term>) =
            terms.into_iter().partition(|term| term.coefficient % divisor == 0);
        let even = even
            .into_iter()
            .map(|term| Term { coefficient: term.coefficient / divisor, ..term })
            .collect();
        let (even, rest) = (self.normal(even, no_wraps)?, self.normal(rest, Vec::new())?);
        let rest = match self.as_constant(rest) {
            Some(rest) => self.constant(rest.div_euclid(divisor)),
            None => self.limited(Operator::Quotient, rest, by)?,
        };
        self.add(even, rest, 1)
    }
}

impl Interpreter<'_> {
    /// Substitutes the last iteration for the induction variables of the loops that an edge leaves.
    /// Where the last iteration is not known, and for φs, an exit value replaces each symbol that
    /// varies in the loop.
    pub(in crate::access) fn substitute_exit_values(
        &mut self,
        from: usize,
        to: usize,
        state: &mut State,
        outs: &[Option<(State, State)>],
    ) {
        // The last iteration of an inner loop may depend on the iteration of an outer one.
        for at in (0..self.graph.loops.len()).rev() {
            let l = &self.graph.loops[at];
            if !l.body[from] || l.body[to] {
                continue;
            }
            let sole = l.sole_exit == Some(from);
            let induction = self.interner.symbol_id(Symbol::Induction(l.header as u32));
            let last = match sole {
                true => self.last_iteration(at, to, induction, outs),
                false => None,
            };
            let unknown = self.interner.of(Symbol::ExitValue(induction));
            let last = last.unwrap_or(unknown);
            let mut done = HashMap::default();
            let body = self.graph.loops[at].body.clone();
            for register in 0..state.registers.len() {
                let Some(id) = state.registers[register].checked_sub(1) else { continue };
                if !self.live[to].has(register as u32) {
                    continue;
                }
                let new = match self.flat.registers[register] {
                    true => self.exit_predicate(id, (induction, last), &body, &mut done),
                    false => self
                        .exit_value(ExprId(id), (induction, last), &body, &mut done)
                        .or_else(|| {
                            // Too large: the expression may fit without the conditions on the
                            // iteration.
                            let mut done = HashMap::default();
                            self.exit_value(ExprId(id), (induction, unknown), &body, &mut done)
                        })
                        .map(|value| value.0),
                };
                state.registers[register] = new.map_or(0, |new| new + 1);
            }
        }
    }

    /// The exit value of a value of a loop.
    fn exit_value(
        &mut self,
        value: ExprId,
        (induction, last): (SymbolId, ExprId),
        body: &[bool],
        done: &mut HashMap<ExprId, Option<ExprId>>,
    ) -> Option<ExprId> {
        // A no-wrap condition that holds in every iteration holds in the last one.
        if self.interner.provenance(value) & Provenance::LOCAL == 0 {
            return Some(value);
        }
        let found = self.varying(value, induction, body);
        if found.is_empty() {
            return Some(value);
        }
        let mut phis = HashMap::default();
        for symbol in found.into_iter().filter(|&symbol| symbol != induction) {
            let source = self.interner.of(self.interner.symbol(symbol));
            let exit_value =
                self.define(Symbol::ExitValue(symbol), Kind::GatedPhi, smallvec![source], None);
            phis.insert(symbol, exit_value);
        }
        let mut put = |symbol| match symbol == induction {
            true => Some(last),
            false => phis.get(&symbol).copied(),
        };
        let new = match phis.is_empty() {
            true => self.interner.substitute_in(value, &mut put, done),
            false => self.interner.substitute(value, &mut put),
        };
        match new {
            Some(new) if new != value && !self.flat.pairs.is_empty() => {
                Some(self.interner.low(new))
            }
            new => new,
        }
    }

    /// The induction variable and the φs of a loop that a value is made of.
    fn varying(
        &self,
        value: ExprId,
        induction: SymbolId,
        body: &[bool],
    ) -> SmallVec<[SymbolId; 4]> {
        let mut found = SmallVec::new();
        let mut functions: SmallVec<[SymbolId; 8]> = SmallVec::new();
        let mut work: SmallVec<[ExprId; 8]> = smallvec![value];
        while let Some(value) = work.pop() {
            for &id in self.interner.get(value).terms.iter().flat_map(|term| &term.symbols) {
                let symbol = self.interner.symbol(id);
                if let Symbol::Function(_, a, b) = symbol {
                    if self.interner.local(id) && !functions.contains(&id) {
                        functions.push(id);
                        work.extend([a, b]);
                    }
                    continue;
                }
                let is_gated_phi = || {
                    self.definitions.look(id).is_some_and(|d| d.kind == Kind::GatedPhi)
                        && self.born_in(body, symbol)
                };
                if !found.contains(&id)
                    && (id == induction || self.interner.local(id) && is_gated_phi())
                {
                    found.push(id);
                }
            }
        }
        found
    }

    /// The exit value of a predicate of a loop, by the numbers of both.
    fn exit_predicate(
        &mut self,
        id: u32,
        last: (SymbolId, ExprId),
        body: &[bool],
        done: &mut HashMap<ExprId, Option<ExprId>>,
    ) -> Option<u32> {
        let mut predicate = self.predicates[id as usize].clone();
        let mut same = true;
        for known in [&mut predicate.when_true, &mut predicate.when_false] {
            for condition in &mut known.conditions {
                let new = self.exit_value(condition.expression, last, body, done)?;
                same &= new == condition.expression;
                condition.expression = new;
            }
        }
        if same {
            return Some(id);
        }
        predicate.low = None;
        Some(self.predicate_id(predicate))
    }

    /// The number of the iteration in which a loop is left, the first one being 0.
    fn last_iteration(
        &mut self,
        at: usize,
        to: usize,
        induction: SymbolId,
        outs: &[Option<(State, State)>],
    ) -> Option<ExprId> {
        let (header, from) = (self.graph.loops[at].header, self.graph.loops[at].sole_exit?);
        let (leaving, staying) = self.exit_and_back_edge(from, to, outs)?;
        let test = match (&leaving.conditions[..], &staying.conditions[..]) {
            ([one], _) if leaving.complete => *one,
            (_, [one]) if staying.complete => {
                let relation = match one.relation {
                    Relation::AtLeast => Relation::AtLeast,
                    Relation::Differs => Relation::Equal,
                    Relation::Equal => return None,
                };
                let expression = match relation {
                    // Not `e >= 0` is `-e - 1 >= 0`.
                    Relation::AtLeast => {
                        let minus = self.interner.constant(-1);
                        self.interner.add(minus, one.expression, -1)?
                    }
                    _ => one.expression,
                };
                Condition { expression, relation }
            }
            _ => return None,
        };
        let Line { mut rest, mut slope } = self.interner.line(test.expression, induction)?;
        let body = std::mem::take(&mut self.graph.loops[at].body);
        let changes = self.changes_in(&body, rest) || self.changes_in(&body, slope);
        self.graph.loops[at].body = body;
        let zero = self.interner.constant(0);
        if changes || slope == zero {
            return None;
        }
        let last = match test.relation {
            Relation::AtLeast => {
                // The first iteration with `slope * iteration >= -rest`.
                slope = self.interner.with_no_wrap(slope, 1, i64::MAX)?;
                let over = self.interner.add(slope, rest, -1)?;
                let over = self.interner.offset(over, -1)?;
                let over = match self.known_positive(header, over, outs) {
                    Some(over) => over,
                    None => self.interner.limited(Operator::Max, over.min(zero), over.max(zero))?,
                };
                self.interner.quotient(over, slope)?
            }
            Relation::Equal => {
                if self.interner.as_constant(slope).is_some_and(|slope| slope < 0) {
                    slope = self.interner.add(zero, slope, -1)?;
                } else {
                    rest = self.interner.add(zero, rest, -1)?;
                }
                slope = self.interner.with_no_wrap(slope, 1, i64::MAX)?;
                let divides = self.interner.as_constant(slope).is_some_and(|slope| {
                    self.interner.get(rest).terms.iter().all(|term| term.coefficient % slope == 0)
                });
                let mut last = self.interner.quotient(rest, slope)?;
                if !divides {
                    let left = self.interner.limited(Operator::Remainder, rest, slope)?;
                    let left = self.interner.with_no_wrap(left, 0, 0)?;
                    last = self.interner.with_no_wraps_of(last, left)?;
                }
                self.interner.with_no_wrap(last, 0, i64::MAX)?
            }
            Relation::Differs => return None,
        };
        self.in_every_iteration(last, test.expression, induction)
    }

    /// The conditions on the exit edge of a loop's last block to `to`, and on the other edge.
    fn exit_and_back_edge(
        &self,
        from: usize,
        to: usize,
        outs: &[Option<(State, State)>],
    ) -> Option<(Implied, Implied)> {
        let block = &self.graph.blocks[from];
        let step = &self.flat.steps[block.end.checked_sub(1)?];
        let (register, negated) = step.guard?;
        let ([first, second], Flow::To(_) | Flow::Out) = (&block.successors[..], &step.flow) else {
            return None;
        };
        if first == second {
            return None;
        }
        let (_, out) = outs[from].as_ref()?;
        let value = negated != (*second != to);
        Some((self.implied(out, register, value), self.implied(out, register, !value)))
    }

    /// The expression, where the path condition in front of a loop says that it is not negative.
    fn known_positive(
        &mut self,
        header: usize,
        expression: ExprId,
        outs: &[Option<(State, State)>],
    ) -> Option<ExprId> {
        let path = &outs[header].as_ref()?.0.path;
        let condition = path.iter().find(|condition| {
            let slack = self.interner.add(expression, condition.expression, -1);
            let slack = slack.and_then(|slack| self.interner.as_constant(slack));
            condition.relation == Relation::AtLeast && slack.is_some_and(|slack| slack >= 0)
        });
        let known = condition?.expression;
        self.interner.with_no_wraps_of(expression, known)
    }

    /// `last`, with the no-wrap conditions of `test` in the first and in the last iteration.
    fn in_every_iteration(
        &mut self,
        last: ExprId,
        test: ExprId,
        induction: SymbolId,
    ) -> Option<ExprId> {
        let (zero, bare) = (self.interner.constant(0), self.interner.bare(last));
        let mut out = last;
        for NoWrap { expression, low, high } in self.interner.get(test).no_wraps.clone() {
            let Line { rest, slope } = self.interner.line(expression, induction)?;
            let ends = if slope == zero { vec![zero] } else { vec![zero, bare] };
            for iteration in ends {
                let more = self.interner.multiply(slope, iteration)?;
                let value = self.interner.add(rest, more, 1)?;
                let value = self.interner.with_no_wrap(value, low, high)?;
                out = self.interner.with_no_wraps_of(out, value)?;
            }
        }
        Some(out)
    }
}
