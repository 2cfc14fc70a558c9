//! Contexts by their handles.

use super::Resolution;
use streamsan_model::{Context, ContextId, DeviceId, Entity};

impl Resolution<'_> {
    /// The context of this handle; one that was made unseen is declared on the first device.
    pub(in crate::resolve) fn context(&mut self, handle: u64) -> ContextId {
        match self.tables.contexts.get(&handle) {
            Some(&id) => id,
            None => self.new_context(handle, DeviceId(0), false, true),
        }
    }

    pub(in crate::resolve) fn current_context(&mut self) -> ContextId {
        self.context(self.call.context)
    }

    pub(in crate::resolve) fn new_context(
        &mut self,
        handle: u64,
        device: DeviceId,
        primary: bool,
        concurrent_managed_access: bool,
    ) -> ContextId {
        let id = self.ids.context();
        self.tables.devices.insert(id, device);
        self.tables.contexts.insert(handle, id);
        let (process, parent) = (self.tables.id, None);
        self.declare(Entity::Context(Context {
            id,
            process,
            device,
            primary,
            parent,
            concurrent_managed_access,
            handle,
        }));
        id
    }

    /// The primary context of a device that a green context is made of.
    fn primary_of(&mut self, device: DeviceId, concurrent_managed_access: bool) -> ContextId {
        if let Some(primary) = self.tables.primaries.get(&device).copied() {
            return self.context(primary.handle);
        }
        if let Some(&id) = self.tables.implied_primaries.get(&device) {
            return id;
        }
        let id = self.ids.context();
        self.tables.devices.insert(id, device);
        self.tables.implied_primaries.insert(device, id);
        let process = self.tables.id;
        self.declare(Entity::Context(Context {
            id,
            process,
            device,
            primary: true,
            parent: None,
            concurrent_managed_access,
            handle: 0,
        }));
        id
    }

    /// A green context with this handle of its own.
    pub(in crate::resolve) fn new_green_context(
        &mut self,
        handle: u64,
        device: DeviceId,
        concurrent_managed_access: bool,
    ) -> ContextId {
        let parent = self.primary_of(device, concurrent_managed_access);
        let id = self.ids.context();
        self.tables.devices.insert(id, device);
        self.tables.green_contexts.insert(handle, (id, parent));
        let process = self.tables.id;
        self.declare(Entity::Context(Context {
            id,
            process,
            device,
            primary: false,
            parent: Some(parent),
            concurrent_managed_access,
            handle,
        }));
        id
    }

    /// The green context of this handle; one that was made unseen is declared on the first device.
    pub(in crate::resolve) fn green_context(&mut self, handle: u64) -> ContextId {
        match self.tables.green_contexts.get(&handle) {
            Some(&(id, _)) => id,
            None => self.new_green_context(handle, DeviceId(0), true),
        }
    }

    /// The context that memory made by this call belongs to: of a green context its primary one,
    /// which it shares all memory with.
    pub(super) fn owner(&mut self) -> Option<ContextId> {
        let context = (self.call.context != 0).then(|| self.current_context())?;
        let green = self.tables.green_contexts.values().find(|(id, _)| *id == context);
        Some(green.map_or(context, |&(_, parent)| parent))
    }
}
