//! Explanations in sentences: why a pair is unordered, and how sure that is.

use crate::Report;
use crate::names::op;
use streamsan_model::{
    Action, Basis, Finding, MemoryKind, OpSeq, RaceClass, Severity, StreamId, StreamKind,
};

/// The explanation of a lint, which has no pair.
pub(crate) fn lint(class: RaceClass) -> &'static str {
    match class {
        RaceClass::WaitBeforeRecord => {
            "a wait for an event that was never recorded waits for nothing"
        }
        RaceClass::EventRerecorded => {
            "an event is recorded again before anything waited for its first record"
        }
        RaceClass::MemopOnlyOrder => "ordered by stream memory operations only",
        RaceClass::LegacyBesideNonblocking => {
            "the legacy default stream is used beside non-blocking streams, which it does not order"
        }
        RaceClass::PooledStreamAlias => {
            "ordered only because a pool handed out the same stream twice"
        }
        // The other classes are of races; as lints they say no more than their name.
        _ => class.description(),
    }
}

/// The documentation on copies that return before they are done: CUDA Driver API and Runtime API,
/// "API synchronization behavior".
const TAIL: &str = "CUDA Driver API, API synchronization behavior: \"For transfers from pageable host memory to device memory, a stream \
    sync is performed before the copy is initiated. The function will return once the pageable buffer \
    has been copied to the staging memory for DMA transfer to device memory, but the DMA to final \
    destination may not have completed.\"";

