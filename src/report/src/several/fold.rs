//! Groups of one fingerprint in several traces become one.

use crate::marked::add_tests;
use crate::{Group, InTest, LintGroup};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use streamsan_model::{Confidence, Fingerprint, OpSeq, Severity};

/// Occurrences in one of several traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTrace {
    /// Position of the trace.
    pub(crate) part: usize,
    /// Number of occurrences there.
    pub(crate) count: u64,
    /// The first one, by the numbers of that trace.
    pub(crate) first: OpSeq,
    /// The last one.
    pub(crate) last: OpSeq,
}

/// The properties of a group (of findings or lints) that folding needs.
pub(super) trait Member {
    fn key(&self) -> (Fingerprint, Severity);
    /// The greatest one tells of all.
    fn weight(&self) -> (bool, bool, Option<Confidence>);
    fn places(&self) -> (u64, OpSeq, OpSeq);
    fn tests(&mut self) -> &mut Vec<InTest>;
    fn settle(&mut self, count: u64, traces: Vec<InTrace>, part: usize);
}

impl Member for Group {
    fn key(&self) -> (Fingerprint, Severity) {
        (self.finding.fingerprint, self.finding.severity)
    }

    fn weight(&self) -> (bool, bool, Option<Confidence>) {
        let is_open = self.disposition == crate::Disposition::Open;
        (self.fails, is_open, Some(self.finding.confidence))
    }

    fn places(&self) -> (u64, OpSeq, OpSeq) {
        (self.count, self.first, self.last)
    }

    fn tests(&mut self) -> &mut Vec<InTest> {
        &mut self.tests
    }

    fn settle(&mut self, count: u64, traces: Vec<InTrace>, part: usize) {
        (self.count, self.traces, self.part) = (count, traces, part);
    }
}

impl Member for LintGroup {
    fn key(&self) -> (Fingerprint, Severity) {
        (self.lint.fingerprint, Severity::Lint)
    }

    fn weight(&self) -> (bool, bool, Option<Confidence>) {
        (self.fails, self.disposition == crate::Disposition::Open, None)
    }

    fn places(&self) -> (u64, OpSeq, OpSeq) {
        (self.count, self.lint.op, self.lint.op)
    }

    fn tests(&mut self) -> &mut Vec<InTest> {
        &mut self.tests
    }

    fn settle(&mut self, count: u64, traces: Vec<InTrace>, part: usize) {
        (self.count, self.traces, self.part) = (count, traces, part);
    }
}

/// Groups of one mistake while they are put together.
#[derive(Debug)]
struct Together<M> {
    best: M,
    /// The trace of the best one.
    part: usize,
    count: u64,
    traces: Vec<InTrace>,
    tests: Vec<InTest>,
}

/// Groups while the traces come in their order.
#[derive(Debug)]
pub(super) struct Fold<M> {
    order: Vec<(Fingerprint, Severity)>,
    folded: BTreeMap<(Fingerprint, Severity), Together<M>>,
    /// How many groups each trace shows.
    shown: Vec<usize>,
}

impl<M> Default for Fold<M> {
    fn default() -> Self {
        Self { order: Vec::new(), folded: BTreeMap::new(), shown: Vec::new() }
    }
}

impl<M: Member> Fold<M> {
    /// Adds the groups of the next trace. Answers the earlier traces that show a group less.
    pub(super) fn add(&mut self, members: Vec<M>) -> Vec<usize> {
        let part = self.shown.len();
        self.shown.push(0);
        let mut overtaken = Vec::new();
        for mut member in members {
            let (count, first, last) = member.places();
            let tests = std::mem::take(member.tests());
            let here = InTrace { part, count, first, last };
            match self.folded.entry(member.key()) {
                Entry::Vacant(entry) => {
                    self.order.push(*entry.key());
                    self.shown[part] += 1;
                    let traces = vec![here];
                    entry.insert(Together { best: member, part, count, traces, tests });
                }
                Entry::Occupied(entry) => {
                    let together = entry.into_mut();
                    together.count += count;
                    together.traces.push(here);
                    add_tests(&mut together.tests, &tests);
                    if member.weight() > together.best.weight() {
                        self.shown[together.part] -= 1;
                        self.shown[part] += 1;
                        overtaken.push(together.part);
                        (together.best, together.part) = (member, part);
                    }
                }
            }
        }
        overtaken
    }

    /// Whether a trace shows any group.
    pub(super) fn shows(&self, part: usize) -> bool {
        self.shown.get(part).is_some_and(|&shown| shown > 0)
    }

    /// All groups; failing ones come first.
    pub(super) fn finish(mut self) -> Vec<M> {
        let mut members: Vec<M> = Vec::new();
        for key in self.order {
            let Some(together) = self.folded.remove(&key) else { continue };
            let mut member = together.best;
            *member.tests() = together.tests;
            member.settle(together.count, together.traces, together.part);
            members.push(member);
        }
        members.sort_by_key(|member| (!member.weight().0, member.key().1));
        members
    }
}
