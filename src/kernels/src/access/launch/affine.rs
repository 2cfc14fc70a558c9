//! Affine expressions over the variables of a launch: threads, blocks, iterations of loops, and
//! unknown values between two bounds.
//!
//! Stage: the launch. Numbers have 128 bits and saturate at [`FAR`], beyond every address.
//!
//! Invariant: the interval of an expression holds all its values. Bounds of variables only become
//! narrower within a launch; `era` tells which intervals were computed before.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::access::launch::hash_index::HashIndex;

/// Beyond every address: a variable without a bound.
pub(in crate::access) const FAR: i128 = 1 << 80;

/// A quantity that differs between threads, iterations or runs: every integer from `low` to `high`.
#[derive(Debug, Clone, Copy)]
pub(in crate::access) struct LaunchVariable {
    pub(in crate::access) low: i128,
    pub(in crate::access) high: i128,
    /// Whether the variable takes all these values, whatever the values of the others are.
    pub(in crate::access) full: bool,
    /// The loop whose iterations it counts.
    pub(in crate::access) header: Option<u32>,
}

/// A variable and how often it counts.
pub(in crate::access) type AffineTerm = (u32, i128);

/// An affine expression: `constant` plus the sum of `coefficient * variable`, sorted by variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) struct Affine<'a> {
    pub(in crate::access) constant: i128,
    pub(in crate::access) terms: &'a [AffineTerm],
}

impl Affine<'_> {
    /// The number, where no variable counts.
    pub(in crate::access) fn as_number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub(in crate::access) fn coefficient(&self, variable: u32) -> i128 {
        self.terms.iter().find(|t| t.0 == variable).map_or(0, |t| t.1)
    }
}

/// The number of an affine expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) struct AffineId(pub(in crate::access) u32);

/// An affine expression, its terms where those of all are. Expressions that differ in their
/// constants share them.
#[derive(Debug, Clone, Copy)]
struct AffineHead {
    constant: i128,
    from: u32,
    to: u32,
    /// When its least and greatest value were worked out, and whether nothing came near to where
    /// numbers are cut.
    era: u32,
    small: bool,
    /// Whether the sum is exactly what was added, at every query.
    plain: bool,
    low: i128,
    high: i128,
    /// The number of the sum's class, plus one; 0 where it was never asked for.
    class: u32,
}

/// The class of an affine expression, which ignores its constant and sign: the class's number, and
/// whether the sign differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::access) struct AffineClass {
    pub(in crate::access) number: u32,
    pub(in crate::access) negated: bool,
}

/// An affine expression that is being made: its terms are the last ones there are.
#[derive(Debug)]
pub(in crate::access) struct AffineBuilder {
    constant: i128,
    from: usize,
    /// No number came near to where it saturates.
    pub(in crate::access) plain: bool,
}

impl AffineBuilder {
    /// Adds a number `factor` times.
    pub(in crate::access) fn add_number(&mut self, number: i128, factor: i128) {
        let more = scaled(number, factor);
        self.constant = bounded(self.constant + more);
        self.plain &= is_near(self.constant) && is_near(more);
    }
}

/// Affine expressions by their numbers, and the variables that they are made of. They reuse
/// the memory of the launch before.
#[derive(Debug, Default)]
pub(in crate::access) struct Affines {
    heads: Vec<AffineHead>,
    terms: Vec<AffineTerm>,
    /// By class: where the terms of its first sum stand.
    classes: Vec<(u32, u32)>,
    class_numbers: HashIndex,
    pub(in crate::access) variables: Vec<LaunchVariable>,
    /// How often bounds of variables have changed; 0: not since the beginning.
    era: u32,
}

/// The mark of an interval that was never computed.
const NOT_COMPUTED: u32 = u32::MAX;

impl Affines {
    pub(in crate::access) fn clear(&mut self) {
        self.heads.clear();
        self.terms.clear();
        self.classes.clear();
        self.class_numbers.clear(0);
        self.variables.clear();
        self.era = 0;
    }

