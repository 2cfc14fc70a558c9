//! Contexts, streams and events: their lives, and the calls that name nothing else.

use super::resolution::Resolution;
use super::tables::Primary;
use streamsan_model::{Action, ContextId, DeviceId, MemoryKind, StreamKind};

const STREAM_NON_BLOCKING: u64 = 1;

/// The device argument of a call, which the driver has accepted.
fn device(resolution: &Resolution<'_>) -> DeviceId {
    let index = resolution.call.api.signature().index_of("dev");
    DeviceId(index.map_or(0, |i| resolution.call.arg(i) as u32))
}

/// `cuCtxCreate` in all its versions.
pub(super) fn create(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let (device, concurrent_managed) = (device(resolution), concurrent_managed(resolution));
    let context = resolution.new_context(handle, device, false, concurrent_managed);
    if let Some(flags) = resolution.call.api.signature().index_of("flags") {
        resolution.tables.sync_memops.set(context, resolution.call.arg(flags));
    }
    Some(Action::ContextCreate { context })
}

/// Whether the host may touch managed memory beside kernels of the new context's device. What the
/// record says of the device beside that is kept.
fn concurrent_managed(resolution: &mut Resolution<'_>) -> bool {
    let facts = resolution.call.out(1).unwrap_or(1);
    let capability = ((facts >> 8) as u8, (facts >> 16) as u8);
    if capability.0 != 0 {
        let device = device(resolution);
        resolution.tables.capabilities.insert(device, capability);
    }
    facts & 1 != 0
}

/// `cuGreenCtxCreate(green, resources, device, flags)`.
pub(super) fn green_create(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let (device, concurrent_managed) = (device(resolution), concurrent_managed(resolution));
    let context = resolution.new_green_context(handle, device, concurrent_managed);
    Some(Action::ContextCreate { context })
}

/// `cuCtxFromGreenCtx(context, green)`: another handle for the green context.
pub(super) fn from_green(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let context = resolution.green_context(resolution.call.arg(1));
    resolution.tables.contexts.insert(handle, context);
    None
}

/// `cuGreenCtxDestroy(green)`.
pub(super) fn green_destroy(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let (context, _) = resolution.tables.green_contexts.remove(&resolution.call.arg(0))?;
    end(resolution, context)
}

/// `cuGreenCtxRecordEvent(green, event)`.
pub(super) fn green_record_event(resolution: &mut Resolution<'_>) -> Option<Action> {
    let event = resolution.event(resolution.call.arg(1))?;
    Some(Action::ContextRecordEvent {
        context: resolution.green_context(resolution.call.arg(0)),
        event,
    })
}

/// `cuGreenCtxWaitEvent(green, event)`.
pub(super) fn green_wait_event(resolution: &mut Resolution<'_>) -> Option<Action> {
    let event = resolution.event(resolution.call.arg(1))?;
    Some(Action::ContextWaitEvent {
        context: resolution.green_context(resolution.call.arg(0)),
        event,
    })
}

/// `cuCtxDestroy`.
pub(super) fn destroy(resolution: &mut Resolution<'_>) -> Option<Action> {
    let context = *resolution.tables.contexts.get(&resolution.call.arg(0))?;
    resolution.call.succeeded().then(|| end(resolution, context))?
}

/// `cuDevicePrimaryCtxRetain`: only the first retain makes a context.
pub(super) fn primary_retain(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let device = device(resolution);
    if let Some(primary) = resolution.tables.primaries.get_mut(&device)
        && primary.handle == handle
    {
        primary.retained += 1;
        return None;
    }
    let concurrent_managed = concurrent_managed(resolution);
    resolution.tables.primaries.insert(device, Primary { handle, retained: 1, concurrent_managed });
    let context = match resolution.tables.implied_primaries.remove(&device) {
        Some(context) => {
            resolution.tables.contexts.insert(handle, context);
            context
        }
        None => resolution.new_context(handle, device, true, concurrent_managed),
    };
    let flags = resolution.tables.sync_memops.of_primary(device);
    resolution.tables.sync_memops.set(context, flags);
    Some(Action::ContextCreate { context })
}

/// `cuDevicePrimaryCtxRelease`: the last release ends the context.
pub(super) fn primary_release(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let device = device(resolution);
    let primary = resolution.tables.primaries.get_mut(&device)?;
    primary.retained -= 1;
    if primary.retained > 0 {
        return None;
    }
    let handle = primary.handle;
    resolution.tables.primaries.remove(&device);
    let context = *resolution.tables.contexts.get(&handle)?;
    end(resolution, context)
}

