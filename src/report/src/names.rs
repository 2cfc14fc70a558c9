//! Names of events, allocations and operations, and the wording of amounts.
//!
//! Invariant: every name that is put into words here is printable, so that no text made of these
//! words has a line break or a control character from a program.

use crate::Report;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
pub(crate) use streamsan_model::number;
use streamsan_model::{
    Action, Allocation, AllocationId, ContextId, Event, EventId, FindingAccess, IncompleteReason,
    MemoryKind, OpSeq, Operation, StackId,
};
use streamsan_names::{printable, printable_first, printable_line};

/// `3 races`, `1 race`.
pub(crate) fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

/// `seen once`, `seen 3 times`.
pub(crate) fn seen(count: u64) -> String {
    if count == 1 { "seen once".to_owned() } else { format!("seen {} times", number(count)) }
}

/// `NCCL`, `NCCL and XLA`, `NCCL, XLA and cuFFT`.
pub(crate) fn and(names: &BTreeSet<&str>) -> String {
    let mut names: Vec<&str> = names.iter().copied().collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last.to_owned() } else { format!("{} and {last}", names.join(", ")) }
}

/// `512 bytes`, `4.0 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return plural(bytes, "byte", "bytes");
    }
    let mut unit = 0;
    let mut scale = 1024u128;
    // In tenths and rounded down, so that nothing depends on floating point.
    while unit + 1 < UNITS.len() && u128::from(bytes) >= scale * 1024 {
        scale *= 1024;
        unit += 1;
    }
    let tenths = u128::from(bytes) * 10 / scale;
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// `#18,233`.
pub(crate) fn op(g: OpSeq) -> String {
    format!("#{}", number(g.0))
}

/// A reason of an incomplete run in words, with kernels by their readable names.
pub fn reason_in_words(reason: &IncompleteReason) -> String {
    let mut readable = reason.clone();
    match &mut readable {
        IncompleteReason::UnknownKernelParameters { kernel, .. }
        | IncompleteReason::PointersInMemory { kernel, .. } => {
            *kernel = streamsan_names::kernel(kernel).into_owned();
        }
        IncompleteReason::NotUnderstood { api, .. } => *api = printable(api).into_owned(),
        IncompleteReason::TraceNotWritten(why) | IncompleteReason::TraceNotRead(why) => {
            *why = printable_line(why).into_owned();
        }
        IncompleteReason::FindingsNotFoundAgain { version, .. } => {
            *version = printable(version).into_owned();
        }
        IncompleteReason::NotAttached
        | IncompleteReason::DroppedRecords(_)
        | IncompleteReason::TruncatedTrace
        | IncompleteReason::TraceLimit(_) => {}
    }
    readable.to_string()
}

