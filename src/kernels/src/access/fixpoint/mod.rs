//! The fixpoint: passes of the abstract interpreter over a lowered kernel, until what was assumed
//! of its loops holds.
//!
//! From the steps and the graph of a kernel to its
//! [`Effects`](crate::access::lower::ptx::effects::Effects): raw accesses, each under its path
//! condition, and the definitions of the symbols in them.

pub(super) mod assumptions;
pub(super) mod exit_values;
pub(super) mod grid_control;
pub(super) mod interpret;
