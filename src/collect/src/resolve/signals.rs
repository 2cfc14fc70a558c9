//! Stream memory operations and external semaphores.

use super::copies::{self, DEVICE};
use super::resolution::Resolution;
use std::collections::HashMap;
use std::sync::Arc;
use streamsan_model::{
    Action, Basis, ByteRange, Extent, Mode, SemaphoreId, SignalObject, SignalOperation, Signals,
    ValueCompare,
};

/// `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`.
const NO_MEMORY_BARRIER: u64 = 1;
/// The bits of `CUstreamWaitValue_flags` that say how to compare.
const COMPARE: u64 = 3;

/// `CUstreamBatchMemOpType`.
const WAIT_32: u32 = 1;
const WRITE_32: u32 = 2;
const FLUSH_REMOTE_WRITES: u32 = 3;
const WAIT_64: u32 = 4;
const WRITE_64: u32 = 5;
const BARRIER: u32 = 6;
/// `sizeof(CUstreamBatchMemOpParams)`.
const BATCH_ENTRY: usize = 48;
/// `CU_STREAM_MEMORY_BARRIER_TYPE_SYS`: a barrier for everybody.
const BARRIER_SYSTEM: u32 = 0;

/// Reads the little-endian number at `at`.
fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The word at an address, which the operation touches.
fn word(resolution: &mut Resolution<'_>, address: u64, width: u8) -> SignalObject {
    let (_, allocation) = copies::place(resolution, DEVICE, address);
    let range = ByteRange::with_len(address, u64::from(width));
    resolution.touch(allocation, Extent::Range(range), Mode::Atomic, Basis::Exact);
    SignalObject::Memory { allocation, address, width }
}

/// The bits of a value that a word of this width takes.
fn masked(value: u64, width: u8) -> u64 {
    if width == 4 { value & u64::from(u32::MAX) } else { value }
}

fn write(
    resolution: &mut Resolution<'_>,
    address: u64,
    value: u64,
    width: u8,
    releases: bool,
) -> SignalOperation {
    let object = word(resolution, address, width);
    SignalOperation::Signal { object, value: masked(value, width), releases }
}

fn wait(
    resolution: &mut Resolution<'_>,
    address: u64,
    value: u64,
    width: u8,
    flags: u64,
) -> SignalOperation {
    let object = word(resolution, address, width);
    let compare = ValueCompare::ALL[(flags & COMPARE) as usize];
    SignalOperation::Wait { object, value: masked(value, width), compare }
}

/// `cuStreamWriteValue32(stream, address, value, flags)`, `cuStreamWriteValue64`.
pub(super) fn write_value(resolution: &mut Resolution<'_>, width: u8) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(0))?;
    let releases = resolution.call.arg(3) & NO_MEMORY_BARRIER == 0;
    let operation =
        write(resolution, resolution.call.arg(1), resolution.call.arg(2), width, releases);
    Some(Action::Signals(Arc::new(Signals { stream, operations: vec![operation] })))
}

/// `cuStreamWaitValue32(stream, address, value, flags)`, `cuStreamWaitValue64`.
pub(super) fn wait_value(resolution: &mut Resolution<'_>, width: u8) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(0))?;
    let operation = wait(
        resolution,
        resolution.call.arg(1),
        resolution.call.arg(2),
        width,
        resolution.call.arg(3),
    );
    Some(Action::Signals(Arc::new(Signals { stream, operations: vec![operation] })))
}

/// `cuStreamBatchMemOp(stream, count, operations, flags)`.
pub(super) fn batch(resolution: &mut Resolution<'_>) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(0))?;
    let list = resolution.input_list(2, 1, BATCH_ENTRY)?;
    let operations = batch_operations(resolution, &list);
    Some(Action::Signals(Arc::new(Signals { stream, operations })))
}

