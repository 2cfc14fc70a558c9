//! Explanations of unordered pairs: the class of the mistake, the event that falls short, and the
//! call that hides a latent pair. The code runs only when there is a finding to report.
//!
//! Invariant: an explanation changes neither whether a pair is reported nor its severity.

use crate::clock::{Chain, Part};
use crate::core::Core;
use crate::memory::Conflict;
use crate::record::{AccessRecord, Place};
use crate::state::{Record, Wait};
use smallvec::SmallVec;
use streamsan_model::{
    ConflictKind, ContextId, EventId, MemoryKind, Mode, OpSeq, RaceClass, StreamId, StreamKind,
};

/// An incidental synchronisation that has happened: its call, and the work that it may have waited
/// for.
#[derive(Clone, Debug)]
pub(crate) struct Mask {
    pub(crate) by: OpSeq,
    /// Points in chains.
    pub(crate) parts: SmallVec<[Part; 1]>,
    /// Whole contexts, up to the call.
    pub(crate) floors: SmallVec<[ContextId; 1]>,
}

impl Mask {
    /// Makes a mask that covers no whole context.
    pub(crate) fn new(by: OpSeq, parts: SmallVec<[Part; 1]>) -> Self {
        Self { by, parts, floors: SmallVec::new() }
    }

    fn covers(&self, place: Place, g: OpSeq) -> bool {
        let Place::Chain(chain) = place else { return false };
        (self.floors.contains(&chain.context) && g <= self.by)
            || self.parts.iter().any(|part| {
                (part.chain == chain && g.0 <= part.g) || part.know.covers_incidentally(chain, g.0)
            })
    }
}

/// A stream pool has handed out a stream again.
#[derive(Clone, Debug)]
pub(crate) struct PoolMask {
    /// The chain of the new user.
    pub(crate) chain: Chain,
    /// The work of the former users.
    pub(crate) mask: Mask,
}

/// A class, and the event operation that comes nearest to ordering the pair.
pub(crate) type Class = (RaceClass, Option<OpSeq>);

impl Core {
    /// The call that orders a latent pair in this run: the oldest such call after the earlier side.
    pub(crate) fn masked_by(&self, conflict: &Conflict) -> Option<OpSeq> {
        let (earlier, later) = (&conflict.earlier, &conflict.later);
        self.masks
            .iter()
            .filter(|mask| mask.by <= later.op && mask.covers(earlier.place, earlier.op))
            .map(|mask| mask.by)
            .next()
    }

    /// The hand-out by a stream pool that alone orders a latent pair.
    pub(crate) fn masked_by_pool(&self, conflict: &Conflict) -> Option<OpSeq> {
        let (earlier, later) = (&conflict.earlier, &conflict.later);
        let is_behind = |chain: Chain, g: OpSeq| {
            later.view.own.is_some_and(|(own, _)| own == chain)
                || later.view.know.covers_incidentally(chain, g.0)
        };
        self.pool_masks
            .iter()
            .filter(|pool| pool.mask.by < later.op && is_behind(pool.chain, pool.mask.by))
            .find(|pool| pool.mask.covers(earlier.place, earlier.op))
            .map(|pool| pool.mask.by)
    }