impl Report<'_> {
    /// A call by the name that the program's language has for it.
    pub(crate) fn called<'a>(&'a self, api: &'a str, stack: Option<StackId>) -> Cow<'a, str> {
        printable(self.input.entities.called(api, stack))
    }

    /// The maker of an access: a kernel, by its readable name, or a call.
    pub(crate) fn what<'a>(&'a self, access: &'a FindingAccess) -> Cow<'a, str> {
        match &access.kernel {
            Some(kernel) => streamsan_names::kernel(kernel),
            None => self.called(&access.api, access.stack),
        }
    }

    /// `2 races in PyTorch and cuFFT, seen 3 times`, where there are any.
    pub(crate) fn upstream_in_words(&self) -> Option<String> {
        let known = || {
            let groups = self.groups.iter();
            groups.filter_map(|group| Some((group.count, group.disposition.upstream()?)))
        };
        let libraries: BTreeSet<&str> = known().map(|(_, known)| &*known.library).collect();
        if libraries.is_empty() {
            return None;
        }
        let races = plural(known().count() as u64, "race", "races");
        let times = known().map(|(count, _)| count).sum();
        Some(format!("{races} in {}, {}", and(&libraries), seen(times)))
    }

    /// Where a node of a graph comes from.
    pub(crate) fn node(&self, access: &FindingAccess) -> String {
        match access.stream {
            Some(stream) => format!("graph node, captured from {}", self.the_stream(stream)),
            None => "graph node".to_owned(),
        }
    }

    /// `event "done"`, or the event's handle.
    pub(crate) fn event(&self, id: EventId) -> String {
        match self.input.entities.event(id) {
            Some(Event { name: Some(name), .. }) => format!("event \"{}\"", printable(name)),
            Some(event) => format!("event {:#x}", event.handle),
            None => "an unknown event".to_owned(),
        }
    }

    pub(crate) fn context(&self, id: ContextId) -> String {
        match self.input.entities.context(id) {
            Some(context) => format!("context {id} (device {})", context.device),
            None => format!("context {id}"),
        }
    }

    pub(crate) fn allocation(&self, id: AllocationId) -> Option<&Allocation> {
        self.input.entities.allocation(id)
    }

    /// The name of an allocation in backquotes, or what kind of memory it is.
    pub(crate) fn memory(&self, id: AllocationId) -> String {
        match self.allocation(id) {
            Some(Allocation { name: Some(name), .. }) => format!("`{}`", printable(name)),
            Some(allocation) => allocation.kind.description().to_owned(),
            None => "memory of unknown origin".to_owned(),
        }
    }

    /// `allocation 41: 64.0 MiB of device memory, cuMemAlloc_v2`.
    pub(crate) fn allocation_in_full(&self, id: AllocationId) -> String {
        match self.allocation(id) {
            Some(_) => format!("allocation {id}: {}", self.allocation_in_words(id)),
            None => format!("allocation {id}, of which nothing is known"),
        }
    }

    /// `64.0 MiB of device memory, cudaMalloc`.
    pub(crate) fn allocation_in_words(&self, id: AllocationId) -> String {
        let Some(allocation) = self.allocation(id) else {
            return "memory of which nothing is known".to_owned();
        };
        let mut text = String::new();
        if allocation.kind != MemoryKind::Pageable {
            let _ = write!(text, "{} of ", size(allocation.range.len()));
        }
        text += allocation.kind.description();
        if !allocation.api.is_empty() {
            let _ = write!(text, ", {}", self.called(&allocation.api, allocation.stack));
        }
        if self.input.entities.processes().nth(1).is_some()
            && let Some(process) = self.input.entities.process(allocation.process)
        {
            let _ = write!(text, ", process {}", process.id);
            if !process.executable.is_empty() {
                let _ = write!(text, " ({})", printable(&process.executable));
            }
        }
        text
    }

    /// `cuEventRecord of event 2 on stream 7 at #18,120`, or only the number where the operation
    /// is not at hand.
    pub(crate) fn call(&self, g: OpSeq) -> String {
        match self.call_without_place(g) {
            Some(call) => format!("{call} at {}", op(g)),
            None => op(g),
        }
    }

    /// `cuEventRecord of event 2 on stream 7`, where the operation is at hand.
    pub(crate) fn call_without_place(&self, g: OpSeq) -> Option<String> {
        self.operations.get(&g).map(|operation| self.describe(operation))
    }

    /// An operation in words: `cuEventRecord of event 2 on stream 7`.
    pub fn describe(&self, operation: &Operation) -> String {
        let objects = match operation.action {
            Action::EventRecord { event, stream } => {
                format!(" of {} on {}", self.event(event), self.the_stream(stream))
            }
            Action::StreamWaitEvent { stream, event } => {
                format!(" for {} in {}", self.event(event), self.the_stream(stream))
            }
            Action::ContextRecordEvent { context, event }
            | Action::ContextWaitEvent { context, event } => {
                format!(" of {} in {}", self.event(event), self.context(context))
            }
            Action::EventSynchronize { event } | Action::EventQuery { event } => {
                format!(" of {}", self.event(event))
            }
            Action::ContextSynchronize { context } => format!(" of {}", self.context(context)),
            ref action => match action.stream() {
                Some(stream) => format!(" on {}", self.the_stream(stream)),
                None => String::new(),
            },
        };
        let name = self.input.entities.called(&operation.api, operation.stack);
        format!("{}{objects}", printable_first(name))
    }

    /// The event that an operation records or waits for.
    pub(crate) fn event_of(&self, g: OpSeq) -> Option<EventId> {
        match self.operations.get(&g)?.action {
            Action::EventRecord { event, .. }
            | Action::StreamWaitEvent { event, .. }
            | Action::ContextRecordEvent { event, .. }
            | Action::ContextWaitEvent { event, .. }
            | Action::EventSynchronize { event }
            | Action::EventQuery { event }
            | Action::Launch { event: Some((event, _)), .. } => Some(event),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn amounts() {
        for (n, text) in [
            (1, "1 byte"),
            (1023, "1,023 bytes"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (1 << 26, "64.0 MiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(size(n), text);
        }
    }
}
