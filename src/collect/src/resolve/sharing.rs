//! Memory and events that processes share, and memory of other interfaces.
//!
//! Handles of 64 bytes mean the same in every process of the run. What a process outside of it
//! exported is known by its handle only.

use super::arrays;
use super::lifetimes;
use super::memory::Block;
use super::resolution::Resolution;
use std::collections::{HashMap, HashSet};
use streamsan_model::{
    Action, Backing, BackingId, Basis, ByteRange, EventId, Extent, MemoryKind, Mode,
};

/// A handle of 64 bytes.
type Handle = [u8; 64];

/// The meaning of handles in all processes of the run.
#[derive(Debug, Default)]
pub(super) struct SharedHandles {
    /// Memory, and its length where the exporter is in the run.
    memory: HashMap<Handle, (Backing, Option<u64>)>,
    events: HashMap<Handle, EventId>,
    /// Physical memory by the mark on the file that stands for it.
    files: HashMap<u64, BackingId>,
    /// Physical memory that may be the same as other one of the run, and the call by which it came.
    unknown: HashMap<BackingId, &'static str>,
    /// Whether an allocation became known by its physical memory after its first accesses.
    late: bool,
}

impl SharedHandles {
    /// A file stands for physical memory. Process ids are used again: the latest counts.
    pub(super) fn export_file(&mut self, mark: u64, memory: BackingId) {
        self.files.insert(mark, memory);
    }

    /// The physical memory that a file stands for.
    pub(super) fn exported_file(&self, mark: u64) -> Option<BackingId> {
        self.files.get(&mark).copied()
    }

    /// Physical memory came by a call that does not say whose it is.
    pub(super) fn unknown_origin(&mut self, memory: BackingId, call: &'static str) {
        self.unknown.insert(memory, call);
    }

    /// The call by which memory came of which it is not known whose it is.
    pub(super) fn came_unknown_by(&self, memory: BackingId) -> Option<&'static str> {
        self.unknown.get(&memory).copied()
    }

    /// An allocation that lives already is known by its physical memory from here on.
    pub(super) fn learnt_late(&mut self) {
        self.late = true;
    }

    /// Whether an analysis that went along has kept accesses apart that belong together.
    pub(super) fn was_late(&self) -> bool {
        self.late
    }
}

/// The imports of one process.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// Physical memory of other interfaces by handle.
    external: HashMap<u64, BackingId>,
    /// How often the memory at an address was opened beyond the first time.
    opened_again: HashMap<u64, u64>,
    /// Handles of events that another process owns.
    events: HashSet<u64>,
}

impl Imports {
    /// The handle of an event is destroyed; whether the event itself lives on elsewhere.
    pub(super) fn drop_event(&mut self, handle: u64) -> bool {
        self.events.remove(&handle)
    }
}

/// The handle that a call returned.
fn returned(resolution: &Resolution<'_>) -> Option<Handle> {
    let mut handle = [0; 64];
    for (index, word) in handle.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&resolution.call.out(index)?.to_le_bytes());
    }
    Some(handle)
}

/// The handle that a call was given.
fn given(resolution: &mut Resolution<'_>) -> Option<Handle> {
    resolution.call.pointee.as_deref()?.try_into().ok()
}

/// `cuIpcGetMemHandle(handle, address)`, `cuMemPoolExportPointer(data, address)`.
pub(super) fn export_memory(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = returned(resolution)?;
    let Some(block) = resolution.tables.memory.find_made(resolution.call.arg(1)).copied() else {
        resolution
            .gaps
            .not_understood(&format!("{} (memory of unknown origin)", resolution.call.api.name()));
        return None;
    };
    let backing = resolution.share(&block);
    resolution.shared.memory.insert(handle, (backing, Some(block.range.len())));
    None
}

/// `cuIpcOpenMemHandle(address, handle, flags)`, `cuMemPoolImportPointer(address, pool, data)`.
pub(super) fn import_memory(resolution: &mut Resolution<'_>) -> Option<Action> {
    let (start, handle) = (resolution.call.out(0)?, given(resolution)?);
    let known = resolution.shared.memory.get(&handle).copied();
    let (backing, len) = match known {
        Some(known) => known,
        None => {
            let backing = Backing { memory: resolution.ids.backing(), offset: 0 };
            resolution.shared.memory.insert(handle, (backing, None));
            (backing, None)
        }
    };
    // The driver's own answer where the exporter was not seen; 0 says that it had none.
    let len = len.or_else(|| resolution.call.out(1).filter(|&len| len > 0));
    let open = resolution.tables.memory.find_made(start).is_some_and(|block| {
        block.range.start == start
            && block.kind == MemoryKind::Imported
            && block.backing == Some(backing)
    });
    if open {
        // The same address once more, to be closed as often.
        *resolution.tables.imports.opened_again.entry(start).or_default() += 1;
        return None;
    }
    let Some(len) = len else {
        resolution.gaps.not_understood(&format!("{} (size unknown)", resolution.call.api.name()));
        return None;
    };
    imported(resolution, ByteRange::with_len(start, len), MemoryKind::Imported, backing)
}

