//! Exact accesses of a kernel, as the simulated driver's interpreter reports them.

use super::memory::Memory;
use streamsan_model::{
    Access, Allocation, AllocationId, Basis, ByteRange, Extent, MemoryKind, Mode, ProcessId,
};
use streamsan_wire::{Access as Touched, RecordedMode};

/// Device memory that no recorded call made: as coarse as ordinary host memory.
pub(super) fn foreign(id: AllocationId, process: ProcessId) -> Allocation {
    Allocation {
        id,
        process,
        context: None,
        kind: MemoryKind::Device,
        range: ByteRange::new(0, u64::MAX),
        api: String::new(),
        backing: None,
        name: None,
        stack: None,
    }
}

/// Assigns ranges that the kernel launched at `g` touched to the allocations of that time; ranges
/// that belong to none go to `elsewhere`.
pub(super) fn accesses(
    memory: &Memory,
    g: u64,
    touched: &[Touched],
    elsewhere: impl FnOnce() -> AllocationId,
) -> Vec<Access> {
    let mut found: Vec<Access> = Vec::new();
    let mut homeless: Vec<(ByteRange, Mode)> = Vec::new();
    for touch in touched {
        let mode = match touch.mode {
            RecordedMode::Read => Mode::Read,
            RecordedMode::Write => Mode::Write,
            RecordedMode::Atomic => Mode::Atomic,
            RecordedMode::StrongRead => Mode::StrongRead,
            RecordedMode::StrongWrite => Mode::StrongWrite,
            RecordedMode::StrongAtomic => Mode::StrongAtomic,
        };
        let mut start = touch.start;
        // Neighbouring allocations may have been merged into one range.
        while start < touch.end {
            let (block, end) = memory.piece_at(ByteRange::new(start, touch.end), g);
            let range = ByteRange::new(start, end);
            match block {
                Some(block) => add(&mut found, block.id, range, mode),
                None => homeless.push((range, mode)),
            }
            start = range.end;
        }
    }
    if !homeless.is_empty() {
        let allocation = elsewhere();
        for (range, mode) in homeless {
            add(&mut found, allocation, range, mode);
        }
    }
    found
}

fn add(found: &mut Vec<Access>, allocation: AllocationId, range: ByteRange, mode: Mode) {
    let extent = Extent::Range(range);
    // The list is sorted, so that equal ranges of two modes come close to each other.
    // A strong access of the same bytes stays apart: together the two would be a weak one.
    let same = |a: &&mut Access| {
        let is_apart = a.mode != mode && (a.mode.is_strong() || mode.is_strong());
        a.allocation == allocation && a.extent == extent && !is_apart
    };
    match found.iter_mut().rev().take(4).find(same) {
        Some(access) => access.mode = access.mode.joined(mode),
        None => found.push(Access { allocation, extent, mode, basis: Basis::Exact }),
    }
}
