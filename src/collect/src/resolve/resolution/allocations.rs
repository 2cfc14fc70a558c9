//! Declarations of memory.

use super::Resolution;
use crate::resolve::exact;
use crate::resolve::memory::Block;
use streamsan_model::{
    Allocation, AllocationId, Backing, ByteRange, ContextId, Entity, MemoryKind, StackId,
};

impl Resolution<'_> {
    /// New memory made by this call.
    pub(in crate::resolve) fn new_allocation(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        name: Option<String>,
    ) -> AllocationId {
        self.new_backed_allocation(range, kind, None, name)
    }

    /// New memory made by this call that stands for physical memory.
    pub(in crate::resolve) fn new_backed_allocation(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        backing: Option<Backing>,
        name: Option<String>,
    ) -> AllocationId {
        self.new_block(range, kind, backing, name).id
    }

    /// New memory made by this call, as the tables have it.
    pub(in crate::resolve) fn new_block(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        backing: Option<Backing>,
        name: Option<String>,
    ) -> Block {
        let id = self.declare_made(range, kind, backing, name);
        let context = self.owner();
        let (made_by, born) = (self.call.api, self.call.g);
        let returned = self.call.returned.map_or(born, |r| r.exit);
        let stack = self.call.stack;
        let block = Block { id, range, kind, context, backing, made_by, born, returned, stack };
        self.tables.memory.insert(block);
        block
    }

    /// New memory made by this call at addresses that no program knows.
    pub(in crate::resolve) fn new_made_up(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        backing: Option<Backing>,
    ) -> AllocationId {
        self.declare_made(range, kind, backing, None)
    }

    fn declare_made(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        backing: Option<Backing>,
        name: Option<String>,
    ) -> AllocationId {
        let context = self.owner();
        let api = self.call.api.name().to_owned();
        let stack = self.call.stack;
        let id = self.declare_allocation(range, kind, (context, backing), api, name, stack);
        let came_by = backing.and_then(|backing| self.shared.came_unknown_by(backing.memory));
        if let Some(call) = came_by {
            self.gaps.unknown_origin(id, call);
        }
        id
    }

    /// The physical memory behind a block, which others are about to stand for too: from here on
    /// the block is known by it.
    pub(in crate::resolve) fn share(&mut self, block: &Block) -> Backing {
        if let Some(backing) = block.backing {
            return backing;
        }
        let backing = Backing { memory: self.ids.backing(), offset: 0 };
        self.tables.memory.set_backing(block.range.start, backing);
        self.shared.learnt_late();
        let api = block.api().to_owned();
        self.declare(Entity::Allocation(Allocation {
            id: block.id,
            process: self.tables.id,
            context: block.context,
            kind: block.kind,
            range: block.range,
            api,
            backing: Some(backing),
            name: None,
            stack: block.stack,
        }));
        backing
    }

    /// Ordinary host memory: one allocation over the whole address space.
    pub(in crate::resolve) fn pageable(&mut self) -> AllocationId {
        match self.tables.pageable {
            Some(id) => id,
            None => {
                let everything = ByteRange::new(0, u64::MAX);
                let api = String::new();
                let of = (None, None);
                let id =
                    self.declare_allocation(everything, MemoryKind::Pageable, of, api, None, None);
                self.tables.pageable = Some(id);
                id
            }
        }
    }

    /// Device memory that no recorded call made: as coarse as ordinary host memory.
    pub(in crate::resolve) fn foreign(&mut self) -> AllocationId {
        match self.tables.foreign {
            Some(id) => id,
            None => {
                let id = self.ids.allocation();
                self.tables.foreign = Some(id);
                self.declare(Entity::Allocation(exact::foreign(id, self.tables.id)));
                id
            }
        }
    }

    pub(super) fn declare_allocation(
        &mut self,
        range: ByteRange,
        kind: MemoryKind,
        (context, backing): (Option<ContextId>, Option<Backing>),
        api: String,
        name: Option<String>,
        stack: Option<StackId>,
    ) -> AllocationId {
        let id = self.ids.allocation();
        let process = self.tables.id;
        self.declare(Entity::Allocation(Allocation {
            id,
            process,
            context,
            kind,
            range,
            api,
            backing,
            name,
            stack,
        }));
        id
    }
}
