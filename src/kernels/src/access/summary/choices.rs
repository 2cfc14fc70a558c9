//! Accesses whose address is one of several: each by itself.

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

    /// The accesses that one is, each with an address free of choices; at most so many.
    pub(super) fn choices(&mut self, raw: &Raw, most: usize) -> Option<Vec<Raw>> {
        let mut done = Vec::new();
        let mut work = vec![raw.clone()];
        while let Some(case) = work.pop() {
            let pool = &self.interpreter.pool;
            let symbols = pool.get(case.address).terms.iter().flat_map(|t| t.symbols.clone());
            let choice = symbols.into_iter().find_map(|id| {
                let definition = self.interpreter.definitions.get(&id)?;
                let given = definition.given.iter().cloned().map(Some).chain(repeat(None));
                let ways: Vec<_> = definition.sources.iter().copied().zip(given).collect();
                (definition.kind == Kind::Choice).then_some((id, ways))
            });
            let Some((id, ways)) = choice else {
                done.push(case);
                continue;
            };
            if done.len() + work.len() + ways.len() > most {
                return None;
            }
            for (source, given) in ways {
                let case = self.choose(&case, id, source, given.unwrap_or_default())?;
                if !case.facts.iter().any(|fact| self.never(fact)) {
                    work.push(case);
                }
            }
        }
        Some(done)
    }

    /// The number that an expression is for certain.
    pub(super) fn number(&self, expression: ExprId) -> Option<i64> {
        let pool = &self.interpreter.pool;
        let met = |need: &Need| {
            let value = pool.as_constant(need.expression);
            value.is_some_and(|value| need.low <= value && value <= need.high)
        };
        pool.get(expression).needs.iter().all(met).then(|| pool.as_constant(expression)).flatten()
    }

    /// Whether a condition holds in no launch.
    pub(super) fn never(&self, fact: &Condition) -> bool {
        self.number(fact.expression).is_some_and(|value| match fact.relation {
            Relation::AtLeast => value < 0,
            Relation::Equal => value != 0,
            Relation::Differs => value == 0,
        })
    }

    pub(super) fn choose(
        &mut self,
        case: &Raw,
        id: SymbolId,
        source: ExprId,
        given: Known,
    ) -> Option<Raw> {
        let pool = &mut self.interpreter.pool;
        let mut put = |s: SymbolId| (s == id).then_some(source);
        let done = self.chosen.entry((id, source)).or_default();
        let address = pool.substitute_in(case.address, &mut put, done)?;
        let mut facts = Vec::new();
        for fact in case.facts.iter().chain(&given.conditions) {
            if let Some(expression) = pool.substitute_in(fact.expression, &mut put, done) {
                facts.push(Condition { expression, ..*fact });
            }
        }
        facts.sort();
        facts.dedup();
        let exact = case.exact && given.complete;
        let several = case.several || !given.complete;
        Some(Raw { address, facts, exact, several, ..case.clone() })
    }
}