/// `cuIpcCloseMemHandle(address)`: the last one ends it (driver API: "decrements the reference
/// count").
pub(super) fn close(resolution: &mut Resolution<'_>) -> Option<Action> {
    let again =
        resolution.tables.imports.opened_again.get_mut(&resolution.call.arg(0)).filter(|n| **n > 0);
    match again {
        Some(count) if resolution.call.succeeded() => {
            *count -= 1;
            None
        }
        _ => lifetimes::free(resolution),
    }
}

fn imported(
    resolution: &mut Resolution<'_>,
    range: ByteRange,
    kind: MemoryKind,
    backing: Backing,
) -> Option<Action> {
    if range.is_empty() {
        return None;
    }
    let allocation = resolution.new_backed_allocation(range, kind, Some(backing), None);
    resolution.touch(allocation, Extent::Range(range), Mode::Allocate, Basis::Exact);
    Some(Action::Allocate { allocation, stream: None })
}

/// `cuIpcGetEventHandle(handle, event)`.
pub(super) fn export_event(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = returned(resolution)?;
    let event = resolution.event(resolution.call.arg(1))?;
    resolution.shared.events.insert(handle, event);
    None
}

/// `cuIpcOpenEventHandle(event, handle)`: the exporter's event.
pub(super) fn import_event(resolution: &mut Resolution<'_>) -> Option<Action> {
    let (handle, sixty_four) = (resolution.call.out(0)?, given(resolution)?);
    resolution.tables.imports.events.insert(handle);
    match resolution.shared.events.get(&sixty_four).copied() {
        Some(event) => {
            let context = resolution.current_context();
            resolution.tables.events.insert(handle, (event, context));
            None
        }
        None => {
            let event = resolution.new_imported_event(handle);
            resolution.shared.events.insert(sixty_four, event);
            Some(Action::EventCreate { event })
        }
    }
}

/// `cuImportExternalMemory(memory, descriptor)`.
pub(super) fn import_external(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let memory = resolution.ids.backing();
    resolution.tables.imports.external.insert(handle, memory);
    None
}

fn external(resolution: &mut Resolution<'_>, handle: u64) -> BackingId {
    match resolution.tables.imports.external.get(&handle) {
        Some(&memory) => memory,
        None => {
            let memory = resolution.ids.backing();
            resolution.tables.imports.external.insert(handle, memory);
            memory
        }
    }
}

fn number(resolution: &Resolution<'_>, at: usize) -> Option<u64> {
    let bytes = resolution.call.pointee.as_deref()?.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// `cuExternalMemoryGetMappedBuffer(address, memory, descriptor)`: offset and size come first.
pub(super) fn external_buffer(resolution: &mut Resolution<'_>) -> Option<Action> {
    let start = resolution.call.out(0)?;
    let (offset, size) = (number(resolution, 0)?, number(resolution, 8)?);
    let memory = external(resolution, resolution.call.arg(1));
    let range = ByteRange::with_len(start, size);
    imported(resolution, range, MemoryKind::Imported, Backing { memory, offset })
}

/// `cuExternalMemoryGetMappedMipmappedArray(array, memory, descriptor)`: offset, array descriptor,
/// number of levels. How the elements lie in the memory is not known, so a buffer over the same
/// bytes is not seen to overlap.
pub(super) fn external_array(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let bytes = resolution.call.pointee.as_deref()?;
    let shape = arrays::ArrayShape::read(bytes.get(8..48)?, 8, 3)?;
    let levels = number(resolution, 48)? & 0xffff_ffff;
    arrays::mipmapped(resolution, handle, shape, levels, MemoryKind::Array, None)
}

/// `cuDestroyExternalMemory(memory)`: mapped buffers live on until they are freed.
pub(super) fn destroy_external(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        resolution.tables.imports.external.remove(&resolution.call.arg(0));
    }
    None
}

/// `cuMemHostGetDevicePointer(device address, host address, flags)`: with unified addressing the
/// address is the same; else it stands for the same bytes.
pub(super) fn host_alias(resolution: &mut Resolution<'_>) -> Option<Action> {
    let (alias, address) = (resolution.call.out(0)?, resolution.call.arg(1));
    let known = resolution.tables.memory.find(alias).is_some_and(Block::is_host_alias);
    if alias == address || known {
        return None;
    }
    let Some(block) = resolution.tables.memory.find(address).copied() else {
        resolution.gaps.not_understood(resolution.call.api.name());
        return None;
    };
    let Block { range, kind, .. } = block;
    let backing = resolution.share(&block);
    let start = alias.wrapping_sub(address - range.start);
    imported(resolution, ByteRange::with_len(start, range.len()), kind, backing)
}
