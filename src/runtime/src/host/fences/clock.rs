//! The host's small clock of completions: it acquires at least what the documentation orders.
//!
//! Tickets count submissions that may be fenced. A stream hashes to one of 64 slots. The host has
//! acquired a submission when its own ticket for the slot has come up to the submission's. Where
//! something is not tracked (an event that was recorded long ago, streams that share a slot,
//! contexts, which are taken for one), the host acquires more: a fence falls too early, and an
//! access may be missed. It never acquires less than the analysis concludes: a fence that stood
//! behind the work's completion would make a system call of a correct program fail.
//!
//! Invariants: no lock, nothing allocated. Who submits takes a ticket before the record of its call
//! is published; who waits reads the newest ticket after its record is published. So whatever is
//! before the wait by its record is covered.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(super) const SLOTS: usize = 64;

/// The legacy default stream's slot, which no other stream has.
pub(super) const LEGACY: usize = 0;

const EVENTS: usize = 4096;
const STREAMS: usize = 4096;

/// In place of a slot: everything up to the ticket.
const EVERYTHING: u64 = 0xff;

/// Names a stream for the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Legacy,
    /// The per-thread default stream of a thread.
    PerThread(u64),
    Handle(u64),
}

struct ClockSlot {
    /// Tickets of each slot that the streams here are behind.
    know: [AtomicU64; SLOTS],
    /// Whether any of those is not 0.
    knows: AtomicBool,
    /// Whether a stream here is behind something that is not tracked.
    all: AtomicBool,
    /// Whether a stream here is a blocking one.
    blocking: AtomicBool,
}

impl ClockSlot {
    fn learn(&self, tickets: &Tickets) {
        self.knows.store(true, Ordering::SeqCst);
        raise(&self.know, tickets);
    }
}

/// Writes only where something is new: most of a wait's tickets are known.
fn raise(known: &[AtomicU64; SLOTS], tickets: &Tickets) {
    for (known, ticket) in known.iter().zip(tickets) {
        if known.load(Ordering::SeqCst) < *ticket {
            known.fetch_max(*ticket, Ordering::SeqCst);
        }
    }
}

struct Event {
    handle: AtomicU64,
    /// Slot, or [`EVERYTHING`], in the low byte; the ticket above.
    point: AtomicU64,
}

/// The clock of a process.
pub(super) struct Clock {
    ticket: AtomicU64,
    /// The newest ticket when something was last submitted to the legacy stream.
    legacy: AtomicU64,
    slots: [ClockSlot; SLOTS],
    host: [AtomicU64; SLOTS],
    events: [Event; EVENTS],
    /// Handles of non-blocking streams.
    non_blocking: [AtomicU64; STREAMS],
    /// Graphs record events: nothing is known of any.
    events_in_graphs: AtomicBool,
}

/// The tickets that somebody is behind, by slot.
type Tickets = [u64; SLOTS];

