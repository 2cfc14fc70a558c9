//! The words for the traces of a report over several.

use crate::names::{number, plural, reason_in_words};
use crate::{Group, InTrace, LintGroup, Report};
use std::borrow::Cow;
use streamsan_model::{IncompleteReason, Verdict};
use streamsan_names::printable;

/// Traces that a line names; the JSON form names all.
const NAMED: usize = 8;

impl<'a> Report<'a> {
    /// The report of the trace that shows the finding.
    pub(crate) fn part_of(&self, group: &Group) -> &Self {
        self.parts.get(group.part).unwrap_or(self)
    }

    /// The report of the trace that shows the lint.
    pub(crate) fn part_of_lint(&self, group: &LintGroup) -> &Self {
        self.parts.get(group.part).unwrap_or(self)
    }

    /// Name of one of several traces.
    pub(crate) fn trace_of(&self, part: usize) -> Cow<'_, str> {
        let part = self.parts.get(part);
        let name = part.and_then(|part| part.input.trace.as_deref());
        name.map_or(Cow::Borrowed("a trace without a name"), printable)
    }

    /// `in 2 of 4 traces: rank-1.db (3 times, first at #12), rank-3.db (...)`, where there are
    /// several.
    pub(crate) fn in_traces(&self, traces: &[InTrace]) -> Option<String> {
        if self.parts.is_empty() {
            return None;
        }
        let place = |at: &InTrace| {
            let times = match at.count {
                1 => String::new(),
                count => format!("{} times, first ", number(count)),
            };
            format!("{} ({times}at {})", self.trace_of(at.part), crate::names::op(at.first))
        };
        let mut named: Vec<String> = traces.iter().take(NAMED).map(place).collect();
        if traces.len() > NAMED {
            named.push(format!("{} more", number((traces.len() - NAMED) as u64)));
        }
        let (of, all) =
            (number(traces.len() as u64), plural(self.parts.len() as u64, "trace", "traces"));
        Some(format!("in {of} of {all}: {}", named.join(", ")))
    }

    /// The reasons of incomplete runs; with several traces, each with the traces that it holds for.
    pub(crate) fn told_reasons(&self) -> impl Iterator<Item = (&IncompleteReason, String)> {
        self.reasons_by(reason_in_words).map(|(reason, mut text)| {
            if let Some(launches) = self.not_measured_of(reason) {
                text += &format!(": {launches}");
            }
            (reason, text)
        })
    }

    /// `3 of 4,000 launches not measured`, where the kernel of a reason was to be measured.
    fn not_measured_of(&self, reason: &IncompleteReason) -> Option<String> {
        let (IncompleteReason::UnknownKernelParameters { kernel, .. }
        | IncompleteReason::PointersInMemory { kernel, .. }) = reason
        else {
            return None;
        };
        let measured = self.input.coverage.as_ref()?.measured.as_ref()?;
        let known = measured.kernels.iter().find(|known| known.name == *kernel)?;
        let (of, not) = (known.launches(), known.not_measured);
        let mut text =
            format!("{} of {} not measured", number(not), plural(of, "launch", "launches"));
        if known.in_part > 0 {
            text += &format!(", {} in part", number(known.in_part));
        }
        Some(text)
    }

    /// Like `told_reasons`, with other words for the reasons.
    pub(crate) fn reasons_by(
        &self,
        say: fn(&IncompleteReason) -> String,
    ) -> impl Iterator<Item = (&IncompleteReason, String)> {
        self.input.reasons.iter().map(move |reason| {
            let lacks = |part: &&Report<'_>| part.input.reasons.contains(reason);
            let of: Vec<&str> = self
                .parts
                .iter()
                .filter(lacks)
                .map(|part| part.input.trace.as_deref().unwrap_or_default())
                .collect();
            let said = say(reason);
            let text = match of.as_slice() {
                [] => said,
                // The text names its file.
                _ if matches!(reason, IncompleteReason::TraceNotRead(_)) => said,
                few if few.len() <= NAMED => format!("{said} ({})", few.join(", ")),
                many => {
                    format!("{said} ({} and {} more)", many[..NAMED].join(", "), many.len() - NAMED)
                }
            };
            (reason, text)
        })
    }

    /// Number of traces that could not be read.
    pub fn unread(&self) -> u64 {
        let is_unread = |part: &&Report<'_>| {
            part.reasons().iter().any(|reason| matches!(reason, IncompleteReason::TraceNotRead(_)))
        };
        self.parts.iter().filter(is_unread).count() as u64
    }

    /// `4 traces, 1 racy, 1 incomplete`, where there are several.
    pub(crate) fn traces_in_words(&self) -> Option<String> {
        if self.parts.is_empty() {
            return None;
        }
        let count = |of: fn(&Verdict) -> bool| {
            self.parts.iter().filter(|part| of(&part.verdict)).count() as u64
        };
        let unread = self.unread();
        let mut text = plural(self.parts.len() as u64, "trace", "traces");
        for (count, what) in [
            (count(|verdict| *verdict == Verdict::Racy), "racy"),
            (count(|verdict| matches!(verdict, Verdict::Incomplete(_))) - unread, "incomplete"),
            (count(|verdict| *verdict == Verdict::NoCuda), "without a driver call"),
            (unread, "not read"),
        ] {
            if count > 0 {
                text += &format!(", {} {what}", number(count));
            }
        }
        Some(text)
    }
}
