//! The front end for machine code (SASS): from [`Code`] to [`Flat`], and the transfer functions of
//! its instructions.
//!
//! Stages within: `lift` lists, `lift::calls` inlines, with `opcodes` and `constant_banks` for the meaning of
//! an instruction; `slice` drops what no address, size or branch depends on (a backward slice;
//! Weiser, "Program Slicing", ICSE 1981); `interpret` and the files beside it are the transfer
//! functions, on values of 32 bits.
//!
//! Invariant: a value of 64 bits is one polynomial, though it lies in two registers (`halves`,
//! `pairs`).

mod arithmetic;
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

mod syscalls;

use crate::access::lower::steps::Flat;
use crate::sass::Code;
pub(in crate::access) use operation::{Lifted, Operation};
pub(in crate::access) use spilled::SpilledPredicates;

/// A kernel, ready for the interpreter.
#[derive(Debug)]
pub(in crate::access) struct LiftedKernel {
    pub(in crate::access) flat: Flat<'static>,
    /// Names of variables, as steps number them.
    pub(in crate::access) globals: Vec<String>,
    /// The registers that hold words of constant memory.
    pub(in crate::access) constants: Vec<u32>,
    /// For each 8-byte word of the parameters where the one that it is in ends.
    pub(in crate::access) param_ends: Vec<u32>,
}

/// Lowers a kernel in machine code.
pub(in crate::access) fn lift(code: &Code) -> LiftedKernel {
    let banks = constant_banks::ConstantBanks::new(code);
    let flat = slice::slice(lift::list(code, &banks));
    let param_ends = (0..code.parameters.size).step_by(8).map(|at| banks.param_end(at)).collect();
    let constants = banks.constants();
    LiftedKernel { flat, globals: banks.globals, constants, param_ends }
}
