//! Statements of host threads about themselves: their accesses, names, order among threads.

use super::collectives;
use super::host_files;
use super::host_names;
use super::memory::Block;
use super::pools;
use super::resolution::Resolution;
use crate::host_event::HostEvent;
use streamsan_model::{
    Access, Action, AllocationId, Basis, ByteRange, Extent, MemoryKind, Mode, SyncObject,
};
use streamsan_wire::{HostCall, HostOrder, RecordedMode};

/// Handle of the context in which the handles of an event mean something, 0 where that is not
/// recorded.
pub(super) fn context(event: &HostEvent) -> u64 {
    match event.call {
        HostCall::FileReadAsync | HostCall::FileWriteAsync => event.arg(3),
        call if call.is_collective() => event.arg(2),
        _ => 0,
    }
}

/// The operation that an event is, `None` for one that only names something.
pub(super) fn resolve(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    if let Some(order) = event.call.order() {
        let object = SyncObject(event.arg(0));
        return Some(match order {
            HostOrder::Release => Action::HostRelease { object },
            HostOrder::Acquire => Action::HostAcquire { object },
        });
    }
    match event.call {
        HostCall::HostRead => {
            access(resolution, ByteRange::with_len(event.arg(0), event.arg(1)), Mode::Read)
        }
        HostCall::HostWrite => {
            access(resolution, ByteRange::with_len(event.arg(0), event.arg(1)), Mode::Write)
        }
        HostCall::Touched => touched(resolution, event),
        HostCall::FenceTouched => fence_touched(resolution, event),
        HostCall::SystemRead => {
            access(resolution, ByteRange::with_len(event.arg(0), event.arg(1)), Mode::Write)
        }
        HostCall::SystemWrite => {
            access(resolution, ByteRange::with_len(event.arg(0), event.arg(1)), Mode::Read)
        }
        HostCall::NameStream | HostCall::NvtxCuStream | HostCall::NvtxCudaStream => {
            host_names::stream(resolution, event.arg(0), &event.text)
        }
        HostCall::NameEvent | HostCall::NvtxCuEvent | HostCall::NvtxCudaEvent => {
            host_names::event(resolution, event.arg(0), &event.text)
        }
        HostCall::NvtxHeapRegister
        | HostCall::NvtxHeapUnregister
        | HostCall::NvtxHeapReset
        | HostCall::NvtxRegionRegister
        | HostCall::NvtxRegionResize
        | HostCall::NvtxRegionUnregister => pools::resolve(resolution, event),
        HostCall::NameMemory | HostCall::NvtxRegionName => {
            pools::name(resolution, event.arg(0), &event.text)
        }
        HostCall::FileRead
        | HostCall::FileWrite
        | HostCall::FileReadAsync
        | HostCall::FileWriteAsync
        | HostCall::FileBatchSubmit
        | HostCall::FileBatchGetStatus
        | HostCall::FileBatchDestroy => host_files::resolve(resolution, event),
        HostCall::NcclQueued => collectives::resolve(resolution, event),
        call if call.is_collective() => collectives::resolve(resolution, event),
        // Calls that order threads: above.
        _ => None,
    }
}

/// The thread itself touches the bytes.
fn access(resolution: &mut Resolution<'_>, range: ByteRange, mode: Mode) -> Option<Action> {
    if range.is_empty() {
        return None;
    }
    touch_bytes(resolution, range, mode);
    Some(Action::HostAccess)
}

/// `[(start, end, mode)...]`.
fn touched(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    for range in event.args.chunks_exact(3) {
        let mode = mode(range[2], false);
        if range[0] < range[1] {
            touch_bytes(resolution, ByteRange::new(range[0], range[1]), mode);
        }
    }
    Some(Action::HostAccess)
}

/// `[address, mode, single]`: the first byte of an access inside a fence.
fn fence_touched(resolution: &mut Resolution<'_>, event: &HostEvent) -> Option<Action> {
    let mode = mode(event.arg(1), event.arg(2) != 0);
    access(resolution, ByteRange::with_len(event.arg(0), 1), mode)
}

/// The mode of a recorded access of the host. `is_single`: a plain move of up to 8 aligned bytes,
/// which the processor performs at once (Intel 64 manual, volume 3, Guaranteed Atomic Operations).
/// Such an access, and an atomic one, is for the device what a strong operation at system scope is
/// (`Mode::is_strong`).
fn mode(recorded: u64, is_single: bool) -> Mode {
    let recorded = u32::try_from(recorded).ok().and_then(RecordedMode::from_u32);
    match recorded {
        Some(RecordedMode::Read) if !is_single => Mode::Read,
        Some(RecordedMode::Read | RecordedMode::StrongRead) => Mode::StrongRead,
        Some(RecordedMode::Atomic | RecordedMode::StrongAtomic) => Mode::StrongAtomic,
        Some(RecordedMode::StrongWrite) => Mode::StrongWrite,
        Some(RecordedMode::Write) | None if is_single => Mode::StrongWrite,
        Some(RecordedMode::Write) | None => Mode::Write,
    }
}

/// Notes exact accesses to bytes by their addresses, split at the borders of allocations. What lies
/// in none is ordinary host memory: a thread that touches freed page-locked memory touches what
/// took its place.
pub(super) fn touch_bytes(resolution: &mut Resolution<'_>, range: ByteRange, mode: Mode) {
    let mut start = range.start;
    while start < range.end {
        let rest = ByteRange::new(start, range.end);
        let (allocation, end) = match resolution.tables.memory.find(start) {
            Some(_) => {
                let (block, end) = resolution.tables.memory.piece_at(rest, resolution.call.g);
                (block.and_then(of_block), end)
            }
            None => {
                let next = resolution.tables.memory.next_start_at(start, resolution.call.g);
                (None, next.unwrap_or(u64::MAX))
            }
        };
        let part = ByteRange::new(start, end.min(range.end));
        let allocation = allocation.unwrap_or_else(|| resolution.pageable());
        note(
            resolution,
            Access { allocation, extent: Extent::Range(part), mode, basis: Basis::Exact },
        );
        start = part.end;
    }
}

/// Arrays have no addresses that a thread could touch.
fn of_block(block: &Block) -> Option<AllocationId> {
    (block.kind != MemoryKind::Array).then_some(block.id)
}

/// Adds an access; equal bytes read and written become one access.
fn note(resolution: &mut Resolution<'_>, access: Access) {
    resolution.touch(access.allocation, access.extent, access.mode, access.basis);
}
