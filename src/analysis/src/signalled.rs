//! What is written to the words that streams wait for, and to semaphores: who may have satisfied a
//! wait.
//!
//! Which write satisfies a wait, a trace does not tell. A *signal* writes a known value: a stream
//! memory operation, or a signal to a semaphore. Everything else that writes a word (a memset, a copy,
//! a kernel, the host) leaves a value that is not known, and so resets it: a signal that such a write
//! is behind satisfies nobody who is behind that write.
//!
//! Deliberately absent: values of other writes. A word that one of them sets is waited for in vain as
//! far as anybody can see, so that a wait which no signal satisfies is one for an outsider; where a
//! signal satisfies it, that one is taken to be what the wait is meant for.

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

/// Writes remembered for an object.
const REMEMBERED: usize = 256;
/// From so many on those that nobody can wait for any more are looked for.
const TIDY: usize = 32;
/// Resets remembered between two signals: the first ones, and the newest.
const RESETS: usize = 16;

/// What is waited for, whichever address it is reached by.
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
    /// What happens before it.
    pub(crate) view: View,
    pub(crate) what: What,
}

/// What is written.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A value, by a stream.
    Signal {
        value: u64,
        /// Whether who sees the value sees the stream's earlier work.
        releases: bool,
        stream: StreamId,
        call: Call,
    },
    /// Something.
    Reset {
        /// Whether it is certain to write all of the word.
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

    /// Whether it comes after another one that was issued before it.
    fn is_behind(&self, other: &Self) -> bool {
        other.g <= self.g && self.view.covers(other.place, other.g)
    }

    /// Whether nothing of what was there before is left.
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

    /// Its point in its stream.
    pub(crate) fn part(&self) -> Option<Part> {
        let Place::Chain(chain) = self.place else { return None };
        Some(Part { chain, g: self.g.0, know: Arc::clone(&self.view.know) })
    }
}

/// The writes of an object, in the order of their issue.
#[derive(Debug, Default)]
pub(crate) struct Signalled {
    writes: VecDeque<Write>,
    /// The greatest value that is not remembered.
    forgotten: Option<u64>,
    /// The bytes of a word; 0 of a semaphore.
    pub(crate) width: u64,
}

/// The signals that may satisfy a wait.
#[derive(Debug)]
pub(crate) struct Met<'a> {
    /// The waiter is behind one of them.
    pub(crate) is_known: bool,
    /// In the order of their issue; those up to the first known one.
    pub(crate) signals: Vec<&'a Write>,
    /// Whether they may have been reset before the waiter could see them, by somebody of whom that is
    /// not certain: nobody knows what it has waited for.
    pub(crate) is_doubtful: bool,
    /// Whether one that is not remembered may satisfy it.
    pub(crate) may_be_forgotten: bool,
}

impl Signalled {
    /// Adds a signal. `done` is what every later operation is behind.
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

    /// Forgets what is overwritten for whoever comes, and beyond a bound the oldest.
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
            // One that is not in a line with the others may be met by any wait.
            self.forgotten = Some(if next_is_behind { greatest } else { u64::MAX });
        }
    }

    /// The signals that may satisfy a wait which looks back from `view`.
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

    /// Whether somebody may have reset the signal, of whom it is not certain that it did or that it
    /// came after the signal: a kernel may have waited for the signal in its own way.
    fn may_have_reset(&self, signal: &Write) -> bool {
        self.writes.iter().filter(|write| write.is_reset()).any(|reset| {
            !signal.is_behind(reset) && (!reset.overwrites() || !reset.is_behind(signal))
        })
    }

    /// Whether a wait may be satisfied by a signal that is not remembered.
    fn may_be_forgotten(&self, wanted: u64, compare: ValueCompare, knows_oldest: bool) -> bool {
        self.forgotten.is_some_and(|greatest| {
            // The oldest remembered one has overwritten them, if the waiter is behind it.
            let stand = !knows_oldest || greatest == u64::MAX;
            match compare {
                ValueCompare::GreaterOrEqual => stand && greatest >= wanted,
                _ => stand,
            }
        })
    }
}
