//! The writes to words that streams wait for, and to semaphores: which signals may have satisfied a
//! wait.
//!
//! Invariant: the signals that are remembered for an object are in the order of their issue;
//! forgetting one never turns a wait that it may have satisfied into a certain one.
//!
//! A trace does not tell which write satisfies a wait. A *signal* writes a known value: a stream
//! memory operation, or a signal to a semaphore. Everything else that writes a word (a memset, a
//! copy, a kernel, the host) leaves an unknown value and so resets the word: if a signal happens
//! before such a write, the signal cannot satisfy a wait that is behind the write.
//!
//! Deliberately absent: values of other writes. A wait that no signal satisfies is therefore a wait
//! for an outside agent, although one of those writes may have satisfied it. Where a signal
//! satisfies the wait, the wait is taken to be meant for that signal.

use crate::clock::{Chain, Know, Part};
use crate::core::View;
use crate::lints::Call;
use crate::record::Place;
use crate::shadow::Order;
use std::collections::VecDeque;
use std::sync::Arc;
use streamsan_model::{
    AllocationId, BackingId, OpSeq, ProcessId, SemaphoreId, StreamId, ValueCompare,
};

/// Number of writes that are remembered for an object.
const REMEMBERED: usize = 256;
/// Number of writes from which on the list is searched for writes that no later wait can meet.
const TIDY: usize = 32;
/// Number of resets that are remembered between two signals: the first ones and the newest.
const RESETS: usize = 16;

/// The object that is waited for, the same for all addresses that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    Semaphore(SemaphoreId),
    Word(AllocationId, u64),
    /// A word of memory that several address ranges stand for.
    SharedWord(BackingId, u64),
}

/// A write that has been issued.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) g: OpSeq,
    pub(crate) process: ProcessId,
    pub(crate) place: Place,
    /// The view of the write: everything that happens before it.
    pub(crate) view: View,
    pub(crate) what: What,
}

/// The effect of a write.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A stream signals a value.
    Signal {
        value: u64,
        /// Whether an agent that sees the value also sees the stream's earlier work.
        releases: bool,
        stream: StreamId,
        call: Call,
    },
    /// The word gets an unknown value.
    Reset {
        /// Whether the write certainly covers the whole word.
        certain: bool,
    },
}

impl Write {
    /// A signal at a point of a stream.
    pub(crate) fn signal(part: Part, view: View, process: ProcessId, what: What) -> Self {
        let own = Some((part.chain, part.g));
        let view = View { own, know: part.know, ..view };
        Self { g: OpSeq(part.g), process, place: Place::Chain(part.chain), view, what }
    }

    /// Whether this write happens after `other`, which was issued before it.
    fn is_behind(&self, other: &Self) -> bool {
        other.g <= self.g && self.view.covers(other.place, other.g)
    }

    /// Whether the write leaves nothing of the former value.
    const fn overwrites(&self) -> bool {
        !matches!(self.what, What::Reset { certain: false })
    }

    const fn is_reset(&self) -> bool {
        matches!(self.what, What::Reset { .. })
    }

    const fn value(&self) -> Option<u64> {
        match self.what {
            What::Signal { value, .. } => Some(value),
            What::Reset { .. } => None,
        }
    }

    /// The signal's point in its stream.
    pub(crate) fn part(&self) -> Option<Part> {
        let Place::Chain(chain) = self.place else { return None };
        Some(Part { chain, g: self.g.0, know: Arc::clone(&self.view.know) })
    }
}

/// The writes of an object, in the order of their issue.
#[derive(Debug, Default)]
pub(crate) struct Signalled {
    writes: VecDeque<Write>,
    /// The greatest value among the forgotten signals.
    forgotten: Option<u64>,
    /// Width of the word in bytes; 0 for a semaphore.
    pub(crate) width: u64,
}

/// The signals that may satisfy a wait.
#[derive(Debug)]
pub(crate) struct Met<'a> {
    /// Whether the waiter is behind one of the signals already.
    pub(crate) is_known: bool,
    /// The signals, in the order of their issue, up to the first one that the waiter is behind.
    pub(crate) signals: Vec<&'a Write>,
    /// Whether the signals may have been reset before the waiter could see them, by a write that is
    /// not certain. Then nobody knows what the wait has waited for.
    pub(crate) is_doubtful: bool,
    /// Whether a forgotten signal may satisfy the wait.
    pub(crate) may_be_forgotten: bool,
}

