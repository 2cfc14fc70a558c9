//! The calls that created streams. A stream without a name is told by the line that created it.
//!
//! Invariant: the room is that of the streams that are known, and of the stacks of the trace.

use crate::{OpSeq, StackId, StreamId, Table};
use std::collections::BTreeSet;

/// The call that created a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// The call.
    pub op: OpSeq,
    /// Its stack, where recorded.
    pub stack: Option<StackId>,
    /// Its number among the calls with the same stack, from 1.
    pub nth: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Creations {
    of: Table<Creation>,
    /// Calls by stack.
    counts: Table<u32>,
    /// Calls without a stack.
    without_stack: u32,
}

impl Creations {
    pub(crate) fn note(&mut self, id: StreamId, op: OpSeq, stack: Option<StackId>) {
        let count = match stack {
            Some(stack) => self.counts.get_or_insert_with(stack.index(), || 0),
            None => &mut self.without_stack,
        };
        *count = count.saturating_add(1);
        self.of.insert(id.index(), Creation { op, stack, nth: *count });
    }

    pub(crate) fn of(&self, id: StreamId) -> Option<Creation> {
        self.of.get(id.index()).copied()
    }

    pub(crate) fn alike(&self, creation: Creation) -> u32 {
        match creation.stack {
            Some(stack) => self.counts.get(stack.index()).copied().unwrap_or_default(),
            None => self.without_stack,
        }
    }

    /// Those of these streams.
    pub(crate) fn only(&self, streams: &BTreeSet<StreamId>) -> Self {
        let mut only = Self::default();
        for (id, creation) in streams.iter().filter_map(|&id| Some((id, self.of(id)?))) {
            only.of.insert(id.index(), creation);
            let alike = self.alike(creation);
            match creation.stack {
                Some(stack) => drop(only.counts.insert(stack.index(), alike)),
                None => only.without_stack = alike,
            }
        }
        only
    }

    pub(crate) fn forget(&mut self, id: StreamId) {
        self.of.remove(id.index());
    }
}

#[cfg(test)]
mod tests {
    use super::Creations;
    use crate::{OpSeq, StackId, StreamId};

    #[test]
    fn calls_are_numbered_by_their_stacks() {
        let mut creations = Creations::default();
        for (id, stack) in [(0, Some(7)), (1, Some(8)), (2, Some(7)), (3, None)] {
            creations.note(StreamId(id), OpSeq(u64::from(id)), stack.map(StackId));
        }
        let nth = |id: u32| {
            let creation = creations.of(StreamId(id))?;
            Some((creation.nth, creations.alike(creation)))
        };
        assert_eq!(
            [0, 1, 2, 3, 4].map(nth),
            [Some((1, 2)), Some((1, 1)), Some((2, 2)), Some((1, 1)), None]
        );
        creations.forget(StreamId(0));
        assert_eq!(creations.of(StreamId(0)), None);
        assert_eq!(creations.of(StreamId(2)).map(|creation| creations.alike(creation)), Some(2));
    }
}