impl Report<'_> {
    /// Why nothing orders the pair, or what does so today without any guarantee: one sentence.
    pub(crate) fn why(&self, finding: &Finding) -> String {
        if finding.severity == Severity::Latent {
            return match (finding.class, finding.masked_by) {
                (RaceClass::PageableCopyTail, _) => {
                    "only today's driver orders them: it finishes a \
                    copy of up to 64 KiB before the call returns, and no documented rule says that \
                    it does"
                        .to_owned()
                }
                (_, masked_by) => {
                    let call = match masked_by {
                        Some(g) if g == finding.first.op => "(1) itself".to_owned(),
                        Some(g) => self.masking(g),
                        None => "behaviour that is not documented".to_owned(),
                    };
                    format!(
                        "only {call} orders them today, and no documented rule says that it does"
                    )
                }
            };
        }
        if finding.class == RaceClass::UseAfterFree {
            // No order could help.
            return self.falls_short(finding).unwrap_or_default();
        }
        let reason = if finding.class == RaceClass::GraphUnordered {
            self.falls_short(finding)
        } else if finding.first.op == finding.second.op {
            Some("both are parts of one call, which have no order among themselves".to_owned())
        } else if finding.first.stream.is_some() && finding.first.stream == finding.second.stream {
            let stream = self.side(finding.first.stream);
            let why = self.why_not_in_order(finding);
            Some(format!("both were issued to {stream}, which does not order this pair{why}"))
        } else {
            self.falls_short(finding)
        };
        match reason {
            Some(reason) => format!("no happens-before path: {reason}"),
            None => "no happens-before path leads from (1) to (2)".to_owned(),
        }
    }

    /// The proof: how far the second side knows the first one, and what it would need to know.
    pub(crate) fn clocks(&self, finding: &Finding) -> Vec<String> {
        let mut lines = Vec::new();
        let is_one_stream = finding.first.stream == finding.second.stream;
        let is_about_order = finding.class != RaceClass::GraphUnordered
            && finding.class != RaceClass::UseAfterFree
            && finding.first.op != finding.second.op;
        if is_about_order && !is_one_stream {
            let [first, second] =
                [&finding.first, &finding.second].map(|side| self.side(side.stream));
            let needs = op(finding.first.op);
            lines.push(match finding.knows {
                Some(g) => {
                    let call = self.call_without_place(g);
                    let call = call.map_or(String::new(), |call| format!(" ({call})"));
                    let known = op(g);
                    format!("{second} knows {first} up to {known}{call}; it needs at least {needs}")
                }
                None => format!("{second} knows nothing of {first}; it needs at least {needs}"),
            });
        }
        if finding.severity == Severity::Latent {
            lines.extend(self.falls_short(finding));
        }
        if finding.class == RaceClass::PageableCopyTail {
            lines.push(TAIL.to_owned());
        }
        lines
    }

    /// The order that a latent pair has in this run. Creating a stream orders nothing by itself:
    /// the barrier of the legacy default stream holds the new stream back.
    pub(crate) fn masking(&self, g: OpSeq) -> String {
        let action = self.operations.get(&g).map(|operation| &operation.action);
        match action {
            Some(Action::StreamCreate { .. }) => format!(
                "the barrier of the legacy default stream, which also holds back streams that are \
                 created later ({})",
                self.call_there(g)
            ),
            _ => self.call_there(g),
        }
    }

    /// The reason why two operations of one stream may run out of its order.
    fn why_not_in_order(&self, finding: &Finding) -> &'static str {
        let memory = self.allocation(finding.allocation).map(|allocation| allocation.kind);
        if finding.second.kernel.is_some() {
            ": a launch with programmatic serialization may begin before its predecessor has ended"
        } else if memory == Some(MemoryKind::Pageable) {
            ": pageable memory may be read during the call, before earlier work has run"
        } else {
            ""
        }
    }

    /// The explanation of the mistake's class, with the event operation that comes nearest.
    fn falls_short(&self, finding: &Finding) -> Option<String> {
        let first = self.side_of(finding, finding.first.stream);
        let second = self.side_of(finding, finding.second.stream);
        let nearest = finding.nearest.map(|g| self.call_there(g));
        let event = finding.nearest.and_then(|g| self.event_of(g)).map(|event| self.event(event));
        let event = event.as_deref().unwrap_or("the event");
        let at = finding.nearest.map(|g| self.there(g));
        Some(match (finding.class, nearest, at) {
            (RaceClass::StaleWait, Some(_), Some(at))
                if finding.nearest == Some(finding.first.op) =>
            {
                match self.event_of(finding.first.op) {
                    Some(_) => format!(
                        "{event} is recorded by (1) itself, by a launch attribute: it may fire \
                         before (1) has ended"
                    ),
                    None => {
                        format!("{event} was recorded at {at}, by a node that is not behind (1)")
                    }
                }
            }
            (RaceClass::StaleWait, Some(call), Some(at)) => match self.nearest_waits(finding) {
                Some(true) => format!(
                    "{call} came before the event was recorded again behind (1), and so waits only \
                     for the record before (1)"
                ),
                Some(false) => format!("{event} was recorded at {at}, before (1), and not again"),
                None => format!("the wait is for a record before (1); what comes nearest: {at}"),
            },
            (RaceClass::StaleWait, ..) => "the wait is for a record before (1)".to_owned(),
            (RaceClass::WrongStreamWait, Some(call), _) => {
                format!("the event that {second} waits for was not recorded on {first}: {call}")
            }
            (RaceClass::WrongStreamWait, ..) => {
                format!("the event that {second} waits for was not recorded on {first}")
            }
            (RaceClass::EventRerecorded, Some(call), _) => format!(
                "{event} was recorded again before it was waited for, so the wait is for the new \
                 record: {call}"
            ),
            (RaceClass::EventRerecorded, ..) => {
                "the event was recorded again before it was waited for".to_owned()
            }
            (RaceClass::WaitBeforeRecord, Some(call), _) => {
                format!("{call} came before any record of {event}, and so waits for nothing")
            }
            (RaceClass::WaitBeforeRecord, ..) => {
                "the wait came before any record of its event, and so waits for nothing".to_owned()
            }
            (RaceClass::LegacyVsNonblocking, ..) => match self.legacy_first(finding) {
                Some(true) => format!("{second} is non-blocking, and so {first} does not order it"),
                Some(false) => {
                    format!("{first} is non-blocking, and so {second} does not order it")
                }
                None => "the default stream does not order a non-blocking stream".to_owned(),
            },
            (RaceClass::PageableCopyTail, ..) => {
                "(1) may return before its bytes are on the device, and nothing waits for them"
                    .to_owned()
            }
            (RaceClass::HostReadEarly | RaceClass::HostBufferReuse, ..)
                if finding.first.stream.is_none() =>
            {
                "whoever issues (2) does not know that the host has done (1)".to_owned()
            }
            (RaceClass::HostReadEarly, ..) => {
                "the host reads without waiting until (1) is done".to_owned()
            }
            (RaceClass::HostBufferReuse, ..) => {
                "the host uses its buffer again without waiting until (1) is done".to_owned()
            }
            (RaceClass::UseBeforeAlloc, ..) => {
                "a stream-ordered allocation exists only for work ordered behind it".to_owned()
            }
            (RaceClass::UseAfterFree, ..) if finding.first.stream.is_none() => {
                "the memory's life ended with (1), before (2) was issued".to_owned()
            }
            (RaceClass::UseAfterFree, ..) => {
                "after a stream-ordered free only work ordered before it may use the memory"
                    .to_owned()
            }
            (RaceClass::FreeInFlight, ..) => {
                "the free does not wait for work that may still use the memory".to_owned()
            }
            (RaceClass::AllocatorReuse, ..) => {
                "from the free on the pool may hand the memory out again, while the other use may \
                 still run"
                    .to_owned()
            }
            (RaceClass::GraphUnordered, ..) => {
                "no path of the graph's edges leads from (1) to (2)".to_owned()
            }
            (RaceClass::PeerUnordered, ..) => {
                "streams of two devices order each other only by events".to_owned()
            }
            (RaceClass::MissingWait, None, _)
                if finding.first.stream.is_some()
                    && finding.second.stream.is_some()
                    && finding.first.stream != finding.second.stream =>
            {
                format!("no event recorded on {first} after (1) is waited for in {second}")
            }
            (_, Some(call), _) => format!("what comes nearest: {call}"),
            (_, None, _) => return None,
        })
    }

    /// Whether the first side is the legacy default stream, where one of them is known to be it.
    fn legacy_first(&self, finding: &Finding) -> Option<bool> {
        let is_legacy = |stream: Option<StreamId>| {
            Some(self.input.entities.stream(stream?)?.kind == StreamKind::Legacy)
        };
        let [first, second] = [is_legacy(finding.first.stream)?, is_legacy(finding.second.stream)?];
        (first != second).then_some(first)
    }

    /// A call in words with the line that made it, or its number where the line is not known.
    fn call_there(&self, g: OpSeq) -> String {
        match self.call_without_place(g) {
            Some(call) => format!("{call} at {}", self.there(g)),
            None => self.there(g),
        }
    }

    /// The line that made a call, or the call's number.
    fn there(&self, g: OpSeq) -> String {
        let stack = self.operations.get(&g).and_then(|operation| operation.stack);
        self.source_place(stack).map_or_else(|| op(g), |place| place.description())
    }

    /// Whether the event operation that comes nearest is a wait, where it is at hand.
    fn nearest_waits(&self, finding: &Finding) -> Option<bool> {
        let operation = self.operations.get(&finding.nearest?)?;
        Some(matches!(
            operation.action,
            Action::StreamWaitEvent { .. }
                | Action::ContextWaitEvent { .. }
                | Action::EventSynchronize { .. }
                | Action::EventQuery { .. }
        ))
    }

    /// The reason for the confidence.
    pub(crate) fn confidence(&self, finding: &Finding) -> String {
        let bases = match (finding.first.access.basis, finding.second.access.basis) {
            (a, b) if a == b => format!("both accesses are {}", a.description()),
            (a, b) => format!("(1) is {}, (2) is {}", a.description(), b.description()),
        };
        let unknown = [&finding.first, &finding.second]
            .iter()
            .any(|side| side.access.basis == Basis::Assumed);
        let note = if unknown {
            "; assumed: what the kernel does with the pointer is not known"
        } else {
            ""
        };
        format!("{}: {bases}{note}", finding.confidence.description())
    }
}
