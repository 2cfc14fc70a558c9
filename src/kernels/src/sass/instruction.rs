//! One instruction of machine code, as the disassembler prints it, taken apart. What it means is
//! not known here.
//!
//! `@!P0 LDG.E.64 R2, desc[UR4][R2.64+0x10]` is a guard, an opcode `LDG` with modifiers `E` and
//! `64`, and two operands. Marks that only matter for scheduling (`.reuse`, `&req=`, `?WAIT`) are
//! left out.

use std::sync::Arc;

/// A register of any kind. `RZ`, `URZ`, `PT` and `UPT` are registers that always hold zero or true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Register {
    /// `R0` to `R254`: 32 bits a thread.
    General(u8),
    /// `RZ`.
    Zero,
    /// `UR0` and on: 32 bits a warp.
    Uniform(u8),
    /// `URZ`.
    UniformZero,
    /// `P0` to `P6`.
    Predicate(u8),
    /// `PT`.
    True,
    /// `UP0` and on.
    UniformPredicate(u8),
    /// `UPT`.
    UniformTrue,
    /// `B0` and on: convergence barriers.
    Barrier(u8),
}

/// The predicate under which an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    pub predicate: Register,
    /// `@!P0`.
    pub negated: bool,
}

/// The changes to the value of an operand before it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks {
    /// `-R2`.
    pub minus: bool,
    /// `~R2`, and `!P0`.
    pub not: bool,
    /// `|R2|`.
    pub absolute: bool,
    /// The suffixes behind the name: `64` of `R2.64`, `X4` of `R2.X4`, `H1_H1`, `U32`.
    pub suffixes: Vec<String>,
}

/// A register inside an address, with its suffixes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddressTerm {
    pub register: Register,
    pub marks: Marks,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    Register(Register, Marks),
    /// An integer, sign included.
    Integer(i64),
    /// `c[0x0][0x160]`, `c[0x0][R3+0x160]`, `c[0x3][UR4]`; with a bank in registers `cx[UR4][0x10]`.
    Constant {
        bank: ConstantBank,
        register: Option<Register>,
        offset: i64,
        marks: Marks,
    },
    /// `[R2.64+0x10]`, `[R2+UR4+0x8]`, `desc[UR4][R2.64]`, `[UR8]`, `a[R0]`; the sum of terms and
    /// offset.
    Address {
        terms: Vec<AddressTerm>,
        offset: i64,
        /// Registers in front of it: `desc[UR4]`, `gdesc[UR8]`, `tmem[UR4]`: the word and the
        /// register.
        descriptor: Option<(String, Register)>,
    },
    /// `SR_TID.X`.
    Special(String),
    /// A place in the code, as bytes from the start of the function that the instruction is in.
    Target(i64),
    /// Anything else, as it is printed: floats, barriers' names, texture shapes.
    Other(String),
}

/// Which constant bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantBank {
    /// By its number.
    Number(u8),
    /// By a descriptor in a uniform register.
    Descriptor(Register),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    pub guard: Option<Guard>,
    /// `LDG`.
    pub opcode: String,
    /// `E`, `64` of `LDG.E.64`. Instructions that were made alike share them.
    pub modifiers: Arc<[String]>,
    pub operands: Vec<Operand>,
}

impl Instruction {
    /// Whether a modifier stands behind the opcode.
    #[must_use]
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.iter().any(|m| m == modifier)
    }
}
