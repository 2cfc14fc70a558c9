//! Pending operations and what each waits for.
//!
//! Invariant: an operation's dependencies were pushed before it, so the graph has no cycle and
//! the lowest pending operation is always ready, running or paused.

use std::collections::{BTreeMap, BTreeSet};

/// An operation, numbered in the order of submission from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(crate) struct OpId(u64);

/// The stream of an operation, as policies see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lane {
    /// Identity of the stream.
    pub(crate) stream: u64,
    /// Place in the order in which the program created its streams, from 1; 0 for default streams.
    pub(crate) ordinal: u32,
}

#[derive(Debug)]
struct Pending<W> {
    lane: Lane,
    dependencies: Vec<OpId>,
    unmet: usize,
    dependents: Vec<OpId>,
    /// Absent while the operation runs.
    work: Option<W>,
}

/// The pending operations.
#[derive(Debug)]
pub(crate) struct Queue<W> {
    last: u64,
    pending: BTreeMap<OpId, Pending<W>>,
    ready: BTreeSet<OpId>,
    paused: BTreeSet<OpId>,
    /// Operations that may overtake one that they come behind.
    hasty: BTreeSet<OpId>,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Queue {
            last: 0,
            pending: BTreeMap::new(),
            ready: BTreeSet::new(),
            paused: BTreeSet::new(),
            hasty: BTreeSet::new(),
        }
    }
}

impl<W> Queue<W> {
    /// Adds an operation that runs after all of `after`; those that are done already count as
    /// met.
    pub(crate) fn push(&mut self, lane: Lane, after: &[OpId], work: W) -> OpId {
        self.last += 1;
        let id = OpId(self.last);
        let mut dependencies: Vec<OpId> =
            after.iter().copied().filter(|op| self.pending.contains_key(op)).collect();
        dependencies.sort_unstable();
        dependencies.dedup();
        for dependency in &dependencies {
            if let Some(earlier) = self.pending.get_mut(dependency) {
                earlier.dependents.push(id);
            }
        }
        let unmet = dependencies.len();
        if unmet == 0 {
            self.ready.insert(id);
        }
        let entry = Pending { lane, dependencies, unmet, dependents: Vec::new(), work: Some(work) };
        self.pending.insert(id, entry);
        id
    }

    /// Notes that a pending operation may overtake one that it comes behind.
    pub(crate) fn hurry(&mut self, op: OpId) {
        if self.pending.contains_key(&op) {
            self.hasty.insert(op);
        }
    }

    /// Operations that can start now and may overtake others.
    pub(crate) fn hasty(&self) -> impl Iterator<Item = OpId> {
        self.hasty.intersection(&self.ready).copied()
    }

    pub(crate) fn is_done(&self, op: OpId) -> bool {
        !self.pending.contains_key(&op)
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Operations that can start now, oldest first.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (OpId, Lane)> {
        self.ready.iter().map(|op| (*op, self.pending[op].lane))
    }

    /// Operations that were started and left, oldest first.
    pub(crate) fn paused(&self) -> impl Iterator<Item = OpId> {
        self.paused.iter().copied()
    }

    /// Takes the work of a ready or paused operation to run it.
    pub(crate) fn start(&mut self, op: OpId) -> Option<W> {
        self.ready.remove(&op);
        self.hasty.remove(&op);
        self.paused.remove(&op);
        self.pending.get_mut(&op)?.work.take()
    }

    /// Leaves a started operation unfinished.
    pub(crate) fn pause(&mut self, op: OpId, work: W) {
        if let Some(entry) = self.pending.get_mut(&op) {
            entry.work = Some(work);
            self.paused.insert(op);
        }
    }

    /// The operation is done: what waited for it alone becomes ready.
    pub(crate) fn finish(&mut self, op: OpId) {
        let Some(entry) = self.pending.remove(&op) else { return };
        for dependent in entry.dependents {
            if let Some(later) = self.pending.get_mut(&dependent) {
                later.unmet -= 1;
                if later.unmet == 0 {
                    self.ready.insert(dependent);
                }
            }
        }
    }

    /// Everything pending that must be done for all of `targets` to be done, themselves included.
    pub(crate) fn past(&self, targets: &[OpId]) -> BTreeSet<OpId> {
        let mut past = BTreeSet::new();
        let mut open: Vec<OpId> = targets.to_vec();
        while let Some(op) = open.pop() {
            if let Some(entry) = self.pending.get(&op)
                && past.insert(op)
            {
                open.extend(&entry.dependencies);
            }
        }
        past
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = Lane { stream: 1, ordinal: 1 };

    fn ready(queue: &Queue<char>) -> Vec<OpId> {
        queue.ready().map(|(op, _)| op).collect()
    }

    #[test]
    fn an_operation_is_ready_when_its_last_dependency_is_done() {
        let mut queue = Queue::default();
        let a = queue.push(LANE, &[], 'a');
        let b = queue.push(LANE, &[], 'b');
        let c = queue.push(LANE, &[a, b, a], 'c');
        assert_eq!(ready(&queue), [a, b]);
        for op in [a, b] {
            assert!(!ready(&queue).contains(&c));
            assert!(queue.start(op).is_some());
            assert!(queue.start(op).is_none(), "running");
            queue.finish(op);
        }
        assert_eq!(ready(&queue), [c]);
        let d = queue.push(LANE, &[a], 'd');
        assert_eq!(ready(&queue), [c, d], "a done dependency does not hold");
    }

    #[test]
    fn the_past_is_what_is_needed_and_no_more() {
        let mut queue = Queue::default();
        let a = queue.push(LANE, &[], 'a');
        let unrelated = queue.push(LANE, &[], 'u');
        let b = queue.push(LANE, &[a], 'b');
        let after = queue.push(LANE, &[b, unrelated], 'z');
        assert_eq!(queue.past(&[b]).into_iter().collect::<Vec<_>>(), [a, b]);
        assert_eq!(queue.past(&[after]).len(), 4);
        queue.start(a);
        assert!(queue.past(&[b]).contains(&a), "a running operation is not done");
        queue.finish(a);
        assert_eq!(queue.past(&[a, b]).into_iter().collect::<Vec<_>>(), [b]);
    }

    #[test]
    fn a_paused_operation_is_neither_ready_nor_done() {
        let mut queue = Queue::default();
        let a = queue.push(LANE, &[], 'a');
        let b = queue.push(LANE, &[a], 'b');
        let work = queue.start(a).unwrap();
        queue.pause(a, work);
        assert!(ready(&queue).is_empty() && !queue.is_done(a));
        assert_eq!(queue.paused().collect::<Vec<_>>(), [a]);
        assert_eq!(queue.start(a), Some('a'));
        queue.finish(a);
        assert_eq!(ready(&queue), [b]);
        assert_eq!(queue.len(), 1);
    }
}
