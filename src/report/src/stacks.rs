//! Where in the program a call was made.

use crate::Report;
use streamsan_model::{
    AllocationId, CallFrame, CallStack, Finding, OpSeq, ProposedEdge, StackId, shown_path,
};

/// Own frames of a stack that are listed; the JSON form has all of them.
const LISTED: usize = 4;
/// The same where no frame is the program's.
const LISTED_OF_OTHERS: usize = 2;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    /// The file, as the trace has it.
    pub path: String,
    /// The file, relative to the directory of the report where it lies below it.
    pub shown: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl Report<'_> {
    /// What is worth showing of a stack.
    pub(crate) fn stack(&self, id: Option<StackId>) -> Option<CallStack<'_>> {
        CallStack::of(self.input.entities, id)
    }

    /// The stack of an allocation.
    pub(crate) fn stack_of_allocation(&self, id: AllocationId) -> Option<StackId> {
        self.allocation(id)?.stack
    }

    pub(crate) fn frame(&self, frame: &CallFrame<'_>) -> String {
        frame.description(self.directory.as_deref())
    }

    /// The line of the source that made a call, where it is known.
    pub(crate) fn source_place(&self, id: Option<StackId>) -> Option<SourcePlace> {
        let stack = self.stack(id)?;
        let frame = stack.place()?;
        let path = frame.file()?;
        let shown = shown_path(path, self.directory.as_deref());
        Some(SourcePlace { path: path.to_owned(), shown, line: frame.line() })
    }

    /// `train.py:12 in step`: the place of a call in the program.
    pub(crate) fn place_in_words(&self, id: Option<StackId>) -> Option<String> {
        let stack = self.stack(id)?;
        let frame = stack.place().or_else(|| stack.frames.first())?;
        Some(self.frame(frame))
    }

    /// The program's frames, innermost first; the nearest others where none is known to be its own.
    pub(crate) fn listed(&self, id: Option<StackId>) -> Vec<String> {
        let Some(stack) = self.stack(id) else { return Vec::new() };
        let own: Vec<String> = stack.own().take(LISTED).map(|frame| self.frame(frame)).collect();
        if !own.is_empty() {
            return own;
        }
        stack.frames.iter().take(LISTED_OF_OTHERS).map(|frame| self.frame(frame)).collect()
    }

    /// The stack of an operation: of the two accesses that of the finding, which may be the call
    /// that made a node of a graph.
    pub(crate) fn stack_of(&self, finding: &Finding, g: OpSeq) -> Option<StackId> {
        match g {
            g if g == finding.second.op => finding.second.stack,
            g if g == finding.first.op => finding.first.stack,
            g => self.operations.get(&g)?.stack,
        }
    }

    /// Where the two calls of a proposed edge belong: `after train.py:12, before train.py:31`.
    pub(crate) fn place_of_edge(&self, finding: &Finding, edge: &ProposedEdge) -> Option<String> {
        let place = |g| {
            let place = self.source_place(self.stack_of(finding, g))?;
            Some(place.description())
        };
        let (after, before) = (place(edge.record_after_op), place(edge.wait_before_op));
        match (after, before) {
            (Some(after), Some(before)) => Some(format!("after {after}, before {before}")),
            (Some(after), None) => Some(format!("after {after}")),
            (None, Some(before)) => Some(format!("before {before}")),
            (None, None) => None,
        }
    }
}

impl SourcePlace {
    /// `train.py:12`.
    pub fn description(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.shown),
            None => self.shown.clone(),
        }
    }
}
