//! Streams by their handles, and the default streams, which have none.

use super::Resolution;
use streamsan_model::{ContextId, Entity, Stream, StreamId, StreamKind, ThreadId};

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: handles with a fixed meaning.
const LEGACY_HANDLE: u64 = 1;
const PER_THREAD_HANDLE: u64 = 2;

impl Resolution<'_> {
    /// The stream in which this call is carried out. `None` for a stream that is being captured:
    /// the call is not carried out there. `None` too for an unknown handle in a refused call.
    pub(in crate::resolve) fn stream(&mut self, handle: u64) -> Option<StreamId> {
        let stream = self.named_stream(handle)?;
        if self.tables.captures.holds(stream) || self.was_captured() {
            self.captured = Some(stream);
            return None;
        }
        Some(stream)
    }

    /// Whether the driver said that the call was captured.
    pub(in crate::resolve) fn was_captured(&self) -> bool {
        self.call.read_back.as_ref().is_some_and(|read| read.captured.is_some())
    }

    /// The stream that a handle means in this call. `None` for an unknown handle in a call that
    /// was refused.
    pub(in crate::resolve) fn named_stream(&mut self, handle: u64) -> Option<StreamId> {
        match handle {
            0 if self.per_thread => Some(self.thread_stream()),
            0 | LEGACY_HANDLE => Some(self.legacy_stream()),
            PER_THREAD_HANDLE => Some(self.thread_stream()),
            _ => match self.tables.streams.get(&handle) {
                Some(&(id, _)) => Some(id),
                None if self.handles_are_valid() => {
                    // Non-blocking is the kind with the least order, so that no race is hidden.
                    self.gaps.not_understood("(creation of a stream, unseen)");
                    let context = self.current_context();
                    Some(self.new_stream(handle, context, StreamKind::NonBlocking, 0, 0))
                }
                None => None,
            },
        }
    }

    /// The stream of calls that name none.
    pub(in crate::resolve) fn default_stream(&mut self) -> StreamId {
        if self.per_thread { self.thread_stream() } else { self.legacy_stream() }
    }

    fn legacy_stream(&mut self) -> StreamId {
        let context = self.current_context();
        if let Some(&id) = self.tables.legacy_streams.get(&context) {
            return id;
        }
        let id = self.declare_stream(context, StreamKind::Legacy, None, 0, 0, 0);
        self.tables.legacy_streams.insert(context, id);
        id
    }

    fn thread_stream(&mut self) -> StreamId {
        let context = self.current_context();
        let thread = self.call.thread;
        if let Some(&id) = self.tables.thread_streams.get(&(thread, context)) {
            return id;
        }
        let id = self.declare_stream(context, StreamKind::PerThread, self.thread, 0, 0, 0);
        self.tables.thread_streams.insert((thread, context), id);
        id
    }

    pub(in crate::resolve) fn new_stream(
        &mut self,
        handle: u64,
        context: ContextId,
        kind: StreamKind,
        priority: i32,
        driver_id: u64,
    ) -> StreamId {
        let id = self.declare_stream(context, kind, None, priority, handle, driver_id);
        self.tables.streams.insert(handle, (id, context));
        id
    }

    fn declare_stream(
        &mut self,
        context: ContextId,
        kind: StreamKind,
        thread: Option<ThreadId>,
        priority: i32,
        handle: u64,
        driver_id: u64,
    ) -> StreamId {
        let id = self.ids.stream();
        self.declare(Entity::Stream(Stream {
            id,
            context,
            kind,
            thread,
            priority,
            handle,
            driver_id,
            name: None,
        }));
        id
    }
}
