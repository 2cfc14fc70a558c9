//! The file and line of a finding, for tools that need a file.

use crate::Report;
use streamsan_model::{OpSeq, StackId};

/// A file, and a line where the file has lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: Option<u64>,
}

impl Report<'_> {
    /// The place of an operation: the line of the source that made the call, else in a text trace
    /// its line, else the trace as a whole.
    pub(crate) fn place(&self, op: OpSeq, stack: Option<StackId>) -> Option<Place> {
        if let Some(source) = self.source_place(stack) {
            return Some(Place { file: source.shown, line: source.line.map(u64::from) });
        }
        let file = self.input.trace.clone()?;
        // Only text traces have no coverage; their operations are numbered by line.
        let line = self.input.coverage.is_none().then_some(op.0);
        Some(Place { file, line })
    }
}
