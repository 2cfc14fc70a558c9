//! Errors in a file of suppressions or in a baseline.

/// A mistake in a file, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {message}")]
pub struct GateError {
    /// Line, counted from 1.
    pub line: usize,
    /// The mistake and the expected form.
    pub message: String,
}

impl GateError {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}
