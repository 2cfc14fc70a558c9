//! The PTX interpreter: lowers a parsed module to dense code and runs its kernels.
//!
//! Deterministic: the same launch on the same memory executes the same instructions in the same
//! order. Records exactly which bytes of global memory a launch read, wrote and updated
//! atomically. Deliberately absent: timing, caches, weak memory (every access is sequentially
//! consistent), matrix instructions and textures.
#![forbid(unsafe_code)]

mod access;
mod alu;
mod block;
mod code;
mod fault;
mod lower;
mod memory;
mod printf;
mod program;
mod run;
mod space;
#[cfg(test)]
mod tests;
mod thread;
mod warp;

pub(crate) use access::AccessLog;
pub(crate) use fault::{Fault, FaultKind, LaunchFault};
pub(crate) use memory::Memory;
pub(crate) use program::{KernelId, KernelInfo, Program};
pub(crate) use run::{Execution, Launch, Progress};
