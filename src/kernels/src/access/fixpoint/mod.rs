//! The fixpoint: passes of the abstract interpreter over a lowered kernel, until the assumptions
//! about its loops hold.
//!
//! Stage: from the steps and the graph of a kernel to its
//! [`Effects`](crate::access::lower::ptx::effects::Effects): raw accesses, each under its path
//! condition, and the definitions of the symbols in them.
//!
//! Invariant: the effects over-approximate every execution of the kernel, or the kernel is marked
//! as one that may touch anything.

pub(super) mod assumptions;
pub(super) mod exit_values;
pub(super) mod grid_control;
pub(super) mod interpret;
