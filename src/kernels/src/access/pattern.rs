//! The bytes that a sum of variables reaches under conditions.

use smallvec::SmallVec;
use streamsan_model::{ByteRange, Extent, StridedPattern};

use super::linear::{FAR, Linear, Variable};

/// What is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    Nothing,
    Runs(Runs, bool),
    /// No bound is known.
    Anywhere,
}

impl Reached {
    /// The same so many bytes further.
    pub(super) fn further(self, by: i128) -> Reached {
        match self {
            Reached::Runs(runs, exact) => {
                let (start, end) = (runs.start + by, runs.end + by);
                Reached::Runs(Runs { start, end, ..runs }, exact)
            }
            other => other,
        }
    }
}

/// Runs of bytes, repeated in rows and slices, counted from what the address counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runs {
    pub(super) start: i128,
    /// Behind the last byte.
    pub(super) end: i128,
    width: i128,
    rows: i128,
    pitch: i128,
    slices: i128,
    slice_pitch: i128,
}

impl Runs {
    /// The bytes, where counting begins at `from`; `None` where there are none. They must lie in
    /// the address space.
    pub(super) fn extent(&self, from: i128) -> Option<Extent> {
        if self.width <= 0 {
            return None;
        }
        let (start, width) = ((from + self.start) as u64, self.width as u64);
        if self.rows == 1 && self.slices == 1 {
            return Some(Extent::Range(ByteRange::with_len(start, width)));
        }
        Extent::strided(StridedPattern {
            start,
            width,
            pitch: self.pitch as u64,
            rows: self.rows as u64,
            slice_pitch: self.slice_pitch as u64,
            slices: self.slices as u64,
        })
    }
}

/// A variable counted from 0, with its column: coefficients in the address and in each guard.
#[derive(Debug, Clone)]
struct Column {
    /// One more than the last value.
    count: i128,
    address: i128,
    guards: SmallVec<[i128; 8]>,
    full: bool,
}

impl Column {
    /// How many times `other`'s coefficients are this one's, if all are.
    fn ratio(&self, other: &Column) -> Option<i128> {
        let mut ratio = None;
        let pairs = [(self.address, other.address)];
        let guards = self.guards.iter().copied().zip(other.guards.iter().copied());
        for (own, others) in pairs.into_iter().chain(guards) {
            match (own, others, ratio) {
                (0, 0, _) => {}
                (0, ..) | (_, 0, _) => return None,
                (_, _, Some(ratio)) if own.saturating_mul(ratio) == others => {}
                (_, _, None) => {
                    let (quotient, rest) = divided(others, own);
                    if rest != 0 {
                        return None;
                    }
                    ratio = Some(quotient);
                }
                _ => return None,
            }
        }
        ratio
    }

    /// Counts from the other end.
    fn flip(&mut self, constant: &mut i128, guards: &mut [i128]) {
        let last = self.count - 1;
        *constant += self.address * last;
        self.address = -self.address;
        for (own, guard) in self.guards.iter_mut().zip(guards) {
            *guard += *own * last;
            *own = -*own;
        }
    }
}

/// Quotient and rest, rounded to zero.
fn divided(number: i128, by: i128) -> (i128, i128) {
    match (i64::try_from(number), i64::try_from(by)) {
        // Most numbers are small, and division of long ones is slow.
        (Ok(number), Ok(by)) if by != -1 => ((number / by).into(), (number % by).into()),
        _ => (number / by, number % by),
    }
}

/// The quotient, rounded down.
fn quotient_below(number: i128, by: i128) -> i128 {
    let (quotient, rest) = divided(number, by);
    quotient - i128::from(rest != 0 && (rest < 0) != (by < 0))
}

