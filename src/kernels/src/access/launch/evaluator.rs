//! Evaluation: from the expressions of a summary to affine expressions at one launch.
//!
//! Stage: the launch. Parameters and sizes are numbers, thread and block indices are variables. A
//! value that is not affine (a product of variables, a division with a remainder, a φ with several
//! possible gates) becomes a new variable between the bounds of its values.
//!
//! Invariant: for every thread that makes an access, the variables have values for which the affine
//! expression is the value of the expression, provided that its no-wrap conditions hold. A variable
//! is `full` only if it takes each value between its bounds whatever the others are.

use crate::access::domain::condition::{Condition, Relation};
use crate::access::domain::expression::{ExprId, Index, Operator, Symbol, SymbolId};
use crate::access::launch::affine::{
    Affine, AffineBuilder, AffineId, Affines, FAR, LaunchVariable, kept_by, scaled, times,
};
use crate::access::launch::instantiate::Launch;
use crate::access::launch::plan::{Formula, Plan, Product, Role};
use crate::access::launch::translation_bounds::{TranslatedPointer, TranslatedPointers, pointers};
use crate::access::summary::result::KernelAccess;

mod no_wrap;
mod trip_count;

pub(in crate::access) use no_wrap::{ClassBounds, ImpliedBounds};

/// The result of evaluating an expression or symbol: 0 for none, else the number of a sum plus one.
type Memo = u32;

/// Scratch memory for the values of one launch, for the next one to use again.
#[derive(Debug, Default)]
pub(in crate::access) struct EvaluatorScratch {
    affines: Affines,
    /// By symbol and by expression.
    values: Vec<Memo>,
    made: Vec<Memo>,
    /// By class of expressions, and the constant of that expression.
    alike: Vec<(Memo, i64)>,
    /// Expressions whose no-wrap conditions hold, whatever other conditions do.
    proven_expressions: Vec<bool>,
    /// No-wrap conditions that hold, whatever other conditions do.
    proven: Vec<bool>,
    busy: Vec<SymbolId>,
    /// The parts of the sum that is being made: a coefficient, and an affine expression or the
    /// constant 1.
    parts: Vec<(Option<AffineId>, i128)>,
}

/// The symbols of a kernel at one launch, evaluated when they are needed.
#[derive(Debug)]
pub(in crate::access) struct Evaluator<'a> {
    kernel: &'a KernelAccess,
    plan: &'a Plan,
    launch: &'a Launch<'a>,
    /// The translatable ones.
    pub(in crate::access) pointers: TranslatedPointers,
    pub(in crate::access) affines: &'a mut Affines,
    values: &'a mut Vec<Memo>,
    made: &'a mut Vec<Memo>,
    alike: &'a mut Vec<(Memo, i64)>,
    proven_expressions: &'a mut Vec<bool>,
    proven: &'a mut Vec<bool>,
    busy: &'a mut Vec<SymbolId>,
    parts: &'a mut Vec<(Option<AffineId>, i128)>,
}

/// Makes it so many times the same.
pub(in crate::access) fn fill<T: Clone>(all: &mut Vec<T>, count: usize, value: T) {
    all.clear();
    all.resize(count, value);
}

