//! PTX front end: text to a faithful syntax tree.
//!
//! The one reader of PTX of the project: the access analysis and the interpreter lower what it
//! parses, each to a form of its own.
//!
//! Statements keep their opcode, modifiers, operands, guard and source line as written; unknown
//! opcodes are kept as such, so that a consumer decides what it can do with them.
//! Deliberately absent: semantic checks (types of operands, undeclared names) and any execution.
#![forbid(unsafe_code)]

mod ast;
mod expression;
mod lexer;
mod module;
mod parser;
mod statement;
#[cfg(test)]
mod tests;
mod types;

pub use ast::{
    Address, AddressBase, Body, Function, Guard, Immediate, Initializer, Instruction, Linkage,
    Module, Operand, Param, PointerAttribute, Registers, Space, Statement, StatementKind, Variable,
};
pub use parser::{PtxError, parse};
pub use types::Type;
