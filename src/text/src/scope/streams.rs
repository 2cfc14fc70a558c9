//! Streams by name, and the default streams of contexts and threads.

use super::{Bound, Scope, end, taken};
use crate::SyntaxError;
use crate::token::{Token, numbered};
use streamsan_model::{ContextId, Entity, Stream, StreamId, StreamKind, ThreadId};

impl Scope {
    /// The stream that `token` names, from the point of view of `thread`.
    pub(crate) fn stream(
        &mut self,
        token: Token<'_>,
        thread: ThreadId,
    ) -> Result<StreamId, SyntaxError> {
        let scoped = self.scoped(token, "a stream")?;
        let kind = match scoped.name.text {
            "legacy" => StreamKind::Legacy,
            "ptds" => StreamKind::PerThread,
            _ => StreamKind::NonBlocking,
        };
        if kind != StreamKind::NonBlocking {
            let context = self.context_or_default(scoped.context, scoped.process, token.line);
            return Ok(self.default_stream(context, kind, thread));
        }
        match self.streams.get(&scoped.key) {
            Some(Bound { id, until: None, .. }) => return Ok(*id),
            Some(Bound { until: Some(line), .. }) => {
                return Err(token.error(format!(
                    "stream `{0}` was destroyed on line {line}; write `stream {0}` to create \
                     another one of this name",
                    token.text
                )));
            }
            None => {}
        }
        if numbered(scoped.name.text, 's').is_none() {
            return Err(token.error(format!(
                "stream `{0}` is not declared; write `stream {0}` or `stream {0} nonblocking` on \
                 a line before (only names like `s1` are declared by their first use)",
                token.text
            )));
        }
        let context = self.context_or_default(scoped.context, scoped.process, token.line);
        Ok(self.new_stream(scoped.key, context, kind, 0, token.line))
    }

    /// The default stream of `context`: legacy, or that of `thread`.
    pub(crate) fn default_stream(
        &mut self,
        context: ContextId,
        kind: StreamKind,
        thread: ThreadId,
    ) -> StreamId {
        let per_thread = kind == StreamKind::PerThread;
        let known = if per_thread {
            self.thread_streams.get(&(context, thread))
        } else {
            self.legacy_streams.get(&context)
        };
        if let Some(&id) = known {
            return id;
        }
        let id = self.next_stream();
        self.declare(Entity::Stream(Stream {
            id,
            context,
            kind,
            thread: per_thread.then_some(thread),
            priority: 0,
            handle: if per_thread { 2 } else { 1 },
            driver_id: 0,
            name: None,
        }));
        if per_thread {
            self.thread_streams.insert((context, thread), id);
        } else {
            self.legacy_streams.insert(context, id);
        }
        id
    }

    /// Declares the stream that `token` names.
    pub(crate) fn declare_stream(
        &mut self,
        token: Token<'_>,
        context: Option<ContextId>,
        kind: StreamKind,
        priority: i32,
    ) -> Result<StreamId, SyntaxError> {
        let scoped = self.scoped(token, "a name for the stream")?;
        if matches!(scoped.name.text, "legacy" | "ptds") {
            return Err(token.error(format!("`{}` is a default stream", scoped.name.text)));
        }
        if let Some(Bound { since, until: None, .. }) = self.streams.get(&scoped.key) {
            return Err(taken(token, "stream", *since));
        }
        let context =
            self.context_or_default(context.or(scoped.context), scoped.process, token.line);
        Ok(self.new_stream(scoped.key, context, kind, priority, token.line))
    }

    fn new_stream(
        &mut self,
        name: String,
        context: ContextId,
        kind: StreamKind,
        priority: i32,
        line: usize,
    ) -> StreamId {
        let id = self.next_stream();
        self.declare(Entity::Stream(Stream {
            id,
            context,
            kind,
            thread: None,
            priority,
            handle: 0x2_0000 + u64::from(id.0),
            driver_id: 0,
            name: Some(name.clone()),
        }));
        self.streams.insert(name, Bound { id, since: line, until: None });
        id
    }

    fn next_stream(&mut self) -> StreamId {
        self.stream_count += 1;
        StreamId(self.stream_count - 1)
    }

    /// The name of a destroyed stream can be declared again.
    pub(crate) fn end_stream(&mut self, stream: StreamId, line: usize) {
        let name = self.entities.stream(stream).and_then(|stream| stream.name.as_deref());
        end(&mut self.streams, name, stream, line);
    }

    /// The context of a declared stream.
    pub(crate) fn stream_context(&self, stream: StreamId) -> Option<ContextId> {
        self.entities.stream(stream).map(|stream| stream.context)
    }
}
