//! The summary of a kernel: what it touches, for all launches.
//!
//! From the effects that the fixpoint leaves ([`Raw`](crate::access::lower::ptx::effects::Raw)
//! accesses) to a [`KernelAccess`](result::KernelAccess), which the reader keeps on disk and
//! launches instantiate.

pub(super) mod conclude;
pub(super) mod display;
pub(super) mod prune;
pub(super) mod result;
