//! Launches: a summary instantiated with grid, block and arguments.
//!
//! Stage: the launch, from a [`KernelAccess`](crate::access::KernelAccess) and a
//! [`Launch`](instantiate::Launch) to [`Touched`](instantiate::Touched) bytes. [`plan`] is made
//! once for each kernel; [`memo`] keeps the answers.
//!
//! Invariant: every byte of a base that a thread of the launch accesses lies in a `Touched` of that
//! base.

pub(super) mod affine;
pub(super) mod constraints;
pub(super) mod evaluator;
pub(super) mod hash_index;
pub(super) mod instantiate;
pub(super) mod memo;
pub(super) mod plan;
pub(super) mod strided;
pub(super) mod translation_bounds;
