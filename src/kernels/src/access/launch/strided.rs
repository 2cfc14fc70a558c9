//! Strided intervals: the bytes that an affine address reaches under constraints.
//!
//! Stage: the launch, its last step. They are the strided intervals of value-set analysis
//! (Balakrishnan and Reps, CC 2004) with up to three dimensions (width, rows, slices).
//!
//! Invariant: the interval holds every byte that is reached; with `exact` it holds no other.

use streamsan_model::{ByteRange, Extent, StridedPattern};

use crate::access::launch::affine::{Affine, LaunchVariable};

mod dimensions;

use dimensions::{Dimension, DimensionNumber, Dimensions};

/// The bytes that an access reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Footprint {
    Nothing,
    Strided(StridedInterval, bool),
    /// No bound is known.
    Anywhere,
}

impl Footprint {
    /// The footprint, shifted by a number of bytes.
    pub(in crate::access) fn further(self, by: i128) -> Footprint {
        match self {
            Footprint::Strided(runs, exact) => {
                let (start, end) = (runs.start + by, runs.end + by);
                Footprint::Strided(StridedInterval { start, end, ..runs }, exact)
            }
            other => other,
        }
    }
}

/// A strided interval of up to three dimensions: runs of bytes, repeated in rows and slices,
/// counted from what the address counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) struct StridedInterval {
    pub(in crate::access) start: i128,
    /// Behind the last byte.
    pub(in crate::access) end: i128,
    /// These are right where all of it lies in the address space.
    width: u64,
    rows: u64,
    pitch: u64,
    slices: u64,
    slice_pitch: u64,
}

impl StridedInterval {
    /// The bytes, where counting begins at `from`; `None` where there are none. They must lie in
    /// the address space.
    pub(in crate::access) fn extent(&self, from: i128) -> Option<Extent> {
        let StridedInterval { width, rows, pitch, slices, slice_pitch, .. } = *self;
        if self.end <= self.start || width == 0 {
            return None;
        }
        let start = (from + self.start) as u64;
        if rows == 1 && slices == 1 {
            return Some(Extent::Range(ByteRange::with_len(start, width)));
        }
        Extent::strided(StridedPattern { start, width, pitch, rows, slice_pitch, slices })
    }
}

/// Scratch memory to work patterns out in.
#[derive(Debug, Default)]
pub(in crate::access) struct StridedScratch {
    used: Vec<u32>,
    short: Dimensions<i64>,
    long: Dimensions<i128>,
}

/// An access whose address and constraints are known.
#[derive(Debug, Clone, Copy)]
pub(in crate::access) struct AccessTarget<'a> {
    pub(in crate::access) address: Affine<'a>,
    /// None of them is negative where the access is made.
    pub(in crate::access) constraints: &'a [Affine<'a>],
    pub(in crate::access) length: i128,
    pub(in crate::access) variables: &'a [LaunchVariable],
    /// The variables for which it is known here whether they take all their values.
    pub(in crate::access) iterations: &'a [(u32, bool)],
}

/// The bytes `address .. address + length` over all variables for which no constraint is negative.
pub(in crate::access) fn footprint(
    target: &AccessTarget<'_>,
    scratch: &mut StridedScratch,
) -> Footprint {
    let AccessTarget { address, constraints, variables, .. } = *target;
    let StridedScratch { used, short, long } = scratch;
    used.clear();
    used.extend(address.terms.iter().map(|term| term.0));
    if !constraints.is_empty() {
        used.extend(constraints.iter().flat_map(|sum| sum.terms).map(|term| term.0));
        used.sort_unstable();
        used.dedup();
    }
    let is_short = |sum: &Affine<'_>| sum.is_short(variables);
    if is_short(&address) && constraints.iter().all(is_short) {
        clip(short, target, used)
    } else {
        clip(long, target, used)
    }
}

/// The part of the dimensions on which no constraint is negative.
fn clip<N: DimensionNumber>(
    all: &mut Dimensions<N>,
    target: &AccessTarget<'_>,
    used: &[u32],
) -> Footprint {
    if !all.fill(target, used) {
        return Footprint::Anywhere;
    }
    all.merge();
    let Some(exact) = all.clip() else { return Footprint::Nothing };
    let Dimensions { dimensions, constant, .. } = all;
    dimensions.retain(|c| c.address != N::ZERO && c.count > N::ONE);
    if dimensions.iter().any(|c| c.count.times(c.address.magnitude()) >= N::MUCH) {
        return Footprint::Anywhere;
    }
    for dimension in &mut *dimensions {
        if dimension.address < N::ZERO {
            *constant = *constant + dimension.address.times(dimension.count - N::ONE);
            dimension.address = -dimension.address;
        }
    }
    dimensions.sort_by_key(|c| c.address);
    strided_interval(*constant, N::of(target.length), dimensions, exact)
}

