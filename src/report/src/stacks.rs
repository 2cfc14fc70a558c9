//! Call stacks in reports: the places in the program from which calls were made.

use crate::Report;
use streamsan_model::{
    AllocationId, CallFrame, CallStack, Finding, OpSeq, ProposedEdge, StackId, shown_path,
};
use streamsan_names::printable;

/// Own frames of a stack that are listed; the JSON form has all of them.
pub(crate) const LISTED: usize = 4;
/// The number of listed frames where no frame is the program's.
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
    /// The function, where it is known.
    pub function: Option<String>,
}

impl Report<'_> {
    /// The part of a stack that is worth showing.
    pub(crate) fn stack(&self, id: Option<StackId>) -> Option<CallStack<'_>> {
        CallStack::of(&self.input.entities, id)
    }

    /// The stack of an allocation.
    pub(crate) fn stack_of_allocation(&self, id: AllocationId) -> Option<StackId> {
        self.allocation(id)?.stack
    }

    pub(crate) fn frame(&self, frame: &CallFrame<'_>) -> String {
        printable(&frame.description(self.directory.as_deref())).into_owned()
    }

    /// The line of the source that made a call, where it is known.
    pub fn source_place(&self, id: Option<StackId>) -> Option<SourcePlace> {
        let stack = self.stack(id)?;
        self.place_of_frame(stack.place()?)
    }

    fn place_of_frame(&self, frame: &CallFrame<'_>) -> Option<SourcePlace> {
        let path = frame.file()?.to_owned();
        let shown = shown_path(&path, self.directory.as_deref());
        let function = frame.function().map(str::to_owned);
        Some(SourcePlace { path, shown, line: frame.line(), function })
    }

    /// The lines of all own frames of a stack, innermost first, as far as they have files.
    pub(crate) fn own_places(&self, id: Option<StackId>) -> Vec<SourcePlace> {
        let Some(stack) = self.stack(id) else { return Vec::new() };
        stack.own().map_while(|frame| self.place_of_frame(frame)).collect()
    }

    /// `train.py:12 in step`: the place of a call in the program.
    pub fn place_in_words(&self, id: Option<StackId>) -> Option<String> {
        let stack = self.stack(id)?;
        let frame = stack.place().or_else(|| stack.frames.first())?;
        Some(self.frame(frame))
    }

    /// The innermost frames of the program, at most so many; the nearest others where none is known to
    /// be its own.
    pub(crate) fn listed(&self, id: Option<StackId>, most: usize) -> Vec<String> {
        let Some(stack) = self.stack(id) else { return Vec::new() };
        let own: Vec<String> = stack.own().take(most).map(|frame| self.frame(frame)).collect();
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

    /// The lines behind which and before which the two calls of a proposed edge belong. Where one
    /// function makes both calls, its callers tell them apart.
    pub(crate) fn ends_of_edge(
        &self,
        finding: &Finding,
        edge: &ProposedEdge,
    ) -> [Option<SourcePlace>; 2] {
        let stacks = [edge.record_after_op, edge.wait_before_op].map(|g| self.stack_of(finding, g));
        self.told_apart(stacks).map(|places| places.into_iter().next_back())
    }

    /// The positions of the two lines among the program's own frames, innermost first, at which an
    /// edit orders two calls: the deepest that the calls do not share and at which an edit helps.
    ///
    /// From where the two paths part on they lie as far inwards as no function comes that both paths
    /// go through: an edit in a wrapper of the driver's calls would concern every user of the wrapper.
    /// Where one function makes both calls, they stay in its file as well: behind another file's
    /// functions lies a wrapper, too, or at least no place from which both streams are seen. Calls
    /// without such a function, of two threads for one, have no better place than their own.
    pub(crate) fn apart(&self, stacks: [Option<StackId>; 2]) -> [usize; 2] {
        let [first, second] = stacks.map(|id| self.own_places(id));
        let shared = first.iter().rev().zip(second.iter().rev()).take_while(|(a, b)| a == b);
        let shared = shared.count();
        let outermost = |own: &[SourcePlace]| (own.len() - shared).checked_sub(1);
        let [parting, of_other] = [&first, &second].map(|own| Some(&own[outermost(own)?]));
        let have_one_caller =
            parting.zip(of_other).is_some_and(|(own, other)| own.is_in_function_of(other));
        let inwards = |own: &[SourcePlace], other: &[SourcePlace]| {
            let Some(parting) = outermost(own) else { return 0 };
            let others = other.get(..other.len() - shared).unwrap_or_default();
            let is_shared = |place: &SourcePlace| others.iter().any(|o| o.is_in_function_of(place));
            let is_near = |place: &&SourcePlace| {
                !is_shared(place) && (!have_one_caller || place.path == own[parting].path)
            };
            let deeper = own[..parting].iter().rev().take_while(is_near);
            parting - deeper.count()
        };
        [inwards(&first, &second), inwards(&second, &first)]
    }

    /// The lines that make two calls, from the innermost line of each up to the one at which an edit
    /// orders them.
    pub(crate) fn told_apart(&self, stacks: [Option<StackId>; 2]) -> [Vec<SourcePlace>; 2] {
        let kept = self.apart(stacks);
        let [mut first, mut second] = stacks.map(|id| self.own_places(id));
        first.truncate(kept[0] + 1);
        second.truncate(kept[1] + 1);
        [first, second]
    }
}

impl SourcePlace {
    /// Whether both lines are of one function.
    fn is_in_function_of(&self, other: &Self) -> bool {
        self.function.is_some() && (&self.function, &self.path) == (&other.function, &other.path)
    }

    /// `train.py:12`, printable.
    pub fn description(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", printable(&self.shown)),
            None => printable(&self.shown).into_owned(),
        }
    }
}
