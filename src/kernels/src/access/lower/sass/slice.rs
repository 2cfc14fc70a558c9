//! The backward slice of a kernel from its addresses, sizes and branches, as steps for the
//! fixpoint.
//!
//! Stage: lowering; from [`MachineListing`] to [`Flat`]. Source: Weiser, "Program Slicing", ICSE
//! 1981.
//!
//! Invariant: a step is left out only if it touches no memory, decides no branch, and no register
//! that it assigns may be read by a step that stays.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::constant_banks::is_predicate;
use super::lift::{ListedStep, MachineListing, Next};
use super::operation::{Lifted, NOWHERE, Operation, SourceValue};
use crate::access::lower::liveness::RegisterSet;
use crate::access::lower::steps::{self, Flat, Flow};

/// Pairs of registers that are halves by their use, at most.
const MAX_CARRIED: usize = 32;

/// Steps `first..end`, and the blocks behind.
struct SliceBlock {
    first: usize,
    end: usize,
    successors: Vec<usize>,
}

fn blocks(listing: &MachineListing) -> Vec<SliceBlock> {
    let steps = &listing.steps;
    let mut leader = vec![false; steps.len() + 1];
    leader[0] = true;
    for &label in &listing.labels {
        if let Some(leader) = leader.get_mut(label) {
            *leader = true;
        }
    }
    for (at, step) in steps.iter().enumerate() {
        leader[at + 1] |= step.next != Next::On;
    }
    leader[steps.len()] = true;
    let mut block_of = vec![0; steps.len() + 1];
    let mut blocks: Vec<SliceBlock> = Vec::new();
    for at in 0..steps.len() {
        if leader[at] {
            if let Some(last) = blocks.last_mut() {
                last.end = at;
            }
            blocks.push(SliceBlock { first: at, end: steps.len(), successors: Vec::new() });
        }
        block_of[at] = blocks.len() - 1;
    }
    for number in 0..blocks.len() {
        let step = &steps[blocks[number].end - 1];
        let mut successors = Vec::new();
        if let Next::To(labels) = &step.next {
            let to = labels.iter().map(|&label| listing.labels[label as usize]);
            successors.extend(to.filter(|&to| to < steps.len()).map(|to| block_of[to]));
        }
        if (step.next == Next::On || step.guard.is_some()) && number + 1 < blocks.len() {
            successors.push(number + 1);
        }
        blocks[number].successors = successors;
    }
    blocks
}

/// Whether the results may keep what they held.
fn keeps(step: &ListedStep) -> bool {
    step.guard.is_some()
        || step
            .lifted
            .as_ref()
            .is_some_and(|l| matches!(l.operation, Operation::Opaque { keeps: true, .. }))
}

/// Goes backwards over a step. Returns whether it stays.
fn back(step: &ListedStep, live: &mut RegisterSet) -> bool {
    let mut stays = step.next != Next::On;
    if let Some(lifted) = &step.lifted {
        if !(lifted.acts() || lifted.assigns().any(|register| live.has(register))) {
            return stays;
        }
        stays = true;
        if !keeps(step) {
            lifted.assigns().for_each(|register| live.remove(register));
        }
        lifted.reads().for_each(|register| live.insert(register));
    }
    if let Some((register, _)) = step.guard {
        live.insert(register);
    }
    stays
}

/// Pairs of registers that are added with a carry, or compared, as the halves of one value, where
/// they are not in `next`, the pairs of registers that follow on each other.
fn carried(flat: &Flat<'_>, next: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    // The instruction that made each predicate.
    let mut makers: FxHashMap<u32, usize> = FxHashMap::default();
    for (at, step) in flat.steps.iter().enumerate() {
        let Some(lifted) = &step.machine else { continue };
        let extended = match lifted.operation {
            Operation::Add { extended }
            | Operation::Multiply { extended, .. }
            | Operation::Scale { extended, .. }
            | Operation::Compare { extended, .. } => extended,
            _ => false,
        };
        let is_predicate = |register: &u32| flat.registers[*register as usize];
        let values = |lifted: &Lifted| -> Vec<u32> {
            let results = lifted.assigns().take(1);
            results.chain(lifted.reads()).filter(|register| !is_predicate(register)).collect()
        };
        if extended {
            let maker = lifted.reads().find_map(|register| makers.get(&register));
            let lower = maker.and_then(|&maker| flat.steps[maker].machine.as_deref());
            for low in lower.map(values).unwrap_or_default() {
                for high in values(lifted) {
                    let pair = (low, high);
                    let known = low == high || next.contains(&pair) || pairs.contains(&pair);
                    if !known && pairs.len() < MAX_CARRIED {
                        pairs.push(pair);
                    }
                }
            }
        }
        for register in lifted.assigns().filter(is_predicate) {
            makers.insert(register, at);
        }
    }
    pairs
}

