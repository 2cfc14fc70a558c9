//! The dimensions of a strided interval: variables counted from 0, with their coefficients in an
//! address and in constraints.
//!
//! Stage: the launch. Two variables in one proportion that leave no gap are merged; constraints
//! clip the result.
//!
//! Invariant: merging keeps the set of values; clipping drops only values for which a constraint is
//! negative.

use std::fmt::Debug;
use std::ops::{Add, Mul, Neg, Sub};

use super::AccessTarget;
use crate::access::launch::affine::{Affine, FAR, LaunchVariable};

/// The number type of dimensions. Most numbers are short, and calculating with long ones is slow.
pub(super) trait DimensionNumber:
    Copy
    + Debug
    + Ord
    + Into<i128>
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// Without a bound.
    const FAR: Self;
    /// More bytes than anything has.
    const MUCH: Self;

    /// A number that is one of these.
    fn of(number: i128) -> Self;

    fn magnitude(self) -> Self {
        self.max(-self)
    }

    /// The product, saturating.
    fn times(self, by: Self) -> Self;

    /// The sum, saturating.
    fn plus(self, more: Self) -> Self;

    /// Quotient and rest, rounded to zero.
    fn divided(self, by: Self) -> (Self, Self);

    /// The quotient, rounded down.
    fn quotient_below(self, by: Self) -> Self {
        let (quotient, rest) = self.divided(by);
        let below = rest != Self::ZERO && (rest < Self::ZERO) != (by < Self::ZERO);
        if below { quotient - Self::ONE } else { quotient }
    }
}

impl DimensionNumber for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    const FAR: i64 = i64::MAX;
    const MUCH: i64 = 1 << 62;

    fn of(number: i128) -> i64 {
        number as i64
    }

    fn times(self, by: i64) -> i64 {
        self.saturating_mul(by)
    }

    fn plus(self, more: i64) -> i64 {
        self.saturating_add(more)
    }

    fn divided(self, by: i64) -> (i64, i64) {
        (self / by, self % by)
    }
}

impl DimensionNumber for i128 {
    const ZERO: i128 = 0;
    const ONE: i128 = 1;
    const FAR: i128 = FAR;
    const MUCH: i128 = 1 << 62;

    fn of(number: i128) -> i128 {
        number
    }

    fn times(self, by: i128) -> i128 {
        match (i64::try_from(self), i64::try_from(by)) {
            (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
            _ => self.saturating_mul(by),
        }
    }

    fn plus(self, more: i128) -> i128 {
        self.saturating_add(more)
    }

    fn divided(self, by: i128) -> (i128, i128) {
        match (i64::try_from(self), i64::try_from(by)) {
            (Ok(number), Ok(by)) if by != -1 => ((number / by).into(), (number % by).into()),
            _ => (self / by, self % by),
        }
    }
}

/// All that comes of short sums stays this far from where numbers of 64 bits end: the differences
/// of their values, with as much again added.
const SHORT: u64 = 1 << 60;

impl Affine<'_> {
    /// Whether no part of the sum is long, nor any number that comes of clipping it.
    pub(super) fn is_short(&self, variables: &[LaunchVariable]) -> bool {
        let magnitude = |number: i128| i64::try_from(number).ok().map(i64::unsigned_abs);
        let term = |&(variable, coefficient): &(u32, i128)| {
            let LaunchVariable { low, high, .. } = variables[variable as usize];
            magnitude(low)?.max(magnitude(high)?).max(1).checked_mul(magnitude(coefficient)?)
        };
        let Some(constant) = magnitude(self.constant) else { return false };
        let all = self.terms.iter().try_fold(constant, |all, own| all.checked_add(term(own)?));
        all.is_some_and(|all| all < SHORT)
    }
}

/// A dimension: a variable counted from 0, with its coefficient in the address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dimension<N> {
    /// One more than the last value.
    pub(super) count: N,
    pub(super) address: N,
    full: bool,
    /// The forms in which the dimension counts: the lowest bit for the address, then one bit for
    /// each of the first constraints.
    counts: u64,
}

