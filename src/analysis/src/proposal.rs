//! The edge that would order a pair, where the program may make one.
//!
//! An edge is proposed only where its calls are legal. Driver API, `cuLaunchHostFunc`: "The host
//! function must not make any CUDA API calls", so that no host function can wait for a stream. The
//! accesses of such a function are ordered by its place in its stream: before the function was
//! enqueued, or behind it.
//!
//! Invariant: a proposed edge orders the pair. `what_if` puts the edge into the trace, so that
//! tests can check that the finding goes away.
//!
//! Deliberately absent: how one process tells another one that an event is recorded. That is the
//! program's own business, and the report says so.

use crate::clock::Chain;
use crate::core::Core;
use crate::record::AccessRecord;
use streamsan_model::{OpSeq, ProposedEdge, RaceClass, StreamId};

/// The place where a side can be held back or waited for.
#[derive(Clone, Copy, Debug)]
struct End {
    op: OpSeq,
    /// The stream; `None` for the host.
    stream: Option<StreamId>,
}

impl Core {
    /// The edge that would order the pair, if there is one.
    pub(crate) fn proposal(
        &self,
        class: RaceClass,
        earlier: &AccessRecord,
        later: &AccessRecord,
    ) -> Option<ProposedEdge> {
        let same_stream = earlier.stream.is_some() && earlier.stream == later.stream;
        // After a free, nothing helps but not using the memory. A kernel that may begin before its
        // predecessor has ended must wait for it by itself.
        if class == RaceClass::UseAfterFree || (same_stream && later.kernel.is_some()) {
            return None;
        }
        let (first, second) = (self.end(earlier)?, self.end(later)?);
        // A host function that was enqueued before the other side was issued comes first.
        let (before, behind) =
            if first.op <= second.op { (first, second) } else { (second, first) };
        Some(ProposedEdge {
            record_after_op: before.op,
            on_stream: before.stream,
            wait_before_op: behind.op,
            // Only the host can hold back what the driver may read before the stream gets there.
            in_stream: if same_stream { None } else { behind.stream },
        })
    }

    /// The place where a side can be held back. An access in a host function stands where the
    /// function stands in its stream. `None` for a function whose stream is gone.
    fn end(&self, side: &AccessRecord) -> Option<End> {
        match &side.function {
            Some(function) => {
                Some(End { op: OpSeq(function.g), stream: Some(self.stream_of(function.chain)?) })
            }
            None => Some(End { op: side.op, stream: side.stream }),
        }
    }

    /// The stream whose operations are in the chain now.
    fn stream_of(&self, chain: Chain) -> Option<StreamId> {
        self.used_streams().find(|stream| stream.chain == chain).map(|stream| stream.id)
    }
}
