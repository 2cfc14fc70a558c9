//! Programs of the shapes that real ones have, any number of streams wide and, but for one of them, free of
//! races.

mod graph;
mod program;
mod shape;

pub(crate) use graph::{Around, graph_launches};
pub(crate) use program::Program;
pub(crate) use shape::{
    End, arena, copies, fork_join, halo_ring, pool, racy_copies, racy_pool, random_waits,
    short_lived,
};