/// Coefficients of variables in constraints: those of one variable in all constraints follow each
/// other.
#[derive(Debug, Default)]
struct Table<N> {
    constraints: usize,
    all: Vec<N>,
}

impl<N: DimensionNumber> Table<N> {
    fn of(&self, dimension: usize) -> &[N] {
        &self.all[dimension * self.constraints..][..self.constraints]
    }

    fn at(&self, dimension: usize, constraint: usize) -> N {
        self.all[dimension * self.constraints + constraint]
    }
}

/// Dimensions, and the constraints on them.
#[derive(Debug, Default)]
pub(super) struct Dimensions<N> {
    pub(super) dimensions: Vec<Dimension<N>>,
    table: Table<N>,
    /// The number of the address, and those of the constraints.
    pub(super) constant: N,
    limits: Vec<N>,
}

impl<N: DimensionNumber> Dimensions<N> {
    /// Takes the variables that are used, each counted from 0; `false` where one has no lower end.
    pub(super) fn fill(&mut self, target: &AccessTarget<'_>, used: &[u32]) -> bool {
        let AccessTarget { address, constraints, variables, iterations, .. } = *target;
        self.dimensions.clear();
        self.table.all.clear();
        self.table.constraints = constraints.len();
        self.constant = N::of(address.constant);
        self.limits.clear();
        self.limits.extend(constraints.iter().map(|constraint| N::of(constraint.constant)));
        for (at, &number) in used.iter().enumerate() {
            let variable = &variables[number as usize];
            let known = iterations.iter().find(|known| known.0 == number);
            let coefficient = address.coefficient(number);
            let mut counts = u64::from(coefficient != 0);
            for (at, constraint) in constraints.iter().enumerate() {
                let coefficient = constraint.coefficient(number);
                counts |= u64::from(coefficient != 0 && at < 63) << ((at + 1) % 64);
                self.table.all.push(N::of(coefficient));
            }
            self.dimensions.push(Dimension {
                count: N::of(variable.high - variable.low + 1),
                address: N::of(coefficient),
                full: known.map_or(variable.full, |known| known.1),
                counts,
            });
            let mut low = N::of(variable.low);
            if variable.low <= -FAR {
                // Without a lower end it cannot be counted from 0; a constraint may still give it
                // one.
                let below = self.table.of(at).iter().enumerate().find(|&(at, &own)| {
                    let limit = self.limits[at].magnitude();
                    own == N::ONE && constraints[at].terms.len() == 1 && limit < N::FAR
                });
                let Some((below, _)) = below else { return false };
                low = -self.limits[below];
                (self.dimensions[at].count, self.dimensions[at].full) = (N::FAR, false);
            }
            if low != N::ZERO {
                self.shift(at, low);
            }
        }
        true
    }

    /// The factor between the coefficients of `j` and those of `i`, if it is the same for all.
    fn ratio(&self, i: usize, j: usize) -> Option<N> {
        if self.dimensions[i].counts != self.dimensions[j].counts {
            return None;
        }
        let mut ratio = None;
        let pairs = [(self.dimensions[i].address, self.dimensions[j].address)];
        let constraints = self.table.of(i).iter().copied().zip(self.table.of(j).iter().copied());
        for (own, others) in pairs.into_iter().chain(constraints) {
            match (own == N::ZERO, others == N::ZERO, ratio) {
                (true, true, _) => {}
                (true, ..) | (_, true, _) => return None,
                (_, _, Some(ratio)) if own.times(ratio) == others => {}
                (_, _, None) => {
                    let (quotient, rest) = others.divided(own);
                    if rest != N::ZERO {
                        return None;
                    }
                    ratio = Some(quotient);
                }
                _ => return None,
            }
        }
        ratio
    }

    /// Counts from so much further.
    fn shift(&mut self, dimension: usize, by: N) {
        self.constant = self.constant + self.dimensions[dimension].address * by;
        for (limit, own) in self.limits.iter_mut().zip(self.table.of(dimension)) {
            *limit = *limit + *own * by;
        }
    }

