//! Where a finding stands, for tools that want a file.

use crate::Report;
use streamsan_model::OpSeq;

/// A file, and a line where the file has lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) file: &'a str,
    pub(super) line: Option<u64>,
}

impl Report<'_> {
    /// The place of an operation: in a text trace its line, else the trace as a whole.
    pub(super) fn place(&self, op: OpSeq) -> Option<Place<'_>> {
        let file = self.input.trace.as_deref()?;
        // Only text traces have no coverage; their operations are numbered by line.
        let line = self.input.coverage.is_none().then_some(op.0);
        Some(Place { file, line })
    }
}
