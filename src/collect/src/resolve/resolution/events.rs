//! Events by their handles.

use super::Resolution;
use streamsan_model::{Entity, Event, EventId};

impl Resolution<'_> {
    /// The event of this handle. `None` for an unknown one in a call that was refused.
    pub(in crate::resolve) fn event(&mut self, handle: u64) -> Option<EventId> {
        match self.tables.events.get(&handle) {
            Some(&(id, _)) => Some(id),
            None if self.handles_are_valid() && handle != 0 => Some(self.new_event(handle, 0)),
            None => None,
        }
    }

    pub(in crate::resolve) fn new_event(&mut self, handle: u64, flags: u32) -> EventId {
        self.declare_event(handle, flags, false)
    }

    /// An event that a process outside of the run has made.
    pub(in crate::resolve) fn new_imported_event(&mut self, handle: u64) -> EventId {
        self.declare_event(handle, 0, true)
    }

    fn declare_event(&mut self, handle: u64, flags: u32, imported: bool) -> EventId {
        let context = self.current_context();
        let id = self.ids.event();
        self.tables.events.insert(handle, (id, context));
        self.declare(Entity::Event(Event { id, context, handle, flags, imported, name: None }));
        id
    }
}
