//! Which operations an operation runs after: the rules of streams, of the default streams and of
//! whole contexts.
//!
//! Source of the rules: CUDA C++ Programming Guide, "Streams" and "Stream synchronization
//! behavior"; CUDA Driver API, the pages of the calls named below.

use super::state::Driver;
use super::stream::StreamKind;
use super::work::{Job, Work};
use crate::exports::runtime;
use crate::schedule::{Lane, OpId};

impl Driver {
    /// Appends an operation to a stream. It runs after what is in the stream, after what its
    /// context was told to wait for, after `also`, and:
    /// - in the legacy stream, after everything in the context's blocking streams;
    /// - in a blocking stream (per-thread default streams are blocking), after the legacy stream.
    pub(super) fn submit(&mut self, stream: u64, work: Work, also: &[OpId]) -> OpId {
        let Some(target) = self.streams.get(&stream) else {
            // Unreachable: callers resolve the stream under the same lock.
            return self.queue.push(Lane { stream, ordinal: 0 }, also, Job::detached(work));
        };
        let (context, kind, ordinal) = (target.context, target.kind, target.ordinal);
        let mut after: Vec<OpId> = also.to_vec();
        after.extend(target.tail);
        if let Some(context) = self.contexts.get(context) {
            after.extend(&context.gate);
        }
        after.extend(self.barrier(context, kind));
        self.staged += work.staged_bytes();
        let job = Job { context, tag: runtime::current_op(), work };
        let op = self.queue.push(Lane { stream, ordinal }, &after, job);
        if let Some(target) = self.streams.get_mut(&stream) {
            target.tail = Some(op);
        }
        op
    }

    /// What a stream of `kind` waits for because of the legacy stream's barrier.
    fn barrier(&self, context: u64, kind: StreamKind) -> Vec<OpId> {
        let Some(context) = self.contexts.get(context) else { return Vec::new() };
        let tail = |stream: &u64| self.streams.get(stream).and_then(|stream| stream.tail);
        match kind {
            StreamKind::NonBlocking => Vec::new(),
            StreamKind::Blocking | StreamKind::PerThread => {
                tail(&context.legacy).into_iter().collect()
            }
            StreamKind::Legacy => {
                let blocking = |stream: &&u64| {
                    self.streams.get(stream).is_some_and(|stream| {
                        matches!(stream.kind, StreamKind::Blocking | StreamKind::PerThread)
                    })
                };
                context.streams.iter().filter(blocking).filter_map(tail).collect()
            }
        }
    }

    /// What a host that waits for the stream waits for: the stream, and for the legacy stream
    /// every blocking stream too.
    pub(super) fn stream_targets(&self, stream: u64) -> Vec<OpId> {
        let Some(target) = self.streams.get(&stream) else { return Vec::new() };
        let mut targets: Vec<OpId> = target.tail.into_iter().collect();
        if target.kind == StreamKind::Legacy {
            targets.extend(self.barrier(target.context, target.kind));
        }
        targets
    }

    /// What `cuCtxSynchronize` waits for: every stream of the context.
    pub(super) fn context_targets(&self, context: u64) -> Vec<OpId> {
        let Some(context) = self.contexts.get(context) else { return Vec::new() };
        let tails = context.streams.iter().filter_map(|stream| self.streams.get(stream)?.tail);
        tails.chain(context.gate.iter().copied()).collect()
    }

    /// Everything pending in every context.
    pub(super) fn all_targets(&self) -> Vec<OpId> {
        self.contexts.iter().flat_map(|(handle, _)| self.context_targets(handle)).collect()
    }

    pub(super) fn all_done(&self, ops: &[OpId]) -> bool {
        ops.iter().all(|op| self.queue.is_done(*op))
    }

    /// Drops the streams that were destroyed and have nothing left to do.
    pub(super) fn sweep_streams(&mut self, context: u64) {
        let Some(entry) = self.contexts.get_mut(context) else { return };
        let (streams, queue) = (&mut self.streams, &self.queue);
        entry.gate.retain(|op| !queue.is_done(*op));
        entry.streams.retain(|id| {
            let finished = streams.get(id).is_none_or(|stream| {
                stream.destroyed && stream.tail.is_none_or(|op| queue.is_done(op))
            });
            if finished {
                streams.remove(id);
            }
            !finished
        });
    }
}
