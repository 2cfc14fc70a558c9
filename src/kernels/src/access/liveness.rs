//! Which registers a place still needs, and which a step assigns.

use super::flatten::{Arg, Flat, Step};
use super::flow::Graph;

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
pub(super) fn has_result(step: &Step<'_>) -> bool {
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
pub(super) fn assigned(flat: &Flat<'_>, step: &Step<'_>, see: &mut impl FnMut(u32)) {
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

/// For each block the registers whose values may still be read when it is entered.
pub(super) fn live_in(flat: &Flat<'_>, graph: &Graph) -> Vec<Vec<bool>> {
    let count = flat.registers.len();
    let mut live = vec![vec![false; count]; graph.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for &block in graph.order.iter().rev() {
            let mut set = vec![false; count];
            for &next in &graph.blocks[block].successors {
                for (own, other) in set.iter_mut().zip(&live[next]) {
                    *own |= other;
                }
            }
            let range = graph.blocks[block].first..graph.blocks[block].end;
            for step in flat.steps[range].iter().rev() {
                // A piece of a parameter variable is never dead: it may be read in other ways.
                if step.guard.is_none() && matches!(step.args.first(), Some(Arg::Register(_))) {
                    assigned(flat, step, &mut |register| set[register as usize] = false);
                }
                let skip = usize::from(has_result(step));
                for arg in step.args.iter().skip(skip) {
                    registers(flat, arg, &mut |register| set[register as usize] = true);
                }
                if skip == 1
                    && let (Some(first), Some(_)) = (step.args.first(), step.guard)
                {
                    registers(flat, first, &mut |register| set[register as usize] = true);
                }
                if let Some((register, _)) = step.guard {
                    set[register as usize] = true;
                }
            }
            if set != live[block] {
                live[block] = set;
                changed = true;
            }
        }
    }
    live
}
