//! Sums of variables (threads, blocks, rounds of loops) with numbers.

use smallvec::SmallVec;

/// Beyond every address: a variable without a bound.
pub(super) const FAR: i128 = 1 << 80;

/// A quantity that differs between threads, rounds or runs: every integer from `low` to `high`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variable {
    pub(super) low: i128,
    pub(super) high: i128,
    /// Whether it really takes all these values, whatever the others are.
    pub(super) full: bool,
    /// The loop whose rounds it counts.
    pub(super) header: Option<u32>,
}

/// `constant` plus the sum of `coefficient * variable`, sorted by variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) constant: i128,
    pub(super) terms: SmallVec<[(u32, i128); 3]>,
}

impl Linear {
    pub(super) fn number(constant: i128) -> Linear {
        Linear { constant, terms: SmallVec::new() }
    }

    pub(super) fn as_number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub(super) fn coefficient(&self, variable: u32) -> i128 {
        self.terms.iter().find(|t| t.0 == variable).map_or(0, |t| t.1)
    }

    /// Adds `factor * other`.
    pub(super) fn add(&mut self, other: &Linear, factor: i128) {
        self.constant = bounded(self.constant + scaled(other.constant, factor));
        for &(variable, coefficient) in &other.terms {
            let more = scaled(coefficient, factor);
            if more != 0 && self.terms.last().is_none_or(|last| last.0 < variable) {
                self.terms.push((variable, more));
                continue;
            }
            match self.terms.binary_search_by_key(&variable, |t| t.0) {
                Ok(at) => {
                    self.terms[at].1 = bounded(self.terms[at].1 + more);
                    if self.terms[at].1 == 0 {
                        self.terms.remove(at);
                    }
                }
                Err(at) if more != 0 => self.terms.insert(at, (variable, more)),
                Err(_) => {}
            }
        }
    }
}

/// Whether both are sums of the same variables, the one with `factor` times the other's
/// coefficients.
pub(super) fn are_alike(a: &Linear, b: &Linear, factor: i128) -> bool {
    a.terms.len() == b.terms.len()
        && a.terms.iter().zip(&b.terms).all(|(a, b)| a.0 == b.0 && a.1 == b.1 * factor)
}

/// The least and the greatest value of a sum.
pub(super) fn interval(sum: &Linear, variables: &[Variable]) -> (i128, i128) {
    let (mut low, mut high) = (sum.constant, sum.constant);
    for &(variable, coefficient) in &sum.terms {
        let v = &variables[variable as usize];
        let (a, b) = (times(v.low, coefficient), times(v.high, coefficient));
        low = bounded(low + a.min(b));
        high = bounded(high + a.max(b));
    }
    (low, high)
}

/// The least value of `a - b`.
pub(super) fn least_difference(a: &Linear, b: &Linear, variables: &[Variable]) -> i128 {
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
pub(super) fn scaled(value: i128, factor: i128) -> i128 {
    match (i64::try_from(value), i64::try_from(factor)) {
        (Ok(value), Ok(factor)) => bounded(i128::from(value) * i128::from(factor)),
        _ => bounded(value.saturating_mul(factor)),
    }
}

fn bounded(value: i128) -> i128 {
    value.clamp(-FAR, FAR)
}

pub(super) fn times(a: i128, b: i128) -> i128 {
    const NEAR: std::ops::Range<i128> = 1 - (1 << 62)..1 << 62;
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
pub(super) fn kept_by(sum: &Linear, mask: i128) -> bool {
    let lowest = mask & -mask;
    let multiple = sum.terms.iter().all(|term| term.1 % lowest == 0);
    ((mask / lowest + 1) & (mask / lowest)) == 0 && multiple && sum.constant % lowest == 0
}
