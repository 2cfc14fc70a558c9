//! Contexts, streams and events: their lives, and the calls that name nothing else.

use super::resolution::Resolution;
use super::tables::Primary;
use streamsan_model::{Action, ContextId, DeviceId, MemoryKind, StreamKind};

const STREAM_NON_BLOCKING: u64 = 1;

/// The device argument of a call, which the driver has accepted.
fn device(l: &Resolution<'_>) -> DeviceId {
    let index = l.call.api.signature().index_of("dev");
    DeviceId(index.map_or(0, |i| l.call.arg(i) as u32))
}

/// `cuCtxCreate` in all its versions.
pub(super) fn create(l: &mut Resolution<'_>) -> Option<Action> {
    let handle = l.call.out(0)?;
    let (device, concurrent_managed) = (device(l), concurrent_managed(l));
    let context = l.new_context(handle, device, false, concurrent_managed);
    if let Some(flags) = l.call.api.signature().index_of("flags") {
        l.tables.sync_memops.set(context, l.call.arg(flags));
    }
    Some(Action::ContextCreate { context })
}

/// Whether the host may touch managed memory beside kernels of the new context's device. What the
/// record says of the device beside that is kept.
fn concurrent_managed(l: &mut Resolution<'_>) -> bool {
    let facts = l.call.out(1).unwrap_or(1);
    let capability = ((facts >> 8) as u8, (facts >> 16) as u8);
    if capability.0 != 0 {
        let device = device(l);
        l.tables.capabilities.insert(device, capability);
    }
    facts & 1 != 0
}

/// `cuGreenCtxCreate(green, resources, device, flags)`.
pub(super) fn green_create(l: &mut Resolution<'_>) -> Option<Action> {
    let handle = l.call.out(0)?;
    let (device, concurrent_managed) = (device(l), concurrent_managed(l));
    let context = l.new_green_context(handle, device, concurrent_managed);
    Some(Action::ContextCreate { context })
}

/// `cuCtxFromGreenCtx(context, green)`: another handle for the green context.
pub(super) fn from_green(l: &mut Resolution<'_>) -> Option<Action> {
    let handle = l.call.out(0)?;
    let context = l.green_context(l.call.arg(1));
    l.tables.contexts.insert(handle, context);
    None
}

/// `cuGreenCtxDestroy(green)`.
pub(super) fn green_destroy(l: &mut Resolution<'_>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let (context, _) = l.tables.green_contexts.remove(&l.call.arg(0))?;
    end(l, context)
}

/// `cuGreenCtxRecordEvent(green, event)`.
pub(super) fn green_record_event(l: &mut Resolution<'_>) -> Option<Action> {
    let event = l.event(l.call.arg(1))?;
    Some(Action::ContextRecordEvent { context: l.green_context(l.call.arg(0)), event })
}

/// `cuGreenCtxWaitEvent(green, event)`.
pub(super) fn green_wait_event(l: &mut Resolution<'_>) -> Option<Action> {
    let event = l.event(l.call.arg(1))?;
    Some(Action::ContextWaitEvent { context: l.green_context(l.call.arg(0)), event })
}

/// `cuCtxDestroy`.
pub(super) fn destroy(l: &mut Resolution<'_>) -> Option<Action> {
    let context = *l.tables.contexts.get(&l.call.arg(0))?;
    l.call.succeeded().then(|| end(l, context))?
}

/// `cuDevicePrimaryCtxRetain`: only the first retain makes a context.
pub(super) fn primary_retain(l: &mut Resolution<'_>) -> Option<Action> {
    let handle = l.call.out(0)?;
    let device = device(l);
    if let Some(primary) = l.tables.primaries.get_mut(&device)
        && primary.handle == handle
    {
        primary.retained += 1;
        return None;
    }
    let concurrent_managed = concurrent_managed(l);
    l.tables.primaries.insert(device, Primary { handle, retained: 1, concurrent_managed });
    let context = match l.tables.implied_primaries.remove(&device) {
        Some(context) => {
            l.tables.contexts.insert(handle, context);
            context
        }
        None => l.new_context(handle, device, true, concurrent_managed),
    };
    let flags = l.tables.sync_memops.of_primary(device);
    l.tables.sync_memops.set(context, flags);
    Some(Action::ContextCreate { context })
}

/// `cuDevicePrimaryCtxRelease`: the last release ends the context.
pub(super) fn primary_release(l: &mut Resolution<'_>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let device = device(l);
    let primary = l.tables.primaries.get_mut(&device)?;
    primary.retained -= 1;
    if primary.retained > 0 {
        return None;
    }
    let handle = primary.handle;
    l.tables.primaries.remove(&device);
    let context = *l.tables.contexts.get(&handle)?;
    end(l, context)
}

