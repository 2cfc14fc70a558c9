//! The fixpoint iteration over a lowered kernel.

pub(super) mod assumptions;
pub(super) mod exit_values;
pub(super) mod grid_control;
pub(super) mod interpret;
