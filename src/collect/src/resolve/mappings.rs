//! Physical memory mapped at reserved addresses (`cuMemCreate`, `cuMemMap`).
//!
//! Each mapping is an allocation of its own. Accesses may cross from one mapping to the next where
//! both lie in one reservation: they are split.
//!
//! A shareable handle is known by the mark that the runtime put on its file when it was exported. One
//! without a mark that another process has exported does not say whose memory it stands for: the
//! same file descriptor has another number here. Such memory is physical memory of its own, and is
//! named when something that is judged uses it.

use super::memory::Block;
use super::resolution::Resolution;
use std::collections::{BTreeMap, HashMap};
use streamsan_model::{Action, Backing, BackingId, Basis, ByteRange, Extent, MemoryKind, Mode};

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const FILE_DESCRIPTOR: u64 = 1;

/// Reservations and physical memory of a process.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// End of each reservation by its start.
    reserved: BTreeMap<u64, u64>,
    /// Physical memory by handle. Entries stay after the release of a handle: mappings keep the
    /// memory, and a handle that is made again overwrites its entry.
    physical: HashMap<u64, BackingId>,
    /// Physical memory by the file descriptor that stands for it, as far as this process made it and
    /// the runtime could not mark its file.
    exported: HashMap<u64, BackingId>,
}

impl Mappings {
    /// The reservation that `address` lies in.
    fn reservation(&self, address: u64) -> Option<ByteRange> {
        let (&start, &end) = self.reserved.range(..=address).next_back()?;
        (address < end).then_some(ByteRange { start, end })
    }
}

/// `cuMemAddressReserve(address, size, ...)`.
pub(super) fn reserve(resolution: &mut Resolution<'_>) -> Option<Action> {
    let start = resolution.call.out(0)?;
    resolution.tables.mappings.reserved.insert(start, start.saturating_add(resolution.call.arg(1)));
    None
}

/// `cuMemAddressFree(address, size)`.
pub(super) fn unreserve(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        resolution.tables.mappings.reserved.remove(&resolution.call.arg(0));
    }
    None
}

/// `cuMemCreate(handle, size, ...)`.
pub(super) fn create(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let memory = resolution.ids.backing();
    resolution.tables.mappings.physical.insert(handle, memory);
    None
}

/// `cuMulticastCreate(handle, properties)`: what is mapped by this handle stands for the memory of
/// several devices that is bound to it, which is not followed.
pub(super) fn multicast(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let memory = unknown_origin(resolution);
    resolution.tables.mappings.physical.insert(handle, memory);
    None
}

/// `cuMemRetainAllocationHandle(handle, address)`: a handle for what is mapped there.
pub(super) fn retain(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    match resolution.tables.memory.find_made(resolution.call.arg(1)).and_then(|block| block.backing)
    {
        Some(backing) => {
            resolution.tables.mappings.physical.insert(handle, backing.memory);
        }
        None => {
            let memory = unknown_origin(resolution);
            resolution.tables.mappings.physical.insert(handle, memory);
        }
    }
    None
}

/// `cuMemExportToShareableHandle(shareable, handle, type, flags)`.
pub(super) fn export(resolution: &mut Resolution<'_>) -> Option<Action> {
    let shareable = resolution.call.out(0)?;
    if resolution.call.arg(2) == FILE_DESCRIPTOR
        && let Some(&memory) = resolution.tables.mappings.physical.get(&resolution.call.arg(1))
    {
        // The number may have stood for other memory before.
        resolution.tables.mappings.exported.remove(&shareable);
        match mark(resolution) {
            Some(mark) => resolution.shared.export_file(mark, memory),
            None => {
                resolution.tables.mappings.exported.insert(shareable, memory);
            }
        }
    }
    None
}

/// The mark on the file of a shareable handle.
fn mark(resolution: &Resolution<'_>) -> Option<u64> {
    resolution.call.out(1).filter(|&mark| mark != 0)
}

/// `cuMemImportFromShareableHandle(handle, shareable, type)`. A file descriptor without a mark that
/// this process did not export came from another one under another number.
pub(super) fn import(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let descriptor = resolution.call.arg(1) & 0xffff_ffff;
    let known = match mark(resolution) {
        _ if resolution.call.arg(2) != FILE_DESCRIPTOR => None,
        Some(mark) => resolution.shared.exported_file(mark),
        None => resolution.tables.mappings.exported.get(&descriptor).copied(),
    };
    let memory = match known {
        Some(memory) => memory,
        None => unknown_origin(resolution),
    };
    resolution.tables.mappings.physical.insert(handle, memory);
    None
}

/// New physical memory, which may be the same as other one of the run.
fn unknown_origin(resolution: &mut Resolution<'_>) -> BackingId {
    let memory = resolution.ids.backing();
    resolution.shared.unknown_origin(memory, resolution.call.api.name());
    memory
}

/// `cuMemMap(address, size, offset, handle, flags)`.
pub(super) fn map(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let range = ByteRange::with_len(resolution.call.arg(0), resolution.call.arg(1));
    if range.is_empty() {
        return None;
    }
    let memory = match resolution.tables.mappings.physical.get(&resolution.call.arg(3)) {
        Some(&memory) => memory,
        None => unknown_origin(resolution),
    };
    let backing = Some(Backing { memory, offset: resolution.call.arg(2) });
    let allocation = resolution.new_backed_allocation(range, MemoryKind::Mapped, backing, None);
    resolution.touch(allocation, Extent::Range(range), Mode::Allocate, Basis::Exact);
    Some(Action::Allocate { allocation, stream: None })
}

