//! Machine code (SASS).

mod code;
mod instruction;

pub use code::{Bank, Code, Function, Part, Relocation};
pub use instruction::{AddressTerm, ConstantBank, Guard, Instruction, Marks, Operand, Register};
