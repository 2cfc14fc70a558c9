//! Where the engine's results go.

use streamsan_model::{Edge, Finding, Lint};

/// Receives results as they are concluded.
pub trait Sink {
    /// A synchronisation edge.
    fn edge(&mut self, edge: &Edge);
    /// A pair of unordered conflicting operations.
    fn finding(&mut self, finding: Finding);
    /// A call that cannot do what it seems to.
    fn lint(&mut self, lint: Lint);
}
