//! Lowering code to steps, and the transfer functions of its instructions.

pub(super) mod control_flow;
pub(super) mod liveness;
pub(super) mod ptx;
pub(super) mod sass;
pub(super) mod steps;