impl<'a> Evaluator<'a> {
    pub(in crate::access) fn new(
        kernel: &'a KernelAccess,
        plan: &'a Plan,
        launch: &'a Launch<'a>,
        scratch: &'a mut EvaluatorScratch,
    ) -> Evaluator<'a> {
        let EvaluatorScratch {
            affines,
            values,
            made,
            alike,
            proven_expressions,
            proven,
            busy,
            parts,
        } = scratch;
        affines.clear();
        fill(values, kernel.symbols.len(), 0);
        fill(made, kernel.expressions.len(), 0);
        fill(alike, plan.formulas.classes, (0, 0));
        fill(proven_expressions, kernel.expressions.len(), false);
        fill(proven, plan.no_wraps.len(), false);
        busy.clear();
        parts.clear();
        let pointers = pointers(plan, launch);
        Evaluator {
            kernel,
            plan,
            launch,
            pointers,
            affines,
            values,
            made,
            alike,
            proven_expressions,
            proven,
            busy,
            parts,
        }
    }

    fn some(&mut self, low: i128, high: i128, full: bool) -> AffineId {
        self.affines.variable(LaunchVariable { low, high: high.max(low), full, header: None })
    }

    /// Drops all values but the first ones.
    fn forget(&mut self, kept: usize) {
        self.proven_expressions.fill(false);
        self.proven.fill(false);
        self.affines.truncate(kept);
        for at in self.values.iter_mut().chain(&mut *self.made) {
            if *at as usize > kept {
                *at = 0;
            }
        }
        for (at, _) in &mut *self.alike {
            if *at as usize > kept {
                *at = 0;
            }
        }
    }

    /// A sum that was evaluated.
    pub(in crate::access) fn get(&self, value: AffineId) -> Affine<'_> {
        self.affines.get(value)
    }

    /// The affine expression that an expression is at this launch. A translatable pointer is left
    /// out of it where the expression counts from it.
    pub(in crate::access) fn affine(&mut self, expression: ExprId) -> AffineId {
        let place = expression.0 as usize;
        if let Some(at) = self.made[place].checked_sub(1) {
            return AffineId(at);
        }
        let formula = self.plan.formulas.of(expression);
        let class = formula.class.map(|class| class as usize);
        let known = class.map(|class| self.alike[class]);
        let value = match known {
            Some((at @ 1.., constant)) => {
                let more = i128::from(formula.constant) - i128::from(constant);
                self.affines.more(AffineId(at - 1), more)
            }
            _ => {
                let value = match self.changed(formula) {
                    Some(value) => value,
                    None => self.sum(formula),
                };
                // A symbol that is not known yet is another variable the next time.
                if !self.busy.is_empty() {
                    self.affines.not_plain(value);
                }
                if let Some(class) = class
                    && self.affines.is_plain(value)
                {
                    self.alike[class] = (value.0 + 1, formula.constant);
                }
                value
            }
        };
        self.made[place] = value.0 + 1;
        value
    }

    /// The sum, made of one that was evaluated before.
    fn changed(&mut self, formula: Formula) -> Option<AffineId> {
        let plan = self.plan;
        let (of, change) = plan.formulas.change(formula)?;
        let known = AffineId(self.made[of.0 as usize].checked_sub(1)?);
        if !self.busy.is_empty() || !self.affines.is_plain(known) {
            return None;
        }
        let begin = self.evaluate(change);
        let old = plan.formulas.of(of).constant;
        let sum = self.affines.begin_with(known, i128::from(formula.constant) - i128::from(old));
        let sum = self.add_parts(sum, begin);
        // Else numbers may have saturated in another order.
        sum.plain.then(|| self.affines.finish(sum))
    }

    fn sum(&mut self, formula: Formula) -> AffineId {
        let begin = self.evaluate(self.plan.formulas.products(formula));
        if let [(Some(value), 1)] = self.parts[begin..]
            && formula.constant == 0
        {
            self.parts.truncate(begin);
            return self.affines.more(value, 0);
        }
        let sum = self.affines.begin(formula.constant.into());
        let sum = self.add_parts(sum, begin);
        self.affines.finish(sum)
    }

    /// Evaluates products: they are the parts from the one on that is returned.
    fn evaluate(&mut self, products: &[Product]) -> usize {
        let plan = self.plan;
        let begin = self.parts.len();
        for &product in products {
            let number = i128::from(product.coefficient);
            let part = match *plan.formulas.factors(product) {
                [symbol] => (Some(self.symbol(symbol)), number),
                ref symbols => self.product(number, symbols),
            };
            self.parts.push(part);
        }
        begin
    }

    /// Takes the last parts into a sum.
    fn add_parts(&mut self, mut sum: AffineBuilder, begin: usize) -> AffineBuilder {
        for &(value, number) in &self.parts[begin..] {
            match value {
                Some(value) => self.affines.add(&mut sum, value, number),
                None => sum.add_number(number, 1),
            }
        }
        self.parts.truncate(begin);
        sum
    }

    /// A product, so often: what two factors with variables make is a variable of its own.
    fn product(&mut self, mut number: i128, symbols: &[SymbolId]) -> (Option<AffineId>, i128) {
        let mut product: Option<AffineId> = None;
        for &symbol in symbols {
            let factor = self.symbol(symbol);
            match (self.get(factor).as_number(), product) {
                (Some(factor), _) => number = scaled(number, factor),
                (None, None) => product = Some(factor),
                (None, Some(other)) => {
                    let mut scaled = self.affines.begin(0);
                    self.affines.add(&mut scaled, other, number);
                    let scaled = self.affines.finish(scaled);
                    let (a, b) = (self.interval(scaled), self.interval(factor));
                    let corners =
                        [times(a.0, b.0), times(a.0, b.1), times(a.1, b.0), times(a.1, b.1)];
                    let low = corners.into_iter().min().unwrap_or(-FAR);
                    let high = corners.into_iter().max().unwrap_or(FAR);
                    let variable = self.some(low, high, false);
                    number = 1;
                    product = match self.get(variable).as_number() {
                        Some(one) => {
                            number = one;
                            None
                        }
                        None => Some(variable),
                    };
                }
            }
        }
        (product, number)
    }

    /// The least and the greatest value of an affine expression.
    pub(in crate::access) fn interval(&mut self, value: AffineId) -> (i128, i128) {
        self.affines.interval(value)
    }

    fn symbol(&mut self, id: SymbolId) -> AffineId {
        let place = id.0 as usize;
        if let Some(at) = self.values[place].checked_sub(1) {
            return AffineId(at);
        }
        if self.busy.contains(&id) {
            return self.some(-FAR, FAR, false);
        }
        self.busy.push(id);
        let value = match self.kernel.symbols[place] {
            Symbol::Param { offset, width, signed } => {
                let number = self.param(offset as usize, usize::from(width), signed);
                self.affines.number(number)
            }
            Symbol::Index(index) => self.index(index),
            Symbol::Induction(header) => self.induction(place, header),
            Symbol::ExitValue(of) => {
                // One of the values that it has in the loop.
                let value = self.symbol(of);
                match self.get(value).as_number() {
                    Some(_) => self.affines.more(value, 0),
                    None => {
                        let (low, high) = self.interval(value);
                        self.some(low, high, false)
                    }
                }
            }
            Symbol::Global(_) => self.affines.number(0),
            Symbol::Function(function, a, b) => self.function(function, a, b),
            _ => self.gated_phi(id, place),
        };
        self.busy.pop();
        self.values[place] = value.0 + 1;
        value
    }

    /// The value that a gated φ has in this launch; else one between the least and the greatest of
    /// its inputs.
    fn gated_phi(&mut self, id: SymbolId, place: usize) -> AffineId {
        let mut one = None;
        let ends = self.inputs(id, &mut one);
        if let (Some(_), Some(value)) = (ends, one) {
            return self.affines.more(value, 0);
        }
        let (low, high) = ends.unwrap_or((-FAR, FAR));
        let (least, greatest) = match self.kernel.bounds[place] {
            Some((least, greatest)) => (i128::from(least), i128::from(greatest)),
            None => (-FAR, FAR),
        };
        self.some(low.max(least), high.min(greatest), false)
    }

    /// The least and the greatest of the inputs of a gated φ whose gates may hold, and the input if
    /// it is one.
    fn inputs(&mut self, id: SymbolId, one: &mut Option<AffineId>) -> Option<(i128, i128)> {
        let kernel = self.kernel;
        let at = kernel.gated_phis.binary_search_by_key(&id, |phi| phi.symbol).ok()?;
        let mut ends: Option<(i128, i128)> = None;
        for (source, gates) in &kernel.gated_phis[at].inputs {
            if gates.iter().any(|condition| self.is_contradiction(condition)) {
                continue;
            }
            let value = self.affine(*source);
            if !self.no_wraps_hold(*source, &ImpliedBounds::NONE) {
                return None;
            }
            let (low, high) = self.interval(value);
            match ends {
                None => *one = Some(value),
                _ if one.map(|one| self.get(one)) != Some(self.get(value)) => *one = None,
                _ => {}
            }
            let (least, greatest) = ends.unwrap_or((low, high));
            ends = Some((least.min(low), greatest.max(high)));
        }
        ends
    }

    /// The pointer that an address counts from, where it is translatable.
    pub(in crate::access) fn counts_from(
        &mut self,
        address: Option<ExprId>,
    ) -> Option<&mut TranslatedPointer> {
        match self.plan.roles[address?.0 as usize] {
            Role::Plus(word) => Some(&mut self.pointers[usize::from(word)]),
            Role::Minus(_) | Role::Bits(_) | Role::None => None,
        }
    }

    /// The sum that a condition compares with zero, and the sum's bounds. If the sum holds a
    /// translatable pointer, the pointer's value affects the bounds only.
    pub(in crate::access) fn compared(
        &mut self,
        condition: &Condition,
    ) -> (AffineId, (i128, i128)) {
        let value = self.affine(condition.expression);
        let (low, high) = self.interval(value);
        match self.plan.roles[condition.expression.0 as usize] {
            Role::None | Role::Bits(_) => (value, (low, high)),
            Role::Plus(word) => {
                let pointer = &mut self.pointers[usize::from(word)];
                let (low, high) = (low + pointer.number(), high + pointer.number());
                match (low > 0, high < 0) {
                    (true, _) => pointer.at_least(low, 1),
                    (_, true) => pointer.at_most(high, -1),
                    _ => {
                        // The sum itself counts, with the pointer as it is.
                        pointer.pin();
                        let number = pointer.number();
                        return (self.affines.more(value, number), (low, high));
                    }
                };
                (value, (low, high))
            }
            Role::Minus(word) => {
                // Whether the pointer is null.
                let pointer = &mut self.pointers[usize::from(word)];
                pointer.at_least(pointer.number(), 1);
                (value, (low, high))
            }
        }
    }

    /// Whether a condition is a contradiction at this launch: it holds for no thread in any
    /// iteration.
    fn is_contradiction(&mut self, condition: &Condition) -> bool {
        let (_, (low, high)) = self.compared(condition);
        let never = match condition.relation {
            Relation::AtLeast => high < 0,
            Relation::Equal => low > 0 || high < 0,
            Relation::Differs => (low, high) == (0, 0),
        };
        never && self.no_wraps_hold(condition.expression, &ImpliedBounds::NONE)
    }

    fn param(&self, offset: usize, width: usize, signed: bool) -> i128 {
        let mut bytes = [0u8; 8];
        let Some(from) = self.launch.params.get(offset..offset + width) else { return 0 };
        bytes[..width].copy_from_slice(from);
        let value = u64::from_le_bytes(bytes);
        let shift = 64 - 8 * width as u32;
        if signed { i128::from(((value << shift) as i64) >> shift) } else { i128::from(value) }
    }

    fn index(&mut self, index: Index) -> AffineId {
        let (grid, block) = (self.launch.grid, self.launch.block);
        let below = |count: u32| i128::from(count.max(1)) - 1;
        match index {
            Index::Thread(d) => self.some(0, below(block[usize::from(d)]), true),
            Index::Block(d) => self.some(0, below(grid[usize::from(d)]), true),
            Index::BlockSize(d) => self.affines.number(block[usize::from(d)].into()),
            Index::GridSize(d) => self.affines.number(grid[usize::from(d)].into()),
            // A lane is bound to its thread.
            Index::Lane => self.some(0, 31.min(below(block.iter().product())), false),
        }
    }

    fn function(&mut self, function: Operator, a: ExprId, b: ExprId) -> AffineId {
        let (x, y) = (self.affine(a), self.affine(b));
        let ((low, high), (y_low, y_high)) = (self.interval(x), self.interval(y));
        let (number, divisor) = (self.get(x).as_number(), self.get(y).as_number());
        if let (Operator::And, None, Role::Bits(word)) =
            (function, number, self.plan.roles[a.0 as usize])
            && divisor.is_some_and(|mask| high - low <= mask)
        {
            // Whether a mask keeps all of it is no question of the lowest bits.
            self.pointers[usize::from(word)].pin();
        }
        match function {
            Operator::Min | Operator::Max => {
                let (below, above) = (high <= y_low, y_high <= low);
                if below || above {
                    let one = if below == (function == Operator::Min) { x } else { y };
                    return self.affines.more(one, 0);
                }
                match function {
                    Operator::Min => self.some(low.min(y_low), high.min(y_high), false),
                    _ => self.some(low.max(y_low), high.max(y_high), false),
                }
            }
            Operator::Quotient | Operator::Remainder => match divisor {
                Some(divisor) if divisor > 0 => {
                    let (first, last) = (quotient(low, divisor), quotient(high, divisor));
                    match function {
                        Operator::Quotient if first == last => self.affines.number(first),
                        Operator::Quotient => self.some(first, last, false),
                        _ if first == last => {
                            let mut rest = self.affines.begin(0);
                            self.affines.add(&mut rest, x, 1);
                            rest.add_number(first * divisor, -1);
                            self.affines.finish(rest)
                        }
                        _ => self.some(0, divisor - 1, false),
                    }
                }
                _ => self.some(-FAR, FAR, false),
            },
            Operator::And => match (number, divisor) {
                (Some(x), Some(mask)) => self.affines.number(i128::from(x as i64 & mask as i64)),
                (_, Some(mask))
                    if mask > 0 && low >= 0 && high <= mask && kept_by(self.get(x), mask) =>
                {
                    self.affines.more(x, 0)
                }
                (_, Some(mask)) if mask >= 0 => self.some(0, mask, false),
                _ => self.some(-FAR, FAR, false),
            },
            Operator::Upper => self.some(-FAR, FAR, false),
        }
    }
}

/// The quotient, rounded down; of positive divisors.
fn quotient(number: i128, divisor: i128) -> i128 {
    match (i64::try_from(number), i64::try_from(divisor)) {
        // Division of long numbers is slow.
        (Ok(number), Ok(divisor)) => number.div_euclid(divisor).into(),
        _ => number.div_euclid(divisor),
    }
}