    pub(in crate::access) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Drops all but the first ones.
    pub(in crate::access) fn truncate(&mut self, len: usize) {
        self.heads.truncate(len);
    }

    pub(in crate::access) fn get(&self, value: AffineId) -> Affine<'_> {
        let head = &self.heads[value.0 as usize];
        let terms = &self.terms[head.from as usize..head.to as usize];
        Affine { constant: head.constant, terms }
    }

    fn push(&mut self, constant: i128, from: u32, to: u32) -> AffineId {
        let (era, small, plain) = (NOT_COMPUTED, false, is_near(constant));
        self.heads.push(AffineHead {
            constant,
            from,
            to,
            era,
            small,
            plain,
            low: 0,
            high: 0,
            class: 0,
        });
        AffineId(self.heads.len() as u32 - 1)
    }

    pub(in crate::access) fn number(&mut self, constant: i128) -> AffineId {
        self.push(constant, 0, 0)
    }

    /// A quantity, as a sum.
    pub(in crate::access) fn variable(&mut self, variable: LaunchVariable) -> AffineId {
        if variable.low == variable.high {
            return self.number(variable.low);
        }
        let from = self.terms.len() as u32;
        self.terms.push((self.variables.len() as u32, 1));
        self.variables.push(variable);
        self.push(0, from, from + 1)
    }

    /// The number of the sum plus a constant.
    pub(in crate::access) fn more(&mut self, value: AffineId, more: i128) -> AffineId {
        let mut head = self.heads[value.0 as usize];
        head.constant += more;
        head.low += more;
        head.high += more;
        head.plain &= is_near(head.constant);
        let ends = [head.constant, head.low, head.high];
        if !(head.small && ends.iter().all(|end| NEAR.contains(end))) && more != 0 {
            head.era = NOT_COMPUTED;
        }
        self.heads.push(head);
        AffineId(self.heads.len() as u32 - 1)
    }

    /// The number less the sum.
    pub(in crate::access) fn less(&mut self, number: i128, value: AffineId) -> AffineId {
        let mut sum = self.begin(number);
        self.add(&mut sum, value, -1);
        self.finish(sum)
    }

    /// A sum of nothing but a number yet. Another one may be begun when it is finished.
    pub(in crate::access) fn begin(&self, number: i128) -> AffineBuilder {
        AffineBuilder { constant: number, from: self.terms.len(), plain: is_near(number) }
    }

    /// Begins a new sum with an existing one plus a constant.
    pub(in crate::access) fn begin_with(&mut self, value: AffineId, more: i128) -> AffineBuilder {
        let AffineHead { constant, from, to, plain, .. } = self.heads[value.0 as usize];
        let constant = constant + more;
        let sum =
            AffineBuilder { constant, from: self.terms.len(), plain: plain && is_near(constant) };
        self.terms.extend_from_within(from as usize..to as usize);
        sum
    }

    /// Ends what was begun; its terms are the last ones there are.
    pub(in crate::access) fn finish(&mut self, sum: AffineBuilder) -> AffineId {
        let value = self.push(sum.constant, sum.from as u32, self.terms.len() as u32);
        self.heads[value.0 as usize].plain = sum.plain;
        value
    }

    /// The class of a sum that is no number.
    pub(in crate::access) fn class(&mut self, value: AffineId) -> AffineClass {
        let AffineHead { from, to, class, .. } = self.heads[value.0 as usize];
        let own = &self.terms[from as usize..to as usize];
        let is_negative = |terms: &[AffineTerm]| terms.first().is_some_and(|term| term.1 < 0);
        let number = class.checked_sub(1).unwrap_or_else(|| {
            let sign = if is_negative(own) { -1 } else { 1 };
            let mut hash = FxHasher::default();
            for &(variable, coefficient) in own {
                (variable, (sign * coefficient) as u64).hash(&mut hash);
            }
            let same = |at: usize| {
                let (from, to) = self.classes[at];
                let terms = &self.terms[from as usize..to as usize];
                let sign = if is_negative(terms) { -sign } else { sign };
                are_terms_alike(own, terms, sign)
            };
            let (number, new) = self.class_numbers.number(hash.finish(), same);
            if new {
                self.classes.push((from, to));
            }
            number as u32
        });
        self.heads[value.0 as usize].class = number + 1;
        AffineClass { number, negated: is_negative(own) }
    }

    /// Whether a sum is exactly what was added, and is that whenever it is asked for.
    pub(in crate::access) fn is_plain(&self, value: AffineId) -> bool {
        self.heads[value.0 as usize].plain
    }

    /// Notes that a sum would be another one the next time.
    pub(in crate::access) fn not_plain(&mut self, value: AffineId) {
        self.heads[value.0 as usize].plain = false;
    }

    /// Adds `factor * other`.
    pub(in crate::access) fn add(
        &mut self,
        sum: &mut AffineBuilder,
        other: AffineId,
        factor: i128,
    ) {
        let AffineHead { constant, from, to, .. } = self.heads[other.0 as usize];
        sum.add_number(constant, factor);
        for at in from as usize..to as usize {
            let (variable, coefficient) = self.terms[at];
            let more = scaled(coefficient, factor);
            sum.plain &= is_near(more);
            let own = &mut self.terms[sum.from..];
            if more != 0 && own.last().is_none_or(|last| last.0 < variable) {
                self.terms.push((variable, more));
                continue;
            }
            match own.binary_search_by_key(&variable, |t| t.0) {
                Ok(at) => {
                    own[at].1 = bounded(own[at].1 + more);
                    sum.plain &= is_near(own[at].1);
                    if own[at].1 == 0 {
                        self.terms.remove(sum.from + at);
                    }
                }
                Err(at) if more != 0 => self.terms.insert(sum.from + at, (variable, more)),
                Err(_) => {}
            }
        }
    }

    /// Gives a variable other bounds.
    pub(in crate::access) fn bound(&mut self, variable: u32, high: i128) {
        let old = std::mem::replace(&mut self.variables[variable as usize].high, high);
        self.era += u32::from(old != high);
    }

    /// The least and the greatest value of a sum.
    pub(in crate::access) fn interval(&mut self, value: AffineId) -> (i128, i128) {
        let head = &mut self.heads[value.0 as usize];
        if head.from == head.to {
            return (head.constant, head.constant);
        }
        if head.era != self.era {
            let terms = &self.terms[head.from as usize..head.to as usize];
            let sum = Affine { constant: head.constant, terms };
            let small = small_interval(sum, &self.variables);
            head.small = small.is_some();
            (head.low, head.high) = small.unwrap_or_else(|| interval(sum, &self.variables));
            head.era = self.era;
        }
        (head.low, head.high)
    }

    /// The least and the greatest value of a sum without one of its variables.
    pub(in crate::access) fn interval_without(
        &self,
        value: AffineId,
        variable: u32,
    ) -> (i128, i128) {
        let Affine { constant, terms } = self.get(value);
        let rest: SmallVec<[AffineTerm; 8]> =
            terms.iter().copied().filter(|term| term.0 != variable).collect();
        interval(Affine { constant, terms: &rest }, &self.variables)
    }
}

