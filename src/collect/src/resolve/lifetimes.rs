//! Memory that comes to life and ends.

use super::memory::Block;
use super::modules;
use super::resolution::Resolution;
use streamsan_model::{Action, Backing, Basis, ByteRange, Extent, MemoryKind, Mode, StreamId};

fn allocate(
    resolution: &mut Resolution<'_>,
    range: ByteRange,
    kind: MemoryKind,
    stream: Option<StreamId>,
) -> Option<Action> {
    if range.is_empty() {
        return None;
    }
    let allocation = resolution.new_allocation(range, kind, None);
    resolution.touch(allocation, Extent::Range(range), Mode::Allocate, Basis::Exact);
    Some(Action::Allocate { allocation, stream })
}

/// `cuMemAlloc`.
pub(super) fn alloc(resolution: &mut Resolution<'_>) -> Option<Action> {
    let range = ByteRange::with_len(resolution.call.out(0)?, resolution.call.arg(1));
    allocate(resolution, range, MemoryKind::Device, None)
}

/// `cuMemAllocPitch`: as many rows as asked for, each as long as the driver chose.
pub(super) fn alloc_pitch(resolution: &mut Resolution<'_>) -> Option<Action> {
    let (start, pitch) = (resolution.call.out(0)?, resolution.call.out(1)?);
    let range = ByteRange::with_len(start, pitch.saturating_mul(resolution.call.arg(3)));
    allocate(resolution, range, MemoryKind::Device, None)
}

/// `cuMemAllocManaged`.
pub(super) fn alloc_managed(resolution: &mut Resolution<'_>) -> Option<Action> {
    let range = ByteRange::with_len(resolution.call.out(0)?, resolution.call.arg(1));
    allocate(resolution, range, MemoryKind::Managed, None)
}

/// `cuMemAllocHost`, `cuMemHostAlloc`.
pub(super) fn alloc_host(resolution: &mut Resolution<'_>) -> Option<Action> {
    let range = ByteRange::with_len(resolution.call.out(0)?, resolution.call.arg(1));
    allocate(resolution, range, MemoryKind::Pinned, None)
}

/// `cuMemHostRegister`: ordinary memory leads a life of its own until it is unregistered.
pub(super) fn host_register(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let range = ByteRange::with_len(resolution.call.arg(0), resolution.call.arg(1));
    allocate(resolution, range, MemoryKind::Registered, None)
}

/// `cuMemAllocAsync`, `cuMemAllocFromPoolAsync`. Under capture the address is the graph's, and means
/// nothing before a launch.
pub(super) fn alloc_async(resolution: &mut Resolution<'_>, stream: usize) -> Option<Action> {
    let range = ByteRange::with_len(resolution.call.out(0)?, resolution.call.arg(1));
    let stream = resolution.stream(resolution.call.arg(stream))?;
    allocate(resolution, range, MemoryKind::StreamOrdered, Some(stream))
}

/// `cuMemFree`, `cuMemFreeHost`, `cuMemHostUnregister`.
pub(super) fn free(resolution: &mut Resolution<'_>) -> Option<Action> {
    end(resolution, None)
}

/// `cuMemFreeAsync`, which takes memory of `cuMemAlloc` too.
pub(super) fn free_async(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(1))?;
    end(resolution, Some(stream))
}

fn end(resolution: &mut Resolution<'_>, stream: Option<StreamId>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let block = resolution.tables.memory.free(resolution.call.arg(0), resolution.call.g)?;
    resolution.touch(block.id, Extent::Range(block.range), Mode::Free, Basis::Exact);
    if block.kind.is_host()
        && let Some(Backing { memory, .. }) = block.backing
    {
        // Its device address goes with it.
        let alias = |b: &Block| {
            b.is_host_alias() && b.backing.is_some_and(|backing| backing.memory == memory)
        };
        resolution.tables.memory.end_where(resolution.call.g, alias);
    }
    Some(Action::Free { allocation: block.id, stream })
}

/// `cuModuleGetGlobal`, `cuLibraryGetGlobal`, `cuLibraryGetManaged`: the variable is declared; it
/// is as old as its module, so looking it up is no access.
pub(super) fn global(resolution: &mut Resolution<'_>) -> Option<Action> {
    let range = ByteRange::with_len(resolution.call.out(0)?, resolution.call.out(1)?);
    let known = resolution.tables.memory.find(range.start).is_some_and(|b| b.range == range);
    if range.start == 0 || range.is_empty() || known {
        return None;
    }
    let kind = if resolution.call.api.name().ends_with("Managed") {
        MemoryKind::Managed
    } else {
        MemoryKind::Global
    };
    let name =
        resolution.call.pointee.as_deref().map(|name| String::from_utf8_lossy(name).into_owned());
    let images = resolution.tables.modules.of_function(0, resolution.call.arg(2));
    let key = images.zip(name.as_deref().map(Box::from));
    // Kernels may have touched it before anybody asked where it is.
    let touched = key.as_ref().and_then(|key| resolution.tables.variables.get(key)).copied();
    let backing = touched.and_then(|block| block.backing);
    resolution.new_backed_allocation(range, kind, backing, name);
    if let (Some(key), Some(block)) = (key, resolution.tables.memory.find(range.start)) {
        resolution.tables.global_pointers.found(
            key.0,
            &key.1,
            block.id,
            range,
            kind,
            resolution.call.g,
        );
        resolution.tables.variables.insert(key, *block);
    }
    resolution.tables.globals.entry(resolution.call.arg(2)).or_default().push(range.start);
    None
}

/// `cuModuleUnload`, `cuLibraryUnload`.
pub(super) fn unload(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        resolution.tables.textures.unload(resolution.call.arg(0));
        modules::unload(resolution);
    }
    if resolution.call.succeeded()
        && let Some(starts) = resolution.tables.globals.remove(&resolution.call.arg(0))
    {
        for start in &starts {
            if let Some(block) = resolution.tables.memory.find(*start) {
                resolution.tables.global_pointers.gone(block.id, resolution.call.g);
            }
        }
        resolution.tables.memory.end_where(resolution.call.g, |b| starts.contains(&b.range.start));
    }
    None
}
