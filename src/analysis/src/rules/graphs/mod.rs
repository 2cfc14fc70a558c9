//! Graphs. Invariant: only edges order nodes; only the stream and the other launches of the same
//! executable graph order launches.
//!
//! A graph is analysed once: `flatten` puts child graphs and bodies in place, `order` computes the
//! happens-before order of the nodes, `check` reports pairs of nodes in conflict, `summary` reduces
//! the rest to the accesses of a launch. `launch` then costs what the summary costs, or next to
//! nothing where no other operation has touched the memory since the former launch.
//!
//! Deliberately absent: launches from the device, which no call shows.

mod check;
mod executables;
mod flatten;
mod launch;
mod order;
mod summary;

pub(crate) use executables::{GraphsState, destroy, set, upload};
pub(crate) use launch::launch;
