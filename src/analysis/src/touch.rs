//! From an access of an operation to its record in the shadow memory.

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
    Access, AllocationId, Entities, KernelId, MemoryKind, Mode, Operation, StreamId,
};

/// Where and from where an access happens.
#[derive(Clone, Debug)]
pub(crate) struct Site<'a> {
    /// What happens before it.
    pub(crate) view: &'a View,
    /// Where it happens itself.
    pub(crate) place: Place,
    /// The stream of reports; `None` on the host.
    pub(crate) stream: Option<StreamId>,
    pub(crate) kernel: Option<KernelId>,
    /// Whether the call is one of the synchronous forms.
    pub(crate) synchronous: bool,
    /// Whether the call may return before this access is done, although it is one of these.
    pub(crate) has_tail: bool,
    /// The host function in which it happens.
    pub(crate) function: Option<Arc<Part>>,
    /// What it is part of.
    pub(crate) role: Role,
}

impl<'a> Site<'a> {
    /// On the host that looks back from `view`.
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

    /// The access as the shadow memory keeps it.
    #[inline]
    pub(crate) fn record(
        &mut self,
        op: &Operation,
        access: &Access,
        site: &Site<'_>,
    ) -> AccessRecord {
        // Nothing can lie between a call's entry and a return right behind it.
        let is_brief = op.exit.is_some_and(|exit| exit.0 <= op.g.0 + 1);
        let may_overlap = !is_brief || self.statistics.ambiguous > 0;
        let ambiguous = if may_overlap { self.overlap_flag(op, is_brief) } else { None };
        self.statistics.accesses += 1;
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
    /// What tells whether a call that overlaps with the one in hand was issued to its stream.
    fn overlap_flag(&mut self, op: &Operation, is_brief: bool) -> Option<Arc<AtomicBool>> {
        let call = self.stream_mut(op.action.stream()?)?.newest_call.as_mut()?;
        let overlapped = call.overlapped;
        (overlapped || !is_brief)
            .then(|| Arc::clone(call.ambiguous.get_or_insert_with(|| Arc::new(overlapped.into()))))
    }
}

/// Where in physical memory an allocation lies, if others may stand for the same bytes.
pub(crate) fn mapping(entities: &Entities, allocation: AllocationId) -> Option<Mapping> {
    let allocation = entities.allocation(allocation)?;
    let backing = allocation.backing?;
    let shift = backing.offset.wrapping_sub(allocation.range.start);
    let is_region = allocation.kind == MemoryKind::Region;
    let is_owner =
        !is_region && !matches!(allocation.kind, MemoryKind::Mapped | MemoryKind::Imported);
    Some(Mapping { memory: backing.memory, shift, is_owner, is_region })
}
