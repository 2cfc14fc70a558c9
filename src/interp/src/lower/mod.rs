//! From the syntax tree to dense code.

mod arithmetic;
mod control;
mod form;
mod function;
mod instruction;
mod mbarrier;
mod memory;
mod module;
mod operand;
mod symbols;
mod warp;

pub(super) use module::lower;
