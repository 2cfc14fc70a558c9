//! Graphs: what each executable runs.
//!
//! The runtime reads a graph back when it becomes executable; changes of an executable's nodes come
//! as calls. The contents are kept as the driver told them, with handles and addresses, and are
//! resolved for the launch that runs them: a launch of a changed executable, or one behind changes
//! of the process's memory, declares a new snapshot if anything in it differs from the last one.
//!
//! Deliberately absent: the driver's graphs before they are executable. Only who made which node is
//! kept of them.

mod calls;
mod contents;
mod executables;
mod lives;
mod nodes;

pub(super) use calls::*;
pub(super) use contents::Makers;
pub(super) use executables::Executables;
pub(super) use lives::{KnownLives, Lives};
pub(super) use nodes::UNKNOWN_WAIT;
