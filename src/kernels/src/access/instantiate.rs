//! The bytes of one launch: symbolic accesses with grid, block and arguments put in.

use rustc_hash::FxHashMap;
use streamsan_model::Extent;

use super::bounds::{Pointers, word_at};
use super::evaluator::Evaluator;
use super::expression::ExprId;
use super::guards::Guards;
use super::pattern::{Reached, Runs};
use super::plan::Plan;
use super::result::{Base, KernelAccess, Length, SymbolicAccess, Touch, WordKind};

/// What a launch gives a kernel.
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

/// One access of a launch. Addresses under a module variable count from its start, all others
/// are addresses of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Touched {
    pub base: Base,
    /// Index of the parameter and bytes from its start; 0 for a module variable.
    pub param: u32,
    pub offset: u32,
    pub touch: Touch,
    pub reach: Reach,
    /// This is one of several words that the access may go by: it may not be made at all.
    pub several: bool,
    /// What is read holds pointers that the kernel uses: it reaches what they point to.
    pub leads_on: bool,
}

/// What a launch touches, as far as the kernel's own words and variables tell. Accesses that no
/// thread makes are left out; words that only lead to tables are not in it either.
pub fn instantiate(kernel: &KernelAccess, launch: &Launch<'_>) -> Vec<Touched> {
    work_out(kernel, &Plan::new(kernel), launch).0
}

/// What a launch touches, and between which values its pointers may move along with it.
pub(super) fn work_out(
    kernel: &KernelAccess,
    plan: &Plan,
    launch: &Launch<'_>,
) -> (Vec<Touched>, Pointers) {
    let mut out: Vec<Touched> = Vec::with_capacity(kernel.accesses.len());
    let mut seen = Seen::default();
    let mut evaluator = Evaluator::new(kernel, plan, launch);
    let mut guards = Guards::new(plan);
    for (access, &set) in kernel.accesses.iter().zip(&plan.conditions) {
        let (param, offset, start) = match access.base {
            Base::Pointer(at) => {
                let word = &kernel.pointers[at as usize];
                let start = match word.kind {
                    WordKind::Pointer => word_at(launch.params, word.block_offset),
                    WordKind::TensorMap | WordKind::Handle => 0,
                };
                (word.param, word.offset, start)
            }
            Base::Global(_) => (0, 0, 0),
        };
        let reach = match reach_of(&mut evaluator, &mut guards, set as usize, access) {
            Reached::Nothing => continue,
            Reached::Anywhere => Reach::Anchored { start },
            Reached::Runs(runs, exact) => match place(&mut evaluator, access, &runs) {
                Placed::Nowhere => continue,
                Placed::Beyond => Reach::Anchored { start },
                Placed::At(extent) => Reach::Bytes { extent, exact },
            },
        };
        let SymbolicAccess { base, touch, several, leads_on, .. } = *access;
        let touched = Touched { base, param, offset, touch, reach, several, leads_on };
        if seen.is_new(&touched, &out) {
            out.push(touched);
        }
    }
    (out, evaluator.pointers)
}

/// The accesses of a launch so far: the last one of each base, kind and first byte.
#[derive(Default)]
struct Seen(FxHashMap<(Base, Touch, u64), u32>);

impl Seen {
    /// Whether an access is not among those so far; then it is the next one of them.
    fn is_new(&mut self, touched: &Touched, all: &[Touched]) -> bool {
        let start = match touched.reach {
            Reach::Bytes { extent: Extent::Range(range), .. } => range.start,
            Reach::Bytes { extent: Extent::Strided(pattern), .. } => pattern.start,
            Reach::Anchored { start } => !start,
        };
        let last = self.0.entry((touched.base, touched.touch, start)).or_insert(u32::MAX);
        let new = match all.get(*last as usize) {
            None => true,
            Some(same) if same == touched => false,
            Some(_) => !all.contains(touched),
        };
        if new {
            *last = all.len() as u32;
        }
        new
    }
}

/// Where runs of bytes lie.
enum Placed {
    Nowhere,
    /// Not all of them in the address space.
    Beyond,
    At(Extent),
}

fn place(evaluator: &mut Evaluator<'_>, access: &SymbolicAccess, runs: &Runs) -> Placed {
    let highest = i128::from(u64::MAX);
    let (from, within) = match evaluator.counts_from(access.address) {
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
    runs.extent(from).map_or(Placed::Nowhere, Placed::At)
}

/// What one access reaches.
fn reach_of(
    evaluator: &mut Evaluator<'_>,
    guards: &mut Guards<'_>,
    set: usize,
    access: &SymbolicAccess,
) -> Reached {
    let Some(address) = access.address else { return Reached::Anywhere };
    let (bytes, most) = match access.length {
        Length::Bytes(bytes) => (i128::from(bytes), false),
        Length::AtMost(bytes) => (i128::from(bytes), true),
        Length::Expression(expression) => match whole(evaluator, expression) {
            Some(bytes) => bytes,
            None => return Reached::Anywhere,
        },
        Length::Unknown => return Reached::Anywhere,
    };
    let target = evaluator.linear(address);
    guards.look(set, evaluator);
    let Some(said) = guards.said(set) else { return Reached::Nothing };
    if !evaluator.needs_hold(address, &guards.known(set)) {
        return Reached::Anywhere;
    }
    let target = evaluator.get(target).clone();
    match guards.reached(set, &target, bytes, evaluator) {
        Reached::Runs(runs, exact) => Reached::Runs(runs, exact && access.exact && !most && said),
        other => other,
    }
}

/// A size that the launch tells; with `true` where it is only the largest.
fn whole(evaluator: &mut Evaluator<'_>, expression: ExprId) -> Option<(i128, bool)> {
    let linear = evaluator.linear(expression);
    if !evaluator.needs_hold(expression, &[]) {
        return None;
    }
    let (low, high) = evaluator.interval(evaluator.get(linear));
    (high < 1 << 40).then_some((high.max(0), low != high))
}
