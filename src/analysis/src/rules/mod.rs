//! The rules of CUDA: what each driver call orders, and where its accesses happen.
//!
//! Each rule is one small function. The function's comment names the section of NVIDIA's
//! documentation that the rule rests on, and the rule's tier: *documented* order is guaranteed,
//! *incidental* order is what the documentation calls "may synchronise" or what drivers do without
//! a promise. Invariant: when in doubt, a rule gives the weaker edge, because a wrong edge hides a
//! race for ever.

pub(crate) mod allocation;
pub(crate) mod batches;
pub(crate) mod catalogue;
pub(crate) mod collectives;
pub(crate) mod contexts;
pub(crate) mod copies;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod graphs;
pub(crate) mod host;
pub(crate) mod host_threads;
pub(crate) mod launches;
pub(crate) mod managed;
pub(crate) mod memsets;
pub(crate) mod signals;
pub(crate) mod streams;
