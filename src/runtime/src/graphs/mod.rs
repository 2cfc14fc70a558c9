//! Graphs: read back from the driver when they become executable.
//!
//! The runtime asks for the work of a graph by queries without side effects, on the thread that
//! makes the graph executable, and publishes the answers before the BEGIN of that call. Launching a
//! graph asks for nothing. While a stream of the process is being captured, each call is followed
//! by the question whether its stream captures and which node it has made.
//!
//! Deliberately absent: what a call that builds a graph says (the driver is asked later), and the
//! nodes of executables, which the driver does not tell: the collector keeps their contents.

mod after;
mod conditional;
mod driver;
mod node;
mod read;

pub(crate) use after::{after, note_captured, under_capture};
pub(crate) use read::{graph, node_params};
