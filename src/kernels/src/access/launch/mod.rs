//! A summary instantiated at a launch.

pub(super) mod affine;
pub(super) mod constraints;
pub(super) mod evaluator;
pub(super) mod hash_index;
pub(super) mod instantiate;
pub(super) mod memo;
pub(super) mod plan;
pub(super) mod strided;
pub(super) mod translation_bounds;
