//! The bytes of one launch: a summary instantiated with grid, block and arguments.
//!
//! Stage: the launch. Each access goes through three steps: its address becomes an affine
//! expression ([`evaluator`](super::evaluator)), its conditions become a constraint set
//! ([`constraints`](super::constraints)), and both become a strided interval
//! ([`strided`](super::strided)).
//!
//! Invariant: every byte that a thread accesses lies in a [`Touched`] of the same base. An address
//! whose no-wrap conditions this launch does not prove reaches anything from its pointer on.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use streamsan_model::Extent;

use crate::access::domain::expression::ExprId;
use crate::access::fixpoint::grid_control::Waited;
use crate::access::launch::constraints::{ConstraintScratch, Constraints};
use crate::access::launch::evaluator::{Evaluator, EvaluatorScratch, ImpliedBounds};
use crate::access::launch::hash_index::HashIndex;
use crate::access::launch::plan::{Plan, Planned};
use crate::access::launch::strided::{Footprint, StridedInterval};
use crate::access::launch::translation_bounds::{TranslatedPointers, word_at};
use crate::access::summary::result::{Base, KernelAccess, Length, Touch};

/// The numbers that a launch gives to a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// The parameter block, as the driver lays it out.
    pub params: &'a [u8],
}

/// How far an access reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Nothing outside of `extent`; with `exact`, all of it.
    Bytes { extent: Extent, exact: bool },
    /// Somewhere in what the pointer points into; its value is `start`.
    Anchored { start: u64 },
}

/// One access of a launch. An address under a module variable is relative to the variable's start,
/// an address under a pointer in a variable to that pointer's target; all others are addresses of
/// the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Touched {
    pub base: Base,
    /// Index of the parameter and bytes from its start; 0 where the base is no parameter.
    pub param: u32,
    pub offset: u32,
    pub touch: Touch,
    pub reach: Reach,
    /// Whether the access comes behind the kernel's wait for its prerequisite grids.
    pub waited: Waited,
    /// This is one of several words that the access may go by: it may not be made at all.
    pub several: bool,
    /// Whether the access reads pointers that the kernel uses, so that the kernel reaches their
    /// targets.
    pub leads_on: bool,
}

/// Scratch memory to work launches out in, for the next one to use again: whose kernel it is does
/// not matter.
#[derive(Debug, Default)]
pub struct Workspace {
    values: EvaluatorScratch,
    constraints: ConstraintScratch,
    numbers: HashIndex,
    touched: Vec<Touched>,
    told: Told,
}

impl Workspace {
    /// The accesses of the launch that was computed last.
    pub(in crate::access) fn touched(&mut self) -> &mut Vec<Touched> {
        &mut self.touched
    }
}

/// The accesses of a launch, as far as the kernel's own words and variables determine them.
/// Accesses that no thread makes are left out, and so are words that only lead to tables.
pub fn instantiate(kernel: &KernelAccess, launch: &Launch<'_>) -> Vec<Touched> {
    let mut workspace = Workspace::default();
    work_out(kernel, &Plan::new(kernel), launch, &mut workspace);
    workspace.touched
}

/// The accesses whose bytes are in the result: by their number without conditions, their reduced
/// set, and whether the constraints and the no-wrap conditions hold. Another access that is the
/// same in all of these reaches the same bytes.
#[derive(Debug, Default)]
struct Told {
    numbers: HashIndex,
    all: Vec<Option<(u32, u32, bool, bool)>>,
}

impl Told {
    fn clear(&mut self, expected: usize) {
        self.numbers.clear(expected);
        self.all.clear();
    }

    /// The number of this one, and whether it was not told yet.
    fn number(&mut self, own: (u32, u32, bool, bool)) -> (usize, bool) {
        let mut hash = FxHasher::default();
        (own.0, own.1).hash(&mut hash);
        let (number, new) = self.numbers.number(hash.finish(), |at| self.all[at] == Some(own));
        if new {
            self.all.push(Some(own));
        }
        (number, new)
    }

    /// The next one like this has to be told again.
    fn forget(&mut self, number: usize) {
        self.all[number] = None;
    }
}

/// Computes the accesses of a launch into the workspace, and the bounds within which its pointers
/// may move together with the accesses.
pub(in crate::access) fn work_out(
    kernel: &KernelAccess,
    plan: &Plan,
    launch: &Launch<'_>,
    workspace: &mut Workspace,
) -> TranslatedPointers {
    let Workspace { values, constraints, numbers, touched: out, told } = workspace;
    out.clear();
    numbers.clear(plan.accesses.len());
    told.clear(plan.accesses.len());
    let mut evaluator = Evaluator::new(kernel, plan, launch, values);
    let mut constraints = Constraints::new(plan, constraints);
    for access in &plan.accesses {
        let reach = match reach_of(&mut evaluator, &mut constraints, told, access) {
            Footprint::Nothing => Placed::Nowhere,
            Footprint::Anywhere => Placed::Beyond,
            Footprint::Strided(runs, exact) => place(&mut evaluator, access, &runs, exact),
        };
        let reach = match reach {
            Placed::Nowhere => continue,
            Placed::Beyond => access.anchored(launch),
            Placed::At(extent, exact) => Reach::Bytes { extent, exact },
        };
        let touched = access.touched(reach);
        if access.alone {
            numbers.skip();
        } else if !numbers.number(hash(&touched), |at| out[at] == touched).1 {
            continue;
        }
        out.push(touched);
    }
    evaluator.pointers
}

