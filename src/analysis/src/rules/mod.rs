//! The rules of CUDA: what each driver call orders, and where its accesses happen.
//!
//! One small function a rule. Its comment names the section of NVIDIA's documentation it rests on
//! and its tier: *documented* order is guaranteed, *incidental* order is what the documentation
//! calls "may synchronise" or what drivers do without a promise. When in doubt a rule gives the
//! weaker edge: a wrong edge hides a race for ever.

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