/// Runs of `length` bytes from `start`, repeated by each dimension (sorted, all positive).
fn strided_interval<N: DimensionNumber>(
    start: N,
    length: N,
    dimensions: &[Dimension<N>],
    mut exact: bool,
) -> Footprint {
    let (zero, one) = (N::ZERO, N::ONE);
    let (mut width, mut rows, mut pitch, mut slices, mut slice_pitch) =
        (length, one, zero, one, zero);
    for dimension in dimensions {
        let (step, more) = (dimension.address, dimension.count - one);
        if rows == one && step <= width {
            width = width + step * more;
        } else if rows == one {
            (pitch, rows) = (step, more + one);
        } else if slices == one && step <= rows * pitch && step.divided(pitch).1 == zero {
            rows = rows + step.divided(pitch).0 * more;
        } else if slices == one && step >= rows * pitch {
            (slice_pitch, slices) = (step, more + one);
        } else if slices > one
            && step <= slices * slice_pitch
            && step.divided(slice_pitch).1 == zero
        {
            slices = slices + step.divided(slice_pitch).0 * more;
        } else {
            // One range around all of it.
            width = width + (rows - one) * pitch + (slices - one) * slice_pitch + step * more;
            (rows, slices) = (one, one);
            exact = false;
        }
    }
    let end = start + (slices - one) * slice_pitch + (rows - one) * pitch + width;
    let [width, rows, pitch, slices, slice_pitch] =
        [width, rows, pitch, slices, slice_pitch].map(|number| number.into() as u64);
    let (start, end) = (start.into(), end.into());
    Footprint::Strided(
        StridedInterval { start, end, width, rows, pitch, slices, slice_pitch },
        exact,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{
        AccessTarget, Affine, Dimensions, Extent, Footprint, LaunchVariable, StridedScratch, clip,
        footprint,
    };

    fn linear(coefficients: &[i128]) -> Vec<(u32, i128)> {
        let terms = coefficients.iter().enumerate();
        terms.map(|(number, &own)| (number as u32, own)).filter(|term| term.1 != 0).collect()
    }

    /// Every byte, value by value.
    fn counted(
        (address, constraints): (Affine<'_>, &[Affine<'_>]),
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
            let at = |sum: Affine<'_>| {
                sum.constant + sum.terms.iter().map(|t| t.1 * values[t.0 as usize]).sum::<i128>()
            };
            if constraints.iter().all(|&constraint| at(constraint) >= 0) {
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
            constraints in prop::collection::vec(
                (prop::collection::vec(-3i128..4, 3), -9i128..20),
                0..3,
            ),
            composed in any::<bool>(),
            length in 1i128..9,
        ) {
            let mut address = address;
            let mut constraints = constraints;
            if composed && counts.len() > 1 {
                // As in `block * size + thread`.
                address[1] = address[0] * counts[0];
                constraints.iter_mut().for_each(|own| own.0[1] = own.0[0] * counts[0]);
            }
            let terms = linear(&address[..counts.len()]);
            let target = Affine { constant: 5000, terms: &terms };
            let of_constraints: Vec<_> =
                constraints.iter().map(|(g, limit)| (*limit, linear(&g[..counts.len()]))).collect();
            let limits: Vec<Affine<'_>> = of_constraints
                .iter()
                .map(|(constant, terms)| Affine { constant: *constant, terms })
                .collect();
            let variables: Vec<LaunchVariable> = counts
                .iter()
                .map(|&count| LaunchVariable { low: 0, high: count - 1, full: true, header: None })
                .collect();
            let truth = counted((target, &limits), &counts, length);
            let target = AccessTarget {
                address: target,
                constraints: &limits,
                length,
                variables: &variables,
                iterations: &[],
            };
            let found = footprint(&target, &mut StridedScratch::default());
            let used: Vec<u32> = (0..counts.len() as u32).collect();
            prop_assert_eq!(found, clip(&mut Dimensions::<i128>::default(), &target, &used));
            match found {
                Footprint::Nothing => prop_assert!(truth.is_empty()),
                Footprint::Anywhere => prop_assert!(false, "all is bounded"),
                Footprint::Strided(found, exact) => {
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
