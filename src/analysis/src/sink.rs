//! Where the engine's results go.

use streamsan_model::{Edge, Finding};

/// Receives results as they are concluded.
pub trait Sink {
    /// A synchronisation edge.
    fn edge(&mut self, edge: &Edge);
    /// A pair of unordered conflicting operations.
    fn finding(&mut self, finding: Finding);
}
