//! Programmatic dependent launch: the accesses behind `griddepcontrol.wait`, and the place where a
//! kernel lets its dependents begin.
//!
//! Stage: the fixpoint. Invariant: an access counts as behind the wait only if the wait happens
//! before it on every path.
//!
//! PTX ISA, `griddepcontrol`: the wait "causes the executing thread to wait until all prerequisite
//! grids in flight have completed and all the memory operations from the prerequisite grids are
//! performed and made visible to the current grid". The wait thus holds back the threads that
//! execute it, and the memory that it makes visible is visible to the whole grid. Other threads of
//! the block are behind the wait where they synchronise with a thread that is: `bar.sync` and
//! `barrier.sync` of all threads of the block guarantee that the memory accesses before the barrier
//! "are performed relative to all threads participating in the barrier", `barrier.cluster` does so
//! for the cluster (PTX ISA, `bar`, `barrier.cluster`).
//!
//! An access is behind the wait if on every path to it the thread has passed the wait, or a barrier
//! of all threads that some thread of each block reaches behind the wait. The analysis proves that
//! a thread certainly reaches a place only for thread 0, whose branches are decided by constants.
//!
//! Barriers of some threads, `mbarrier` objects, and barriers that a waiting thread may or may not
//! reach are not followed: accesses behind them are *perhaps* behind the wait.
//!
//! Deliberately absent: `fence` in front of a trigger, which the newest PTX ISA lets synchronise
//! with the begin of the dependents. Few kernels have one; accesses that it orders count as
//! unordered.

use std::cell::Cell;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use streamsan_model::Trigger;

use crate::access::domain::condition::{Condition, Relation};
use crate::access::domain::expression::{ExprId, Index, Operator, Symbol, SymbolId};
use crate::access::domain::path_condition::PathCondition;
use crate::access::fixpoint::interpret::{Interpreter, State};
use crate::access::lower::control_flow::Graph;
use crate::access::lower::sass::Operation;
use crate::access::lower::steps::Step;

/// Number of visits of expressions for one question about thread 0. Few operations identify such a
/// thread; expressions share their parts, so that visiting all of them could take for ever.
const MOST_LOOKS: u32 = 1_000;

/// Whether something comes behind the wait for the prerequisite grids.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Waited {
    /// The access may happen before the wait.
    #[default]
    No,
    /// The access comes behind a synchronisation with threads that may have waited.
    Perhaps,
    /// The access comes behind the wait.
    Yes,
}

impl Waited {
    /// The words of tables.
    pub const fn description(self) -> &'static str {
        match self {
            Waited::No => "before the wait",
            Waited::Perhaps => "perhaps behind the wait",
            Waited::Yes => "behind the wait",
        }
    }
}

/// The wait that the threads at a place have passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::access) struct Passed {
    pub(in crate::access) waited: Waited,
    /// In each block some thread that comes here is behind the wait.
    some: bool,
    /// The wait that the thread had passed when it arrived at the barrier of its cluster.
    arrived: bool,
}

impl Passed {
    /// The state that holds on all of several paths.
    pub(in crate::access) fn on_all(self, other: Passed) -> Passed {
        Passed {
            waited: self.waited.min(other.waited),
            some: self.holds_some() && other.holds_some(),
            arrived: self.arrived && other.arrived,
        }
    }

    /// Whether some thread of each block that comes here is behind the wait.
    pub(in crate::access) fn holds_some(self) -> bool {
        self.some || self.waited == Waited::Yes
    }

    /// The same, where some thread of each block may be known to be behind the wait.
    pub(in crate::access) fn with_some(self, some: bool) -> Passed {
        Passed { some: self.some || some, ..self }
    }
}

/// A synchronisation of the threads of a block or cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Meeting {
    /// All threads of the block arrive and wait.
    Block,
    /// The thread arrives at the barrier of all threads of its cluster.
    ClusterArrive,
    /// Waits for the other threads to arrive at the cluster's barrier.
    ClusterWait,
    /// Tells other threads that this thread has come here.
    Signal,
    /// Waits for some threads, or for memory that is loaded.
    Some,
}

/// The threads whose value is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lanes {
    /// The value in thread 0.
    Zero,
    /// The value, if it is the same in all threads of the warp.
    All,
}

/// The role of a step in programmatic dependent launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Control {
    Wait,
    Trigger,
    Meet(Meeting),
}

