//! Machine code (SASS): what lies in a cubin ([`Object`]), decoded by the disassembler
//! ([`Decoder`]) and taken apart ([`Code`], [`Instruction`]). What it does is not known here.

mod code;
mod decoder;
mod display;
mod instruction;
mod object;
mod parse;
mod template;

pub use code::{Bank, Code, Function, Part, Relocation};
pub use decoder::Decoder;
pub use instruction::{AddressTerm, ConstantBank, Guard, Instruction, Marks, Operand, Register};
pub(crate) use object::Tables;
pub use object::{Object, RawCode};
pub use parse::NoInstruction;