/// The operations of a list of `CUstreamBatchMemOpParams`.
pub(super) fn batch_operations(
    resolution: &mut Resolution<'_>,
    list: &[u8],
) -> Vec<SignalOperation> {
    let mut operations = Vec::new();
    // A barrier makes what came before it visible to who sees a value written behind it.
    let mut behind_barrier = false;
    for entry in list.chunks_exact(BATCH_ENTRY) {
        let (address, value) = (number(entry, 8), number(entry, 16));
        let flags = u64::from(half(entry, 24));
        let releases = behind_barrier || flags & NO_MEMORY_BARRIER == 0;
        match half(entry, 0) {
            WAIT_32 => operations.push(wait(resolution, address, value, 4, flags)),
            WAIT_64 => operations.push(wait(resolution, address, value, 8, flags)),
            WRITE_32 => operations.push(write(resolution, address, value, 4, releases)),
            WRITE_64 => operations.push(write(resolution, address, value, 8, releases)),
            BARRIER => behind_barrier |= half(entry, 4) == BARRIER_SYSTEM,
            FLUSH_REMOTE_WRITES => {}
            // The value that an atomic reduction leaves in the word is not known.
            _ => resolution
                .gaps
                .not_understood(&format!("{} (reduction)", resolution.call.api.name())),
        }
    }
    operations
}

/// `CUexternalSemaphoreHandleType`: those whose values a program chooses.
const D3D12_FENCE: u32 = 4;
const D3D11_FENCE: u32 = 5;
const TIMELINE_FD: u32 = 9;
const TIMELINE_WIN32: u32 = 10;
/// Those that are signalled or not: Vulkan's binary semaphores.
const BINARY: std::ops::RangeInclusive<u32> = 1..=3;

/// The imported semaphores of a process by handle: id and kind of handle.
#[derive(Debug, Default)]
pub(super) struct Semaphores(HashMap<u64, (SemaphoreId, u32)>);

/// `sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)`, and that of the wait.
const SEMAPHORE_ENTRY: usize = 144;

/// `cuImportExternalSemaphore(semaphore, descriptor)`.
pub(super) fn import(resolution: &mut Resolution<'_>) -> Option<Action> {
    let handle = resolution.call.out(0)?;
    let kind = resolution.call.pointee.as_deref().map_or(0, |bytes| half(bytes, 0));
    let id = resolution.ids.semaphore();
    resolution.tables.semaphores.0.insert(handle, (id, kind));
    None
}

/// `cuDestroyExternalSemaphore(semaphore)`.
pub(super) fn destroy(resolution: &mut Resolution<'_>) -> Option<Action> {
    if resolution.call.succeeded() {
        resolution.tables.semaphores.0.remove(&resolution.call.arg(0));
    }
    None
}

/// `cuSignalExternalSemaphoresAsync(semaphores, parameters, count, stream)` and the wait.
pub(super) fn semaphores(resolution: &mut Resolution<'_>, signals: bool) -> Option<Action> {
    let stream = resolution.stream(resolution.call.arg(3))?;
    let handles = resolution.input_words(0, 2)?;
    let list = resolution.input_list(1, 2, SEMAPHORE_ENTRY)?;
    let operations = semaphore_operations(resolution, &handles, &list, signals);
    Some(Action::Signals(Arc::new(Signals { stream, operations })))
}

/// The operations of a list of `CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS`, or of those of the wait.
pub(super) fn semaphore_operations(
    resolution: &mut Resolution<'_>,
    handles: &[u64],
    list: &[u8],
    signals: bool,
) -> Vec<SignalOperation> {
    let mut operations = Vec::new();
    for (&handle, parameters) in handles.iter().zip(list.chunks_exact(SEMAPHORE_ENTRY)) {
        let Some(&(id, kind)) = resolution.tables.semaphores.0.get(&handle) else {
            resolution
                .gaps
                .not_understood(&format!("{} (unknown semaphore)", resolution.call.api.name()));
            continue;
        };
        let value = match kind {
            D3D12_FENCE | D3D11_FENCE | TIMELINE_FD | TIMELINE_WIN32 => number(parameters, 0),
            kind if BINARY.contains(&kind) => 1,
            // Fences of NvSciSync and keyed mutexes say their value elsewhere.
            _ => {
                resolution
                    .gaps
                    .not_understood(&format!("{} (kind of semaphore)", resolution.call.api.name()));
                continue;
            }
        };
        let object = SignalObject::Semaphore(id);
        operations.push(if signals {
            SignalOperation::Signal { object, value, releases: true }
        } else {
            SignalOperation::Wait { object, value, compare: ValueCompare::GreaterOrEqual }
        });
    }
    operations
}
