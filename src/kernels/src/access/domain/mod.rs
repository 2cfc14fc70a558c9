//! The abstract domain: what an abstract value, a condition and a path condition are.
//!
//! Every stage uses the domain; the domain knows of none of them, nor of instructions, graphs or
//! launches.

pub(super) mod budget;
pub(super) mod condition;
pub(super) mod expression;
pub(super) mod path_condition;
