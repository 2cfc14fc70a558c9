//! Graphs: what the program builds ([`topology`], [`node`], [`params`]), the executable form
//! ([`exec`], [`update`]), the memory that graphs allocate ([`memory`]), and how a launch becomes
//! operations of the queue ([`launch`]).
//!
//! Invariants: a node belongs to one graph, named by its handle; an executable graph is a copy
//! that later changes of its graph do not reach; a launch runs the executable as it is at the call.
//!
//! Deliberately absent: conditions that kernels set, external semaphores and device-side launches.

mod conditional;
mod exec;
mod launch;
mod memory;
mod node;
mod params;
mod topology;
mod update;

pub(crate) use exec::Executable;
pub(crate) use node::{
    AllocNode, COPY_WORDS, CopyNode, FillNode, HostNode, KernelNode, Node, NodeKind, WordsNode,
};
pub(crate) use params::NodeSpec;
pub(crate) use topology::{Edge, EdgeData, Graph, all_plain};
