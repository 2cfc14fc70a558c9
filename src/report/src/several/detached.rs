//! A report that outlives its trace.

use crate::Report;
use crate::report::Facts;
use std::borrow::Cow;
use streamsan_model::{Action, Entities, EventId, IncompleteReason, Named, Operation};
use streamsan_model::{StreamNames, Threshold, Verdict};
use streamsan_names::printable;

impl Report<'_> {
    /// The same report without the trace: with a copy of the entities that it names. A report over
    /// several traces is made of such ones ([`crate::Several`]).
    #[must_use]
    pub fn detached(self) -> Report<'static> {
        let entities = self.input.entities.only(&self.named());
        let Self { verdict, groups, lints, unused, has_baseline, input, .. } = self;
        Report {
            verdict,
            groups,
            lints,
            unused,
            has_baseline,
            input: Facts {
                entities: Cow::Owned(entities),
                threshold: input.threshold,
                reasons: input.reasons,
                coverage: input.coverage,
                trace: input.trace,
            },
            effects: self.effects,
            operations: self.operations,
            ranges: self.ranges,
            stream_names: self.stream_names,
            parts: self.parts.into_iter().map(Report::detached).collect(),
            directory: self.directory,
            tests: self.tests,
            settled: self.settled,
        }
    }

    /// The report of one of several traces that cannot be read; `why` is a paragraph for the user that
    /// names the file.
    pub fn of_unread(trace: String, why: String, threshold: Threshold) -> Report<'static> {
        let reasons = vec![IncompleteReason::TraceNotRead(why)];
        let entities = Entities::default();
        Report {
            verdict: Verdict::of(false, reasons.clone(), None),
            groups: Vec::new(),
            lints: Vec::new(),
            // Nobody knows what the trace would have used.
            unused: Vec::new(),
            has_baseline: false,
            stream_names: StreamNames::of(&entities, printable),
            input: Facts {
                entities: Cow::Owned(entities),
                threshold,
                reasons,
                coverage: None,
                trace: Some(trace),
            },
            effects: Default::default(),
            operations: Default::default(),
            ranges: Default::default(),
            parts: Vec::new(),
            directory: None,
            tests: Vec::new(),
            settled: None,
        }
    }

    /// The entities that the findings name.
    fn named(&self) -> Named {
        let mut named = Named::default();
        for group in &self.groups {
            let finding = &group.finding;
            named.allocations.insert(finding.allocation);
            for side in [&finding.first, &finding.second] {
                named.streams.extend(side.stream);
                named.stacks.extend(side.stack);
                named.allocations.insert(side.access.allocation);
            }
            let edge = finding.proposed_edge.into_iter();
            named.streams.extend(edge.flat_map(|edge| [edge.on_stream, edge.in_stream]).flatten());
            named.streams.extend(group.spread.pairs.keys().flatten().flatten());
        }
        for group in &self.lints {
            let lint = &group.lint;
            named.streams.extend(lint.stream);
            named.events.extend(lint.event);
            named.stacks.extend([lint.stack, lint.related_stack].into_iter().flatten());
        }
        for operation in self.operations.values() {
            named.streams.extend(operation.action.stream());
            named.events.extend(events(operation));
            named.stacks.extend(operation.stack);
        }
        named
    }
}

/// The events that an operation is about.
fn events(operation: &Operation) -> impl Iterator<Item = EventId> {
    let events = match operation.action {
        Action::ContextRecordEvent { event, .. }
        | Action::ContextWaitEvent { event, .. }
        | Action::StreamWaitEvent { event, .. }
        | Action::EventCreate { event }
        | Action::EventDestroy { event }
        | Action::EventRecord { event, .. }
        | Action::EventSynchronize { event }
        | Action::EventQuery { event } => [Some(event), None],
        Action::EventElapsedTime { start, end } => [Some(start), Some(end)],
        Action::Launch { event: Some((event, _)), .. } => [Some(event), None],
        _ => [None, None],
    };
    events.into_iter().flatten()
}