    /// The class of the mistake behind a pair.
    pub(crate) fn classify(
        &self,
        kind: ConflictKind,
        earlier: &AccessRecord,
        later: &AccessRecord,
    ) -> Class {
        match kind {
            ConflictKind::UseBeforeAlloc => return (RaceClass::UseBeforeAlloc, None),
            // Memory that a stream frees goes back to a pool, which may hand it out again at once.
            ConflictKind::UseAfterFree if later.access.mode == Mode::Free => {
                let by_other_stream = later.stream.is_some() && later.stream != earlier.stream;
                let class = if by_other_stream {
                    RaceClass::AllocatorReuse
                } else {
                    RaceClass::FreeInFlight
                };
                return (class, None);
            }
            ConflictKind::UseAfterFree => return (RaceClass::UseAfterFree, None),
            // Two owners of bytes that an allocator of the program has handed out twice.
            _ if self.is_reuse(earlier, later) => return (RaceClass::AllocatorReuse, None),
            _ => {}
        }
        if self.is_tail(earlier, later) {
            return (RaceClass::PageableCopyTail, None);
        }
        if let Some(class) = self.event_mistake(earlier, later) {
            return class;
        }
        if let Some(class) = self.host_mistake(kind, earlier, later) {
            return (class, None);
        }
        let devices = [earlier, later].map(|side| self.device_of(side));
        if let [Some(a), Some(b)] = devices
            && a != b
        {
            return (RaceClass::PeerUnordered, None);
        }
        let kind_of = |side: &AccessRecord| Some(self.stream(side.stream?)?.kind);
        match [kind_of(earlier), kind_of(later)] {
            [Some(StreamKind::Legacy), Some(StreamKind::NonBlocking)]
            | [Some(StreamKind::NonBlocking), Some(StreamKind::Legacy)] => {
                (RaceClass::LegacyVsNonblocking, None)
            }
            _ => (RaceClass::MissingWait, None),
        }
    }

    /// Whether the earlier side is a copy whose call had returned before the later side was issued.
    /// Then only the tail of the copy can meet the later side.
    fn is_tail(&self, earlier: &AccessRecord, later: &AccessRecord) -> bool {
        let Place::Chain(chain) = earlier.place else { return false };
        let context = self.contexts.get(chain.context.index()).and_then(Option::as_ref);
        let returns = context.and_then(|context| context.returns);
        let has_returned =
            |returns: Chain| later.view.know.documented.covers(returns, earlier.op.0);
        earlier.has_tail && returns.is_some_and(has_returned)
    }

    /// Whether the two sides use different regions of one memory pool.
    fn is_reuse(&self, earlier: &AccessRecord, later: &AccessRecord) -> bool {
        let of = |side: &AccessRecord| self.entities.allocation(side.access.allocation);
        let is_region = |side| of(side).is_some_and(|a| a.kind == MemoryKind::Region);
        earlier.access.allocation != later.access.allocation
            && is_region(earlier)
            && is_region(later)
            && self.memory.is_freed(earlier.access.allocation)
    }

    fn device_of(&self, side: &AccessRecord) -> Option<streamsan_model::DeviceId> {
        let context = self.stream(side.stream?)?.chain.context;
        Some(self.entities.context(context)?.device)
    }

    /// Whether the host made the mistake: one side is the host itself, or the memory is host memory
    /// and the later call is of a synchronous form, which looks as if it waited.
    fn host_mistake(
        &self,
        kind: ConflictKind,
        earlier: &AccessRecord,
        later: &AccessRecord,
    ) -> Option<RaceClass> {
        let allocation = self.entities.allocation(later.access.allocation);
        let host_memory = allocation.is_some_and(|allocation| allocation.kind.is_host());
        let on_host = earlier.place.is_host() || later.place.is_host();
        (on_host || (host_memory && later.synchronous)).then_some(match kind {
            ConflictKind::ReadAfterWrite => RaceClass::HostReadEarly,
            _ => RaceClass::HostBufferReuse,
        })
    }

