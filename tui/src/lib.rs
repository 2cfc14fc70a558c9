//! The viewer: a trace as one row a stream, the races on top, everything about any operation one
//! key away.
//!
//! - [`State`] changes by keys, the mouse and answers alone, and never waits.
//! - [`query`] puts its questions to the traces in a thread of their own; a newer question interrupts
//!   an older one.
//! - [`traces`] lays several traces beside each other, the ranks of a job.
//! - [`render`] is a function of the state.
//! - [`Pair`] shows two traces beside each other, what came and what went between them.
//! - A running recording ([`live`]) is read a few times a second; new operations come beside those
//!   that are on the screen.
//! - The key table ([`TABLE`]) is the one place that knows keys; the help and `docs/keys.md` are
//!   made from it.
//!
//! Invariants: the window never leaves the trace; a race is never hidden by zooming out or
//! scrolling; an axis names its quantity; a frame costs what the screen holds; every meaning of a
//! colour has a letter too.
//!
//! Deliberately absent: SQL, the analysis, and GPU durations (a trace has none).
#![forbid(unsafe_code)]

mod app;
mod editor;
mod keys;
pub mod live;
mod names;
mod pair;
pub mod query;
mod scene;
pub mod state;
mod theme;
pub mod traces;
mod view;

pub use app::{Trace, Viewer, run, run_pair};
pub use keys::{Binding, Command, Key, MOUSE, Section, TABLE, command_for, keys_document};
pub use pair::{Pair, render_pair};
pub use state::State;
pub use theme::{Glyphs, Palette, Theme};
pub use view::render;

use streamsan_model::{Entities, Finding};

/// Puts a finding into words.
pub type Explain = Box<dyn FnMut(&Finding) -> String + Send>;

/// Whether a race is one that is known in a library, so that it does not count. The entities are
/// those of the overview.
pub type IsKnownUpstream = fn(&Finding, &Entities) -> bool;
