//! Interpreter tests: whole kernels with their results and exact accesses, every opcode against
//! results measured on a GPU, faults, and properties.

mod access;
mod faults;
mod harness;
mod kernels;
mod opcodes;
mod printf;
mod properties;
mod warps;