fn hash(handle: u64, size: usize) -> usize {
    (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % size
}

impl Clock {
    pub(super) const fn new() -> Self {
        Self {
            ticket: AtomicU64::new(0),
            legacy: AtomicU64::new(0),
            slots: [const {
                ClockSlot {
                    know: [const { AtomicU64::new(0) }; SLOTS],
                    knows: AtomicBool::new(false),
                    all: AtomicBool::new(false),
                    blocking: AtomicBool::new(false),
                }
            }; SLOTS],
            host: [const { AtomicU64::new(0) }; SLOTS],
            events: [const { Event { handle: AtomicU64::new(0), point: AtomicU64::new(0) } };
                EVENTS],
            non_blocking: [const { AtomicU64::new(0) }; STREAMS],
            events_in_graphs: AtomicBool::new(false),
        }
    }

    /// The newest ticket.
    pub(super) fn now(&self) -> u64 {
        self.ticket.load(Ordering::SeqCst)
    }

    /// A ticket for a submission. To be taken before its record is published.
    pub(super) fn submit(&self) -> u64 {
        self.ticket.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// A stream was made.
    pub(super) fn stream_made(&self, handle: u64, non_blocking: bool) {
        let place = &self.non_blocking[hash(handle, STREAMS)];
        if non_blocking {
            place.store(handle, Ordering::Relaxed);
        } else {
            let _ = place.compare_exchange(handle, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The slot of a stream, which is noted as used.
    pub(super) fn slot(&self, stream: Stream) -> usize {
        let (slot, blocking) = match stream {
            Stream::Legacy => return LEGACY,
            Stream::PerThread(thread) => (1 + hash(thread ^ 0x5851_f42d, SLOTS - 1), true),
            Stream::Handle(handle) => {
                let place = &self.non_blocking[hash(handle, STREAMS)];
                let blocking = place.load(Ordering::Relaxed) != handle;
                (1 + hash(handle, SLOTS - 1), blocking)
            }
        };
        if blocking && !self.slots[slot].blocking.load(Ordering::Relaxed) {
            self.slots[slot].blocking.store(true, Ordering::SeqCst);
        }
        slot
    }

    /// Whether the host has acquired the submission.
    pub(super) fn has(&self, slot: usize, ticket: u64) -> bool {
        self.host[slot].load(Ordering::SeqCst) >= ticket
    }

    /// Something was submitted to the stream, or it is synchronised: the legacy stream is behind all
    /// blocking streams.
    pub(super) fn pass(&self, slot: usize) {
        if slot == LEGACY {
            self.legacy.fetch_max(self.now(), Ordering::SeqCst);
        }
    }

    /// The stream is behind something that is not tracked.
    pub(super) fn behind_anything(&self, slot: usize) {
        self.slots[slot].all.store(true, Ordering::SeqCst);
    }

    /// A graph with a node that records an event.
    pub(super) fn events_in_graphs(&self) {
        self.events_in_graphs.store(true, Ordering::SeqCst);
    }

    /// The event was recorded on a stream; `None`: on all of a context.
    pub(super) fn record(&self, handle: u64, slot: Option<usize>) {
        let now = self.now();
        let slot = match slot {
            Some(slot) => {
                self.pass(slot);
                slot as u64
            }
            None => EVERYTHING,
        };
        let event = &self.events[hash(handle, EVENTS)];
        event.handle.store(0, Ordering::SeqCst);
        event.point.store(now << 8 | slot, Ordering::SeqCst);
        event.handle.store(handle, Ordering::SeqCst);
    }

    fn find(&self, handle: u64) -> Option<(usize, u64)> {
        let event = &self.events[hash(handle, EVENTS)];
        let is_there = || event.handle.load(Ordering::SeqCst) == handle;
        if !is_there() || self.events_in_graphs.load(Ordering::SeqCst) {
            return None;
        }
        let point = event.point.load(Ordering::SeqCst);
        (is_there() && point & 0xff != EVERYTHING).then_some(((point & 0xff) as usize, point >> 8))
    }

    /// The tickets known to who knows the slot's work up to a ticket; with `now`, the newest ticket
    /// at the call's entry, where something is not tracked.
    fn gather(&self, slot: usize, ticket: u64, now: u64, into: &mut Tickets) -> bool {
        let mut all = self.gather_one(slot, ticket, into);
        if slot == LEGACY || self.slots[slot].blocking.load(Ordering::SeqCst) {
            let legacy = self.legacy.load(Ordering::SeqCst).min(now);
            for (index, blocking) in self.slots.iter().enumerate() {
                if index == LEGACY || blocking.blocking.load(Ordering::SeqCst) {
                    all |= self.gather_one(index, legacy, into);
                }
            }
        }
        if all {
            into.iter_mut().for_each(|known| *known = (*known).max(now));
        }
        all
    }

    fn gather_one(&self, slot: usize, ticket: u64, into: &mut Tickets) -> bool {
        into[slot] = into[slot].max(ticket);
        if self.slots[slot].knows.load(Ordering::SeqCst) {
            for (known, know) in into.iter_mut().zip(&self.slots[slot].know) {
                *known = (*known).max(know.load(Ordering::SeqCst));
            }
        }
        self.slots[slot].all.load(Ordering::SeqCst)
    }

    fn raise(&self, tickets: &Tickets) {
        raise(&self.host, tickets);
    }

    /// The stream waits for an event.
    pub(super) fn wait(&self, slot: usize, handle: u64) {
        let now = self.now();
        let mut tickets = [0; SLOTS];
        match self.find(handle) {
            Some((of, ticket)) => {
                if self.gather(of, ticket, now, &mut tickets) {
                    self.behind_anything(slot);
                }
            }
            None => {
                tickets = [now; SLOTS];
                // Who recorded it may wait for what comes yet.
                if self.slots.iter().any(|slot| slot.all.load(Ordering::SeqCst)) {
                    self.behind_anything(slot);
                }
            }
        }
        self.slots[slot].learn(&tickets);
    }

    /// The stream is behind everything up to now: it waits for a context.
    pub(super) fn wait_for_everything(&self, slot: usize) {
        self.slots[slot].learn(&[self.now(); SLOTS]);
    }

    /// The host has waited for the slot's work up to a ticket; `now` is the newest ticket at the
    /// call's entry.
    pub(super) fn acquire(&self, slot: usize, ticket: u64, now: u64) {
        let mut tickets = [0; SLOTS];
        self.gather(slot, ticket, now, &mut tickets);
        self.raise(&tickets);
    }

    /// The host has waited for an event.
    pub(super) fn acquire_event(&self, handle: u64, now: u64) {
        match self.find(handle) {
            Some((slot, ticket)) => self.acquire(slot, ticket.min(now), now),
            None => self.acquire_everything(now),
        }
    }

    /// The host has waited for everything that was submitted before.
    pub(super) fn acquire_everything(&self, now: u64) {
        self.raise(&[now; SLOTS]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Box<Clock> {
        Box::new(Clock::new())
    }

    fn streams(clock: &Clock) -> [usize; 3] {
        // Three non-blocking streams of different slots.
        let mut found = Vec::new();
        for handle in (0x1000..).step_by(8) {
            clock.stream_made(handle, true);
            let slot = clock.slot(Stream::Handle(handle));
            if !found.contains(&slot) {
                found.push(slot);
            }
            if found.len() == 3 {
                break;
            }
        }
        [found[0], found[1], found[2]]
    }

    #[test]
    fn the_host_has_what_it_waited_for_and_no_more() {
        let clock = clock();
        let [a, b, _] = streams(&clock);
        let (first, other) = (clock.submit(), clock.submit());
        clock.acquire(a, clock.now(), clock.now());
        let later = clock.submit();
        assert!(clock.has(a, first));
        assert!(!clock.has(b, other));
        assert!(!clock.has(a, later));
    }

    #[test]
    fn through_an_event_and_another_stream() {
        let clock = clock();
        let [a, b, c] = streams(&clock);
        let before = clock.submit();
        clock.record(0x77, Some(a));
        let behind = clock.submit();
        clock.wait(b, 0x77);
        clock.record(0x88, Some(b));
        clock.wait(c, 0x88);
        clock.acquire(c, clock.now(), clock.now());
        assert!(clock.has(a, before));
        assert!(!clock.has(a, behind));
    }

    #[test]
    fn an_event_that_was_forgotten_counts_for_everything() {
        let clock = clock();
        let [a, b, _] = streams(&clock);
        let tickets = [clock.submit(), clock.submit()];
        clock.acquire_event(0x99, clock.now());
        assert!(clock.has(a, tickets[0]) && clock.has(b, tickets[1]));
    }

    #[test]
    fn the_legacy_stream_covers_blocking_streams_only() {
        let clock = clock();
        let [free, ..] = streams(&clock);
        let mut handle = 0x90_0000;
        // One whose slot no non-blocking stream has.
        let blocking = loop {
            handle += 8;
            let slot = clock.slot(Stream::Handle(handle));
            if slot != free {
                break slot;
            }
        };
        let (beside, before) = (clock.submit(), clock.submit());
        clock.pass(LEGACY);
        clock.acquire(LEGACY, clock.now(), clock.now());
        assert!(clock.has(blocking, before));
        assert!(!clock.has(free, beside) || free == blocking);
    }

    #[test]
    fn what_is_not_tracked_acquires_what_was_submitted_before() {
        let clock = clock();
        let [a, b, c] = streams(&clock);
        clock.behind_anything(a);
        clock.record(0x77, Some(a));
        clock.wait(b, 0x77);
        let later = clock.submit();
        clock.acquire(b, clock.now(), clock.now());
        assert!(clock.has(c, later));
    }
}
