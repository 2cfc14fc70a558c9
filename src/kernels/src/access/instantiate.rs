//! The bytes of one launch: symbolic accesses with grid, block and arguments put in.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use streamsan_model::Extent;

use super::bounds::{Pointers, word_at};
use super::condition::{Condition, Relation};
use super::expression::ExprId;
use super::linear::{Evaluator, Linear};
use super::pattern::{Reached, Runs, reached};
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
    let mut seen = FxHashSet::default();
    let mut evaluator = Evaluator::new(kernel, plan, launch);
    let mut guarded = FxHashMap::default();
    for access in &kernel.accesses {
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
        let reach = match reach_of(&mut evaluator, access, &mut guarded) {
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
        if seen.insert(touched) {
            out.push(touched);
        }
    }
    (out, evaluator.pointers)
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

/// What conditions say.
struct Guarded {
    /// Sums that are not negative.
    guards: SmallVec<[Linear; 6]>,
    /// Those of them that say something and that no other one implies.
    telling: SmallVec<[Linear; 6]>,
    /// Whether they say all of it.
    exact: bool,
    /// Whether they never hold together.
    never: bool,
}

impl Guarded {
    fn by(evaluator: &mut Evaluator<'_>, conditions: &[Condition]) -> Self {
        let mut exact = true;
        let mut guards: SmallVec<[Linear; 6]> = SmallVec::new();
        let mut later: SmallVec<[&Condition; 4]> = SmallVec::new();
        for condition in conditions {
            if evaluator.needs_hold(condition.expression, &[]) {
                exact &= condition_guards(evaluator, condition, &mut guards);
            } else if condition.relation == Relation::AtLeast {
                later.push(condition);
            } else {
                exact = false;
            }
        }
        // What some conditions say may be what others need.
        for condition in later {
            if evaluator.needs_hold(condition.expression, &guards) {
                exact &= condition_guards(evaluator, condition, &mut guards);
            } else {
                exact = false;
            }
        }
        let never = guards.iter().any(|guard| evaluator.interval(guard).1 < 0);
        let mut telling = guards.clone();
        if !never {
            drop_implied(evaluator, &mut telling);
        }
        Self { guards, telling, exact, never }
    }
}

/// Accesses of one kernel share most of their conditions: `guarded` keeps what those say.
fn reach_of<'k>(
    evaluator: &mut Evaluator<'_>,
    access: &'k SymbolicAccess,
    guarded: &mut FxHashMap<&'k [Condition], Guarded>,
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
    let said = guarded
        .entry(&access.conditions)
        .or_insert_with_key(|conditions| Guarded::by(evaluator, conditions));
    if said.never {
        return Reached::Nothing;
    }
    if !evaluator.needs_hold(address, &said.guards) {
        return Reached::Anywhere;
    }
    let exact = access.exact && !most && said.exact;
    let counters: SmallVec<[(usize, u32); 4]> = evaluator
        .variables
        .iter()
        .enumerate()
        .filter_map(|(at, v)| v.header.filter(|_| !v.full).map(|header| (at, header)))
        .collect();
    // One that always holds would only keep variables apart.
    let mut guards = said.telling.clone();
    guards.retain(|guard| evaluator.interval(guard).0 < 0);
    if counters.is_empty() {
        return reached(&target, &guards, &evaluator.variables, bytes, exact);
    }
    let mut variables = evaluator.variables.clone();
    for (at, header) in counters {
        variables[at].full = evaluator.rounds_are_guarded(header, &said.telling);
    }
    reached(&target, &guards, &variables, bytes, exact)
}

/// Drops guards that another one implies.
fn drop_implied(evaluator: &Evaluator<'_>, guards: &mut SmallVec<[Linear; 6]>) {
    let mut at = 0;
    while at < guards.len() {
        let implied = (0..guards.len()).any(|other| {
            let mut slack = guards[at].clone();
            slack.add(&guards[other], -1);
            other != at && evaluator.interval(&slack).0 >= 0
        });
        if implied {
            guards.remove(at);
        } else {
            at += 1;
        }
    }
}

/// A size that the launch tells; with `true` where it is only the largest.
fn whole(evaluator: &mut Evaluator<'_>, expression: ExprId) -> Option<(i128, bool)> {
    let linear = evaluator.linear(expression);
    if !evaluator.needs_hold(expression, &[]) {
        return None;
    }
    let (low, high) = evaluator.interval(&linear);
    (high < 1 << 40).then_some((high.max(0), low != high))
}

/// Adds a condition as sums that are not negative. Returns whether they say all of it.
fn condition_guards(
    evaluator: &mut Evaluator<'_>,
    condition: &Condition,
    guards: &mut SmallVec<[Linear; 6]>,
) -> bool {
    let mut push = |guard: Linear| {
        if !guards.contains(&guard) {
            guards.push(guard);
        }
    };
    if condition.relation == Relation::AtLeast {
        push(evaluator.linear(condition.expression));
        return true;
    }
    let (linear, (low, high)) = evaluator.compared(condition);
    match condition.relation {
        // By how much it is another number plays no part, and a pointer may be in it.
        Relation::Equal if low > 0 || high < 0 => push(Linear::number(-1)),
        Relation::Equal => {
            let mut negated = Linear::default();
            negated.add(&linear, -1);
            push(linear);
            push(negated);
        }
        _ => {
            let mut bound = linear;
            match (low, high) {
                (0, 0) => push(Linear::number(-1)),
                (low, high) if low > 0 || high < 0 => {}
                (0, _) => {
                    bound.constant -= 1;
                    push(bound);
                }
                (_, 0) => {
                    let mut negated = Linear::number(-1);
                    negated.add(&bound, -1);
                    push(negated);
                }
                _ => return false,
            }
        }
    }
    true
}