/// Whether both are sums of the same variables with the same coefficients.
pub(in crate::access) fn are_alike(a: Affine<'_>, b: Affine<'_>) -> bool {
    std::ptr::eq(a.terms, b.terms) || are_terms_alike(a.terms, b.terms, 1)
}

fn are_terms_alike(a: &[AffineTerm], b: &[AffineTerm], factor: i128) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && a.1 == b.1 * factor)
}

/// The least and the greatest value of a sum.
fn interval(sum: Affine<'_>, variables: &[LaunchVariable]) -> (i128, i128) {
    let (mut low, mut high) = (sum.constant, sum.constant);
    for &(variable, coefficient) in sum.terms {
        let v = &variables[variable as usize];
        let (a, b) = (times(v.low, coefficient), times(v.high, coefficient));
        low = bounded(low + a.min(b));
        high = bounded(high + a.max(b));
    }
    (low, high)
}

/// The same, where no number is so large that it would saturate.
fn small_interval(sum: Affine<'_>, variables: &[LaunchVariable]) -> Option<(i128, i128)> {
    let small = |number: i128| NEAR.contains(&number).then_some(number as i64);
    let constant = small(sum.constant)?;
    let (mut low, mut high) = (constant, constant);
    for &(variable, coefficient) in sum.terms {
        let v = &variables[variable as usize];
        let coefficient = small(coefficient)?;
        let a = small(v.low)?.checked_mul(coefficient)?;
        let b = small(v.high)?.checked_mul(coefficient)?;
        low = low.checked_add(a.min(b))?;
        high = high.checked_add(a.max(b))?;
    }
    Some((low.into(), high.into()))
}

