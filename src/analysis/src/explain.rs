//! Why two accesses are not ordered: the class of the mistake, the event that falls short, and the
//! call that hides a latent one. Runs only when there is something to report.

use crate::clock::{Chain, Part};
use crate::core::Core;
use crate::memory::Conflict;
use crate::record::{AccessRecord, Place};
use crate::state::Wait;
use smallvec::SmallVec;
use streamsan_model::{
    ConflictKind, ContextId, EventId, MemoryKind, Mode, OpSeq, RaceClass, StreamKind,
};

/// An incidental synchronisation that has happened: the call behind it, and what it may have
/// waited for.
#[derive(Clone, Debug)]
pub(crate) struct Mask {
    pub(crate) by: OpSeq,
    /// Points in chains.
    pub(crate) parts: SmallVec<[Part; 1]>,
    /// Whole contexts, up to the call.
    pub(crate) floors: SmallVec<[ContextId; 1]>,
}

impl Mask {
    /// A mask without whole contexts.
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
    /// The former users' work.
    pub(crate) mask: Mask,
}

/// A class, and the event operation that comes nearest.
pub(crate) type Class = (RaceClass, Option<OpSeq>);

impl Core {
    /// The call that orders a latent pair today: the oldest one that does, after the earlier side.
    pub(crate) fn masked_by(&self, conflict: &Conflict) -> Option<OpSeq> {
        let (earlier, later) = (&conflict.earlier, &conflict.later);
        self.masks
            .iter()
            .filter(|mask| mask.by <= later.op && mask.covers(earlier.place, earlier.op))
            .map(|mask| mask.by)
            .next()
    }

    /// The handing out by a stream pool that alone orders a latent pair.
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
            // What a stream frees goes back to a pool, which may hand it out again at once.
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

    /// Whether the sides are about different regions of one memory pool.
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

    /// Whether the mistake is one of the host: one side is the host itself, or the memory is the
    /// host's and the later call is of a synchronous form, which looks as if it waited.
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

    /// A wait of the later side's stream, or of the host before it issued the later side, that was
    /// meant to order the pair and does not.
    fn event_mistake(&self, earlier: &AccessRecord, later: &AccessRecord) -> Option<Class> {
        let stream = earlier.stream?;
        let of_stream = later.stream.and_then(|stream| self.stream(stream));
        let of_stream = of_stream.into_iter().flat_map(|state| state.waits.before(later.op));
        let of_host = self.hosts.get(later.view.agent.0 as usize);
        let of_host = of_host.into_iter().flat_map(|host| host.waits.before(later.op));
        let mistake = |wait: &Wait| self.mistake_of(wait, earlier, stream);
        let mut wrong_stream = None;
        for class in of_stream.filter_map(mistake) {
            // A wait for the right stream says more than one for another.
            if class.0 != RaceClass::WrongStreamWait {
                return Some(class);
            }
            wrong_stream = wrong_stream.or(Some(class));
        }
        // The host waits for many a stream; that it is another one says nothing.
        let stale = of_host.filter_map(mistake).find(|class| class.0 != RaceClass::WrongStreamWait);
        wrong_stream.or(stale)
    }

    fn mistake_of(
        &self,
        wait: &Wait,
        earlier: &AccessRecord,
        stream: streamsan_model::StreamId,
    ) -> Option<Class> {
        let after = wait.g > earlier.op;
        let Some(record) = wait.record else {
            // What another program records is not known.
            let event = self.entities.event(EventId(wait.event as u32));
            if event.is_some_and(|event| event.imported) {
                return None;
            }
            // Waiting for an event without a record: nobody means that.
            return Some((RaceClass::WaitBeforeRecord, Some(wait.g)));
        };
        if !after {
            return None;
        }
        if record.stream == Some(stream) {
            // Recorded on the right stream, but too early.
            // (A launch that records an event does so before its kernel runs.)
            return (record.g <= earlier.op).then_some((RaceClass::StaleWait, Some(record.g)));
        }
        let records = &self.known_event(wait.event)?.records;
        let overwritten =
            records.iter().any(|r| r.stream == Some(stream) && r.g > earlier.op && r.g < record.g);
        if overwritten {
            return Some((RaceClass::EventRerecorded, Some(record.g)));
        }
        (record.g > earlier.op).then_some((RaceClass::WrongStreamWait, Some(record.g)))
    }
}