/// The accesses of a launch that the values of pointers alone determine.
pub(in crate::access) fn read_off(plan: &Plan, launch: &Launch<'_>, workspace: &mut Workspace) {
    workspace.touched.clear();
    let touched = plan.accesses.iter().map(|access| access.touched(access.anchored(launch)));
    workspace.touched.extend(touched);
}

impl Planned {
    fn anchored(&self, launch: &Launch<'_>) -> Reach {
        let start = self.pointer.map_or(0, |offset| word_at(launch.params, offset));
        Reach::Anchored { start }
    }

    fn touched(&self, reach: Reach) -> Touched {
        let Planned { base, param, offset, touch, waited, several, leads_on, .. } = *self;
        Touched { base, param, offset, touch, reach, waited, several, leads_on }
    }
}

/// A hash of the fields that mostly tell accesses apart.
fn hash(touched: &Touched) -> u64 {
    let start = match touched.reach {
        Reach::Bytes { extent: Extent::Range(range), .. } => range.start,
        Reach::Bytes { extent: Extent::Strided(pattern), .. } => pattern.start,
        Reach::Anchored { start } => !start,
    };
    let base = match touched.base {
        Base::Pointer(at) => at,
        Base::Global(at) => !at,
        Base::GlobalPointer(at) => at | 1 << 31,
    };
    let mut hash = FxHasher::default();
    (base, touched.touch as u8, start).hash(&mut hash);
    hash.finish()
}

/// Where runs of bytes lie.
enum Placed {
    Nowhere,
    /// Not all of them in the address space, or not known.
    Beyond,
    At(Extent, bool),
}

fn place(
    evaluator: &mut Evaluator<'_>,
    access: &Planned,
    runs: &StridedInterval,
    exact: bool,
) -> Placed {
    let highest = i128::from(u64::MAX);
    let address = access.reach.map(|(address, _)| address);
    let (from, within) = match evaluator.counts_from(address) {
        Some(pointer) => {
            let from = pointer.number();
            let within = pointer.at_least(from + runs.start, 0);
            (from, within && pointer.at_most(from + runs.end, highest))
        }
        None => (0, runs.start >= 0 && runs.end <= highest),
    };
    if !within {
        return Placed::Beyond;
    }
    runs.extent(from).map_or(Placed::Nowhere, |extent| Placed::At(extent, exact))
}

/// The footprint of one access; nothing where another access has the same.
fn reach_of(
    evaluator: &mut Evaluator<'_>,
    constraints: &mut Constraints<'_>,
    told: &mut Told,
    access: &Planned,
) -> Footprint {
    let Some((address, length)) = access.reach else { return Footprint::Anywhere };
    let (bytes, most) = match length {
        Length::Bytes(bytes) => (i128::from(bytes), false),
        Length::AtMost(bytes) => (i128::from(bytes), true),
        Length::Expression(expression) => match whole(evaluator, expression) {
            Some(bytes) => bytes,
            None => return Footprint::Anywhere,
        },
        Length::Unknown => return Footprint::Anywhere,
    };
    let Some((reduced, said)) = constraints.look(access.conjunction, evaluator) else {
        return Footprint::Nothing;
    };
    let holds = evaluator.no_wraps_are_proven(address)
        || evaluator.no_wraps_hold(address, &constraints.implied(access.conjunction));
    let (number, new) = told.number((access.alike, reduced, said, holds));
    if !new {
        return Footprint::Nothing;
    }
    if !holds {
        return Footprint::Anywhere;
    }
    let target = evaluator.affine(address);
    let (footprint, differs) = constraints.footprint(access.conjunction, target, bytes, evaluator);
    if differs {
        told.forget(number);
    }
    match footprint {
        Footprint::Strided(runs, exact) => {
            Footprint::Strided(runs, exact && access.exact && !most && said)
        }
        other => other,
    }
}

/// A size that the launch tells; with `true` where it is only the largest.
fn whole(evaluator: &mut Evaluator<'_>, expression: ExprId) -> Option<(i128, bool)> {
    let affine = evaluator.affine(expression);
    if !evaluator.no_wraps_hold(expression, &ImpliedBounds::NONE) {
        return None;
    }
    let (low, high) = evaluator.interval(affine);
    (high < 1 << 40).then_some((high.max(0), low != high))
}
