//! The transfer functions of operations on bits by a table, and on predicates.
//!
//! Stage: lowering. Bit `4 * a + 2 * b + c` of a table is the result for the bits `a`, `b` and `c`.
//!
//! Invariant: a table that is no mask, sum or copy of its inputs gives an opaque value.

use super::interpret::SassSite;
use crate::access::domain::condition::{Condition, Implied, Predicate, Relation};
use crate::access::domain::expression::ExprId;
use crate::access::fixpoint::interpret::{Interpreter, State};

/// Tables of the three inputs alone.
const INPUTS: [u8; 3] = [0xf0, 0xcc, 0xaa];

/// The cofactor of a table: one input has this value.
fn cofactor(table: u8, input: usize, value: bool) -> u8 {
    let shift = 4 >> input;
    let mask = INPUTS[input];
    if value {
        let kept = table & mask;
        kept | kept >> shift
    } else {
        let kept = table & !mask;
        kept | kept << shift
    }
}

fn depends(table: u8, input: usize) -> bool {
    cofactor(table, input, true) != cofactor(table, input, false)
}

impl Interpreter<'_> {
    /// The result of a table on three values; its predicate says whether it is not zero.
    pub(super) fn machine_logic(
        &mut self,
        here: SassSite<'_>,
        table: u8,
        state: &mut State,
    ) -> Option<ExprId> {
        let values = [0, 1, 2].map(|at| self.source(here, at, state));
        let masked = self.mask_of(table, values, |value, _| self.has_predicates(value));
        let result = match masked {
            Some((value, mask)) => self.masked_predicates(here, value, mask),
            None => self.by_table(table, values).or_else(|| self.cleared_bit(here, table, values)),
        };
        let predicate = match result {
            Some(result) => {
                self.spilled_predicate(result).unwrap_or_else(|| self.is_not_zero(result))
            }
            None => Predicate::default(),
        };
        let other = self.predicate_source(here, 3, state);
        let predicate = match other.constant() {
            Some(false) => predicate,
            _ => predicate.or(other, &mut self.interner),
        };
        self.put_predicate(here, 1, predicate, state);
        result
    }

    /// A value and the mask that is laid over it.
    fn mask_of(
        &self,
        table: u8,
        values: [ExprId; 3],
        wanted: impl Fn(ExprId, i64) -> bool,
    ) -> Option<(ExprId, i64)> {
        for (a, b) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
            let Some(mask) = self.interner.as_constant(values[b]) else { continue };
            let other = 3 - a - b;
            let rest = match self.interner.as_constant(values[other]) {
                Some(0) => cofactor(table, other, false),
                Some(-1) => cofactor(table, other, true),
                _ => table,
            };
            if rest == INPUTS[a] & INPUTS[b] && wanted(values[a], mask) {
                return Some((values[a], mask));
            }
        }
        None
    }

    /// A value in which one bit is cleared, where a predicate will be inserted.
    fn cleared_bit(
        &mut self,
        here: SassSite<'_>,
        table: u8,
        values: [ExprId; 3],
    ) -> Option<ExprId> {
        let one = |_, mask: i64| (!(mask as u32)).is_power_of_two();
        let (value, mask) = self.mask_of(table, values, one)?;
        Some(self.clear_bits(here, value, !(mask as u32)))
    }

    /// `@P0 LOP3 R1, R1, 0x80, RZ, 0xfc`: the bit that was 0 becomes the guard. Whether it is one.
    pub(super) fn spill_guard(&mut self, here: SassSite<'_>, table: u8, state: &mut State) -> bool {
        if here.place.guard.is_none() {
            return false;
        }
        let values = [0, 1, 2].map(|at| self.source(here, at, state));
        let set = [(0, 1), (1, 0)].into_iter().find_map(|(a, b)| {
            let bits = self.interner.as_constant(values[b])? as u32;
            let plain = self.interner.as_constant(values[2]) == Some(0);
            let or = plain && cofactor(table, 2, false) == INPUTS[a] | INPUTS[b];
            (or && bits.is_power_of_two()).then_some((values[a], bits.trailing_zeros() as u8))
        });
        let Some((value, bit)) = set else { return false };
        self.spill_guard_in(here, (value, bit), state)
    }

    fn is_not_zero(&mut self, value: ExprId) -> Predicate {
        let Some(expression) =
            self.interner.with_no_wrap(value, i64::from(i32::MIN), i64::from(u32::MAX))
        else {
            return Predicate::default();
        };
        let one = |relation| Implied {
            conditions: vec![Condition { expression, relation }].into(),
            complete: true,
        };
        Predicate {
            when_true: one(Relation::Differs),
            when_false: one(Relation::Equal),
            low: None,
            place: None,
        }
    }

    fn by_table(&mut self, mut table: u8, values: [ExprId; 3]) -> Option<ExprId> {
        for (input, &value) in values.iter().enumerate() {
            match self.interner.as_constant(value) {
                Some(0) => table = cofactor(table, input, false),
                Some(-1) => table = cofactor(table, input, true),
                _ => {}
            }
        }
        // The same value twice is one input.
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            if values[a] == values[b] {
                let both = (cofactor(cofactor(table, a, true), b, true) & INPUTS[a])
                    | (cofactor(cofactor(table, a, false), b, false) & !INPUTS[a]);
                table = both;
            }
        }
        let used: Vec<usize> = (0..3).filter(|&input| depends(table, input)).collect();
        match used[..] {
            [] => Some(self.interner.constant(if table & 1 == 1 { -1 } else { 0 })),
            [input] if table == INPUTS[input] => Some(values[input]),
            [input] => self.inverted(values[input]),
            [a, b] => self.two(table, INPUTS[a], INPUTS[b], values[a], values[b]),
            _ => self.three(table, values),
        }
    }

    fn inverted(&mut self, value: ExprId) -> Option<ExprId> {
        let ones = self.interner.constant(-1);
        self.interner.add(ones, value, -1)
    }

    fn two(&mut self, table: u8, x: u8, y: u8, a: ExprId, b: ExprId) -> Option<ExprId> {
        match table {
            t if t == x & y => self.and(a, b),
            t if t == x & !y => {
                let b = self.inverted(b)?;
                self.and(a, b)
            }
            t if t == !x & y => {
                let a = self.inverted(a)?;
                self.and(a, b)
            }
            t if t == x | y => self.or(a, b).or_else(|| self.or(b, a)),
            // Where no bit is in both it is the same.
            t if t == x ^ y => self.or(a, b).or_else(|| self.or(b, a)),
            _ => None,
        }
    }

    fn three(&mut self, table: u8, values: [ExprId; 3]) -> Option<ExprId> {
        for [i, j, k] in [[0, 1, 2], [0, 2, 1], [1, 2, 0]] {
            let (x, y, z) = (INPUTS[i], INPUTS[j], INPUTS[k]);
            let (a, b, c) = (values[i], values[j], values[k]);
            for inner in [x & y, x & !y, !x & y, x | y, x ^ y] {
                let joined = match table {
                    t if t == inner | z || t == inner ^ z => Some(true),
                    t if t == inner & z => Some(false),
                    _ => None,
                };
                let Some(joined) = joined else { continue };
                let Some(first) = self.two(inner, x, y, a, b) else { continue };
                let found = match joined {
                    true => self.or(first, c).or_else(|| self.or(c, first)),
                    false => self.and(first, c),
                };
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// The predicate that a table makes of three.
    pub(super) fn predicate_table(
        &mut self,
        here: SassSite<'_>,
        table: u8,
        state: &State,
    ) -> Predicate {
        let values = [0, 1, 2].map(|at| self.predicate_source(here, at, state));
        let mut table = table;
        for (input, value) in values.iter().enumerate() {
            if let Some(value) = value.constant() {
                table = cofactor(table, input, value);
            }
        }
        if let Some(copied) = INPUTS.iter().position(|&input| input == table) {
            return values[copied].clone();
        }
        let used: Vec<usize> = (0..3).filter(|&input| depends(table, input)).collect();
        let signed = |input: usize, positive: bool| {
            let value = values[input].clone();
            if positive { value } else { value.not() }
        };
        // One product of inputs, or the opposite of one.
        for (opposite, table) in [(false, table), (true, !table)] {
            let signs = 0..1u8 << used.len();
            for signs in signs {
                let inputs = used.iter().enumerate();
                let inputs = inputs.map(|(at, &input)| (input, signs >> at & 1 == 1));
                let product = inputs.clone().fold(0xffu8, |product, (input, positive)| {
                    product & if positive { INPUTS[input] } else { !INPUTS[input] }
                });
                if product == table {
                    let value = inputs.fold(Predicate::always(true), |all, (input, positive)| {
                        all.and(&signed(input, positive), &mut self.interner)
                    });
                    return if opposite { value.not() } else { value };
                }
            }
        }
        if table == 0 { Predicate::always(false) } else { Predicate::default() }
    }
}
