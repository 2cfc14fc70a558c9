//! Lints: calls that cannot have the effect that they seem to have.
//!
//! Invariant: a lint rests on calls alone; no lint changes a finding or the verdict.

use crate::Sink;
use crate::core::Core;
use std::sync::Arc;
use streamsan_model::{EventId, Fingerprint, Lint, OpSeq, Operation, RaceClass, StackId};

/// A call as lints name it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) g: OpSeq,
    pub(crate) api: Arc<str>,
    pub(crate) stack: Option<StackId>,
}

impl Call {
    pub(crate) fn of(op: &Operation) -> Self {
        Self { g: op.g, api: Arc::clone(&op.api), stack: op.stack }
    }
}

impl Core {
    /// Reports a lint at the current operation.
    pub(crate) fn lint(
        &mut self,
        op: &Operation,
        class: RaceClass,
        event: Option<EventId>,
        related: Option<&Call>,
        sink: &mut dyn Sink,
    ) {
        let stream = op.action.stream();
        let at = Call::of(op);
        let lint = Lint {
            fingerprint: fingerprint(class, &at, related),
            class,
            op: op.g,
            api: at.api,
            stream,
            event,
            related: related.map(|call| call.g),
            stack: at.stack,
            related_stack: related.and_then(|call| call.stack),
        };
        self.ended.name_lint(&lint);
        sink.lint(lint);
    }
}

/// The fingerprint of a lint; equal for the same two entry points.
pub(crate) fn fingerprint(class: RaceClass, at: &Call, related: Option<&Call>) -> Fingerprint {
    let related = related.map_or("", |call| &call.api);
    Fingerprint::of(["lint", class.description(), &at.api, related])
}
