//! Memory that comes to life and ends.

use super::memory::Block;
use super::modules;
use super::resolution::Resolution;
use streamsan_model::{Action, Backing, Basis, ByteRange, Extent, MemoryKind, Mode, StreamId};

fn allocate(
    l: &mut Resolution<'_>,
    range: ByteRange,
    kind: MemoryKind,
    stream: Option<StreamId>,
) -> Option<Action> {
    if range.is_empty() {
        return None;
    }
    let allocation = l.new_allocation(range, kind, None);
    l.touch(allocation, Extent::Range(range), Mode::Allocate, Basis::Exact);
    Some(Action::Allocate { allocation, stream })
}

/// `cuMemAlloc`.
pub(super) fn alloc(l: &mut Resolution<'_>) -> Option<Action> {
    let range = ByteRange::with_len(l.call.out(0)?, l.call.arg(1));
    allocate(l, range, MemoryKind::Device, None)
}

/// `cuMemAllocPitch`: as many rows as asked for, each as long as the driver chose.
pub(super) fn alloc_pitch(l: &mut Resolution<'_>) -> Option<Action> {
    let (start, pitch) = (l.call.out(0)?, l.call.out(1)?);
    let range = ByteRange::with_len(start, pitch.saturating_mul(l.call.arg(3)));
    allocate(l, range, MemoryKind::Device, None)
}

/// `cuMemAllocManaged`.
pub(super) fn alloc_managed(l: &mut Resolution<'_>) -> Option<Action> {
    let range = ByteRange::with_len(l.call.out(0)?, l.call.arg(1));
    allocate(l, range, MemoryKind::Managed, None)
}

/// `cuMemAllocHost`, `cuMemHostAlloc`.
pub(super) fn alloc_host(l: &mut Resolution<'_>) -> Option<Action> {
    let range = ByteRange::with_len(l.call.out(0)?, l.call.arg(1));
    allocate(l, range, MemoryKind::Pinned, None)
}

/// `cuMemHostRegister`: ordinary memory leads a life of its own until it is unregistered.
pub(super) fn host_register(l: &mut Resolution<'_>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let range = ByteRange::with_len(l.call.arg(0), l.call.arg(1));
    allocate(l, range, MemoryKind::Registered, None)
}

/// `cuMemAllocAsync`, `cuMemAllocFromPoolAsync`. Under capture the address is the graph's, and means
/// nothing before a launch.
pub(super) fn alloc_async(l: &mut Resolution<'_>, stream: usize) -> Option<Action> {
    let range = ByteRange::with_len(l.call.out(0)?, l.call.arg(1));
    let stream = l.stream(l.call.arg(stream))?;
    allocate(l, range, MemoryKind::StreamOrdered, Some(stream))
}

/// `cuMemFree`, `cuMemFreeHost`, `cuMemHostUnregister`.
pub(super) fn free(l: &mut Resolution<'_>) -> Option<Action> {
    end(l, None)
}

/// `cuMemFreeAsync`, which takes memory of `cuMemAlloc` too.
pub(super) fn free_async(l: &mut Resolution<'_>) -> Option<Action> {
    let stream = l.stream(l.call.arg(1))?;
    end(l, Some(stream))
}

fn end(l: &mut Resolution<'_>, stream: Option<StreamId>) -> Option<Action> {
    if !l.call.succeeded() {
        return None;
    }
    let block = l.tables.memory.free(l.call.arg(0), l.call.g)?;
    l.touch(block.id, Extent::Range(block.range), Mode::Free, Basis::Exact);
    if block.kind.is_host()
        && let Some(Backing { memory, .. }) = block.backing
    {
        // Its device address goes with it.
        let alias = |b: &Block| {
            b.is_host_alias() && b.backing.is_some_and(|backing| backing.memory == memory)
        };
        l.tables.memory.end_where(l.call.g, alias);
    }
    Some(Action::Free { allocation: block.id, stream })
}

/// `cuModuleGetGlobal`, `cuLibraryGetGlobal`, `cuLibraryGetManaged`: the variable is declared; it
/// is as old as its module, so looking it up is no access.
pub(super) fn global(l: &mut Resolution<'_>) -> Option<Action> {
    let range = ByteRange::with_len(l.call.out(0)?, l.call.out(1)?);
    let known = l.tables.memory.find(range.start).is_some_and(|b| b.range == range);
    if range.start == 0 || range.is_empty() || known {
        return None;
    }
    let kind = if l.call.api.name().ends_with("Managed") {
        MemoryKind::Managed
    } else {
        MemoryKind::Global
    };
    let name = l.call.pointee.as_deref().map(|name| String::from_utf8_lossy(name).into_owned());
    let images = l.tables.modules.of_function(0, l.call.arg(2));
    let key = images.zip(name.as_deref().map(Box::from));
    // Kernels may have touched it before anybody asked where it is.
    let touched = key.as_ref().and_then(|key| l.tables.variables.get(key)).copied();
    let backing = touched.and_then(|block| block.backing);
    l.new_backed_allocation(range, kind, backing, name);
    if let (Some(key), Some(block)) = (key, l.tables.memory.find(range.start)) {
        l.tables.global_pointers.found(key.0, &key.1, block.id, range, kind, l.call.g);
        l.tables.variables.insert(key, *block);
    }
    l.tables.globals.entry(l.call.arg(2)).or_default().push(range.start);
    None
}

/// `cuModuleUnload`, `cuLibraryUnload`.
pub(super) fn unload(l: &mut Resolution<'_>) -> Option<Action> {
    if l.call.succeeded() {
        l.tables.textures.unload(l.call.arg(0));
        modules::unload(l);
    }
    if l.call.succeeded()
        && let Some(starts) = l.tables.globals.remove(&l.call.arg(0))
    {
        for start in &starts {
            if let Some(block) = l.tables.memory.find(*start) {
                l.tables.global_pointers.gone(block.id, l.call.g);
            }
        }
        l.tables.memory.end_where(l.call.g, |b| starts.contains(&b.range.start));
    }
    None
}
