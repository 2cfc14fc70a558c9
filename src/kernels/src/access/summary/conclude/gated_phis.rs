//! Accesses whose address has gated φs, split by their inputs.
//!
//! Stage: the summary. Each input gives an access of its own, under the gate of the input; φs of
//! one guard take the same input.
//!
//! Invariant: an input is left out only if its gate contradicts the path condition in every launch.

use super::*;

impl Summary<'_> {
    /// Which address it is matters only where they lead to different memory.
    pub(super) fn one_of_several(&self, cases: &mut [Raw]) {
        let bases = |case: &Raw| {
            let Origins { words, globals, .. } = self.direct(case.address);
            (words, globals)
        };
        let differ = cases.first().is_some_and(|first| {
            let first = bases(first);
            cases.iter().any(|case| bases(case) != first)
        });
        cases.iter_mut().for_each(|case| case.several &= differ);
    }

    /// The accesses that one access splits into, each with an address free of φs; at most `most`.
    pub(super) fn split(&mut self, raw: &Raw, most: usize) -> Option<Vec<Raw>> {
        let mut done = Vec::new();
        let mut work = vec![raw.clone()];
        while let Some(mut case) = work.pop() {
            let interner = &self.interpreter.interner;
            let symbols = interner.get(case.address).terms.iter().flat_map(|t| t.symbols.clone());
            let phi = symbols.into_iter().find_map(|id| {
                let definition = self.interpreter.definitions.get(&id)?;
                let gates = definition.gates.iter().cloned().map(Some).chain(repeat(None));
                let inputs: Vec<_> = definition.sources.iter().copied().zip(gates).collect();
                (definition.kind == Kind::GatedPhi).then_some((id, inputs))
            });
            let Some((id, inputs)) = phi else {
                self.settle(&mut case);
                if !case.path.iter().any(|condition| self.is_contradiction(condition)) {
                    done.push(case);
                }
                continue;
            };
            if done.len() + work.len() + inputs.len() > most {
                return None;
            }
            for (at, (source, gates)) in inputs.into_iter().enumerate() {
                let case = self.take_input(&case, (id, at), source, gates.unwrap_or_default())?;
                if !case.path.iter().any(|condition| self.is_contradiction(condition)) {
                    work.push(case);
                }
            }
        }
        Some(done)
    }

    /// The number that an expression is for certain.
    pub(super) fn number(&self, expression: ExprId) -> Option<i64> {
        let interner = &self.interpreter.interner;
        let met = |no_wrap: &NoWrap| {
            let value = interner.as_constant(no_wrap.expression);
            value.is_some_and(|value| no_wrap.low <= value && value <= no_wrap.high)
        };
        interner
            .get(expression)
            .no_wraps
            .iter()
            .all(met)
            .then(|| interner.as_constant(expression))
            .flatten()
    }

    /// Whether a condition is a contradiction in every launch.
    pub(super) fn is_contradiction(&self, condition: &Condition) -> bool {
        self.number(condition.expression).is_some_and(|value| match condition.relation {
            Relation::AtLeast => value < 0,
            Relation::Equal => value != 0,
            Relation::Differs => value == 0,
        })
    }

    pub(super) fn take_input(
        &mut self,
        case: &Raw,
        (id, at): (SymbolId, usize),
        source: ExprId,
        gates: Implied,
    ) -> Option<Raw> {
        let Interpreter { interner, guarded_phis, definitions, predicates, .. } =
            &mut self.interpreter;
        let lower_phis = std::mem::take(&mut interner.lower_phis);
        let guard = |s: &SymbolId| {
            guarded_phis.get(s).or_else(|| lower_phis.get(s).and_then(|low| guarded_phis.get(low)))
        };
        // Predicates that nothing is known of look the same, but for where they were made.
        let own = guard(&id).filter(|&&(by, ..)| {
            let predicate = &predicates[by as usize - 1];
            (predicate.place.is_some() || predicate.is_told())
                && definitions.get(&id).is_some_and(|d| matches!(d.sources[..], [a, b] if a != b))
        });
        // φs of the same guard take the same input.
        let mut put = |s: SymbolId| {
            if s == id {
                return Some(source);
            }
            let (&(by, negated, _), &(other, not, _)) = (own?, guard(&s)?);
            let input = if negated == not { at } else { 1 - at };
            (by == other).then(|| definitions.get(&s)?.sources.get(input).copied()).flatten()
        };
        let done = self.substituted.entry((id, source)).or_default();
        let address = interner.substitute_in(case.address, &mut put, done);
        let mut path = Vec::new();
        for condition in case.path.iter().chain(&gates.conditions) {
            if let Some(expression) = interner.substitute_in(condition.expression, &mut put, done) {
                path.push(Condition { expression, ..*condition });
            }
        }
        interner.lower_phis = lower_phis;
        path.sort();
        path.dedup();
        let exact = case.exact && gates.complete;
        let several = case.several || !gates.complete;
        Some(Raw { address: address?, path, exact, several, ..case.clone() })
    }

    /// Makes plain conditions of disjunctions where the other conditions leave one side only.
    fn settle(&mut self, case: &mut Raw) {
        for at in 0..case.path.len() {
            let condition = case.path[at];
            let interner = &mut self.interpreter.interner;
            let is_alternative = matches!(
                interner.as_symbol(condition.expression),
                Some(Symbol::Function(Operator::Max, ..))
            );
            if !is_alternative || condition.relation != Relation::AtLeast {
                continue;
            }
            let mut no_wraps = condition.expression;
            let mut sides = Vec::new();
            for side in parts(interner, Operator::Max, condition.expression) {
                let mut left = Vec::new();
                let mut never = false;
                for part in parts(interner, Operator::Min, side) {
                    let one = Condition { expression: part, relation: Relation::AtLeast };
                    let mut others = case.path.iter().filter(|&other| *other != condition);
                    let found = others.find_map(|other| {
                        let implied = other.relation == Relation::AtLeast
                            && interner
                                .constant_sum(part, other.expression, -1)
                                .is_some_and(|s| s >= 0);
                        (implied || one.contradicts(other, interner))
                            .then_some((other.expression, implied))
                    });
                    match found {
                        Some((because, implied)) => {
                            let Some(more) = interner.with_no_wraps_of(no_wraps, because) else {
                                return;
                            };
                            no_wraps = more;
                            never |= !implied;
                        }
                        None => left.push(part),
                    }
                }
                if !never {
                    sides.push(left);
                }
            }
            let left = match &mut sides[..] {
                [] => vec![MINUS_ONE],
                sides if sides.iter().any(Vec::is_empty) => vec![interner.constant(0)],
                [one] => std::mem::take(one),
                _ => continue,
            };
            let left: Option<Vec<ExprId>> =
                left.into_iter().map(|part| interner.with_no_wraps_of(part, no_wraps)).collect();
            let mut left = left.into_iter().flatten();
            let Some(first) = left.next() else { continue };
            case.path[at].expression = first;
            let relation = Relation::AtLeast;
            case.path.extend(left.map(|expression| Condition { expression, relation }));
        }
        case.path.sort();
        case.path.dedup();
    }
}

/// The arguments of nested functions of one kind.
fn parts(interner: &Interner, function: Operator, of: ExprId) -> Vec<ExprId> {
    match interner.as_symbol(of) {
        Some(Symbol::Function(same, a, b)) if same == function => {
            [parts(interner, function, a), parts(interner, function, b)].concat()
        }
        _ => vec![of],
    }
}
