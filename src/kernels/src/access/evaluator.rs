//! Expressions at one launch.

use smallvec::{SmallVec, smallvec};

use super::bounds::{Pointer, Pointers, pointers};
use super::condition::{Condition, Relation};
use super::expression::{ExprId, Function, Index, Symbol, SymbolId};
use super::instantiate::Launch;
use super::linear::{FAR, Linear, Variable, are_alike, interval, kept_by, scaled, times};
use super::plan::{Plan, Role};
use super::result::KernelAccess;

/// The number of a sum that was evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value(u32);

/// The symbols of a kernel at one launch, evaluated when they are needed.
#[derive(Debug)]
pub(super) struct Evaluator<'a> {
    kernel: &'a KernelAccess,
    plan: &'a Plan,
    launch: &'a Launch<'a>,
    /// Those that shift.
    pub(super) pointers: Pointers,
    /// What was evaluated, and where by symbol and by expression; 0: not yet.
    done: Vec<Linear>,
    values: SmallVec<[u32; 64]>,
    sums: SmallVec<[u32; 128]>,
    /// Expressions whose needs hold, whatever else does.
    held: SmallVec<[bool; 128]>,
    /// Needs that hold, whatever else does.
    met: SmallVec<[bool; 64]>,
    busy: SmallVec<[SymbolId; 8]>,
    pub(super) variables: SmallVec<[Variable; 16]>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        kernel: &'a KernelAccess,
        plan: &'a Plan,
        launch: &'a Launch<'a>,
    ) -> Evaluator<'a> {
        Evaluator {
            kernel,
            plan,
            launch,
            pointers: pointers(plan, launch),
            done: Vec::with_capacity(64),
            values: smallvec![0; kernel.symbols.len()],
            sums: smallvec![0; kernel.expressions.len()],
            held: smallvec![false; kernel.expressions.len()],
            met: smallvec![false; plan.needs.len()],
            busy: SmallVec::new(),
            variables: SmallVec::new(),
        }
    }

    fn variable(&mut self, variable: Variable) -> Linear {
        if variable.low == variable.high {
            return Linear::number(variable.low);
        }
        self.variables.push(variable);
        Linear { constant: 0, terms: smallvec![(self.variables.len() as u32 - 1, 1)] }
    }

    fn some(&mut self, low: i128, high: i128, full: bool) -> Linear {
        self.variable(Variable { low, high: high.max(low), full, header: None })
    }

    fn keep(&mut self, value: Linear) -> Value {
        self.done.push(value);
        Value(self.done.len() as u32 - 1)
    }

    /// Drops all values but the first ones that were kept.
    fn forget(&mut self, kept: usize) {
        self.held.fill(false);
        self.met.fill(false);
        self.done.truncate(kept);
        for at in self.values.iter_mut().chain(&mut self.sums) {
            if *at as usize > kept {
                *at = 0;
            }
        }
    }

    /// A sum that was evaluated.
    pub(super) fn get(&self, value: Value) -> &Linear {
        &self.done[value.0 as usize]
    }

    /// The sum that an expression is. A pointer that shifts is left out of it where the
    /// expression counts from it.
    pub(super) fn linear(&mut self, expression: ExprId) -> Value {
        let place = expression.0 as usize;
        if let Some(at) = self.sums[place].checked_sub(1) {
            return Value(at);
        }
        let sum = self.sum(expression);
        let value = self.keep(sum);
        self.sums[place] = value.0 + 1;
        value
    }

    fn sum(&mut self, expression: ExprId) -> Linear {
        let kernel = self.kernel;
        let mut sum = Linear::default();
        let counts_from = match self.plan.roles[expression.0 as usize] {
            Role::Plus(word) => Some(word),
            Role::Minus(_) | Role::None => None,
        };
        for term in &kernel.expressions[expression.0 as usize].terms {
            if counts_from.is_some()
                && term.symbols.iter().any(|id| self.plan.symbols[id.0 as usize] == counts_from)
            {
                continue;
            }
            let number = i128::from(term.coefficient);
            match term.symbols[..] {
                [] => sum.add(&Linear::number(number), 1),
                [symbol] => {
                    let value = self.symbol(symbol);
                    sum.add(&self.done[value.0 as usize], number);
                }
                _ => self.add_product(&mut sum, number, &term.symbols),
            }
        }
        sum
    }

    /// Adds a product to a sum: what two factors with variables make is a variable of its own.
    fn add_product(&mut self, sum: &mut Linear, mut number: i128, symbols: &[SymbolId]) {
        let mut product: Option<Value> = None;
        for &symbol in symbols {
            let factor = self.symbol(symbol);
            match (self.get(factor).as_number(), product) {
                (Some(factor), _) => number = scaled(number, factor),
                (None, None) => product = Some(factor),
                (None, Some(other)) => {
                    let mut scaled = Linear::default();
                    scaled.add(self.get(other), number);
                    let (a, b) = (self.interval(&scaled), self.interval(self.get(factor)));
                    let corners =
                        [times(a.0, b.0), times(a.0, b.1), times(a.1, b.0), times(a.1, b.1)];
                    let low = corners.into_iter().min().unwrap_or(-FAR);
                    let high = corners.into_iter().max().unwrap_or(FAR);
                    let variable = self.some(low, high, false);
                    number = 1;
                    product = match variable.as_number() {
                        Some(one) => {
                            number = one;
                            None
                        }
                        None => Some(self.keep(variable)),
                    };
                }
            }
        }
        match product {
            Some(product) => sum.add(&self.done[product.0 as usize], number),
            None => sum.add(&Linear::number(number), 1),
        }
    }

    pub(super) fn interval(&self, linear: &Linear) -> (i128, i128) {
        interval(linear, &self.variables)
    }

    fn symbol(&mut self, id: SymbolId) -> Value {
        let place = id.0 as usize;
        if let Some(at) = self.values[place].checked_sub(1) {
            return Value(at);
        }
        if self.busy.contains(&id) {
            let some = self.some(-FAR, FAR, false);
            return self.keep(some);
        }
        self.busy.push(id);
        let value = match self.kernel.symbols[place] {
            Symbol::Param { offset, width, signed } => {
                Linear::number(self.param(offset as usize, usize::from(width), signed))
            }
            Symbol::Index(index) => self.index(index),
            Symbol::Counter(header) => self.counter(place, header),
            Symbol::Left(of) => {
                // One of the values that it has in the loop.
                let value = self.symbol(of);
                let value = self.get(value);
                match value.as_number() {
                    Some(_) => value.clone(),
                    None => {
                        let (low, high) = self.interval(value);
                        self.some(low, high, false)
                    }
                }
            }
            Symbol::Global(_) => Linear::number(0),
            Symbol::Function(function, a, b) => self.function(function, a, b),
            _ => self.choice(id, place),
        };
        self.busy.pop();
        let value = self.keep(value);
        self.values[place] = value.0 + 1;
        value
    }

    /// The value that a choice is in this launch; else one between the least and the greatest of
    /// those that it may be.
    fn choice(&mut self, id: SymbolId, place: usize) -> Linear {
        let mut one = None;
        let ends = self.ways(id, &mut one);
        if let (Some(_), Some(value)) = (ends, one) {
            return value;
        }
        let (low, high) = ends.unwrap_or((-FAR, FAR));
        let (least, greatest) = match self.kernel.bounds[place] {
            Some((least, greatest)) => (i128::from(least), i128::from(greatest)),
            None => (-FAR, FAR),
        };
        self.some(low.max(least), high.min(greatest), false)
    }

    /// The least and the greatest of the values that a choice may be, and the one if it is one.
    fn ways(&mut self, id: SymbolId, one: &mut Option<Linear>) -> Option<(i128, i128)> {
        let kernel = self.kernel;
        let at = kernel.choices.binary_search_by_key(&id, |choice| choice.symbol).ok()?;
        let mut ends: Option<(i128, i128)> = None;
        for (source, given) in &kernel.choices[at].ways {
            if given.iter().any(|condition| self.never(condition)) {
                continue;
            }
            let value = self.linear(*source);
            if !self.needs_hold(*source, &[]) {
                return None;
            }
            let value = self.get(value);
            let (low, high) = self.interval(value);
            match ends {
                None => *one = Some(value.clone()),
                _ if one.as_ref() != Some(value) => *one = None,
                _ => {}
            }
            let (least, greatest) = ends.unwrap_or((low, high));
            ends = Some((least.min(low), greatest.max(high)));
        }
        ends
    }

    /// The pointer that an address counts from, where it shifts.
    pub(super) fn counts_from(&mut self, address: Option<ExprId>) -> Option<&mut Pointer> {
        match self.plan.roles[address?.0 as usize] {
            Role::Plus(word) => Some(&mut self.pointers[usize::from(word)]),
            Role::Minus(_) | Role::None => None,
        }
    }

    /// The sum that a condition compares with zero, and between what it lies. Where a pointer that
    /// shifts is in it, its value has a part in the bounds only.
    pub(super) fn compared(&mut self, condition: &Condition) -> (Value, (i128, i128)) {
        let value = self.linear(condition.expression);
        let (low, high) = self.interval(self.get(value));
        match self.plan.roles[condition.expression.0 as usize] {
            Role::None => (value, (low, high)),
            Role::Plus(word) => {
                let pointer = &mut self.pointers[usize::from(word)];
                let (low, high) = (low + pointer.number(), high + pointer.number());
                match (low > 0, high < 0) {
                    (true, _) => pointer.at_least(low, 1),
                    (_, true) => pointer.at_most(high, -1),
                    _ => {
                        // The sum itself counts, with the pointer as it is.
                        pointer.pin();
                        let mut sum = self.get(value).clone();
                        sum.constant += self.pointers[usize::from(word)].number();
                        return (self.keep(sum), (low, high));
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

    /// Whether a condition holds for no thread in any round.
    fn never(&mut self, condition: &Condition) -> bool {
        let (_, (low, high)) = self.compared(condition);
        let never = match condition.relation {
            Relation::AtLeast => high < 0,
            Relation::Equal => low > 0 || high < 0,
            Relation::Differs => (low, high) == (0, 0),
        };
        never && self.needs_hold(condition.expression, &[])
    }

    fn param(&self, offset: usize, width: usize, signed: bool) -> i128 {
        let mut bytes = [0u8; 8];
        let Some(from) = self.launch.params.get(offset..offset + width) else { return 0 };
        bytes[..width].copy_from_slice(from);
        let value = u64::from_le_bytes(bytes);
        let shift = 64 - 8 * width as u32;
        if signed { i128::from(((value << shift) as i64) >> shift) } else { i128::from(value) }
    }

    fn index(&mut self, index: Index) -> Linear {
        let (grid, block) = (self.launch.grid, self.launch.block);
        let below = |count: u32| i128::from(count.max(1)) - 1;
        match index {
            Index::Thread(d) => self.some(0, below(block[usize::from(d)]), true),
            Index::Block(d) => self.some(0, below(grid[usize::from(d)]), true),
            Index::BlockSize(d) => Linear::number(i128::from(block[usize::from(d)])),
            Index::GridSize(d) => Linear::number(i128::from(grid[usize::from(d)])),
            // A lane is bound to its thread.
            Index::Lane => self.some(0, 31.min(below(block.iter().product())), false),
        }
    }

    fn function(&mut self, function: Function, a: ExprId, b: ExprId) -> Linear {
        let (x, y) = (self.linear(a), self.linear(b));
        let (x, y) = (self.get(x), self.get(y));
        let ((low, high), (y_low, y_high)) = (self.interval(x), self.interval(y));
        match function {
            Function::Min | Function::Max => {
                let (below, above) = (high <= y_low, y_high <= low);
                if below || above {
                    return if below == (function == Function::Min) { x } else { y }.clone();
                }
                match function {
                    Function::Min => self.some(low.min(y_low), high.min(y_high), false),
                    _ => self.some(low.max(y_low), high.max(y_high), false),
                }
            }
            Function::Quotient | Function::Remainder => match y.as_number() {
                Some(divisor) if divisor > 0 => {
                    let same = low.div_euclid(divisor) == high.div_euclid(divisor);
                    match function {
                        Function::Quotient if same => Linear::number(low.div_euclid(divisor)),
                        Function::Quotient => {
                            self.some(low.div_euclid(divisor), high.div_euclid(divisor), false)
                        }
                        _ if same => {
                            let mut rest = x.clone();
                            rest.add(&Linear::number(low.div_euclid(divisor) * divisor), -1);
                            rest
                        }
                        _ => self.some(0, divisor - 1, false),
                    }
                }
                _ => self.some(-FAR, FAR, false),
            },
            Function::And => match (x.as_number(), y.as_number()) {
                (Some(x), Some(mask)) => Linear::number(i128::from(x as i64 & mask as i64)),
                (_, Some(mask)) if mask > 0 && kept_by(x, mask) && low >= 0 && high <= mask => {
                    x.clone()
                }
                (_, Some(mask)) if mask >= 0 => self.some(0, mask, false),
                _ => self.some(-FAR, FAR, false),
            },
            Function::Upper => self.some(-FAR, FAR, false),
        }
    }

    /// Rounds of a loop: another follows only while its conditions hold.
    fn counter(&mut self, place: usize, header: u32) -> Linear {
        let unbounded = Variable { low: 0, high: FAR, full: false, header: Some(header) };
        let value = self.variable(unbounded);
        self.values[place] = self.keep(value.clone()).0 + 1;
        let variable = value.terms[0].0;
        let kernel = self.kernel;
        let Some(l) = kernel.loops.iter().find(|l| l.header == header) else { return value };
        let mut best = (FAR, false);
        // Whether every condition that the first round may miss is missed by no thread.
        let mut begins = true;
        for condition in &l.again {
            if !kernel.mentions_counter(condition.expression, place) {
                continue;
            }
            let linear = self.linear(condition.expression);
            let linear = self.get(linear);
            let step = linear.coefficient(variable);
            if step == 0 {
                continue;
            }
            let mut rest = linear.clone();
            rest.terms.retain(|t| t.0 != variable);
            let (least, most) = self.interval(&rest);
            begins &= condition.relation != Relation::AtLeast || step < 0 || least >= 0;
            let last = match condition.relation {
                // One that holds later only: there is no later where the first round misses it.
                Relation::AtLeast if step > 0 && most < 0 => 0,
                // Round `k` is followed by another only while `rest + step * k >= 0`.
                Relation::AtLeast if step < 0 && most < FAR => {
                    if most < 0 {
                        0
                    } else {
                        most / -step + 1
                    }
                }
                Relation::Differs if rest.terms.is_empty() && rest.constant % step == 0 => {
                    -rest.constant / step
                }
                _ => continue,
            };
            if last < 0 || last >= best.0 {
                continue;
            }
            // What the condition needs must hold in all the rounds that it admits.
            let known = self.done.len();
            self.variables[variable as usize].high = last;
            if self.needs_hold(condition.expression, &[]) {
                best = (last, l.clean && rest.terms.is_empty());
            } else {
                self.forget(known);
                self.variables[variable as usize].high = best.0;
            }
        }
        self.variables[variable as usize].high = best.0;
        self.variables[variable as usize].full = best.1 && begins;
        value
    }

    /// Whether what the expression needs holds, given that some sums are not negative.
    pub(super) fn needs_hold(&mut self, expression: ExprId, known: &[&Linear]) -> bool {
        let place = expression.0 as usize;
        // Bounds of variables only become narrower, so it holds for good.
        if self.held[place] {
            return true;
        }
        let plan = self.plan;
        let hold = plan.needs_of[place].iter().all(|&need| self.holds(need as usize, known));
        self.held[place] = hold && known.is_empty();
        hold
    }

    fn holds(&mut self, at: usize, known: &[&Linear]) -> bool {
        if self.met[at] {
            return true;
        }
        let need = self.plan.needs[at];
        let value = self.linear(need.expression);
        let value = self.get(value);
        let (mut low, mut high) = self.interval(value);
        for fact in known {
            // The value is the fact plus a number, or a number less the fact.
            if are_alike(value, fact, 1) {
                low = low.max(value.constant - fact.constant);
            }
            if are_alike(value, fact, -1) {
                high = high.min(value.constant + fact.constant);
            }
        }
        let (least, most) = (i128::from(need.low), i128::from(need.high));
        let holds = match self.plan.roles[need.expression.0 as usize] {
            Role::Plus(word) => {
                let pointer = &mut self.pointers[usize::from(word)];
                let (low, high) = (low + pointer.number(), high + pointer.number());
                pointer.at_least(low, least) && pointer.at_most(high, most)
            }
            Role::Minus(_) | Role::None => least <= low && high <= most,
        };
        self.met[at] = holds && known.is_empty();
        holds
    }

    /// Whether the rounds that pass `guards` are exactly those that the loop makes.
    pub(super) fn rounds_are_guarded(&mut self, header: u32, guards: &[&Linear]) -> bool {
        let kernel = self.kernel;
        let Some(l) = kernel.loops.iter().find(|l| l.header == header && l.clean) else {
            return false;
        };
        let Some(variable) = self.variables.iter().position(|v| v.header == Some(header)) else {
            return false;
        };
        let mut again = l.again.iter().filter(|again| again.relation == Relation::AtLeast);
        let begins = again.clone().all(|condition| {
            let linear = self.linear(condition.expression);
            let linear = self.get(linear);
            let step = linear.coefficient(variable as u32);
            if step <= 0 {
                return true;
            }
            let mut rest = linear.clone();
            rest.terms.retain(|t| t.0 != variable as u32);
            self.interval(&rest).0 >= 0
        });
        begins
            && again.any(|condition| {
                let linear = self.linear(condition.expression);
                let linear = self.get(linear);
                let step = linear.coefficient(variable as u32);
                step != 0
                    && guards.iter().any(|guard| {
                        guard.terms == linear.terms
                            && (guard.constant == linear.constant
                                || guard.constant == linear.constant - step)
                    })
            })
    }
}

impl KernelAccess {
    fn mentions_counter(&self, expression: ExprId, place: usize) -> bool {
        self.expressions[expression.0 as usize]
            .terms
            .iter()
            .any(|term| term.symbols.iter().any(|s| s.0 as usize == place))
    }
}
