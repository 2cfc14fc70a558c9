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
fn word(l: &mut Resolution<'_>, address: u64, width: u8) -> SignalObject {
    let (_, allocation) = copies::place(l, DEVICE, address);
    let range = ByteRange::with_len(address, u64::from(width));
    l.touch(allocation, Extent::Range(range), Mode::Atomic, Basis::Exact);
    SignalObject::Memory { allocation, address, width }
}

/// The bits of a value that a word of this width takes.
fn masked(value: u64, width: u8) -> u64 {
    if width == 4 { value & u64::from(u32::MAX) } else { value }
}

fn write(
    l: &mut Resolution<'_>,
    address: u64,
    value: u64,
    width: u8,
    releases: bool,
) -> SignalOperation {
    let object = word(l, address, width);
    SignalOperation::Signal { object, value: masked(value, width), releases }
}

fn wait(
    l: &mut Resolution<'_>,
    address: u64,
    value: u64,
    width: u8,
    flags: u64,
) -> SignalOperation {
    let object = word(l, address, width);
    let compare = ValueCompare::ALL[(flags & COMPARE) as usize];
    SignalOperation::Wait { object, value: masked(value, width), compare }
}

/// `cuStreamWriteValue32(stream, address, value, flags)`, `cuStreamWriteValue64`.
pub(super) fn write_value(l: &mut Resolution<'_>, width: u8) -> Option<Action> {
    let stream = l.stream(l.call.arg(0))?;
    let releases = l.call.arg(3) & NO_MEMORY_BARRIER == 0;
    let operation = write(l, l.call.arg(1), l.call.arg(2), width, releases);
    Some(Action::Signals(Arc::new(Signals { stream, operations: vec![operation] })))
}

/// `cuStreamWaitValue32(stream, address, value, flags)`, `cuStreamWaitValue64`.
pub(super) fn wait_value(l: &mut Resolution<'_>, width: u8) -> Option<Action> {
    let stream = l.stream(l.call.arg(0))?;
    let operation = wait(l, l.call.arg(1), l.call.arg(2), width, l.call.arg(3));
    Some(Action::Signals(Arc::new(Signals { stream, operations: vec![operation] })))
}

/// `cuStreamBatchMemOp(stream, count, operations, flags)`.
pub(super) fn batch(l: &mut Resolution<'_>) -> Option<Action> {
    let stream = l.stream(l.call.arg(0))?;
    let list = l.input_list(2, 1, BATCH_ENTRY)?;
    let operations = batch_operations(l, &list);
    Some(Action::Signals(Arc::new(Signals { stream, operations })))
}

/// The operations of a list of `CUstreamBatchMemOpParams`.
pub(super) fn batch_operations(l: &mut Resolution<'_>, list: &[u8]) -> Vec<SignalOperation> {
    let mut operations = Vec::new();
    // A barrier makes what came before it visible to who sees a value written behind it.
    let mut behind_barrier = false;
    for entry in list.chunks_exact(BATCH_ENTRY) {
        let (address, value) = (number(entry, 8), number(entry, 16));
        let flags = u64::from(half(entry, 24));
        let releases = behind_barrier || flags & NO_MEMORY_BARRIER == 0;
        match half(entry, 0) {
            WAIT_32 => operations.push(wait(l, address, value, 4, flags)),
            WAIT_64 => operations.push(wait(l, address, value, 8, flags)),
            WRITE_32 => operations.push(write(l, address, value, 4, releases)),
            WRITE_64 => operations.push(write(l, address, value, 8, releases)),
            BARRIER => behind_barrier |= half(entry, 4) == BARRIER_SYSTEM,
            FLUSH_REMOTE_WRITES => {}
            // What an atomic reduction leaves in the word is not known.
            _ => l.gaps.not_understood(&format!("{} (reduction)", l.call.api.name())),
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
pub(super) fn import(l: &mut Resolution<'_>) -> Option<Action> {
    let handle = l.call.out(0)?;
    let kind = l.call.pointee.as_deref().map_or(0, |bytes| half(bytes, 0));
    let id = l.ids.semaphore();
    l.tables.semaphores.0.insert(handle, (id, kind));
    None
}

/// `cuDestroyExternalSemaphore(semaphore)`.
pub(super) fn destroy(l: &mut Resolution<'_>) -> Option<Action> {
    if l.call.succeeded() {
        l.tables.semaphores.0.remove(&l.call.arg(0));
    }
    None
}

/// `cuSignalExternalSemaphoresAsync(semaphores, parameters, count, stream)` and the wait.
pub(super) fn semaphores(l: &mut Resolution<'_>, signals: bool) -> Option<Action> {
    let stream = l.stream(l.call.arg(3))?;
    let handles = l.input_words(0, 2)?;
    let list = l.input_list(1, 2, SEMAPHORE_ENTRY)?;
    let operations = semaphore_operations(l, &handles, &list, signals);
    Some(Action::Signals(Arc::new(Signals { stream, operations })))
}

/// The operations of a list of `CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS`, or of those of the wait.
pub(super) fn semaphore_operations(
    l: &mut Resolution<'_>,
    handles: &[u64],
    list: &[u8],
    signals: bool,
) -> Vec<SignalOperation> {
    let mut operations = Vec::new();
    for (&handle, parameters) in handles.iter().zip(list.chunks_exact(SEMAPHORE_ENTRY)) {
        let Some(&(id, kind)) = l.tables.semaphores.0.get(&handle) else {
            l.gaps.not_understood(&format!("{} (unknown semaphore)", l.call.api.name()));
            continue;
        };
        let value = match kind {
            D3D12_FENCE | D3D11_FENCE | TIMELINE_FD | TIMELINE_WIN32 => number(parameters, 0),
            kind if BINARY.contains(&kind) => 1,
            // Fences of NvSciSync and keyed mutexes say their value elsewhere.
            _ => {
                l.gaps.not_understood(&format!("{} (kind of semaphore)", l.call.api.name()));
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