/// The bytes `address .. address + length` over all variables for which no guard is negative.
/// `exact` says whether nothing else limits the access, `rounds` of which variables it is known
/// here whether they take all their values.
pub(super) fn reached(
    address: &Linear,
    guards: &[&Linear],
    variables: &[Variable],
    rounds: &[(u32, bool)],
    length: i128,
    mut exact: bool,
) -> Reached {
    let mut constant = address.constant;
    let mut limits: SmallVec<[i128; 8]> = guards.iter().map(|g| g.constant).collect();
    let mut columns: SmallVec<[Column; 8]> = SmallVec::new();
    let mut used: SmallVec<[u32; 16]> = SmallVec::new();
    for sum in guards.iter().chain([&address]) {
        used.extend(sum.terms.iter().map(|term| term.0));
    }
    used.sort_unstable();
    used.dedup();
    for number in used {
        let variable = &variables[number as usize];
        let known = rounds.iter().find(|known| known.0 == number);
        let column = Column {
            count: variable.high - variable.low + 1,
            address: address.coefficient(number),
            guards: guards.iter().map(|g| g.coefficient(number)).collect(),
            full: known.map_or(variable.full, |known| known.1),
        };
        if variable.low <= -FAR {
            // Without a lower end it cannot be counted from 0; a guard may still give it one.
            let below =
                column.guards.iter().enumerate().find(|&(at, &g)| {
                    g == 1 && guards[at].terms.len() == 1 && limits[at].abs() < FAR
                });
            let Some((at, _)) = below else { return Reached::Anywhere };
            let low = -limits[at];
            constant += column.address * low;
            for (limit, g) in limits.iter_mut().zip(&column.guards) {
                *limit += g * low;
            }
            columns.push(Column { count: FAR, full: false, ..column });
            continue;
        }
        constant += column.address * variable.low;
        for (limit, g) in limits.iter_mut().zip(&column.guards) {
            *limit += g * variable.low;
        }
        columns.push(column);
    }
    merge(&mut columns, &mut constant, &mut limits);
    // Guards on one variable cut it.
    for at in 0..guards.len() {
        let mut users = columns.iter_mut().filter(|c| c.guards[at] != 0);
        match (users.next(), users.next()) {
            (None, _) if limits[at] < 0 => return Reached::Nothing,
            (Some(column), None) => {
                let (factor, count) = (column.guards[at], column.count);
                if factor > 0 {
                    let first = -quotient_below(limits[at], factor);
                    if first > 0 {
                        constant += column.address * first;
                        for (limit, g) in limits.iter_mut().zip(&column.guards) {
                            *limit += g * first;
                        }
                        column.count -= first;
                    }
                } else {
                    column.count = column.count.min(quotient_below(limits[at], -factor) + 1);
                }
                if column.count <= 0 {
                    return Reached::Nothing;
                }
                // Which of the remaining values it takes is not known, if any.
                exact &= column.full || column.count == count;
                limits[at] = 0;
                column.guards[at] = 0;
            }
            _ => {}
        }
    }
    // Guards on several: hold always, never, or bound each in turn.
    for at in 0..guards.len() {
        let ends = |c: &Column| {
            let far = c.guards[at].saturating_mul(c.count - 1);
            (far.min(0), far.max(0))
        };
        let (mut low, mut high) = (limits[at], limits[at]);
        for column in columns.iter().filter(|c| c.guards[at] != 0) {
            low = low.saturating_add(ends(column).0);
            high = high.saturating_add(ends(column).1);
        }
        if high < 0 {
            return Reached::Nothing;
        }
        if low >= 0 {
            continue;
        }
        exact = false;
        for column in columns.iter_mut().filter(|c| c.guards[at] < 0) {
            let own = -column.guards[at];
            // All others at their best; a factor below zero is best at 0.
            column.count = column.count.min(quotient_below(high, own) + 1);
        }
    }
    exact &= columns.iter().all(|c| c.full || (c.address == 0 && c.count <= 1));
    columns.retain(|c| c.address != 0 && c.count > 1);
    if columns.iter().any(|c| c.count.saturating_mul(c.address.abs()) >= 1 << 62) {
        return Reached::Anywhere;
    }
    for column in &mut columns {
        if column.address < 0 {
            column.flip(&mut constant, &mut []);
        }
    }
    columns.sort_by_key(|c| c.address);
    shape(constant, length, &columns, exact)
}

/// Makes one variable of two that always occur in one proportion and leave no gap.
fn merge(columns: &mut SmallVec<[Column; 8]>, constant: &mut i128, limits: &mut [i128]) {
    loop {
        let pairs = (0..columns.len())
            .rev()
            .flat_map(|i| (0..columns.len()).rev().filter(move |&j| j != i).map(move |j| (i, j)));
        let mut ratios = pairs.filter_map(|(i, j)| {
            let ratio = columns[i].ratio(&columns[j])?;
            let whole = ratio.abs() <= columns[i].count && (ratio > 0 || columns[j].count < FAR);
            whole.then_some((i, j, ratio))
        });
        let Some((i, j, ratio)) = ratios.next() else { return };
        if ratio < 0 {
            columns[j].flip(constant, limits);
        }
        let (count, full) = (columns[j].count, columns[j].full);
        let more = ratio.abs().saturating_mul(count - 1).min(FAR);
        columns[i].count = (columns[i].count + more).min(FAR);
        columns[i].full &= full;
        columns.remove(j);
    }
}

