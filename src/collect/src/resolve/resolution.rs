//! The context in which one call is resolved: what its handler may use, and what comes of the call.
//!
//! A handler gets this context and nothing else. What handlers need of it is in modules of its own:
//! the contents of pointer parameters (`inputs`), ids of handles (`contexts`, `streams`, `events`),
//! declarations of memory (`allocations`), the code of kernels (`code`), and the accesses of the
//! operation (`accesses`).

mod accesses;
mod allocations;
mod code;
mod contexts;
mod events;
mod inputs;
mod streams;

use super::code_accesses::Instances;
use super::gaps::Gaps;
use super::kernels::Kernels;
use super::sharing::SharedHandles;
use super::tables::{Ids, ProcessTables};
use crate::call::Call;
use crate::kernel_code::Codes;
use crate::launch::Targets;
use crate::measured::LaunchedNode;
use std::sync::Arc;
use streamsan_model::{Access, Entity, Status, StreamId, ThreadId, TraceItem};

/// The facts about a launch that matter where its kernel is measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LaunchNote {
    /// The launch is looked at again when its kernel's code is known.
    pub(super) awaits_code: bool,
    /// The kernel may have accesses that measuring does not see: stores through tensor maps, textures
    /// and surfaces.
    pub(super) unseen: bool,
}

/// One call, the tables that its handler may use, and what comes of it.
pub(super) struct Resolution<'a> {
    pub(super) call: &'a Call,
    /// The thread of the call; `None` while nothing has declared it.
    pub(super) thread: Option<ThreadId>,
    /// Whether the symbol is a per-thread twin (`_ptsz`, `_ptds`), for which handle 0 is the
    /// thread's default stream.
    pub(super) per_thread: bool,
    pub(super) tables: &'a mut ProcessTables,
    pub(super) ids: &'a mut Ids,
    pub(super) kernels: &'a mut Kernels,
    pub(super) shared: &'a mut SharedHandles,
    pub(super) gaps: &'a mut Gaps,
    pub(super) codes: &'a mut Codes,
    pub(super) instances: &'a mut Instances,
    /// Up to when what was written to variables counts, where not to the call at hand: its graph may
    /// have been launched since.
    pub(super) written_until: Option<u64>,
    /// The blocks that the words of the launch at hand point into, as far as they were looked up.
    pub(super) targets: Targets,
    /// Declarations that come before the operation.
    pub(super) items: &'a mut Vec<TraceItem>,
    /// The capturing stream that the call was issued to: it was not carried out.
    pub(super) captured: Option<StreamId>,
    /// The accesses of the operation.
    pub(super) accesses: Vec<Access>,
    /// How the launch at hand stands to measuring.
    pub(super) launch: LaunchNote,
    /// The kernel nodes of the graph that the call launches, or makes ready to be launched.
    pub(super) launched_nodes: Option<Arc<[LaunchedNode]>>,
    /// Where the accesses of the part at hand begin, for calls that do several things at once.
    pub(super) part: usize,
}

impl Resolution<'_> {
    pub(super) fn declare(&mut self, entity: Entity) {
        self.tables.declared.note(&entity);
        if matches!(entity, Entity::Event(_) | Entity::Stream(_)) {
            let tables = &mut *self.tables;
            let own = tables.streams.values().map(|(id, _)| *id);
            let defaults = tables.legacy_streams.values().chain(tables.thread_streams.values());
            let streams = own.chain(defaults.copied());
            tables.declared.prune(streams, tables.events.values().map(|(id, _)| *id));
        }
        self.items.push(TraceItem::Entity(entity));
    }

    /// Whether a handle that nobody made may be declared: a call that the driver refused is no
    /// evidence of anything.
    fn handles_are_valid(&self) -> bool {
        self.call.succeeded() || self.call.result() == Status::NOT_READY.0
    }
}