/// `cuMemUnmap(address, size)`: one or more whole mappings.
pub(super) fn unmap(resolution: &mut Resolution<'_>) -> Option<Action> {
    if !resolution.call.succeeded() {
        return None;
    }
    let range = ByteRange::with_len(resolution.call.arg(0), resolution.call.arg(1));
    let (mut next, mut first) = (range.start, None);
    while next < range.end {
        let Some(block) = resolution.tables.memory.free(next, resolution.call.g) else { break };
        resolution.touch(block.id, Extent::Range(block.range), Mode::Free, Basis::Exact);
        first.get_or_insert(block.id);
        next = block.range.end;
    }
    Some(Action::Free { allocation: first?, stream: None })
}

/// The mappings that follow each other without a gap around this one, in one reservation.
pub(super) fn neighbours(resolution: &Resolution<'_>, block: &Block) -> Vec<Block> {
    // A mapping beside a former mapping has nothing to do with it.
    let alive =
        resolution.tables.memory.find_made(block.range.start).is_some_and(|b| b.id == block.id);
    match resolution.tables.mappings.reservation(block.range.start).filter(|_| alive) {
        Some(reservation) => resolution.tables.memory.contiguous(block, reservation),
        None => vec![*block],
    }
}

/// The mappings that an extent from this one on touches, and the bytes in each.
pub(super) fn split(
    resolution: &Resolution<'_>,
    block: &Block,
    extent: Extent,
) -> Vec<(Block, Extent)> {
    let all = neighbours(resolution, block);
    let from = all.iter().position(|b| b.id == block.id).unwrap_or(0);
    let hull = extent.hull();
    let mut parts = Vec::new();
    for (index, block) in all.iter().enumerate().skip(from) {
        if block.range.start >= hull.end {
            break;
        }
        // The bytes beyond the last mapping stay with it.
        let end = if index + 1 == all.len() { u64::MAX } else { block.range.end };
        cut(extent, ByteRange { start: block.range.start, end }, &mut |part| {
            parts.push((*block, part));
        });
    }
    parts
}

/// The part of an extent inside a range: rows that lie in it entirely stay together.
pub(super) fn cut(extent: Extent, inside: ByteRange, part: &mut impl FnMut(Extent)) {
    let pattern = match extent {
        Extent::Range(range) => {
            if let Some(range) = range.intersection(inside) {
                part(Extent::Range(range));
            }
            return;
        }
        Extent::Strided(pattern) => pattern,
    };
    if inside.covers(pattern.hull()) {
        return part(extent);
    }
    for slice in 0..pattern.slices {
        let start = pattern.start + slice * pattern.slice_pitch;
        let row = |n: u64| ByteRange::with_len(start + n * pattern.pitch, pattern.width);
        // Rows ascend: those that end in front of the range, those that lie in it, the rest.
        let mut first =
            rows_before(start, pattern.width, pattern.pitch, pattern.rows, inside.start);
        if first < pattern.rows && row(first).start < inside.start {
            if let Some(range) = row(first).intersection(inside) {
                part(Extent::Range(range));
            }
            first += 1;
        }
        let mut whole = 0;
        if first < pattern.rows && row(first).end <= inside.end {
            whole = (inside.end - row(first).end) / pattern.pitch.max(1) + 1;
            whole = whole.min(pattern.rows - first);
            let start = row(first).start;
            let rows = streamsan_model::StridedPattern { start, rows: whole, slices: 1, ..pattern };
            if let Some(rows) = Extent::strided(rows) {
                part(rows);
            }
        }
        if first + whole < pattern.rows
            && let Some(range) = row(first + whole).intersection(inside)
        {
            part(Extent::Range(range));
        }
    }
}

/// How many rows end at or before `bound`.
fn rows_before(start: u64, width: u64, pitch: u64, rows: u64, bound: u64) -> u64 {
    match bound.checked_sub(start.saturating_add(width)) {
        Some(over) => (over / pitch.max(1) + 1).min(rows),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use streamsan_model::StridedPattern;

    /// Cut at every place, the parts hold the bytes of the whole, each once.
    #[test]
    fn parts_of_rows_hold_every_byte_once() {
        let bytes = |extent: Extent| -> Vec<u64> {
            let runs = match extent {
                Extent::Range(range) => vec![range],
                Extent::Strided(pattern) => pattern.runs().collect(),
            };
            runs.into_iter().flat_map(|r| r.start..r.end).collect()
        };
        for (width, pitch, rows, slice_pitch, slices) in
            [(5, 8, 4, 40, 3), (8, 16, 3, 48, 1), (3, 7, 1, 9, 4), (40, 40, 1, 40, 1)]
        {
            let pattern = StridedPattern { start: 100, width, pitch, rows, slice_pitch, slices };
            let extent = Extent::strided(pattern).expect("not empty");
            let hull = extent.hull();
            for at in hull.start..=hull.end {
                let mut found = Vec::new();
                cut(extent, ByteRange::new(0, at), &mut |part| found.extend(bytes(part)));
                cut(extent, ByteRange::new(at, 1000), &mut |part| found.extend(bytes(part)));
                found.sort_unstable();
                assert_eq!(found, bytes(extent), "{pattern:?} cut at {at}");
            }
        }
    }
}