/// The least value of `a - b`.
pub(in crate::access) fn least_difference(
    a: Affine<'_>,
    b: Affine<'_>,
    variables: &[LaunchVariable],
) -> i128 {
    let mut low = bounded(a.constant - b.constant);
    let mut add = |variable: u32, coefficient: i128| {
        let v = &variables[variable as usize];
        let (one, other) = (times(v.low, coefficient), times(v.high, coefficient));
        low = bounded(low + one.min(other));
    };
    let (mut own, mut others) = (a.terms.iter().peekable(), b.terms.iter().peekable());
    loop {
        match (own.peek(), others.peek()) {
            (None, None) => return low,
            (Some(&&(x, c)), other) if other.is_none_or(|y| x < y.0) => {
                add(x, c);
                own.next();
            }
            (own_term, Some(&&(y, d))) if own_term.is_none_or(|x| y < x.0) => {
                add(y, bounded(-d));
                others.next();
            }
            (Some(&&(x, c)), Some(&&(_, d))) => {
                if c != d {
                    add(x, bounded(c - d));
                }
                own.next();
                others.next();
            }
            _ => unreachable!("one of the two is left"),
        }
    }
}

/// A product that stays in bounds.
pub(in crate::access) fn scaled(value: i128, factor: i128) -> i128 {
    match (i64::try_from(value), i64::try_from(factor)) {
        (Ok(value), Ok(factor)) => bounded(i128::from(value) * i128::from(factor)),
        _ => bounded(value.saturating_mul(factor)),
    }
}

/// Whether a number is far from where it saturates.
fn is_near(number: i128) -> bool {
    NEAR.contains(&number)
}

fn bounded(value: i128) -> i128 {
    value.clamp(-FAR, FAR)
}

/// Numbers whose products do not saturate.
const NEAR: std::ops::Range<i128> = 1 - (1 << 62)..1 << 62;

/// A product that saturates at [`FAR`].
pub(in crate::access) fn times(a: i128, b: i128) -> i128 {
    if NEAR.contains(&a) && NEAR.contains(&b) {
        return bounded(i128::from(a as i64) * i128::from(b as i64));
    }
    // Far times anything is far: no overflow below 2^127.
    bounded(a.clamp(-(1 << 62), 1 << 62) * b.clamp(-(1 << 62), 1 << 62) + far_part(a, b))
}

fn far_part(a: i128, b: i128) -> i128 {
    if (a.abs() >= 1 << 62 || b.abs() >= 1 << 62) && a != 0 && b != 0 {
        a.signum() * b.signum() * FAR
    } else {
        0
    }
}

/// Whether a mask keeps all values of a sum that lie between 0 and the mask: it is one run of bits,
/// and the sum is always a multiple of the lowest one.
pub(in crate::access) fn kept_by(sum: Affine<'_>, mask: i128) -> bool {
    let lowest = mask & -mask;
    let multiple = sum.terms.iter().all(|term| term.1 % lowest == 0);
    ((mask / lowest + 1) & (mask / lowest)) == 0 && multiple && sum.constant % lowest == 0
}