impl Control {
    /// The role of a step; `None` for most steps.
    pub(in crate::access) fn of(step: &Step<'_>) -> Option<Control> {
        if let Some(lifted) = &step.machine {
            return match lifted.operation {
                Operation::Wait => Some(Control::Wait),
                Operation::Trigger => Some(Control::Trigger),
                Operation::Meet(meeting) => Some(Control::Meet(meeting)),
                _ => None,
            };
        }
        let instruction = step.instruction?;
        let has = |word| instruction.has(word);
        let meeting = match instruction.opcode.as_str() {
            "griddepcontrol" if has("wait") => return Some(Control::Wait),
            "griddepcontrol" => return Some(Control::Trigger),
            "bar" if has("warp") => return None,
            "barrier" if has("cluster") && has("arrive") => Meeting::ClusterArrive,
            "barrier" if has("cluster") => Meeting::ClusterWait,
            "bar" | "barrier" if has("arrive") => Meeting::Signal,
            // `bar.sync a` and `bar.red.popc.u32 d, a, c` are of all threads; one operand more
            // counts the threads.
            "bar" | "barrier" => {
                let operands = if has("red") { 3 } else { 1 };
                if step.args.len() == operands { Meeting::Block } else { Meeting::Some }
            }
            "mbarrier" if has("test_wait") || has("try_wait") => Meeting::Some,
            "mbarrier" => Meeting::Signal,
            // Both end at an `mbarrier`, or in a group that the thread waits for itself.
            "cp" if has("bulk") || has("mbarrier") => Meeting::Signal,
            _ => return None,
        };
        Some(Control::Meet(meeting))
    }
}

/// For each step, whether a wait may have been executed before it, and whether any step behind a
/// wait signals other threads.
#[derive(Debug, Default)]
pub(in crate::access) struct Reached {
    behind_wait: Vec<bool>,
    signals: bool,
}

impl Reached {
    /// Data flow over the graph: a wait reaches what comes behind it.
    pub(in crate::access) fn new(steps: &[Step<'_>], graph: &Graph) -> Reached {
        let is_wait = |step: &Step<'_>| Control::of(step) == Some(Control::Wait);
        if !steps.iter().any(is_wait) {
            return Reached::default();
        }
        let mut out = vec![false; graph.blocks.len()];
        let into = |block: usize, out: &[bool]| {
            graph.blocks[block].predecessors.iter().any(|&before| out[before])
        };
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &number in &graph.order {
                let block = &graph.blocks[number];
                let own = steps[block.first..block.end].iter().any(is_wait);
                if !out[number] && (own || into(number, &out)) {
                    (out[number], changed) = (true, true);
                }
            }
        }
        let mut behind_wait = vec![false; steps.len()];
        for (number, block) in graph.blocks.iter().enumerate() {
            let mut behind = into(number, &out);
            for at in block.first..block.end {
                behind_wait[at] = behind;
                behind |= is_wait(&steps[at]);
            }
        }
        let signals = steps.iter().zip(&behind_wait).any(|(step, &behind)| {
            let signal =
                [Meeting::Signal, Meeting::Some].map(|meeting| Some(Control::Meet(meeting)));
            behind && signal.contains(&Control::of(step))
        });
        Reached { behind_wait, signals }
    }
}

