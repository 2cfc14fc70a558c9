//! When operations run: the queue of pending operations and the policy that picks the next one.
//!
//! Nothing here knows what an operation does, and nothing here runs one.

mod policy;
mod queue;
mod watchdog;

pub(crate) use policy::{Moment, Policy};
pub(crate) use queue::{Lane, OpId, Queue};
pub(crate) use watchdog::Idleness;
