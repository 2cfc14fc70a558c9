//! The abstract domain of the analysis.

pub(super) mod budget;
pub(super) mod condition;
pub(super) mod expression;
pub(super) mod path_condition;
