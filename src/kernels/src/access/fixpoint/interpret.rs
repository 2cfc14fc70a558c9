//! The abstract interpreter: states, joins, and the definitions of symbols.
//!
//! Stage: the fixpoint. Passes go over the graph in reverse postorder. At the head of a loop, each
//! register that the loop assigns gets a value of its own: first a free symbol; then the
//! add-recurrence `start + step * iteration`, where the pass before showed that an iteration adds a
//! step that is invariant in the loop. A pass that does not confirm an assumption withdraws it
//! ([`assumptions`](super::assumptions)). A pass skips a block if nothing that the block depends on
//! differs from the pass before ([`passes`]).
//!
//! Invariants: a symbol has one value at a time: no register outlives the iteration that its
//! symbols belong to. A state over-approximates: its path condition holds on every path to its
//! place, and with `exact` it is sufficient too. A join intersects path conditions and makes gated
//! φs of registers that differ.

mod edges;
mod passes;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap as HashMap, FxHashSet as HashSet};
use smallvec::SmallVec;

use crate::access::domain::budget::TooLarge;
use crate::access::domain::condition::{Implied, Predicate};
use crate::access::domain::expression::{ENTRY, ExprId, Interner, Provenance, Symbol, SymbolId};
use crate::access::domain::path_condition::{Conditions, PathCondition};
use crate::access::fixpoint::grid_control::{Control, Passed, Reached};
use crate::access::lower::control_flow::Graph;
use crate::access::lower::liveness::RegisterSet;
use crate::access::lower::steps::Flat;
pub(in crate::access) use passes::{Definitions, GuardedPhis, States};

/// Conditions of one path alone that a φ of predicates keeps at most.
const MAX_OWN_CONDITIONS: usize = 6;

/// The expressions that a value is made of.
pub(in crate::access) type Sources = SmallVec<[ExprId; 4]>;

/// The definition of a symbol that is not a polynomial.
#[derive(Debug, Clone)]
pub(in crate::access) struct Definition {
    /// Least and greatest value; `None` where only its width bounds it.
    pub(in crate::access) bounds: Option<(i64, i64)>,
    /// The expressions that the symbol was made of; for a φ, its inputs.
    pub(in crate::access) sources: Sources,
    pub(in crate::access) kind: Kind,
    /// For a gated φ: the gate of each source, in their order; empty: not known.
    pub(in crate::access) gates: Vec<Implied>,
}

/// How a symbol came to be, where that is no polynomial of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Kind {
    /// One of the sources: a φ with gates, as in gated SSA.
    GatedPhi,
    /// Some function of the sources.
    Opaque,
    /// A 64-bit value of two halves, the sources, that are of different values.
    Halves,
    /// A register at the head of a loop: anything that its sources may become iteration by
    /// iteration.
    LoopPhi,
    /// `u32` bytes loaded from the address that is the only source.
    Loaded(u32),
    /// A word of the driver: it points to no memory of the program.
    Driver,
}

/// Registers and path conditions at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::access) struct State {
    /// 0: not assigned. Else one more than the number of an expression or predicate.
    pub(in crate::access) registers: Vec<u32>,
    pub(in crate::access) path: PathCondition,
    /// Whether the path condition is enough to get here, iterations of loops aside.
    pub(in crate::access) exact: bool,
    /// The wait that the threads here have passed.
    pub(in crate::access) passed: Passed,
}

/// The assumption about a register at the head of a loop: how its value recurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Recurrence {
    Free,
    /// The register is invariant, unless it has this value, which changes in the loop, once more.
    Doubted(ExprId),
    AddRec(ExprId),
    Any,
}

/// The data from which a launch derives the trip count of a loop.
#[derive(Debug, Clone, Default)]
pub(in crate::access) struct BackEdge {
    /// The conditions under which the back edge is taken, in terms of the iteration that it ends.
    pub(in crate::access) back_edge: PathCondition,
    /// Whether the only exit is taken on the negation of one of them.
    pub(in crate::access) single_test: bool,
}

