//! Which operations an operation runs after: the rules of streams, of the default streams and of
//! whole contexts.
//!
//! Source of the rules: CUDA C++ Programming Guide, "Streams" and "Stream synchronization
//! behavior"; CUDA Driver API, the pages of the calls named below.

use super::state::Driver;
use super::stream::{Primary, StreamKind};
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
        let (context, ordinal) = (target.context, target.ordinal);
        let mut after: Vec<OpId> = also.to_vec();
        after.extend(self.before_next(stream));
        self.staged += work.staged_bytes();
        let job = Job { context, tag: runtime::current_op(), work };
        let op = self.queue.push(Lane { stream, ordinal }, &after, job);
        if let Some(target) = self.streams.get_mut(&stream) {
            target.tail = Some(op);
            target.awaited.clear();
        }
        op
    }

    /// The operations that the next operation of a stream waits for.
    fn before_next(&self, stream: u64) -> Vec<OpId> {
        let Some(target) = self.streams.get(&stream) else { return Vec::new() };
        let mut after: Vec<OpId> = target.tail.into_iter().collect();
        if let Some(context) = self.contexts.get(target.context) {
            after.extend(&context.gate);
        }
        if let Some(green) = target.green.and_then(|green| self.greens.get(green)) {
            after.extend(&green.gate);
        }
        after.extend(self.barrier(target.context, target.kind));
        after
    }

    /// Appends a kernel to a stream. A programmatic one waits only for what the kernel ahead of it
    /// waited for (Programming Guide, "Programmatic Dependent Launch and Synchronization"); what
    /// follows is behind both. `events` fire while it runs, so they hold what is before it.
    pub(super) fn submit_kernel(
        &mut self,
        stream: u64,
        work: Work,
        (programmatic, waits): (bool, bool),
        events: [u64; 2],
    ) {
        let awaited = self.take_awaited(stream);
        let primary = self.streams.get(&stream).and_then(|stream| {
            stream.primary.clone().filter(|primary| Some(primary.tail) == stream.tail)
        });
        let mut done = None;
        let (after, tail) = match primary.filter(|_| programmatic) {
            Some(Primary { tail: ahead, before }) => {
                let Some(target) = self.streams.get(&stream) else { return };
                let (context, ordinal) = (target.context, target.ordinal);
                let tag = runtime::current_op();
                let lane = Lane { stream: self.fresh_id(), ordinal };
                let op = self.queue.push(lane, &before, Job { context, tag, work });
                done = Some(op);
                self.queue.hurry(op);
                let both = self.submit(stream, Work::Marker, &[ahead, op]);
                (before, both)
            }
            None => {
                let before = self.before_next(stream);
                // A kernel that waits runs when that wait is over.
                let also = if waits { &awaited[..] } else { &[] };
                (before, self.submit(stream, work, also))
            }
        };
        let itself = done.unwrap_or(tail);
        for (event, covered) in events.into_iter().zip([vec![itself], Vec::new()]) {
            if event != 0 {
                self.fire(event, after.clone(), covered);
            }
        }
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.primary = Some(Primary { tail, before: after });
        }
    }

    pub(super) fn take_awaited(&mut self, stream: u64) -> Vec<OpId> {
        self.streams.get_mut(&stream).map(|s| std::mem::take(&mut s.awaited)).unwrap_or_default()
    }

    /// The operations that a stream of `kind` waits for because of the legacy stream's barrier.
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

    /// The operations that a host waiting for the stream waits for: the stream, and for the legacy
    /// stream every blocking stream too.
    pub(super) fn stream_targets(&self, stream: u64) -> Vec<OpId> {
        let Some(target) = self.streams.get(&stream) else { return Vec::new() };
        let mut targets: Vec<OpId> = target.tail.into_iter().collect();
        if target.kind == StreamKind::Legacy {
            targets.extend(self.barrier(target.context, target.kind));
        }
        targets
    }

    /// The operations that `cuCtxSynchronize` waits for: every stream of the context.
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
