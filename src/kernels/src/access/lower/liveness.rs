//! Live registers: which registers are still read behind a place, and which registers a step
//! assigns.
//!
//! Stage: lowering, behind both front ends. The fixpoint forgets dead registers, so that states are
//! small and joins make no φ that nothing reads. The analysis is the backward data-flow problem of
//! live variables (Aho, Lam, Sethi and Ullman, "Compilers", section 9.2.5).
//!
//! Invariant: a register that may be read is live; a live register need not be read.

use crate::access::lower::control_flow::Graph;
use crate::access::lower::sass::Operation;
use crate::access::lower::steps::{Arg, Flat, Step};

/// Opcodes without a destination: all operands are read.
const NO_RESULT: &[&str] = &[
    "st",
    "red",
    "bra",
    "brx",
    "ret",
    "exit",
    "trap",
    "brkpt",
    "bar",
    "barrier",
    "membar",
    "fence",
    "cp",
    "prefetch",
    "prefetchu",
    "sust",
    "sured",
    "nanosleep",
    "pmevent",
    "stmatrix",
    "discard",
    "applypriority",
    "griddepcontrol",
    "setmaxnreg",
    "tensormap",
];

/// Whether the first operand is a result.
pub(in crate::access) fn has_result(step: &Step<'_>) -> bool {
    let Some(instruction) = step.instruction else { return false };
    let opcode = instruction.opcode.as_str();
    !NO_RESULT.contains(&opcode) && !matches!(step.args.first(), Some(Arg::Address(..)) | None)
}

fn registers(flat: &Flat<'_>, arg: &Arg, see: &mut impl FnMut(u32)) {
    match arg {
        Arg::Register(register) => see(*register),
        Arg::Address(base, _, rest) => {
            registers(flat, base, see);
            rest.iter().for_each(|arg| registers(flat, arg, see));
        }
        Arg::Vector(items) | Arg::Group(items) => {
            items.iter().for_each(|arg| registers(flat, arg, see));
        }
        Arg::Pair(a, b) => {
            registers(flat, a, see);
            registers(flat, b, see);
        }
        Arg::Not(inner) => registers(flat, inner, see),
        Arg::Slot(slot) => {
            flat.slots[*slot as usize].pieces.values().for_each(|&(_, register)| see(register));
        }
        _ => {}
    }
}

/// The registers that a step assigns.
pub(in crate::access) fn assigned(flat: &Flat<'_>, step: &Step<'_>, see: &mut impl FnMut(u32)) {
    if let Some(lifted) = &step.machine {
        lifted.assigns().for_each(see);
        return;
    }
    if let Some(instruction) = step.instruction
        && instruction.opcode == "st"
        && let Some(Arg::Address(base, ..)) = step.args.first()
        && matches!(**base, Arg::Slot(_))
    {
        registers(flat, base, see);
    } else if has_result(step)
        && let Some(first) = step.args.first()
    {
        registers(flat, first, see);
    }
}

/// A set of registers, as bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::access) struct RegisterSet(Vec<u64>);

impl RegisterSet {
    /// Nothing out of that many.
    pub(in crate::access) fn new(count: u32) -> RegisterSet {
        RegisterSet(vec![0; count.div_ceil(64) as usize])
    }

    pub(in crate::access) fn has(&self, register: u32) -> bool {
        self.0[register as usize / 64] >> (register % 64) & 1 == 1
    }

    pub(in crate::access) fn insert(&mut self, register: u32) {
        self.0[register as usize / 64] |= 1 << (register % 64);
    }

    pub(in crate::access) fn remove(&mut self, register: u32) {
        self.0[register as usize / 64] &= !(1 << (register % 64));
    }

    /// Makes the values of all other registers 0.
    pub(in crate::access) fn clear_others(&self, values: &mut [u32]) {
        for (values, &has) in values.chunks_mut(64).zip(&self.0) {
            for (at, value) in values.iter_mut().enumerate() {
                *value = if has >> at & 1 == 1 { *value } else { 0 };
            }
        }
    }

    pub(in crate::access) fn add_all(&mut self, other: &RegisterSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }
}

/// Goes backwards over a step.
fn back(flat: &Flat<'_>, step: &Step<'_>, set: &mut RegisterSet) {
    if let Some(lifted) = &step.machine {
        let keeps = matches!(lifted.operation, Operation::Opaque { keeps: true, .. });
        if step.guard.is_none() && !keeps {
            lifted.assigns().for_each(|register| set.remove(register));
        } else {
            // The register's former value may stay.
            lifted.assigns().for_each(|register| set.insert(register));
        }
        lifted.reads().for_each(|register| set.insert(register));
    } else {
        // A piece of a parameter variable is never dead: it may be read in other ways.
        if step.guard.is_none() && matches!(step.args.first(), Some(Arg::Register(_))) {
            assigned(flat, step, &mut |register| set.remove(register));
        }
        let skip = usize::from(has_result(step));
        for arg in step.args.iter().skip(skip) {
            registers(flat, arg, &mut |register| set.insert(register));
        }
        if skip == 1
            && let (Some(first), Some(_)) = (step.args.first(), step.guard)
        {
            registers(flat, first, &mut |register| set.insert(register));
        }
    }
    if let Some((register, _)) = step.guard {
        set.insert(register);
    }
}

/// For each block the registers whose values may still be read when it is entered.
pub(in crate::access) fn live_in(flat: &Flat<'_>, graph: &Graph) -> Vec<RegisterSet> {
    let mut live = vec![RegisterSet::new(flat.registers.len() as u32); graph.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for &block in graph.order.iter().rev() {
            let mut set = RegisterSet::new(flat.registers.len() as u32);
            graph.blocks[block].successors.iter().for_each(|&next| set.add_all(&live[next]));
            let range = graph.blocks[block].first..graph.blocks[block].end;
            for step in flat.steps[range].iter().rev() {
                back(flat, step, &mut set);
            }
            if set != live[block] {
                live[block] = set;
                changed = true;
            }
        }
    }
    live
}