impl Interpreter<'_> {
    /// Interprets what a step has to do with programmatic dependent launch.
    pub(in crate::access) fn control(&mut self, step: usize, control: Control, state: &mut State) {
        let guard = self.flat.steps[step].guard;
        let passed = &mut state.passed;
        match control {
            Control::Trigger => {
                let here = match passed.waited {
                    Waited::Yes => Trigger::BehindWait,
                    Waited::Perhaps | Waited::No => Trigger::Early,
                };
                self.effects.trigger = self.effects.trigger.max(here);
            }
            Control::Wait => {
                self.effects.waits = true;
                match guard {
                    None => *passed = Passed { waited: Waited::Yes, some: true, ..*passed },
                    Some((register, negated)) => {
                        let known = self.implied(state, register, !negated);
                        let decided = state.exact
                            && known.complete
                            && known.conditions.iter().all(|own| self.holds_for_first(own))
                            && state.path.iter().all(|condition| self.includes_first(condition));
                        state.passed = state.passed.with_some(decided);
                    }
                }
            }
            Control::Meet(meeting) => {
                let some = passed.holds_some();
                let may = self.reached.behind_wait.get(step).copied().unwrap_or(false);
                // A guard leaves some threads out.
                let meets = match meeting {
                    Meeting::Signal => return,
                    Meeting::ClusterArrive => {
                        passed.arrived = some && guard.is_none();
                        return;
                    }
                    Meeting::Block => some && guard.is_none(),
                    Meeting::ClusterWait => std::mem::take(&mut passed.arrived) && guard.is_none(),
                    Meeting::Some => false,
                };
                let perhaps = match meeting {
                    Meeting::Some => may || self.reached.signals,
                    _ => may,
                };
                let waited = match (meets, perhaps) {
                    (true, _) => Waited::Yes,
                    (_, true) => Waited::Perhaps,
                    _ => Waited::No,
                };
                passed.waited = passed.waited.max(waited);
            }
        }
    }

    /// Whether thread 0 of each block comes by one of several paths, and the others too come here.
    pub(in crate::access) fn includes_first_thread(
        &mut self,
        path: &PathCondition,
        exact: bool,
        shared: &PathCondition,
    ) -> bool {
        exact
            && path.iter().all(|condition| match shared.contains(condition) {
                true => self.includes_first(condition),
                false => self.holds_for_first(condition),
            })
    }

    /// Whether a condition holds for thread 0 of every block.
    fn holds_for_first(&self, condition: &Condition) -> bool {
        let no_wraps = &self.interner.get(condition.expression).no_wraps;
        let met = no_wraps.iter().all(|no_wrap| {
            let value = self.first(no_wrap.expression, Lanes::Zero);
            value.is_some_and(|value| (no_wrap.low..=no_wrap.high).contains(&value))
        });
        match (self.first(condition.expression, Lanes::Zero), condition.relation) {
            _ if !met => false,
            (Some(value), Relation::AtLeast) => value >= 0,
            (Some(value), Relation::Equal) => value == 0,
            (Some(value), Relation::Differs) => value != 0,
            (None, _) => false,
        }
    }

    /// The value of an expression in thread 0 of every block, or in all threads of its warp; `None`
    /// where it is not one number.
    fn first(&self, expression: ExprId, lanes: Lanes) -> Option<i64> {
        self.first_within(expression, lanes, &Cell::new(MOST_LOOKS))
    }

    /// Like `first`, with a limit on the visits of expressions that are left.
    fn first_within(&self, expression: ExprId, lanes: Lanes, left: &Cell<u32>) -> Option<i64> {
        left.set(left.get().checked_sub(1)?);
        let terms = &self.interner.get(expression).terms;
        terms.iter().try_fold(0i64, |sum, term| {
            let values = term.symbols.iter().map(|&id| self.first_of(id, lanes, left));
            let values: SmallVec<[Option<i64>; 4]> = values.collect();
            // Zero times an unknown value is zero.
            let product = match values.contains(&Some(0)) {
                true => Some(0),
                false => values
                    .iter()
                    .try_fold(term.coefficient, |product, &value| product.checked_mul(value?)),
            };
            sum.checked_add(product?)
        })
    }

    fn first_of(&self, id: SymbolId, lanes: Lanes, left: &Cell<u32>) -> Option<i64> {
        match self.interner.symbol(id) {
            Symbol::Index(Index::Thread(_) | Index::Lane) => (lanes == Lanes::Zero).then_some(0),
            Symbol::Function(function, a, b) => {
                let x = self.first_within(a, lanes, left);
                let y = self.first_within(b, lanes, left);
                match (function, x, y) {
                    (Operator::Quotient, None, Some(32..)) => {
                        let x = self.interner.as_symbol(a);
                        (x == Some(Symbol::Index(Index::Thread(0)))).then_some(0)
                    }
                    (Operator::Quotient | Operator::Remainder | Operator::Upper, Some(0), _) => {
                        Some(0)
                    }
                    (Operator::Quotient, Some(x), Some(y)) if y > 0 => Some(x.div_euclid(y)),
                    (Operator::Remainder, Some(x), Some(y)) if y > 0 => Some(x.rem_euclid(y)),
                    (Operator::And, Some(0), _) | (Operator::And, _, Some(0)) => Some(0),
                    (Operator::And, Some(x), Some(y)) => Some(x & y),
                    (Operator::Min, Some(x), Some(y)) => Some(x.min(y)),
                    (Operator::Max, Some(x), Some(y)) => Some(x.max(y)),
                    _ => None,
                }
            }
            // The value that a thread of the warp has.
            Symbol::Site(step, _) => {
                let step = &self.flat.steps[step as usize];
                let shuffles = match (step.instruction, &step.machine) {
                    (Some(instruction), _) => instruction.opcode == "shfl",
                    (_, Some(lifted)) => lifted.operation == Operation::Shuffle,
                    _ => false,
                };
                // Behind the value come lane and mask.
                let source = *self.definitions.get(&id)?.sources.first()?;
                let value = shuffles.then(|| self.first_within(source, Lanes::All, left))?;
                value.filter(|_| self.interner.get(source).no_wraps.is_empty())
            }
            _ => None,
        }
    }

    /// Whether a condition holds for thread 0 of a block if it holds for any thread of it.
    fn includes_first(&self, condition: &Condition) -> bool {
        if self.holds_for_first(condition) {
            return true;
        }
        let terms = &self.interner.get(condition.expression).terms;
        terms.iter().all(|term| {
            let symbols = || term.symbols.iter().map(|&id| self.interner.symbol(id));
            let same = |symbol| match symbol {
                Symbol::Param { .. } | Symbol::Global(_) | Symbol::ParamBlock => true,
                Symbol::Index(index) => !matches!(index, Index::Thread(_) | Index::Lane),
                _ => false,
            };
            let falls = condition.relation == Relation::AtLeast && term.coefficient < 0;
            symbols().all(same)
                || falls && matches!(term.symbols[..], [id] if is_thread(self.interner.symbol(id)))
        })
    }
}

fn is_thread(symbol: Symbol) -> bool {
    matches!(symbol, Symbol::Index(Index::Thread(_) | Index::Lane))
}
