//! The front end for machine code: what its instructions do, sliced to what matters, for the same
//! interpreter that follows PTX.

mod compare;
mod constant_banks;
mod halves;
mod interpret;
mod lift;
mod logic;
mod memory;
mod opcodes;
mod operation;
mod pairs;
mod slice;
mod spilled;
mod sums;
mod syscalls;

use super::flatten::Flat;
use crate::sass::Code;
pub(super) use operation::{Lifted, Operation};
pub(super) use spilled::SpilledPredicates;

/// A kernel, ready for the interpreter.
#[derive(Debug)]
pub(super) struct LiftedKernel {
    pub(super) flat: Flat<'static>,
    /// Names of variables, as steps number them.
    pub(super) globals: Vec<String>,
    /// Those of them in constant memory.
    pub(super) constants: Vec<u32>,
    /// For each 8-byte word of the parameters where the one that it is in ends.
    pub(super) param_ends: Vec<u32>,
}

pub(super) fn lift(code: &Code) -> LiftedKernel {
    let banks = constant_banks::ConstantBanks::new(code);
    let flat = slice::slice(lift::list(code, &banks));
    let param_ends = (0..code.parameters.size).step_by(8).map(|at| banks.param_end(at)).collect();
    let constants = banks.constants();
    LiftedKernel { flat, globals: banks.globals, constants, param_ends }
}
