//! The PTX interpreter: lowers a parsed module to dense code and runs its kernels.
//!
//! The simulated driver runs the launches of a program with it; the tests of the access analysis
//! hold what was concluded of a kernel against what the kernel touches here. It knows neither: it
//! takes a [`Memory`] and says what happened to it.
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

pub use access::{AccessLog, AccessSets, ByteSet};
pub use fault::{Fault, FaultKind, LaunchFault, LowerError};
pub use memory::Memory;
pub use program::{GlobalVar, KernelId, KernelInfo, Program, Relocation, RelocationTarget};
pub use run::{Execution, Launch, Progress};
