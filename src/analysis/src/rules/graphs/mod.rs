//! Graphs: nodes are ordered by edges and nothing else, launches by their stream and by the other
//! launches of the same executable graph.
//!
//! A graph is looked at once: `flatten` puts child graphs and bodies in place, `order` finds out
//! which node is behind which, `check` reports pairs of nodes in conflict, `summary` boils the rest
//! down to what a launch touches. `launch` then costs what the summary costs, or next to nothing
//! where nobody else has touched the memory since the launch before.
//!
//! Deliberately absent: launches from the device, which no call tells of.

mod check;
mod executables;
mod flatten;
mod launch;
mod order;
mod summary;

pub(crate) use executables::{GraphsState, destroy, set, upload};
pub(crate) use launch::launch;