/// The abstract interpreter of one kernel: its code, the definitions so far, the assumptions about
/// its loops, and its effects.
#[derive(Debug)]
pub(in crate::access) struct Interpreter<'m> {
    pub(in crate::access) flat: Flat<'m>,
    pub(in crate::access) graph: Graph,
    pub(in crate::access) interner: Interner,
    /// By their numbers.
    pub(in crate::access) predicates: IndexSet<Predicate, FxBuildHasher>,
    pub(in crate::access) definitions: Definitions,
    pub(in crate::access) live: Vec<RegisterSet>,
    /// Registers that each loop assigns.
    pub(in crate::access) assigned: Vec<Vec<u32>>,
    pub(in crate::access) recurrences: HashMap<(usize, u32), Recurrence>,
    /// Loops' registers that hold the upper half of a value: where its lower half is; `None` where
    /// that turned out wrong.
    pub(in crate::access) halves: HashMap<(usize, u32), Option<u32>>,
    pub(in crate::access) invariants: HashMap<usize, PathCondition>,
    pub(in crate::access) loops: HashMap<usize, BackEdge>,
    pub(in crate::access) block_of: Vec<usize>,
    /// Parameter words that are converted to global addresses as they are.
    pub(in crate::access) pointers: HashSet<u32>,
    /// The role of each step in programmatic dependent launch.
    pub(in crate::access) controls: Vec<Option<Control>>,
    pub(in crate::access) reached: Reached,
    /// The effects of the current block; of all blocks at the end.
    pub(in crate::access) effects: crate::access::lower::ptx::effects::Effects,
    /// Bytes of the parameter block.
    pub(in crate::access) params_size: u32,
    /// For each 8-byte word of the block where the parameter that it is in ends.
    pub(in crate::access) param_ends: Vec<u32>,
    /// Variables in constant memory.
    pub(in crate::access) constants: Vec<u32>,
    /// Gated φs that a guarded instruction made: the predicate, whether it was negated, the old and
    /// the new value.
    pub(in crate::access) guarded_phis: GuardedPhis,
    /// Values of machine code that have spilled predicates in their bits.
    pub(in crate::access) spilled: HashMap<SymbolId, crate::access::lower::sass::SpilledPredicates>,
    /// By block.
    visits: Vec<passes::Visit>,
    /// Steps interpreted so far.
    pub(in crate::access) work: usize,
    /// Nothing is assumed of loops any more.
    pub(in crate::access) given_up: bool,
}

