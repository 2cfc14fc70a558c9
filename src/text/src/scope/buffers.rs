//! Buffers and the physical memory behind them.

use super::{Bound, DEFAULT_SIZE, Scope, end, taken};
use crate::SyntaxError;
use crate::token::Token;
use streamsan_model::{
    Allocation, AllocationId, Backing, BackingId, ByteRange, ContextId, Entity, MemoryKind,
};

/// Where buffers begin; far from null, so that no offset looks like an address.
const FIRST_ADDRESS: u64 = 0x2_0000_0000;

/// Buffers begin on pages and lie at least a page apart.
const PAGE: u64 = 4096;

impl Scope {
    /// The buffer that `token` names; freed ones included.
    pub(crate) fn buffer(&mut self, token: Token<'_>) -> Result<&Allocation, SyntaxError> {
        let scoped = self.scoped(token, "a buffer")?;
        let id = match self.buffers.get(&scoped.key) {
            Some(bound) => bound.id,
            None => {
                let context = self.context_or_default(scoped.context, scoped.process, token.line);
                let origin = Origin {
                    kind: MemoryKind::Device,
                    context: Some(context),
                    api: "",
                    backing: None,
                };
                self.new_buffer(token, scoped.process, scoped.key, DEFAULT_SIZE, origin, None)?
            }
        };
        self.entities.allocation(id).ok_or_else(|| token.expected("a buffer"))
    }

    /// Declares the buffer that `token` names, at `place` or at addresses of its own.
    pub(crate) fn declare_buffer(
        &mut self,
        token: Token<'_>,
        size: u64,
        origin: Origin<'_>,
        place: Option<u64>,
    ) -> Result<AllocationId, SyntaxError> {
        let scoped = self.scoped(token, "a name for the buffer")?;
        if let Some(Bound { since, until: None, .. }) = self.buffers.get(&scoped.key) {
            return Err(taken(token, "buffer", *since));
        }
        let context = match origin.kind {
            MemoryKind::Pageable => None,
            _ => Some(self.context_or_default(
                origin.context.or(scoped.context),
                scoped.process,
                token.line,
            )),
        };
        self.new_buffer(
            token,
            scoped.process,
            scoped.key,
            size,
            Origin { context, ..origin },
            place,
        )
    }

    fn new_buffer(
        &mut self,
        token: Token<'_>,
        process: u32,
        name: String,
        size: u64,
        origin: Origin<'_>,
        place: Option<u64>,
    ) -> Result<AllocationId, SyntaxError> {
        let start = match place {
            Some(start) => start,
            None => {
                let start = self.bytes_used;
                let used = size.next_multiple_of(PAGE) + PAGE;
                self.bytes_used = start
                    .checked_add(used)
                    .filter(|&end| end < 1 << 62)
                    .ok_or_else(|| token.error("the buffers of this trace exceed 2^62 bytes"))?;
                FIRST_ADDRESS + start
            }
        };
        let id = AllocationId(self.buffer_count);
        self.buffer_count += 1;
        let process = self.process_of(process);
        // Memory that another line imports is known by its physical memory from the beginning.
        let backing = match origin.backing {
            None if self.exported.contains(&name) => {
                Some(Backing { memory: self.new_physical(), offset: 0 })
            }
            backing => backing,
        };
        self.declare(Entity::Allocation(Allocation {
            id,
            process,
            context: origin.context,
            kind: origin.kind,
            range: ByteRange::with_len(start, size),
            api: origin.api.to_owned(),
            backing,
            name: Some(name.clone()),
            // Memory that is older than the trace was not made by this call.
            stack: self.stack.filter(|_| !origin.api.is_empty()),
        }));
        self.buffers.insert(name, Bound { id, since: token.line, until: None });
        Ok(id)
    }

    /// The name of freed memory goes on standing for it until it is declared again.
    pub(crate) fn end_buffer(&mut self, buffer: AllocationId, line: usize) {
        let name = self.entities.allocation(buffer).and_then(|buffer| buffer.name.as_deref());
        end(&mut self.buffers, name, buffer, line);
    }

    /// A node of a graph frees the buffer.
    pub(crate) fn freed_by_node(&mut self, buffer: AllocationId) {
        self.freed_by_nodes.insert(buffer);
    }

    /// Whether a call, or a node of a graph, ends the life of the buffer.
    pub(crate) fn is_freed(&self, buffer: AllocationId) -> bool {
        if self.freed_by_nodes.contains(&buffer) {
            return true;
        }
        let name = self.entities.allocation(buffer).and_then(|buffer| buffer.name.as_deref());
        let bound = name.and_then(|name| self.buffers.get(name));
        // A name that has passed to another buffer was free before.
        bound.is_none_or(|bound| bound.id != buffer || bound.until.is_some())
    }

    /// The physical memory that `token` names, of whichever process.
    pub(crate) fn physical(&mut self, token: Token<'_>) -> Result<BackingId, SyntaxError> {
        let name = token.identifier("physical memory")?;
        if let Some(&id) = self.physical.get(name) {
            return Ok(id);
        }
        let id = self.new_physical();
        self.physical.insert(name.to_owned(), id);
        Ok(id)
    }

    fn new_physical(&mut self) -> BackingId {
        self.physical_count += 1;
        BackingId(self.physical_count - 1)
    }
}

/// Where a buffer comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) kind: MemoryKind,
    pub(crate) context: Option<ContextId>,
    /// The entry point that makes it; empty when it is older than the trace.
    pub(crate) api: &'a str,
    /// The physical memory, where other buffers may stand for the same.
    pub(crate) backing: Option<Backing>,
}