/// The slice of a listing.
pub(super) fn slice(mut listing: MachineListing) -> Flat<'static> {
    let blocks = blocks(&listing);
    let registers = listing.registers;
    let mut live = vec![RegisterSet::new(registers); blocks.len()];
    let mut predecessors = vec![Vec::new(); blocks.len()];
    for (number, block) in blocks.iter().enumerate() {
        for &next in &block.successors {
            predecessors[next].push(number);
        }
    }
    let mut waiting = vec![true; blocks.len()];
    let mut work: Vec<usize> = (0..blocks.len()).collect();
    while let Some(number) = work.pop() {
        waiting[number] = false;
        let mut set = RegisterSet::new(registers);
        blocks[number].successors.iter().for_each(|&next| set.add_all(&live[next]));
        for step in listing.steps[blocks[number].first..blocks[number].end].iter().rev() {
            back(step, &mut set);
        }
        if set != live[number] {
            live[number] = set;
            for &before in &predecessors[number] {
                if !waiting[before] {
                    waiting[before] = true;
                    work.push(before);
                }
            }
        }
    }
    let mut stays = vec![false; listing.steps.len()];
    for block in &blocks {
        let mut set = RegisterSet::new(registers);
        block.successors.iter().for_each(|&next| set.add_all(&live[next]));
        for at in (block.first..block.end).rev() {
            stays[at] = back(&listing.steps[at], &mut set);
        }
    }
    let mut flat = Flat {
        steps: Vec::new(),
        labels: Vec::new(),
        registers: Vec::new(),
        wide: Default::default(),
        slots: Vec::new(),
        pairs: Vec::new(),
    };
    let mut numbers = vec![NOWHERE; registers as usize];
    let mut place = vec![0; listing.steps.len() + 1];
    for (at, step) in listing.steps.iter_mut().enumerate() {
        place[at] = flat.steps.len();
        if !stays[at] {
            continue;
        }
        let mut number = |register: u32| {
            if register == NOWHERE {
                return NOWHERE;
            }
            let number = &mut numbers[register as usize];
            if *number == NOWHERE {
                *number = flat.registers.len() as u32;
                flat.registers.push(is_predicate(register));
            }
            *number
        };
        let machine = step.lifted.take().map(|mut lifted| {
            lifted.results.iter_mut().for_each(|register| *register = number(*register));
            for source in &mut lifted.sources {
                if let SourceValue::Register(register) = &mut source.origin {
                    *register = number(*register);
                }
            }
            Rc::new(lifted)
        });
        let guard = step.guard.map(|(register, negated)| (number(register), negated));
        let flow = match &step.next {
            Next::On => Flow::On,
            Next::To(labels) => Flow::To(labels.to_vec()),
            Next::Out => Flow::Out,
        };
        flat.steps.push(steps::Step {
            instruction: None,
            machine,
            guard,
            args: Vec::new(),
            flow,
            callee: None,
        });
    }
    let mut next = Vec::new();
    for register in 0..registers as usize - 1 {
        let (low, high) = (numbers[register], numbers[register + 1]);
        let pair = (low, high);
        if low != NOWHERE && high != NOWHERE && !is_predicate(register as u32 + 1) {
            next.push(pair);
        }
    }
    flat.pairs = carried(&flat, &next);
    flat.pairs.append(&mut next);
    place[listing.steps.len()] = flat.steps.len();
    flat.labels = listing
        .labels
        .iter()
        .map(|&label| place.get(label).copied().unwrap_or(usize::MAX))
        .collect();
    flat
}
