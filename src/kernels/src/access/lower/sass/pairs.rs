//! Values of 64 bits at joins and loop heads: the φs of two halves are one φ, and two recurrences
//! are one.
//!
//! Stage: between lowering and the fixpoint, which calls this for pairs of registers first.
//!
//! Invariant: two registers that prove not to be a pair are never paired again.

use smallvec::{SmallVec, smallvec};

use super::halves::WHOLE;
use crate::access::domain::expression::{ExprId, Symbol, SymbolId};
use crate::access::domain::path_condition::PathCondition;
use crate::access::fixpoint::interpret::{Interpreter, Kind, Recurrence, State};
use crate::access::lower::control_flow::Loop;

/// Where the numbers begin that symbols of joined words have, by that of the lower half.
const JOINED: u16 = 500;

fn value(state: &State, register: u32) -> Option<ExprId> {
    state.registers[register as usize].checked_sub(1).map(ExprId)
}

impl Interpreter<'_> {
    /// The 64-bit value of two halves, also where both are φs with the same gates.
    pub(super) fn join(&mut self, low: ExprId, high: ExprId) -> Option<ExprId> {
        if let Some(whole) = self.interner.join(low, high) {
            return Some(whole);
        }
        let (low, high) = (self.interner.lone_symbol(low)?, self.interner.lone_symbol(high)?);
        if let (Symbol::ExitValue(low), Symbol::ExitValue(high)) =
            (self.interner.symbol(low), self.interner.symbol(high))
        {
            // Both halves are exit values of φs.
            let [low, high] = [low, high].map(|id| self.interner.of(self.interner.symbol(id)));
            let whole = self.join(low, high)?;
            let symbol = Symbol::ExitValue(self.interner.lone_symbol(whole)?);
            return Some(self.define(symbol, Kind::GatedPhi, smallvec![whole], None));
        }
        if let Some(whole) = self.join_loaded(low, high) {
            return Some(whole);
        }
        let (a, b) = (self.definitions.look(low)?, self.definitions.look(high)?);
        let guards = (self.guarded_phis.get(&low), self.guarded_phis.get(&high));
        let same_guard =
            matches!(guards, (Some(a), Some(b)) if (a.0, a.1) == (b.0, b.1)) && a.gates == b.gates;
        let same = a.kind == Kind::GatedPhi
            && b.kind == Kind::GatedPhi
            && a.gates.len() == 2
            && a.gates == b.gates
            && (same_guard || a.gates.iter().any(|known| known.complete))
            && a.sources.len() == 2
            && b.sources.len() == 2;
        if !same {
            return None;
        }
        let Symbol::Site(step, _) = self.interner.symbol(high) else { return None };
        let gates = a.gates.clone();
        let (lows, highs) = (a.sources.clone(), b.sources.clone());
        let first = self.interner.join(lows[0], highs[0])?;
        let second = self.interner.join(lows[1], highs[1])?;
        let inputs = [first, second].into_iter().zip(gates);
        // One value for each pair of halves.
        let mut slot = WHOLE;
        while slot < WHOLE + 80 {
            let symbol = Symbol::Site(step, slot);
            let id = self.interner.symbol_id(symbol);
            let other = self.definitions.look(id).is_some_and(|d| d.sources[..] != [first, second]);
            if !other && *self.interner.lower_phis.entry(id).or_insert(low) == low {
                return Some(self.define_gated_phi(symbol, inputs));
            }
            slot += 1;
        }
        None
    }

    /// The 64-bit word of a variable in constant memory, both of whose halves an instruction names.
    fn join_loaded(&mut self, low: SymbolId, high: SymbolId) -> Option<ExprId> {
        let Symbol::Site(step, operand @ 100..200) = self.interner.symbol(low) else { return None };
        let half = |id: SymbolId| {
            let definition = self.definitions.look(id)?;
            let at = *definition.sources.first()?;
            (definition.kind == Kind::Loaded(4)).then_some(at)
        };
        let (first, second) = (half(low)?, half(high)?);
        let offset = self.interner.get(first).terms.iter().find(|term| term.symbols.is_empty());
        let aligned = offset.is_none_or(|term| term.coefficient % 8 == 0);
        if !aligned || self.interner.constant_sum(second, first, -1) != Some(4) {
            return None;
        }
        let symbol = Symbol::Site(step, JOINED + operand);
        Some(self.define(symbol, Kind::Loaded(8), smallvec![first], None))
    }

    /// The sum of 64-bit values whose halves were added, also where halves are φs.
    pub(super) fn wide_sum(
        &mut self,
        lows: &[(ExprId, bool)],
        highs: &[(ExprId, bool)],
    ) -> Option<ExprId> {
        if let Some(sum) = self.interner.wide_sum(lows, highs) {
            return Some(sum);
        }
        let mut joined = highs.to_vec();
        for (high, _) in &mut joined {
            if !matches!(self.interner.as_symbol(*high), Some(Symbol::Site(..))) {
                continue;
            }
            if let Some(whole) = lows.iter().find_map(|&(low, _)| self.join(low, *high)) {
                *high = self.interner.upper(whole);
            }
        }
        (joined != highs).then(|| self.interner.wide_sum(lows, &joined)).flatten()
    }

    /// The 64-bit value that a state has in two registers.
    fn joined_in(&mut self, state: &State, low: u32, high: u32) -> Option<ExprId> {
        let (low, high) = (value(state, low)?, value(state, high)?);
        self.join(low, high)
    }

    /// Whether a register may be an upper half: constants are many things.
    fn varies_in(&self, state: &State, high: u32) -> bool {
        value(state, high).is_some_and(|high| self.interner.as_constant(high).is_none())
    }

    /// Joins halves that come together on every edge into a block.
    pub(in crate::access) fn phis_of_pairs(
        &mut self,
        block: usize,
        state: &mut State,
        others: &[State],
        (last, exact): (&PathCondition, bool),
    ) {
        for pair in 0..self.flat.pairs.len() {
            let (low, high) = self.flat.pairs[pair];
            let live = &self.live[block];
            if !(live.has(low) && live.has(high)) {
                continue;
            }
            let place = high as usize;
            let own = state.registers[place];
            if others.iter().all(|other| other.registers[place] == own) {
                continue;
            }
            let known = self.varies_in(state, high)
                || others.iter().any(|other| self.varies_in(other, high));
            if !known {
                continue;
            }
            let mut values: SmallVec<[_; 4]> = SmallVec::new();
            for other in others {
                let Some(value) = self.joined_in(other, low, high) else { break };
                values.push((value, &other.path, other.exact));
            }
            let Some(own) = self.joined_in(state, low, high) else { continue };
            if values.len() < others.len() {
                continue;
            }
            values.push((own, last, exact));
            let symbol = self.phi_symbol(block, high);
            let phi = self.gated_phi_of(symbol, values);
            state.registers[low as usize] = self.interner.low(phi).0 + 1;
            state.registers[place] = self.interner.upper(phi).0 + 1;
        }
    }

    /// The values of 64 bits at the head of a loop. Returns the registers that are done with.
    pub(in crate::access) fn head_pairs(&mut self, at: usize, state: &mut State) -> Vec<u32> {
        let Loop { header, natural, .. } = self.graph.loops[at];
        let mut done = Vec::new();
        if !natural || self.given_up {
            return done;
        }
        for pair in 0..self.flat.pairs.len() {
            let (low, high) = self.flat.pairs[pair];
            let live = &self.live[header];
            let assigned = |register: &u32| self.assigned[at].binary_search(register).is_ok();
            if !(live.has(low) && live.has(high) && assigned(&low) && assigned(&high))
                || done.contains(&low)
                || done.contains(&high)
            {
                continue;
            }
            let key = (header, high);
            match self.halves.get(&key) {
                Some(None) => continue,
                // The half of another value.
                Some(&Some(other)) if other != low => continue,
                _ => {}
            }
            let Some(start) = self.joined_in(state, low, high) else {
                if self.halves.contains_key(&key) {
                    self.part_halves(header, low, high);
                }
                continue;
            };
            self.halves.insert(key, Some(low));
            let recurrence = *self.recurrences.entry(key).or_insert(Recurrence::Free);
            let induction = self.interner.of(Symbol::Induction(header as u32));
            let sum = match recurrence {
                Recurrence::AddRec(step) => self
                    .interner
                    .multiply(step, induction)
                    .and_then(|sum| self.interner.add(start, sum, 1)),
                _ => None,
            };
            let whole = sum.unwrap_or_else(|| {
                if recurrence != Recurrence::Free {
                    self.recurrences.insert(key, Recurrence::Any);
                }
                let symbol = Symbol::Phi(header as u32, high);
                self.define(symbol, Kind::LoopPhi, smallvec![start], None)
            });
            state.registers[low as usize] = self.interner.low(whole).0 + 1;
            state.registers[high as usize] = self.interner.upper(whole).0 + 1;
            done.extend([low, high]);
        }
        done
    }

    /// Two registers are no halves of one value after all.
    fn part_halves(&mut self, header: usize, low: u32, high: u32) {
        self.halves.insert((header, high), None);
        self.recurrences.remove(&(header, high));
        self.recurrences.remove(&(header, low));
    }

    /// The values of 64 bits that two registers have at the head of a loop and at its back edges.
    ///
    /// # Errors
    /// When the registers are no halves of one value; `true` where that is new.
    pub(in crate::access) fn half_values(
        &mut self,
        header: usize,
        high: u32,
        entry: &State,
        backs: &[State],
    ) -> Result<(ExprId, Vec<ExprId>), bool> {
        let Some(&Some(low)) = self.halves.get(&(header, high)) else { return Err(false) };
        let head = self.joined_in(entry, low, high);
        let mut values = Vec::new();
        for back in backs {
            match self.joined_in(back, low, high) {
                Some(value) => values.push(value),
                None => break,
            }
        }
        match head {
            Some(head) if values.len() == backs.len() => Ok((head, values)),
            _ => {
                self.part_halves(header, low, high);
                Err(true)
            }
        }
    }

    /// Whether a register is the lower half of one of a loop's values.
    pub(in crate::access) fn is_lower_half(&self, header: usize, register: u32) -> bool {
        let uppers = self.flat.pairs.iter().filter(|pair| pair.0 == register);
        uppers.into_iter().any(|pair| self.halves.get(&(header, pair.1)) == Some(&Some(register)))
    }
}
