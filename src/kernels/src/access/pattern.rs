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

/// A variable counted from 0, with its coefficient in the address.
#[derive(Debug, Clone, Copy)]
struct Column {
    /// One more than the last value.
    count: i128,
    address: i128,
    full: bool,
    /// Where it counts: the lowest bit for the address, then one for each of the first guards.
    counts: u64,
}

/// Coefficients of variables in guards: those of one variable in all guards follow each other.
struct Table {
    guards: usize,
    all: SmallVec<[i128; 24]>,
}

impl Table {
    fn of(&self, column: usize) -> &[i128] {
        &self.all[column * self.guards..][..self.guards]
    }

    fn at(&self, column: usize, guard: usize) -> i128 {
        self.all[column * self.guards + guard]
    }
}

/// Variables and what becomes of them.
struct Columns {
    columns: SmallVec<[Column; 8]>,
    table: Table,
    /// The number of the address, and those of the guards.
    constant: i128,
    limits: SmallVec<[i128; 8]>,
}

impl Columns {
    /// How many times the coefficients of `j` are those of `i`, if all are.
    fn ratio(&self, i: usize, j: usize) -> Option<i128> {
        if self.columns[i].counts != self.columns[j].counts {
            return None;
        }
        let mut ratio = None;
        let pairs = [(self.columns[i].address, self.columns[j].address)];
        let guards = self.table.of(i).iter().copied().zip(self.table.of(j).iter().copied());
        for (own, others) in pairs.into_iter().chain(guards) {
            match (own, others, ratio) {
                (0, 0, _) => {}
                (0, ..) | (_, 0, _) => return None,
                (_, _, Some(ratio)) if product(own, ratio) == others => {}
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

    /// Counts from so much further.
    fn shift(&mut self, column: usize, by: i128) {
        self.constant += self.columns[column].address * by;
        for (limit, own) in self.limits.iter_mut().zip(self.table.of(column)) {
            *limit += own * by;
        }
    }

    /// Counts from the other end.
    fn flip(&mut self, column: usize) {
        self.shift(column, self.columns[column].count - 1);
        self.columns[column].address = -self.columns[column].address;
        let guards = self.table.guards;
        for own in &mut self.table.all[column * guards..][..guards] {
            *own = -*own;
        }
    }

    fn remove(&mut self, column: usize) {
        self.columns.remove(column);
        let from = column * self.table.guards;
        self.table.all.drain(from..from + self.table.guards);
    }

    /// Makes one variable of two that always occur in one proportion and leave no gap.
    fn merge(&mut self) {
        loop {
            let count = self.columns.len();
            let pairs = (0..count)
                .rev()
                .flat_map(|i| (0..count).rev().filter(move |&j| j != i).map(move |j| (i, j)));
            let mut ratios = pairs.filter_map(|(i, j)| {
                let ratio = self.ratio(i, j)?;
                let whole = ratio.abs() <= self.columns[i].count
                    && (ratio > 0 || self.columns[j].count < FAR);
                whole.then_some((i, j, ratio))
            });
            let Some((i, j, ratio)) = ratios.next() else { return };
            if ratio < 0 {
                self.flip(j);
            }
            let Column { count, full, .. } = self.columns[j];
            let more = product(ratio.abs(), count - 1).min(FAR);
            let own = &mut self.columns[i];
            own.count = (own.count + more).min(FAR);
            own.full &= full;
            self.remove(j);
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

/// A product, cut where numbers end.
fn product(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(a), Ok(b)) => i128::from(a) * i128::from(b),
        _ => a.saturating_mul(b),
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
    address: Linear<'_>,
    guards: &[Linear<'_>],
    variables: &[Variable],
    rounds: &[(u32, bool)],
    length: i128,
    exact: bool,
) -> Reached {
    let mut used: SmallVec<[u32; 16]> = address.terms.iter().map(|term| term.0).collect();
    if !guards.is_empty() {
        used.extend(guards.iter().flat_map(|sum| sum.terms).map(|term| term.0));
        used.sort_unstable();
        used.dedup();
    }
    let mut all = Columns {
        columns: SmallVec::new(),
        table: Table { guards: guards.len(), all: SmallVec::new() },
        constant: address.constant,
        limits: guards.iter().map(|g| g.constant).collect(),
    };
    for (at, number) in used.into_iter().enumerate() {
        let variable = &variables[number as usize];
        let known = rounds.iter().find(|known| known.0 == number);
        let coefficient = address.coefficient(number);
        let mut counts = u64::from(coefficient != 0);
        for (at, guard) in guards.iter().enumerate() {
            let coefficient = guard.coefficient(number);
            counts |= u64::from(coefficient != 0 && at < 63) << ((at + 1) % 64);
            all.table.all.push(coefficient);
        }
        all.columns.push(Column {
            count: variable.high - variable.low + 1,
            address: coefficient,
            full: known.map_or(variable.full, |known| known.1),
            counts,
        });
        let mut low = variable.low;
        if low <= -FAR {
            // Without a lower end it cannot be counted from 0; a guard may still give it one.
            let below = all.table.of(at).iter().enumerate().find(|&(at, &g)| {
                g == 1 && guards[at].terms.len() == 1 && all.limits[at].abs() < FAR
            });
            let Some((below, _)) = below else { return Reached::Anywhere };
            low = -all.limits[below];
            (all.columns[at].count, all.columns[at].full) = (FAR, false);
        }
        if low != 0 {
            all.shift(at, low);
        }
    }
    all.merge();
    cut(all, length, exact)
}

/// What is left where no guard is negative.
fn cut(mut all: Columns, length: i128, mut exact: bool) -> Reached {
    // Guards on one variable cut it.
    for at in 0..all.table.guards {
        let mut users = (0..all.columns.len()).filter(|&column| all.table.at(column, at) != 0);
        match (users.next(), users.next()) {
            (None, _) if all.limits[at] < 0 => return Reached::Nothing,
            (Some(column), None) => {
                let (factor, count) = (all.table.at(column, at), all.columns[column].count);
                if factor > 0 {
                    let first = -quotient_below(all.limits[at], factor);
                    if first > 0 {
                        all.shift(column, first);
                        all.columns[column].count -= first;
                    }
                } else {
                    all.columns[column].count =
                        count.min(quotient_below(all.limits[at], -factor) + 1);
                }
                let own = &all.columns[column];
                if own.count <= 0 {
                    return Reached::Nothing;
                }
                // Which of the remaining values it takes is not known, if any.
                exact &= own.full || own.count == count;
                all.limits[at] = 0;
                all.table.all[column * all.table.guards + at] = 0;
            }
            _ => {}
        }
    }
    let Columns { mut columns, table, mut constant, limits } = all;
    // Guards on several: hold always, never, or bound each in turn.
    for (at, &limit) in limits.iter().enumerate() {
        let (mut low, mut high) = (limit, limit);
        for (number, column) in columns.iter().enumerate() {
            let far = product(table.at(number, at), column.count - 1);
            low = low.saturating_add(far.min(0));
            high = high.saturating_add(far.max(0));
        }
        if high < 0 {
            return Reached::Nothing;
        }
        if low >= 0 {
            continue;
        }
        exact = false;
        for (number, column) in columns.iter_mut().enumerate() {
            let own = -table.at(number, at);
            if own > 0 {
                // All others at their best; a factor below zero is best at 0.
                column.count = column.count.min(quotient_below(high, own) + 1);
            }
        }
    }
    exact &= columns.iter().all(|c| c.full || (c.address == 0 && c.count <= 1));
    columns.retain(|c| c.address != 0 && c.count > 1);
    if columns.iter().any(|c| product(c.count, c.address.abs()) >= 1 << 62) {
        return Reached::Anywhere;
    }
    for column in &mut columns {
        if column.address < 0 {
            constant += column.address * (column.count - 1);
            column.address = -column.address;
        }
    }
    columns.sort_by_key(|c| c.address);
    shape(constant, length, &columns, exact)
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

    fn linear(coefficients: &[i128]) -> Vec<(u32, i128)> {
        let terms = coefficients.iter().enumerate();
        terms.map(|(number, &own)| (number as u32, own)).filter(|term| term.1 != 0).collect()
    }

    /// Every byte, value by value.
    fn counted(
        (address, guards): (Linear<'_>, &[Linear<'_>]),
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
            let at = |sum: Linear<'_>| {
                sum.constant + sum.terms.iter().map(|t| t.1 * values[t.0 as usize]).sum::<i128>()
            };
            if guards.iter().all(|&guard| at(guard) >= 0) {
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
            let terms = linear(&address[..counts.len()]);
            let target = Linear { constant: 5000, terms: &terms };
            let of_guards: Vec<_> =
                guards.iter().map(|(g, limit)| (*limit, linear(&g[..counts.len()]))).collect();
            let limits: Vec<Linear<'_>> = of_guards
                .iter()
                .map(|(constant, terms)| Linear { constant: *constant, terms })
                .collect();
            let variables: Vec<Variable> = counts
                .iter()
                .map(|&count| Variable { low: 0, high: count - 1, full: true, header: None })
                .collect();
            let truth = counted((target, &limits), &counts, length);
            match reached(target, &limits, &variables, &[], length, true) {
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