impl Signalled {
    /// Adds a signal. Every later operation is behind `done`.
    pub(crate) fn push(&mut self, signal: Write, done: &Know, host: Option<Place>) {
        self.writes.push_back(signal);
        if self.writes.len() >= TIDY {
            self.tidy(done, host);
        }
    }

    /// Adds a reset.
    pub(crate) fn reset(&mut self, reset: Write) {
        let run = self.writes.iter().rev().take_while(|write| write.is_reset()).count();
        let again = self.writes.back().is_some_and(|w| (w.g, w.place) == (reset.g, reset.place));
        if run >= RESETS || (run > 0 && again) {
            self.writes.pop_back();
        }
        self.writes.push_back(reset);
    }

    /// Forgets writes that are overwritten for every later wait; beyond a bound also the oldest
    /// writes.
    fn tidy(&mut self, done: &Know, host: Option<Place>) {
        let one_process = self.writes.iter().all(|w| w.process == self.writes[0].process);
        if one_process {
            let is_known = |write: &Write| match write.place {
                Place::Chain(chain) => done.documented.covers(chain, write.g.0),
                Place::Host(_) => host == Some(write.place),
            };
            let over: Vec<bool> = (0..self.writes.len())
                .map(|i| {
                    self.writes.range(i + 1..).any(|later| {
                        later.overwrites() && is_known(later) && later.is_behind(&self.writes[i])
                    })
                })
                .collect();
            let mut over = over.into_iter();
            self.writes.retain(|_| !over.next().unwrap_or(false));
        }
        while self.writes.len() > REMEMBERED {
            let Some(oldest) = self.writes.pop_front() else { return };
            let Some(value) = oldest.value() else { continue };
            let next_is_behind = self.writes.front().is_some_and(|next| next.is_behind(&oldest));
            let greatest = self.forgotten.map_or(value, |forgotten| forgotten.max(value));
            // Any wait may meet a signal that is not in one line with the others.
            self.forgotten = Some(if next_is_behind { greatest } else { u64::MAX });
        }
    }

    /// Returns the signals that may satisfy a wait which looks back from `view`.
    pub(crate) fn met_by(
        &self,
        view: &View,
        wanted: u64,
        compare: ValueCompare,
        width: u8,
    ) -> Met<'_> {
        let own: Option<Chain> = view.own.map(|(own, _)| own);
        let knows = |write: &Write| {
            own.is_some_and(|own| write.place == Place::Chain(own))
                || view.covers(write.place, write.g)
        };
        let overwriting: Vec<usize> = (0..self.writes.len())
            .filter(|&i| self.writes[i].overwrites() && knows(&self.writes[i]))
            .collect();
        let oldest_is_known = overwriting.first() == Some(&0);
        let mut met = Met {
            is_known: false,
            signals: Vec::new(),
            is_doubtful: false,
            may_be_forgotten: self.may_be_forgotten(wanted, compare, oldest_is_known),
        };
        for (i, signal) in self.writes.iter().enumerate() {
            let is_met =
                signal.value().is_some_and(|value| compare.is_met_by(value, wanted, width));
            let is_overwritten =
                || overwriting.iter().any(|&j| j > i && self.writes[j].is_behind(signal));
            if !is_met || is_overwritten() {
                continue;
            }
            met.signals.push(signal);
            met.is_doubtful |= self.may_have_reset(signal);
            if knows(signal) {
                met.is_known = true;
                return met;
            }
        }
        met
    }

    /// Whether a write may have reset the signal that certainly neither did so nor came after the
    /// signal. (A kernel may have waited for the signal in its own way.)
    fn may_have_reset(&self, signal: &Write) -> bool {
        self.writes.iter().filter(|write| write.is_reset()).any(|reset| {
            !signal.is_behind(reset) && (!reset.overwrites() || !reset.is_behind(signal))
        })
    }

    /// Whether a forgotten signal may satisfy a wait.
    fn may_be_forgotten(&self, wanted: u64, compare: ValueCompare, knows_oldest: bool) -> bool {
        self.forgotten.is_some_and(|greatest| {
            // The oldest remembered signal has overwritten the forgotten ones if the waiter is
            // behind it.
            let stand = !knows_oldest || greatest == u64::MAX;
            match compare {
                ValueCompare::GreaterOrEqual => stand && greatest >= wanted,
                _ => stand,
            }
        })
    }
}
