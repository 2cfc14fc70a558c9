//! The abstract domain: abstract values, conditions and path conditions.
//!
//! Stage: the domain, which every stage uses. Invariant: the domain depends on no stage, and knows
//! nothing of instructions, graphs or launches.

pub(super) mod budget;
pub(super) mod condition;
pub(super) mod expression;
pub(super) mod path_condition;