/// `cuDevicePrimaryCtxReset`: ends what lives in the context; it stays retained and is made anew.
pub(super) fn primary_reset(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let device = device(resolution);
    let Primary { handle, concurrent_managed, .. } = *resolution.tables.primaries.get(&device)?;
    let context = *resolution.tables.contexts.get(&handle)?;
    let action = end(resolution, context);
    let context = resolution.new_context(handle, device, true, concurrent_managed);
    let flags = resolution.tables.sync_memops.of_primary(device);
    resolution.tables.sync_memops.set(context, flags);
    action
}

/// Forgets the handles and the memory of a context.
fn end(resolution: &mut Resolution<'_>, context: ContextId) -> Option<Action> {
    let tables = &mut *resolution.tables;
    tables.contexts.retain(|_, c| *c != context);
    tables.sync_memops.set(context, 0);
    tables.legacy_streams.remove(&context);
    tables.thread_streams.retain(|(_, c), _| *c != context);
    tables.streams.retain(|_, (_, c)| *c != context);
    tables.events.retain(|_, (_, c)| *c != context);
    // The other kinds belong to the process or to a memory pool.
    let dies = [MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Global];
    tables
        .memory
        .end_where(resolution.call.g, |b| b.context == Some(context) && dies.contains(&b.kind));
    Some(Action::ContextDestroy { context })
}

/// `cuCtxSynchronize`: the current context, or the one that the second version names.
pub(super) fn synchronize(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.args.get(0).filter(|&h| h != 0).unwrap_or(resolution.call.context);
    (handle != 0).then(|| Action::ContextSynchronize { context: resolution.context(handle) })
}

/// `cuCtxRecordEvent`.
pub(super) fn record_event(resolution: &mut Resolution<'_>) -> Option<Action> {
    let context = named_context(resolution, 0);
    Some(Action::ContextRecordEvent { context, event: resolution.event(resolution.call.arg(1))? })
}

/// `cuCtxWaitEvent`.
pub(super) fn wait_event(resolution: &mut Resolution<'_>) -> Option<Action> {
    let context = named_context(resolution, 0);
    Some(Action::ContextWaitEvent { context, event: resolution.event(resolution.call.arg(1))? })
}

/// The context that parameter `index` names; 0 means the current one.
fn named_context(resolution: &mut Resolution<'_>, index: usize) -> ContextId {
    match resolution.call.arg(index) {
        0 => resolution.current_context(),
        handle => resolution.context(handle),
    }
}

/// `cuStreamCreate(stream, flags)` and `cuStreamCreateWithPriority(stream, flags, priority)`.
pub(super) fn stream_create(resolution: &mut Resolution<'_>) -> Option<Action> {
    let context = resolution.current_context();
    new_stream(resolution, context, resolution.call.arg(1), resolution.call.args.get(2))
}

/// `cuGreenCtxStreamCreate(stream, context, flags, priority)`.
pub(super) fn green_stream_create(resolution: &mut Resolution<'_>) -> Option<Action> {
    let context = resolution.green_context(resolution.call.arg(1));
    new_stream(resolution, context, resolution.call.arg(2), resolution.call.args.get(3))
}

fn new_stream(
    resolution: &mut Resolution<'_>,
    context: ContextId,
    flags: u64,
    priority: Option<u64>,
) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    // Drivers without cuStreamGetId answer with all ones.
    let driver_id = resolution.call.out(1).filter(|&id| id != u64::MAX).unwrap_or(0);
    let kind = if flags & STREAM_NON_BLOCKING == 0 {
        StreamKind::Blocking
    } else {
        StreamKind::NonBlocking
    };
    let priority = priority.map_or(0, |word| word as i32);
    let stream = resolution.new_stream(handle, context, kind, priority, driver_id);
    Some(Action::StreamCreate { stream })
}

/// `cuStreamDestroy`.
pub(super) fn stream_destroy(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let (stream, _) = resolution.tables.streams.remove(&resolution.call.arg(0))?;
    resolution.tables.captures.destroyed(stream);
    Some(Action::StreamDestroy { stream })
}

/// `cuEventCreate`.
pub(super) fn event_create(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let event = resolution.new_event(handle, resolution.call.arg(1) as u32);
    Some(Action::EventCreate { event })
}

/// `cuEventDestroy`.
pub(super) fn event_destroy(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let (event, _) = resolution.tables.events.remove(&resolution.call.arg(0))?;
    if resolution.tables.imports.drop_event(resolution.call.arg(0)) {
        return None;
    }
    Some(Action::EventDestroy { event })
}
