//! The front end for PTX: [`flatten`] lowers a module, the other files are the transfer functions
//! of its instructions. Source: PTX ISA.
//!
//! Stage: lowering.
//!
//! Invariant: a result that the ISA leaves to the hardware (rounding of floats, special registers,
//! warps) is an opaque value.

pub(in crate::access) mod arithmetic;
pub(in crate::access) mod effects;
pub(in crate::access) mod flatten;
pub(in crate::access) mod transfers;
pub(in crate::access) mod values;
