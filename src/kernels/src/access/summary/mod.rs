//! The summary of a kernel.

pub(super) mod conclude;
pub(super) mod display;
pub(super) mod prune;
pub(super) mod result;
