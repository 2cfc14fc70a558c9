//! Objects that make order: events, semaphores, objects of host threads, batches of files.

use super::{Bound, Scope, end};
use crate::SyntaxError;
use crate::token::Token;
use streamsan_model::{ContextId, Entity, Event, EventId, FileBatchId, SemaphoreId, SyncObject};

impl Scope {
    /// The event that `token` names; a new one is created in `context` unless a prefix says else.
    pub(crate) fn event(
        &mut self,
        token: Token<'_>,
        context: Option<ContextId>,
    ) -> Result<EventId, SyntaxError> {
        let scoped = self.scoped(token, "an event")?;
        if let Some(Bound { id, until: None, .. }) = self.events.get(&scoped.shared) {
            return Ok(*id);
        }
        let context =
            self.context_or_default(scoped.context.or(context), scoped.process, token.line);
        Ok(self.new_event(scoped.shared, context, false, token.line))
    }

    /// Creates an event; a name already in use goes over to the new one.
    pub(crate) fn declare_event(
        &mut self,
        token: Token<'_>,
        context: Option<ContextId>,
        imported: bool,
    ) -> Result<EventId, SyntaxError> {
        let scoped = self.scoped(token, "a name for the event")?;
        let context =
            self.context_or_default(context.or(scoped.context), scoped.process, token.line);
        Ok(self.new_event(scoped.shared, context, imported, token.line))
    }

    fn new_event(
        &mut self,
        name: String,
        context: ContextId,
        imported: bool,
        line: usize,
    ) -> EventId {
        let id = EventId(self.event_count);
        self.event_count += 1;
        let handle = 0x3_0000 + u64::from(id.0);
        let event = Event { id, context, handle, flags: 0, imported, name: Some(name.clone()) };
        self.declare(Entity::Event(event));
        self.events.insert(name, Bound { id, since: line, until: None });
        id
    }

    /// The name of a destroyed event stands for a new event at its next use.
    pub(crate) fn end_event(&mut self, event: EventId, line: usize) {
        let name = self.entities.event(event).and_then(|event| event.name.as_deref());
        end(&mut self.events, name, event, line);
    }

    /// The external semaphore that `token` names, of whichever process.
    pub(crate) fn semaphore(&mut self, token: Token<'_>) -> Result<SemaphoreId, SyntaxError> {
        let name = token.identifier("a semaphore")?.to_owned();
        let next = SemaphoreId(self.semaphores.len() as u32);
        Ok(*self.semaphores.entry(name).or_insert(next))
    }

    /// The object by which host threads of the current process order themselves.
    pub(crate) fn sync_object(&mut self, token: Token<'_>) -> Result<SyncObject, SyntaxError> {
        let name = token.identifier("what the threads order themselves by")?.to_owned();
        let next = SyncObject(self.sync_objects.len() as u64 + 1);
        Ok(*self.sync_objects.entry((self.process, name)).or_insert(next))
    }

    /// A new batch of file transfers.
    pub(crate) fn new_file_batch(&mut self, token: Token<'_>) -> Result<FileBatchId, SyntaxError> {
        let name = token.identifier("a name for the batch")?.to_owned();
        let id = FileBatchId(self.file_batch_count);
        self.file_batch_count += 1;
        self.file_batches.insert(name, id);
        Ok(id)
    }

    /// The newest batch of file transfers that `token` names.
    pub(crate) fn file_batch(&self, token: Token<'_>) -> Result<FileBatchId, SyntaxError> {
        let name = token.identifier("a batch of file transfers")?;
        self.file_batches.get(name).copied().ok_or_else(|| {
            token.error(format!("no line before submits a batch `{name}` with `file_batch {name}`"))
        })
    }
}
