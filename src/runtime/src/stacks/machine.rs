//! What walks of the stack depend on: registers, the unwinder's rules, signal frames.
//!
//! One file a processor, each with the same functions.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as this;
#[cfg(target_arch = "x86_64")]
use x86_64 as this;

pub(crate) use this::Registers;
pub(super) use this::{Cache, LEAF_STAYS, Unwinder, followed, here, return_address_of, step};