/// Runs of `length` bytes from `start`, repeated by each column (sorted, all positive).
fn shape(start: i128, length: i128, columns: &[Column], mut exact: bool) -> Reached {
    let (mut width, mut rows, mut pitch, mut slices, mut slice_pitch) = (length, 1, 0, 1, 0);
    for column in columns {
        let (step, more) = (column.address, column.count - 1);
        if rows == 1 && step <= width {
            width += step * more;
        } else if rows == 1 {
            (pitch, rows) = (step, more + 1);
        } else if slices == 1 && step % pitch == 0 && step <= rows * pitch {
            rows += step / pitch * more;
        } else if slices == 1 && step >= rows * pitch {
            (slice_pitch, slices) = (step, more + 1);
        } else if slices > 1 && step % slice_pitch == 0 && step <= slices * slice_pitch {
            slices += step / slice_pitch * more;
        } else {
            // One range around all of it.
            width += (rows - 1) * pitch + (slices - 1) * slice_pitch + step * more;
            (rows, slices) = (1, 1);
            exact = false;
        }
    }
    let end = start + (slices - 1) * slice_pitch + (rows - 1) * pitch + width;
    Reached::Runs(Runs { start, end, width, rows, pitch, slices, slice_pitch }, exact)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{Extent, Linear, Reached, Variable, reached};

    fn linear(constant: i128, coefficients: &[i128]) -> Linear {
        let mut sum = Linear::number(constant);
        for (number, &coefficient) in coefficients.iter().enumerate() {
            let one = Linear { constant: 0, terms: smallvec::smallvec![(number as u32, 1)] };
            sum.add(&one, coefficient);
        }
        sum
    }

    /// Every byte, value by value.
    fn counted(
        (address, guards): (&Linear, &[Linear]),
        counts: &[i128],
        length: i128,
    ) -> BTreeSet<u64> {
        let mut bytes = BTreeSet::new();
        let total: i128 = counts.iter().product();
        for mut number in 0..total {
            let values: Vec<i128> = counts
                .iter()
                .map(|&count| {
                    let value = number % count;
                    number /= count;
                    value
                })
                .collect();
            let at = |sum: &Linear| {
                sum.constant + sum.terms.iter().map(|t| t.1 * values[t.0 as usize]).sum::<i128>()
            };
            if guards.iter().all(|guard| at(guard) >= 0) {
                let start = at(address);
                bytes.extend((start..start + length).map(|byte| byte as u64));
            }
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn sets_cover_what_is_reached_and_equal_it_where_exact(
            counts in prop::collection::vec(1i128..7, 1..4),
            address in prop::collection::vec(-24i128..25, 3),
            guards in prop::collection::vec((prop::collection::vec(-3i128..4, 3), -9i128..20), 0..3),
            composed in any::<bool>(),
            length in 1i128..9,
        ) {
            let mut address = address;
            let mut guards = guards;
            if composed && counts.len() > 1 {
                // As in `block * size + thread`.
                address[1] = address[0] * counts[0];
                guards.iter_mut().for_each(|guard| guard.0[1] = guard.0[0] * counts[0]);
            }
            let target = linear(5000, &address[..counts.len()]);
            let limits: Vec<Linear> =
                guards.iter().map(|(g, limit)| linear(*limit, &g[..counts.len()])).collect();
            let variables: Vec<Variable> = counts
                .iter()
                .map(|&count| Variable { low: 0, high: count - 1, full: true, header: None })
                .collect();
            let truth = counted((&target, &limits), &counts, length);
            let limits: Vec<&Linear> = limits.iter().collect();
            match reached(&target, &limits, &variables, &[], length, true) {
                Reached::Nothing => prop_assert!(truth.is_empty()),
                Reached::Anywhere => prop_assert!(false, "all is bounded"),
                Reached::Runs(found, exact) => {
                    let runs = match found.extent(0) {
                        Some(Extent::Range(range)) => vec![range],
                        Some(Extent::Strided(pattern)) => pattern.runs().collect(),
                        None => vec![],
                    };
                    let found: BTreeSet<u64> =
                        runs.iter().flat_map(|run| run.start..run.end).collect();
                    prop_assert!(truth.is_subset(&found), "{found:?} lacks some of {truth:?}");
                    prop_assert!(!exact || truth == found, "{found:?} is not {truth:?}");
                }
            }
        }
    }
}