/// `cuDevicePrimaryCtxReset`: ends what lives in the context; it stays retained and is made anew.
pub(super) fn primary_reset(l: &mut Resolution<'_>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let device = device(l);
    let Primary { handle, concurrent_managed, .. } = *l.tables.primaries.get(&device)?;
    let context = *l.tables.contexts.get(&handle)?;
    let action = end(l, context);
    let context = l.new_context(handle, device, true, concurrent_managed);
    let flags = l.tables.sync_memops.of_primary(device);
    l.tables.sync_memops.set(context, flags);
    action
}

/// Forgets the handles and the memory of a context.
fn end(l: &mut Resolution<'_>, context: ContextId) -> Option<Action> {
    let tables = &mut *l.tables;
    tables.contexts.retain(|_, c| *c != context);
    tables.sync_memops.set(context, 0);
    tables.legacy_streams.remove(&context);
    tables.thread_streams.retain(|(_, c), _| *c != context);
    tables.streams.retain(|_, (_, c)| *c != context);
    tables.events.retain(|_, (_, c)| *c != context);
    // The other kinds belong to the process or to a memory pool.
    let dies = [MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Global];
    tables.memory.end_where(l.call.g, |b| b.context == Some(context) && dies.contains(&b.kind));
    Some(Action::ContextDestroy { context })
}

/// `cuCtxSynchronize`: the current context, or the one that the second version names.
pub(super) fn synchronize(l: &mut Resolution<'_>) -> Option<Action> {
    let handle = l.call.args.get(0).filter(|&h| h != 0).unwrap_or(l.call.context);
    (handle != 0).then(|| Action::ContextSynchronize { context: l.context(handle) })
}

/// `cuCtxRecordEvent`.
pub(super) fn record_event(l: &mut Resolution<'_>) -> Option<Action> {
    let context = named_context(l, 0);
    Some(Action::ContextRecordEvent { context, event: l.event(l.call.arg(1))? })
}

/// `cuCtxWaitEvent`.
pub(super) fn wait_event(l: &mut Resolution<'_>) -> Option<Action> {
    let context = named_context(l, 0);
    Some(Action::ContextWaitEvent { context, event: l.event(l.call.arg(1))? })
}

/// The context that parameter `index` names; 0 means the current one.
fn named_context(l: &mut Resolution<'_>, index: usize) -> ContextId {
    match l.call.arg(index) {
        0 => l.current_context(),
        handle => l.context(handle),
    }
}

/// `cuStreamCreate(stream, flags)` and `cuStreamCreateWithPriority(stream, flags, priority)`.
pub(super) fn stream_create(l: &mut Resolution<'_>) -> Option<Action> {
    let context = l.current_context();
    new_stream(l, context, l.call.arg(1), l.call.args.get(2))
}

/// `cuGreenCtxStreamCreate(stream, context, flags, priority)`.
pub(super) fn green_stream_create(l: &mut Resolution<'_>) -> Option<Action> {
    let context = l.green_context(l.call.arg(1));
    new_stream(l, context, l.call.arg(2), l.call.args.get(3))
}

fn new_stream(
    l: &mut Resolution<'_>,
    context: ContextId,
    flags: u64,
    priority: Option<u64>,
) -> Option<Action> {
    let handle = l.call.out(0)?;
    // Drivers without cuStreamGetId answer with all ones.
    let driver_id = l.call.out(1).filter(|&id| id != u64::MAX).unwrap_or(0);
    let kind = if flags & STREAM_NON_BLOCKING == 0 {
        StreamKind::Blocking
    } else {
        StreamKind::NonBlocking
    };
    let priority = priority.map_or(0, |word| word as i32);
    let stream = l.new_stream(handle, context, kind, priority, driver_id);
    Some(Action::StreamCreate { stream })
}

/// `cuStreamDestroy`.
pub(super) fn stream_destroy(l: &mut Resolution<'_>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let (stream, _) = l.tables.streams.remove(&l.call.arg(0))?;
    l.tables.captures.destroyed(stream);
    Some(Action::StreamDestroy { stream })
}

/// `cuEventCreate`.
pub(super) fn event_create(l: &mut Resolution<'_>) -> Option<Action> {
    let handle = l.call.out(0)?;
    let event = l.new_event(handle, l.call.arg(1) as u32);
    Some(Action::EventCreate { event })
}

/// `cuEventDestroy`.
pub(super) fn event_destroy(l: &mut Resolution<'_>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let (event, _) = l.tables.events.remove(&l.call.arg(0))?;
    if l.tables.imports.drop_event(l.call.arg(0)) {
        return None;
    }
    Some(Action::EventDestroy { event })
}
