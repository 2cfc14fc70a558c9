//! The viewer: a trace as one row a stream, the findings on top, any operation one key away.
//!
//! State, view and keys are apart: [`State`] changes by [`Command`]s only, [`render`] is a function
//! of the state and draws nothing else, and the key table is the one place that knows keys (the
//! help is made from it). All data comes through `model::TraceQuery`.
//!
//! Invariants: the window never leaves the trace; a finding is never hidden by zooming out; the
//! horizontal axis is issue order and is labelled so.
//!
//! Deliberately absent: SQL, the analysis, and GPU durations (a trace has none).
#![forbid(unsafe_code)]

mod app;
mod keys;
mod state;
mod view;

pub use app::run;
pub use keys::{Binding, Command, TABLE, command_for};
pub use state::{Pane, State};
pub use view::{Palette, render};