    /// A wait that was meant to order the pair and does not: a wait of the later side's stream, or
    /// a wait of the host before it issued the later side.
    fn event_mistake(&self, earlier: &AccessRecord, later: &AccessRecord) -> Option<Class> {
        let stream = earlier.stream?;
        let of_stream = later.stream.and_then(|stream| self.stream(stream));
        let of_stream = of_stream.into_iter().flat_map(|state| state.waits.before(later.op));
        let mut wrong_stream = None;
        // The newest wait for an event shows what the program means by the event now.
        let mut events: SmallVec<[usize; 8]> = SmallVec::new();
        for wait in of_stream {
            let is_newest = !events.contains(&wait.event);
            events.push(wait.event);
            match self.mistake_of(wait, is_newest, earlier, stream) {
                // A wait for the right stream says more than a wait for another stream.
                Some(class) if class.0 == RaceClass::WrongStreamWait => {
                    wrong_stream = wrong_stream.or(Some(class));
                }
                Some(class) => return Some(class),
                None => {}
            }
        }
        let of_host = self.hosts.get(later.view.agent.0 as usize);
        let of_host = of_host.into_iter().flat_map(|host| host.waits.before(later.op));
        // A host wait that ended before the earlier side was issued was for other work.
        let of_host = of_host.filter(|wait| wait.g > earlier.op);
        let stale = of_host.filter_map(|wait| self.mistake_of(wait, true, earlier, stream));
        // The host waits for many streams; a wait for another stream therefore says nothing.
        let stale = { stale }.find(|class| class.0 != RaceClass::WrongStreamWait);
        wrong_stream.or(stale)
    }

    /// The mistake in a wait that was meant for the earlier side. `is_newest`: the waiter has no
    /// later wait for the same event.
    fn mistake_of(
        &self,
        wait: &Wait,
        is_newest: bool,
        earlier: &AccessRecord,
        stream: StreamId,
    ) -> Option<Class> {
        let after = wait.g > earlier.op;
        let Some(record) = wait.record else {
            return self
                .is_unrecorded_mistake(wait, is_newest, earlier, stream)
                .then_some((RaceClass::WaitBeforeRecord, Some(wait.g)));
        };
        let records = &self.known_event(wait.event)?.records;
        let behind = |r: &Record| r.stream == Some(stream) && r.g > earlier.op;
        // A launch that records an event does so before its kernel runs.
        if record.stream == Some(stream) && record.g <= earlier.op {
            let is_recorded_again = records.iter().any(behind);
            return match (is_recorded_again, after) {
                // The record came too early.
                (false, true) => Some((RaceClass::StaleWait, Some(record.g))),
                // The wait came too early: before the event was recorded again.
                (true, true) => Some((RaceClass::StaleWait, Some(wait.g))),
                (true, false) if is_newest => Some((RaceClass::StaleWait, Some(wait.g))),
                (_, false) => None,
            };
        }
        if !after || record.stream == Some(stream) {
            return None;
        }
        if records.iter().any(|r| behind(r) && r.g < record.g) {
            return Some((RaceClass::EventRerecorded, Some(record.g)));
        }
        (record.g > earlier.op).then_some((RaceClass::WrongStreamWait, Some(record.g)))
    }

    /// Whether a wait for an event without a record is the reason why nothing orders the later side
    /// behind the earlier side. The wait counts if it would order the two with the record that the
    /// event has got since. An event that has no record so far counts if the wait stands behind the
    /// earlier side.
    fn is_unrecorded_mistake(
        &self,
        wait: &Wait,
        is_newest: bool,
        earlier: &AccessRecord,
        stream: StreamId,
    ) -> bool {
        // Records by another program are not known.
        let event = self.entities.event(EventId(wait.event as u32));
        if !is_newest || event.is_some_and(|event| event.imported) {
            return false;
        }
        let Some(event) = self.known_event(wait.event) else { return wait.g > earlier.op };
        if event.records.is_empty() {
            return wait.g > earlier.op;
        }
        let in_its_stream =
            event.records.iter().any(|r| r.stream == Some(stream) && r.g > earlier.op);
        let knows = |part: &Part| match earlier.place {
            Place::Chain(chain) => {
                (part.chain == chain && earlier.op.0 <= part.g)
                    || part.know.documented.covers(chain, earlier.op.0)
            }
            Place::Host(_) => false,
        };
        in_its_stream || event.captured.iter().flat_map(|newest| &newest.parts).any(knows)
    }
}
