//! Fixpoint passes over the blocks, and the dependences of a block.
//!
//! Stage: the fixpoint. The effect of a block on its registers is a function of the state before it
//! and of the definitions of symbols that it reads. The state in front of a block that heads no
//! loop is a function of the states of other blocks, and of definitions too. Where all of these
//! have not changed since the block was interpreted last, the block is skipped, and its results
//! stay. All other data that is kept from pass to pass only grows, and its entries do not change.
//!
//! Invariants: passes end. After `EAGER_PASSES` no assumption is made any more, only withdrawn;
//! after `MAX_WORK` all registers of loops are ⊤ at once; a kernel that still changes after
//! `MAX_PASSES` may touch anything.

use std::cell::RefCell;

use rustc_hash::FxHashMap as HashMap;

use super::{Definition, Interpreter, Kind, State};
use crate::access::domain::budget::TooLarge;
use crate::access::domain::expression::{ExprId, SymbolId};
use crate::access::lower::ptx::effects::Effects;

/// Passes after which no new assumption is made; then a few to withdraw the wrong ones.
const EAGER_PASSES: usize = 8;
const MAX_PASSES: usize = 48;
/// Steps interpreted, and φs made, after which nothing more is assumed of loops.
const MAX_WORK: usize = 24_000;

/// A block's state in front of it and behind it, by block.
pub(in crate::access) type States = [Option<(State, State)>];

/// The results of interpreting a block, beside its states.
#[derive(Debug, Default)]
pub(super) struct Visit {
    effects: Effects,
    /// The definitions that the state before the block depends on, then those that the block read.
    entry: Vec<Look>,
    steps: Vec<Look>,
    /// The states are those of the pass before.
    same: bool,
}

/// A symbol whose definition was read, and how often the definition had changed by then.
type Look = (SymbolId, u32);

/// The definition of one symbol.
#[derive(Debug, Default)]
struct DefinitionSlot {
    definition: Option<Definition>,
    /// How often it has changed.
    version: u32,
}

/// Definitions by the numbers of their symbols; most numbers have one.
#[derive(Debug, Default)]
pub(in crate::access) struct Definitions {
    slots: Vec<DefinitionSlot>,
    /// The definitions read since the last query.
    looks: RefCell<Vec<Look>>,
}

impl Definitions {
    /// For a kernel of so many steps.
    pub(super) fn new(steps: usize) -> Self {
        Self { slots: Vec::with_capacity(2 * steps), looks: RefCell::default() }
    }

    pub(in crate::access) fn get(&self, id: &SymbolId) -> Option<&Definition> {
        self.slots.get(id.0 as usize)?.definition.as_ref()
    }

    /// Like [`Self::get`], where a block's interpretation depends on the definition: on the inputs
    /// and gates of a φ, and for all other symbols on their kind only.
    pub(in crate::access) fn look(&self, id: SymbolId) -> Option<&Definition> {
        self.looked_at(id);
        self.get(&id)
    }

    /// Notes that a block's interpretation depends on a symbol's definition, here or in another
    /// table.
    pub(in crate::access) fn looked_at(&self, id: SymbolId) {
        self.looks.borrow_mut().push((id, self.version(id)));
    }

    /// Notes that a symbol's data outside of its definition has changed.
    pub(in crate::access) fn changed(&mut self, id: SymbolId) {
        self.slot(id).version += 1;
    }

    /// Adds possible values of a loop's register to the sources of its φ.
    pub(in crate::access) fn add_sources(&mut self, id: SymbolId, more: &[ExprId]) {
        let slot = self.slots.get_mut(id.0 as usize);
        if let Some(definition) = slot.and_then(|slot| slot.definition.as_mut()) {
            definition.sources.extend_from_slice(more);
        }
    }

    fn version(&self, id: SymbolId) -> u32 {
        self.slots.get(id.0 as usize).map_or(0, |slot| slot.version)
    }

    fn slot(&mut self, id: SymbolId) -> &mut DefinitionSlot {
        let at = id.0 as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, DefinitionSlot::default);
        }
        &mut self.slots[at]
    }

    /// Defines a symbol. Blocks that read another definition of it are interpreted again.
    pub(in crate::access) fn insert(&mut self, id: SymbolId, definition: Definition) {
        let slot = self.slot(id);
        let same = slot.definition.as_ref().is_some_and(|old| {
            old.kind == definition.kind
                && (old.kind != Kind::GatedPhi
                    || old.sources == definition.sources && old.gates == definition.gates)
        });
        slot.version += u32::from(!same);
        slot.definition = Some(definition);
    }

    fn take_looks(&self) -> Vec<Look> {
        let mut looks = self.looks.borrow_mut();
        looks.dedup();
        looks.drain(..).collect()
    }

    fn unchanged(&self, looks: &[Look]) -> bool {
        looks.iter().all(|&(id, version)| self.version(id) == version)
    }
}

