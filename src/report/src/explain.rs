//! Explanations in sentences: why a pair is unordered, and how sure that is.

use crate::Report;
use crate::names::op;
use streamsan_model::{Action, Basis, Finding, MemoryKind, OpSeq, RaceClass, Severity};

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
const TAIL: &str = "(1) may return before its bytes are on the device. CUDA Driver API, API \
    synchronization behavior: \"For transfers from pageable host memory to device memory, a stream \
    sync is performed before the copy is initiated. The function will return once the pageable buffer \
    has been copied to the staging memory for DMA transfer to device memory, but the DMA to final \
    destination may not have completed.\"";

impl Report<'_> {
    /// The lines under "why these are unordered".
    pub(crate) fn why(&self, finding: &Finding) -> Vec<String> {
        let first = self.side(finding.first.stream);
        let second = self.side(finding.second.stream);
        let mut lines = Vec::new();
        if finding.severity == Severity::Latent && finding.class == RaceClass::PageableCopyTail {
            lines.push(
                "today's driver finishes a copy of up to 64 KiB before the call returns; no documented \
                 rule says that it does"
                    .to_owned(),
            );
        } else if finding.severity == Severity::Latent {
            let call = match finding.masked_by {
                Some(g) if g == finding.first.op => "(1) itself".to_owned(),
                Some(g) => self.masking(g),
                None => "behaviour that is not documented".to_owned(),
            };
            lines.push(format!(
                "today {call} happens to order them; no documented rule says that it does"
            ));
        }
        if finding.class == RaceClass::GraphUnordered {
            // The streams that were captured order nothing in the graph; its edges do.
        } else if finding.first.op == finding.second.op {
            lines.push("both are parts of one call, which have no order among themselves".into());
        } else if finding.class == RaceClass::UseAfterFree {
            // Whatever the second side knows, it comes too late.
        } else if finding.first.stream == finding.second.stream {
            lines.push(format!(
                "both were issued to {first}, which does not order this pair{}",
                self.why_not_in_order(finding)
            ));
        } else {
            lines.push(match finding.knows {
                Some(g) => format!(
                    "{second} knows {first} up to {}{}; it needs at least {}",
                    op(g),
                    self.call_without_place(g).map_or(String::new(), |call| format!(" ({call})")),
                    op(finding.first.op)
                ),
                None => format!(
                    "{second} knows nothing of {first}; it needs at least {}",
                    op(finding.first.op)
                ),
            });
        }
        lines.extend(self.falls_short(finding));
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
                self.call(g)
            ),
            _ => self.call(g),
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
        let first = self.side(finding.first.stream);
        let second = self.side(finding.second.stream);
        let nearest = finding.nearest.map(|g| self.call(g));
        let event = finding.nearest.and_then(|g| self.event_of(g)).map(|event| self.event(event));
        let event = event.as_deref().unwrap_or("the event");
        let at = finding.nearest.map(op);
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
            (RaceClass::LegacyVsNonblocking, ..) => {
                "the legacy default stream and a non-blocking stream do not order each other"
                    .to_owned()
            }
            (RaceClass::PageableCopyTail, ..) => TAIL.to_owned(),
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
