//! The accesses of the operation.

use super::Resolution;
use crate::resolve::mappings;
use crate::resolve::memory::Block;
use streamsan_model::{Access, AllocationId, Basis, Extent, MemoryKind, Mode};

impl Resolution<'_> {
    /// From here on accesses belong to the next part of the operation.
    pub(in crate::resolve) fn next_part(&mut self) {
        self.part = self.accesses.len();
    }

    /// How many accesses the part at hand has.
    pub(in crate::resolve) fn part_len(&self) -> u32 {
        (self.accesses.len() - self.part) as u32
    }

    /// Notes an access that begins in `block`; where it goes on into mappings behind it, each gets
    /// its part.
    pub(in crate::resolve) fn touch_from(
        &mut self,
        block: &Block,
        extent: Extent,
        mode: Mode,
        basis: Basis,
    ) {
        let block = &self.tables.memory.owner_of(block, extent.hull(), self.call.g);
        if block.kind != MemoryKind::Mapped || extent.hull().end <= block.range.end {
            return self.touch(block.id, extent, mode, basis);
        }
        for (block, part) in mappings::split(self, block, extent) {
            self.touch(block.id, part, mode, basis);
        }
    }

    /// Notes that anything reachable from an address in `block` may be touched.
    pub(in crate::resolve) fn touch_all(&mut self, block: &Block, mode: Mode, basis: Basis) {
        if block.kind != MemoryKind::Mapped {
            return self.touch(block.id, Extent::Range(block.range), mode, basis);
        }
        let whole =
            |b: &Block| Access { allocation: b.id, extent: Extent::Range(b.range), mode, basis };
        // Another parameter may have led to the same mappings: they come together.
        if self.accesses[self.part..].contains(&whole(block)) {
            return;
        }
        for block in mappings::neighbours(self, block) {
            self.accesses.push(whole(&block));
        }
    }

    /// Notes an access; two of one extent become one.
    pub(in crate::resolve) fn touch(
        &mut self,
        allocation: AllocationId,
        extent: Extent,
        mode: Mode,
        basis: Basis,
    ) {
        let same = |a: &&mut Access| a.allocation == allocation && a.extent == extent;
        match self.accesses[self.part..].iter_mut().find(same) {
            Some(access) => access.mode = access.mode.joined(mode),
            None => self.accesses.push(Access { allocation, extent, mode, basis }),
        }
    }
}