/// A gated φ that a guarded instruction made: the predicate, whether it was negated, the old and
/// the new value.
type GuardedPhi = (u32, bool, [ExprId; 2]);

/// φs of guarded instructions, by their symbols.
#[derive(Debug, Default)]
pub(in crate::access) struct GuardedPhis(HashMap<SymbolId, GuardedPhi>);

impl GuardedPhis {
    pub(in crate::access) fn get(&self, id: &SymbolId) -> Option<&GuardedPhi> {
        self.0.get(id)
    }
}

impl Interpreter<'_> {
    /// Like [`GuardedPhis::get`], where a block's interpretation depends on the result.
    pub(in crate::access) fn look_at_guarded_phi(&self, id: SymbolId) -> Option<&GuardedPhi> {
        self.definitions.looked_at(id);
        self.guarded_phis.get(&id)
    }

    /// Says by which guard a φ was made, or that it is not known.
    pub(in crate::access) fn set_guarded_phi(&mut self, id: SymbolId, phi: Option<GuardedPhi>) {
        let old = match phi {
            Some(phi) => self.guarded_phis.0.insert(id, phi),
            None => self.guarded_phis.0.remove(&id),
        };
        if old != phi {
            self.definitions.changed(id);
        }
    }

    /// Runs to the fixpoint. Returns whether it was reached.
    ///
    /// # Errors
    /// When the kernel is too large.
    pub(in crate::access) fn run(&mut self) -> Result<bool, TooLarge> {
        self.visits.resize_with(self.graph.blocks.len(), Visit::default);
        let reached = self.passes()?;
        for &block in &self.graph.order {
            self.effects.append(std::mem::take(&mut self.visits[block].effects));
        }
        Ok(reached)
    }

    fn passes(&mut self) -> Result<bool, TooLarge> {
        let mut outs = vec![None; self.graph.blocks.len()];
        for pass in 0..MAX_PASSES {
            outs = self.pass(outs)?;
            let changed = self.check_assumptions(&outs, pass < EAGER_PASSES && !self.given_up);
            if !changed || self.given_up {
                return Ok(true);
            }
            if self.work > MAX_WORK {
                // One pass more, in which every register of a loop is ⊤.
                self.given_up = true;
                self.invariants.clear();
                self.loops.clear();
            }
        }
        Ok(false)
    }

    /// The state behind each block, and the one in front of it.
    fn pass(
        &mut self,
        mut before: Vec<Option<(State, State)>>,
    ) -> Result<Vec<Option<(State, State)>>, TooLarge> {
        let mut outs: Vec<Option<(State, State)>> = vec![None; before.len()];
        self.visits.iter_mut().for_each(|visit| visit.same = false);
        for at in 0..self.graph.order.len() {
            let block = self.graph.order[at];
            self.interner.budget.work(self.graph.loops.len() + self.flat.registers.len());
            self.interner.budget.check()?;
            self.work += self.graph.blocks[block].end - self.graph.blocks[block].first;
            let known = before[block].take();
            if known.is_some() && self.comes_the_same(block) && self.does_the_same(block) {
                self.visits[block].same = true;
                outs[block] = known;
                continue;
            }
            self.definitions.looks.borrow_mut().clear();
            let entry = self.enter(block, &outs);
            self.visits[block].entry = self.definitions.take_looks();
            let same = known.as_ref().is_some_and(|(before, _)| *before == entry);
            if same && self.does_the_same(block) {
                self.visits[block].same = true;
                outs[block] = known;
                continue;
            }
            let mut state = entry.clone();
            self.effects = Effects::default();
            for step in self.graph.blocks[block].first..self.graph.blocks[block].end {
                self.step(step, &mut state);
            }
            let visit = &mut self.visits[block];
            visit.effects = std::mem::take(&mut self.effects);
            visit.steps = self.definitions.take_looks();
            visit.same = same && known.is_some_and(|(_, before)| before == state);
            outs[block] = Some((entry, state));
        }
        Ok(outs)
    }

    /// Whether the state before a block must be the same as in the pass before.
    fn comes_the_same(&self, block: usize) -> bool {
        let Interpreter { graph, visits, definitions, .. } = self;
        let up = graph.dominator[block];
        let mut from =
            graph.blocks[block].predecessors.iter().filter(|&&p| !graph.is_back(p, block));
        let left = |p: usize| graph.loops.iter().filter(move |l| l.body[p] && !l.body[block]);
        let heads = |p: usize| left(p).all(|l| visits[l.header].same);
        !graph.loops.iter().any(|l| l.header == block)
            && from.all(|&p| visits[p].same && heads(p))
            && (up == block || visits[up].same && heads(up))
            && definitions.unchanged(&visits[block].entry)
    }

    /// Whether the steps of a block must do what they did in the pass before, if the state in front
    /// of them is the same.
    fn does_the_same(&self, block: usize) -> bool {
        self.definitions.unchanged(&self.visits[block].steps)
    }
}