impl<'m> Interpreter<'m> {
    /// # Errors
    /// When the kernel is too large.
    pub(in crate::access) fn new(flat: Flat<'m>) -> Result<Interpreter<'m>, TooLarge> {
        let interner = Interner::new(flat.steps.len());
        let graph = Graph::new(&flat, &interner.budget)?;
        // The live registers in front of each block, and two states of each.
        let of_block = flat.registers.len() / 8 + 2 * size_of::<u32>() * flat.registers.len();
        interner.budget.memory(graph.blocks.len().saturating_mul(of_block));
        interner.budget.work(graph.loops.len().saturating_mul(graph.blocks.len()));
        interner.budget.check()?;
        let mut block_of = vec![0; flat.steps.len() + 1];
        for (number, block) in graph.blocks.iter().enumerate() {
            block_of[block.first..block.end].fill(number);
        }
        let live = crate::access::lower::liveness::live_in(&flat, &graph);
        let assigned = graph
            .loops
            .iter()
            .map(|l| {
                let mut set = RegisterSet::new(flat.registers.len() as u32);
                for (number, block) in graph.blocks.iter().enumerate() {
                    if l.body[number] {
                        for step in &flat.steps[block.first..block.end] {
                            crate::access::lower::liveness::assigned(&flat, step, &mut |r| {
                                set.insert(r);
                            });
                        }
                    }
                }
                (0..flat.registers.len() as u32).filter(|&register| set.has(register)).collect()
            })
            .collect();
        let steps = flat.steps.len();
        let controls = flat.steps.iter().map(Control::of).collect();
        let reached = Reached::new(&flat.steps, &graph);
        Ok(Interpreter {
            controls,
            reached,
            flat,
            graph,
            interner,
            predicates: IndexSet::default(),
            definitions: Definitions::new(steps),
            live,
            assigned,
            recurrences: HashMap::default(),
            halves: HashMap::default(),
            invariants: HashMap::default(),
            loops: HashMap::default(),
            block_of,
            pointers: HashSet::default(),
            params_size: 0,
            param_ends: Vec::new(),
            constants: Vec::new(),
            guarded_phis: GuardedPhis::default(),
            spilled: HashMap::default(),
            visits: Vec::new(),
            effects: crate::access::lower::ptx::effects::Effects::default(),
            work: 0,
            given_up: false,
        })
    }

    /// The number of a predicate, which is interned.
    pub(in crate::access) fn predicate_id(&mut self, predicate: Predicate) -> u32 {
        self.predicates.insert_full(predicate).0 as u32
    }

    /// A symbol that stands for what an instruction makes in a way that is not followed.
    pub(in crate::access) fn define(
        &mut self,
        symbol: Symbol,
        kind: Kind,
        sources: Sources,
        bounds: Option<(i64, i64)>,
    ) -> ExprId {
        let id = self.interner.symbol_id(symbol);
        self.definitions.insert(id, Definition { bounds, sources, kind, gates: Vec::new() });
        self.interner.alone(id)
    }

    /// A gated φ: one of several values, each under its gate.
    pub(in crate::access) fn define_gated_phi(
        &mut self,
        symbol: Symbol,
        inputs: impl IntoIterator<Item = (ExprId, Implied)>,
    ) -> ExprId {
        let id = self.interner.symbol_id(symbol);
        let (sources, gates) = inputs.into_iter().unzip();
        self.definitions
            .insert(id, Definition { bounds: None, sources, kind: Kind::GatedPhi, gates });
        self.interner.alone(id)
    }

    /// The conditions that follow from a predicate register being `value`.
    pub(in crate::access) fn implied(&self, state: &State, register: u32, value: bool) -> Implied {
        match state.registers[register as usize] {
            0 => Implied::default(),
            id => {
                let predicate = &self.predicates[id as usize - 1];
                if value { predicate.when_true.clone() } else { predicate.when_false.clone() }
            }
        }
    }

    /// Whether a symbol is made in a loop, given the blocks of it.
    pub(in crate::access) fn born_in(&self, body: &[bool], symbol: Symbol) -> bool {
        match symbol {
            Symbol::Site(step, _) => body[self.block_of[step as usize]],
            Symbol::Phi(block, _) if block & ENTRY != 0 => {
                // It is made in front of its own loop.
                let header = (block & !ENTRY) as usize;
                let own = self.graph.loops.iter().any(|l| l.header == header && l.body == *body);
                body[header] && !own
            }
            Symbol::Phi(block, _) | Symbol::Induction(block) => body[block as usize],
            Symbol::ExitValue(symbol) => self.born_in(body, self.interner.symbol(symbol)),
            _ => false,
        }
    }

    /// Whether an expression, or a no-wrap condition of it, may differ between iterations of a
    /// loop.
    pub(in crate::access) fn changes_in(&self, body: &[bool], expression: ExprId) -> bool {
        let here = |e| {
            self.interner.provenance(e) & Provenance::LOCAL != 0
                && self.interner.mentions(e, &|symbol| self.born_in(body, symbol))
        };
        here(expression)
            || self.interner.get(expression).no_wraps.iter().any(|no_wrap| here(no_wrap.expression))
    }

    /// The φ of a register in front of a block.
    pub(in crate::access) fn phi_symbol(&self, block: usize, register: u32) -> Symbol {
        let heads = self.graph.loops.iter().any(|l| l.header == block);
        Symbol::Phi(block as u32 | if heads { ENTRY } else { 0 }, register)
    }

    fn enter(&mut self, block: usize, outs: &[Option<(State, State)>]) -> State {
        let mut incoming: Vec<State> = Vec::new();
        if self.graph.order.first() == Some(&block) {
            incoming.push(State {
                registers: vec![0; self.flat.registers.len()],
                path: PathCondition::default(),
                exact: true,
                passed: Passed::default(),
            });
        }
        for at in 0..self.graph.blocks[block].predecessors.len() {
            let from = self.graph.blocks[block].predecessors[at];
            if self.graph.is_back(from, block) {
                continue;
            }
            if let Some(mut state) = self.edge(from, block, outs) {
                self.mark_infeasible(from, block, &mut state);
                self.substitute_exit_values(from, block, &mut state, outs);
                // Facts about a loop's iteration are of no use outside of the loop.
                for l in self.graph.loops.iter().filter(|l| l.body[from] && !l.body[block]) {
                    state.path.retain(|condition| !self.changes_in(&l.body, condition.expression));
                }
                incoming.push(state);
            }
        }
        let several = incoming.len() > 1;
        if several {
            self.drop_infeasible(block, &mut incoming);
        }
        let Some(mut state) = incoming.pop() else {
            // Only reached backwards, which the order excludes; nothing is known here.
            return State {
                registers: vec![0; self.flat.registers.len()],
                path: PathCondition::default(),
                exact: false,
                passed: Passed::default(),
            };
        };
        let last = (state.path.clone(), state.exact);
        let (mut passed, mut some) = (state.passed, false);
        let differ = incoming.iter().any(|other| other.passed != passed);
        for other in &incoming {
            state.path.keep_shared(&other.path);
            state.exact &= other.exact;
            passed = passed.on_all(other.passed);
        }
        if differ {
            let shared = state.path.clone();
            let paths = incoming.iter().map(|path| (&path.path, path.exact, path.passed));
            for (path, exact, there) in paths.chain([(&last.0, last.1, state.passed)]) {
                let holds = !some && there.holds_some();
                some |= holds && self.includes_first_thread(path, exact, &shared);
            }
        }
        state.passed = passed.with_some(some);
        if several {
            let before = state.registers.clone();
            self.phis_of_pairs(block, &mut state, &incoming, (&last.0, last.1));
            for (register, before) in before.into_iter().enumerate() {
                let live = self.live[block].has(register as u32);
                if live && state.registers[register] == before {
                    self.phi_of((block, register), &mut state, &incoming, (&last.0, last.1));
                }
            }
        }
        self.live[block].clear_others(&mut state.registers);
        state.exact = self.reached_exactly(block, &state, several, outs);
        if let Some(at) = self.graph.loops.iter().position(|l| l.header == block) {
            self.head(at, &mut state);
        }
        state
    }

    fn phi_of(
        &mut self,
        (block, register): (usize, usize),
        state: &mut State,
        others: &[State],
        (last, exact): (&PathCondition, bool),
    ) {
        let own = state.registers[register];
        if others.iter().all(|other| other.registers[register] == own) {
            return;
        }
        if self.flat.registers[register] {
            state.registers[register] =
                self.phi_of_predicates((block, register), state, others, (last, exact));
            return;
        }
        let symbol = self.phi_symbol(block, register as u32);
        let values = others
            .iter()
            .map(|other| (other.registers[register], &other.path, other.exact))
            .chain([(own, last, exact)])
            .filter_map(|(id, path, exact)| Some((ExprId(id.checked_sub(1)?), path, exact)));
        state.registers[register] = self.gated_phi_of(symbol, values).0 + 1;
    }

    /// The φ of predicates, by the number that states hold; 0 where nothing
    /// is known of one of them.
    fn phi_of_predicates(
        &mut self,
        (block, register): (usize, usize),
        state: &State,
        others: &[State],
        (last, exact): (&PathCondition, bool),
    ) -> u32 {
        let all = others.iter().map(|other| (other.registers[register], &other.path, other.exact));
        let mut inputs = Vec::new();
        for (id, path, exact) in all.chain([(state.registers[register], last, exact)]) {
            let Some(id) = id.checked_sub(1) else { return 0 };
            // Conditions that all paths share are known anyway.
            let own = path.iter().filter(|condition| !state.path.contains(condition)).copied();
            let all = own.clone().count() <= MAX_OWN_CONDITIONS;
            let own: Conditions = own.take(MAX_OWN_CONDITIONS).collect();
            inputs.push((&self.predicates[id as usize], own, exact && all));
        }
        // The places of φs count down: those of steps are below.
        let place = Some((u32::MAX - block as u32, register as u16));
        let phi = Predicate { place, ..Predicate::phi(&inputs, &mut self.interner) };
        self.predicate_id(phi) + 1
    }

    /// The gated φ of values that come on different paths. The path condition is the gate;
    /// a value that comes on several paths is one input.
    pub(in crate::access) fn gated_phi_of<'s>(
        &mut self,
        symbol: Symbol,
        values: impl IntoIterator<Item = (ExprId, &'s PathCondition, bool)>,
    ) -> ExprId {
        let mut inputs: SmallVec<[(ExprId, Implied); 4]> = SmallVec::new();
        for (value, path, exact) in values {
            match inputs.iter_mut().find(|input| input.0 == value) {
                Some((_, known)) => {
                    known.conditions.retain(|condition| path.contains(condition));
                    known.complete = false;
                }
                None => {
                    let conditions = path.conditions().clone();
                    inputs.push((value, Implied { conditions, complete: exact }));
                }
            }
        }
        self.define_gated_phi(symbol, inputs)
    }

    fn reached_exactly(
        &self,
        block: usize,
        state: &State,
        several: bool,
        outs: &[Option<(State, State)>],
    ) -> bool {
        let up = self.graph.dominator[block];
        if up == block {
            return true;
        }
        // Everybody who enters a loop leaves it: what holds behind it held at its head.
        let left = self.graph.loops.iter().find(|l| l.body[up] && !l.body[block]);
        if let Some(left) = left {
            return self.graph.post_dominates(block, left.header)
                && outs[left.header].as_ref().is_some_and(|(entry, _)| entry.exact);
        }
        if several {
            return self.graph.post_dominates(block, up)
                && outs[up].as_ref().is_some_and(|(_, out)| out.exact);
        }
        state.exact
    }
}
