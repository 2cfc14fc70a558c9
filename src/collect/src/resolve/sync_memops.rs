//! Who asked that synchronous copies and memsets always wait: `CU_CTX_SYNC_MEMOPS` for a context,
//! `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS` for an allocation.

use super::resolution::Resolution;
use std::collections::{HashMap, HashSet};
use streamsan_model::{Action, AllocationId, ContextId, DeviceId};

/// `CU_CTX_SYNC_MEMOPS`.
const FLAG: u64 = 0x80;
/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
const ATTRIBUTE: u64 = 6;

/// Contexts and allocations of a process with the property.
#[derive(Debug, Default)]
pub(super) struct SyncMemops {
    contexts: HashSet<ContextId>,
    allocations: HashSet<AllocationId>,
    /// Flags of primary contexts, which outlive them.
    devices: HashMap<DeviceId, u64>,
}

impl SyncMemops {
    /// Flags of a context, from its creation or later.
    pub(super) fn set(&mut self, context: ContextId, flags: u64) {
        if flags & FLAG == 0 {
            self.contexts.remove(&context);
        } else {
            self.contexts.insert(context);
        }
    }

    /// Flags of the primary context of a device, as they were set last.
    pub(super) fn of_primary(&self, device: DeviceId) -> u64 {
        self.devices.get(&device).copied().unwrap_or(0)
    }

    /// Whether a synchronous form on these allocations waits.
    pub(super) fn holds(&self, context: Option<ContextId>, allocations: &[AllocationId]) -> bool {
        context.is_some_and(|context| self.contexts.contains(&context))
            || allocations.iter().any(|allocation| self.allocations.contains(allocation))
    }

    /// Whether nobody asked.
    pub(super) fn is_empty(&self) -> bool {
        self.contexts.is_empty() && self.allocations.is_empty()
    }
}

/// `cuCtxSetFlags(flags)`.
pub(super) fn set_flags(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        let context = resolution.current_context();
        resolution.tables.sync_memops.set(context, resolution.call.arg(0));
    }
    None
}

/// `cuDevicePrimaryCtxSetFlags(device, flags)`.
pub(super) fn set_primary_flags(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        let (device, flags) = (DeviceId(resolution.call.arg(0) as u32), resolution.call.arg(1));
        resolution.tables.sync_memops.devices.insert(device, flags);
        if let Some(primary) = resolution.tables.primaries.get(&device).copied() {
            let context = resolution.context(primary.handle);
            resolution.tables.sync_memops.set(context, flags);
        }
    }
    None
}

/// `cuPointerSetAttribute(value, attribute, address)`: the attribute belongs to the allocation.
pub(super) fn set_attribute(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() || resolution.call.arg(1) != ATTRIBUTE {
        return None;
    }
    let on =
        resolution.call.pointee.as_deref().and_then(|bytes| bytes.first()).is_none_or(|&b| b != 0);
    if let Some(block) = resolution.tables.memory.find_made(resolution.call.arg(2)) {
        let (id, allocations) = (block.id, &mut resolution.tables.sync_memops.allocations);
        if on {
            allocations.insert(id);
        } else {
            allocations.remove(&id);
        }
    }
    None
}
