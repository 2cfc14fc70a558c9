//! The receiver of the engine's results.
//!
//! Invariant: the engine calls the sink in the order of its conclusions, so that equal traces give
//! equal calls.

use streamsan_model::{Edge, Finding, Lint};

/// Receives results as the engine concludes them.
pub trait Sink {
    /// A synchronisation edge.
    fn edge(&mut self, edge: &Edge);
    /// A pair of unordered conflicting operations.
    fn finding(&mut self, finding: Finding);
    /// A call that cannot have the effect that it seems to have.
    fn lint(&mut self, lint: Lint);
}
