//! Lowering: code becomes one list of steps ([`steps`]) with a control-flow graph
//! ([`control_flow`]), and each step has a transfer function.
//!
//! [`ptx`] and [`sass`] are the two front ends. The transfer functions are methods of the
//! fixpoint's interpreter, and stand beside the language whose instructions they interpret.
//!
//! Stage: lowering. Invariant: no instruction is skipped. The memory that an instruction of unknown
//! meaning may touch counts as touched in an unknown way, and its results are any value.

pub(super) mod control_flow;
pub(super) mod liveness;
pub(super) mod ptx;
pub(super) mod sass;
pub(super) mod steps;
