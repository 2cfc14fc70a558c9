//! From calls with handles and addresses to operations with ids.
//!
//! Handles and addresses are reused by the driver, so every one is looked up in the tables of its
//! process as they were when the call was entered. Calls come in order of entry.
//!
//! Invariants: an id is declared before it is used and never means a second thing; a failed call
//! changes no table and touches no memory; what cannot be resolved is counted in `gaps`.
//!
//! Deliberately absent: what orders what.

mod arrays;
mod batches;
mod capture;
mod code_accesses;
mod collectives;
mod contexts;
mod copies;
mod exact;
mod gaps;
mod global_pointers;
mod graphs;
mod handlers;
mod host;
mod host_files;
mod host_names;
mod kernels;
mod launches;
mod lifetimes;
mod managed;
mod mappings;
mod measured;
mod members;
mod memory;
mod modules;
mod pools;
mod ranges;
mod resolution;
mod resolver;
mod sharing;
mod signals;
mod sync_memops;
mod tables;
mod tensor_maps;
mod textures;

#[cfg(test)]
mod tests;

pub(crate) use code_accesses::Geometry;
pub(crate) use gaps::Gap;
pub(crate) use kernels::KnownKernel;
pub(crate) use memory::Block;
pub(crate) use resolver::{HostRun, Resolver};
