//! The summary of a kernel: its accesses, for all launches.
//!
//! Stage: from the effects that the fixpoint leaves
//! ([`Raw`](crate::access::lower::ptx::effects::Raw) accesses) to a
//! [`KernelAccess`](result::KernelAccess), which the reader keeps on disk and launches instantiate.
//!
//! Invariant: each raw access belongs to a base of the summary, or the kernel may touch anything.
//! Source: Sharir and Pnueli, "Two approaches to interprocedural data flow analysis" (1981), for
//! the summary of a procedure.

pub(super) mod conclude;
pub(super) mod display;
pub(super) mod prune;
pub(super) mod result;
