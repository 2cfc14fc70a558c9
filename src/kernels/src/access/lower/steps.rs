//! A lowered kernel: one list of steps, which both front ends make and the fixpoint interprets.
//!
//! Stage: lowering, its result.
//!
//! Invariants: labels, registers and parameter variables are numbers of this kernel alone, those of
//! inlined calls included; a step has an instruction of PTX or one of machine code, never both.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::FxHashSet;

use crate::access::lower::sass::Lifted;
use crate::ptx::{Instruction, Type};

/// An operand with its names resolved.
#[derive(Debug, Clone)]
pub(in crate::access) enum Arg {
    Register(u32),
    /// A special register, dots included.
    Special(String),
    Constant(i64),
    /// Offset in the kernel's parameter block.
    Param(u32),
    /// A parameter variable of an inlined call.
    Slot(u32),
    /// Index of a module variable in global or constant memory.
    Global(u32),
    /// A variable in shared or local memory.
    Window,
    Address(Box<Arg>, i64, Vec<Arg>),
    Vector(Vec<Arg>),
    Pair(Box<Arg>, Box<Arg>),
    Not(Box<Arg>),
    Group(Vec<Arg>),
    Sink,
    /// A float, a function, or a name that is not known.
    Other,
}

/// Where a step goes.
#[derive(Debug, Clone)]
pub(in crate::access) enum Flow {
    /// To the next one.
    On,
    /// To labels, and on to the next one if it has a guard.
    To(Vec<u32>),
    /// Out of the kernel.
    Out,
    /// A move of an argument that inlining added.
    Bind,
}

/// An instruction, or the part of one that is left, with its operands and the place where control
/// goes next.
#[derive(Debug, Clone)]
pub(in crate::access) struct Step<'m> {
    pub(in crate::access) instruction: Option<&'m Instruction>,
    /// In place of an instruction of PTX: one of machine code.
    pub(in crate::access) machine: Option<Rc<Lifted>>,
    pub(in crate::access) guard: Option<(u32, bool)>,
    pub(in crate::access) args: Vec<Arg>,
    pub(in crate::access) flow: Flow,
    /// A call that is left: the name, `None` through a pointer.
    pub(in crate::access) callee: Option<&'m str>,
}

/// A parameter variable of calls: its pieces by offset, with width and register.
#[derive(Debug, Clone, Default)]
pub(in crate::access) struct Slot {
    pub(in crate::access) pieces: BTreeMap<u32, (u32, u32)>,
    /// Pieces overlap or are reached in other ways: loads may see any of them.
    pub(in crate::access) mixed: bool,
}

/// The steps of a kernel, calls inlined, with its registers and parameter variables.
#[derive(Debug)]
pub(in crate::access) struct Flat<'m> {
    pub(in crate::access) steps: Vec<Step<'m>>,
    /// The step behind each label.
    pub(in crate::access) labels: Vec<usize>,
    /// Whether the register is a predicate.
    pub(in crate::access) registers: Vec<bool>,
    /// Registers of PTX that are wider than 32 bits.
    pub(in crate::access) wide: FxHashSet<u32>,
    pub(in crate::access) slots: Vec<Slot>,
    /// Registers of machine code that may hold the halves of one value: the lower and the upper.
    pub(in crate::access) pairs: Vec<(u32, u32)>,
}

impl Flat<'_> {
    /// A new register.
    pub(super) fn declare(&mut self, ty: Type) -> u32 {
        self.registers.push(ty == Type::Pred);
        let register = self.registers.len() as u32 - 1;
        if ty.bits() > 32 {
            self.wide.insert(register);
        }
        register
    }
}