    /// Counts from the other end.
    fn flip(&mut self, dimension: usize) {
        self.shift(dimension, self.dimensions[dimension].count - N::ONE);
        self.dimensions[dimension].address = -self.dimensions[dimension].address;
        let constraints = self.table.constraints;
        for own in &mut self.table.all[dimension * constraints..][..constraints] {
            *own = -*own;
        }
    }

    fn remove(&mut self, dimension: usize) {
        self.dimensions.remove(dimension);
        let from = dimension * self.table.constraints;
        self.table.all.drain(from..from + self.table.constraints);
    }

    /// Two variables that always occur in one proportion and leave no gap.
    fn proportion(&self) -> Option<(usize, usize, N)> {
        for i in (0..self.dimensions.len()).rev() {
            for j in (0..self.dimensions.len()).rev() {
                if i == j {
                    continue;
                }
                let Some(ratio) = self.ratio(i, j) else { continue };
                let bounded = ratio > N::ZERO || self.dimensions[j].count < N::FAR;
                if bounded && ratio.magnitude() <= self.dimensions[i].count {
                    return Some((i, j, ratio));
                }
            }
        }
        None
    }

    /// Makes one variable of two that always occur in one proportion and leave no gap.
    pub(super) fn merge(&mut self) {
        while let Some((i, j, ratio)) = self.proportion() {
            if ratio < N::ZERO {
                self.flip(j);
            }
            let Dimension { count, full, .. } = self.dimensions[j];
            let more = ratio.magnitude().times(count - N::ONE).min(N::FAR);
            let own = &mut self.dimensions[i];
            own.count = (own.count + more).min(N::FAR);
            own.full &= full;
            self.remove(j);
        }
    }

    /// Clips the dimensions to the values for which no constraint is negative. Returns whether the
    /// result is exactly these values; `None` where there are none.
    pub(super) fn clip(&mut self) -> Option<bool> {
        let mut exact = true;
        // Constraints on one variable clip it.
        for at in 0..self.table.constraints {
            let mut users = (0..self.dimensions.len())
                .filter(|&dimension| self.table.at(dimension, at) != N::ZERO);
            match (users.next(), users.next()) {
                (None, _) if self.limits[at] < N::ZERO => return None,
                (Some(dimension), None) => {
                    let (factor, count) =
                        (self.table.at(dimension, at), self.dimensions[dimension].count);
                    if factor > N::ZERO {
                        let first = -self.limits[at].quotient_below(factor);
                        if first >= count {
                            return None;
                        }
                        if first > N::ZERO {
                            self.shift(dimension, first);
                            self.dimensions[dimension].count = count - first;
                        }
                    } else {
                        let last = self.limits[at].quotient_below(-factor);
                        if last < N::ZERO {
                            return None;
                        }
                        self.dimensions[dimension].count = count.min(last + N::ONE);
                    }
                    // Which of the remaining values it takes is not known, if any.
                    let own = &self.dimensions[dimension];
                    exact &= own.full || own.count == count;
                    self.limits[at] = N::ZERO;
                    self.table.all[dimension * self.table.constraints + at] = N::ZERO;
                }
                _ => {}
            }
        }
        // Constraints on several: hold always, never, or bound each in turn.
        for (at, &limit) in self.limits.iter().enumerate() {
            let (mut low, mut high) = (limit, limit);
            for (number, dimension) in self.dimensions.iter().enumerate() {
                let far = self.table.at(number, at).times(dimension.count - N::ONE);
                low = low.plus(far.min(N::ZERO));
                high = high.plus(far.max(N::ZERO));
            }
            if high < N::ZERO {
                return None;
            }
            if low >= N::ZERO {
                continue;
            }
            exact = false;
            for (number, dimension) in self.dimensions.iter_mut().enumerate() {
                let own = -self.table.at(number, at);
                if own > N::ZERO {
                    // All others at their best; a factor below zero is best at 0.
                    dimension.count = dimension.count.min(high.quotient_below(own) + N::ONE);
                }
            }
        }
        let still = |c: &Dimension<N>| c.address == N::ZERO && c.count <= N::ONE;
        Some(exact && self.dimensions.iter().all(|c| c.full || still(c)))
    }
}
