//! From an access of an operation to its record in the shadow memory.
//!
//! Invariant: every access of every successful operation passes through here once.

use crate::clock::Part;
use crate::core::{Core, View};
use crate::memory::Mapping;
use crate::record::{AccessRecord, Place, Role};
use crate::rules::managed::check_host_access;
use crate::rules::signals;
use crate::shadow::Limits;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use streamsan_model::{
    Access, Action, AllocationId, Entities, KernelId, MemoryKind, Mode, Operation, StreamId,
};

/// The site of an access: its place, and its view of earlier accesses.
#[derive(Clone, Debug)]
pub(crate) struct Site<'a> {
    /// Everything that happens before the access.
    pub(crate) view: &'a View,
    /// Where the access happens.
    pub(crate) place: Place,
    /// The stream that reports show; `None` on the host.
    pub(crate) stream: Option<StreamId>,
    pub(crate) kernel: Option<KernelId>,
    /// Whether the call is one of the synchronous forms.
    pub(crate) synchronous: bool,
    /// Whether a call of a synchronous form may return before this access is done.
    pub(crate) has_tail: bool,
    /// The host function in which the access happens.
    pub(crate) function: Option<Arc<Part>>,
    /// The part of an operation that the access belongs to.
    pub(crate) role: Role,
}

impl<'a> Site<'a> {
    /// The site of an access by the host that looks back from `view`.
    pub(crate) fn host(view: &'a View) -> Self {
        let place = Place::Host(view.agent);
        Self {
            view,
            place,
            stream: None,
            kernel: None,
            synchronous: false,
            has_tail: false,
            function: None,
            role: Role::Ordinary,
        }
    }

    pub(crate) fn stream(view: &'a View, stream: StreamId, place: Place) -> Self {
        Self {
            view,
            place,
            stream: Some(stream),
            kernel: None,
            synchronous: false,
            has_tail: false,
            function: None,
            role: Role::Ordinary,
        }
    }

    pub(crate) fn of_kernel(mut self, kernel: KernelId) -> Self {
        self.kernel = Some(kernel);
        self
    }
}

impl Core {
    /// Checks the access against the shadow memory and keeps it there.
    pub(crate) fn touch(&mut self, op: &Operation, access: &Access, site: &Site<'_>) {
        let record = Arc::new(self.record(op, access, site));
        if site.place.is_host() {
            check_host_access(self, &record);
        }
        let mapping = mapping(&self.entities, access.allocation);
        let limits = Limits { cap: self.options.antichain_cap, silent: &self.silent };
        let spent = self.memory.keep(&record, mapping, site.view, limits);
        self.statistics.antichain_overflows += spent.overflows;
        let is_life = matches!(access.mode, Mode::Allocate | Mode::Free);
        let by_memop = matches!(site.role, Role::Awaited | Role::Signalled);
        if !self.signalled.is_empty() && access.mode.writes() && !is_life && !by_memop {
            signals::reset(self, op, access, site);
        }
    }

    /// Makes the record of the access.
    #[inline]
    pub(crate) fn record(
        &mut self,
        op: &Operation,
        access: &Access,
        site: &Site<'_>,
    ) -> AccessRecord {
        // No call can lie between an entry and the return that follows it directly.
        let is_brief = op.exit.is_some_and(|exit| exit.0 <= op.g.0 + 1);
        let may_overlap = !is_brief || self.statistics.ambiguous > 0;
        let ambiguous = if may_overlap { self.overlap_flag(op, is_brief) } else { None };
        self.statistics.accesses += 1;
        self.note_host_memory(op, access, site);
        AccessRecord {
            id: self.statistics.accesses - 1,
            op: op.g,
            process: op.process,
            place: site.place,
            stream: site.stream,
            api: self.api_names.number(&op.api),
            kernel: site.kernel,
            access: access.clone(),
            stack: op.stack,
            view: site.view.clone(),
            synchronous: site.synchronous,
            has_tail: site.has_tail,
            function: site.function.clone(),
            role: site.role,
            floating: !site.place.is_host() && site.view.own.is_none() && self.outside.is_empty(),
            shift: 0,
            ambiguous,
        }
    }
}

impl Core {
    /// Notes whether the host's own loads and stores could meet what a device does, and whether the
    /// program shows them.
    #[inline]
    fn note_host_memory(&mut self, op: &Operation, access: &Access, site: &Site<'_>) {
        if site.place.is_host() {
            self.statistics.shows_host_accesses |= matches!(op.action, Action::HostAccess);
        } else if !self.statistics.host_memory_in_flight
            && !site.synchronous
            && site.role == Role::Ordinary
        {
            let allocation = self.entities.allocation(access.allocation);
            self.statistics.host_memory_in_flight =
                allocation.is_some_and(|allocation| allocation.kind.is_shared_with_host());
        }
    }

    /// The flag that is raised when another thread's call on the same stream overlaps with the
    /// current call.
    fn overlap_flag(&mut self, op: &Operation, is_brief: bool) -> Option<Arc<AtomicBool>> {
        let call = self.stream_mut(op.action.stream()?)?.newest_call.as_mut()?;
        let overlapped = call.overlapped;
        (overlapped || !is_brief)
            .then(|| Arc::clone(call.ambiguous.get_or_insert_with(|| Arc::new(overlapped.into()))))
    }
}

/// The allocation's place in physical memory, where other ranges may stand for the same bytes.
pub(crate) fn mapping(entities: &Entities, allocation: AllocationId) -> Option<Mapping> {
    let allocation = entities.allocation(allocation)?;
    let backing = allocation.backing?;
    let shift = backing.offset.wrapping_sub(allocation.range.start);
    let is_region = allocation.kind == MemoryKind::Region;
    let is_owner =
        !is_region && !matches!(allocation.kind, MemoryKind::Mapped | MemoryKind::Imported);
    Some(Mapping { memory: backing.memory, shift, is_owner, is_region })
}
