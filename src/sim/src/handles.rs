//! Handles that the program holds.
//!
//! A handle is an address in a part of the reserved window that is never mapped, so it looks like
//! the driver's pointers, is distinct for each kind of object, and is never dereferenced: a handle
//! that is not in its table is refused. A freed handle is given out again for the next object of
//! its kind, as the driver does, so that whatever keys on a handle alone is caught doing so.

/// Bytes between two handles.
const STRIDE: u64 = 0x40;
/// Bytes of the window that one kind of object takes.
const SPAN: u64 = 1 << 26;

/// The kinds of object with a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Context,
    Stream,
    Event,
    Module,
    Function,
    Library,
    Kernel,
    Pool,
    Graph,
    GraphNode,
    GraphExec,
    Physical,
    Array,
    GreenContext,
    Description,
}

/// Bytes of the window that all handles together take.
pub(crate) const RESERVED: u64 = SPAN * 32;

/// Objects of one kind by handle.
#[derive(Debug)]
pub(crate) struct Table<T> {
    base: u64,
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Table<T> {
    /// A table whose handles lie in the window that starts at `window`.
    pub(crate) fn new(window: u64, kind: Kind) -> Self {
        // The first stride stays unused: 0, 1 and 2 are stream handles of their own.
        Table { base: window + SPAN * kind as u64 + STRIDE, slots: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> u64 {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(value);
                slot
            }
            None => {
                self.slots.push(Some(value));
                self.slots.len() - 1
            }
        };
        self.base + slot as u64 * STRIDE
    }

    fn slot(&self, handle: u64) -> Option<usize> {
        let offset = handle.checked_sub(self.base)?;
        (offset.is_multiple_of(STRIDE)).then_some((offset / STRIDE) as usize)
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        self.slots.get(self.slot(handle)?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        let slot = self.slot(handle)?;
        self.slots.get_mut(slot)?.as_mut()
    }

    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        let slot = self.slot(handle)?;
        let value = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    /// Handles and objects, in the order of the handles.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let base = self.base;
        self.slots.iter().enumerate().filter_map(move |(slot, value)| {
            value.as_ref().map(|value| (base + slot as u64 * STRIDE, value))
        })
    }

    /// Handles and objects, in the order of the handles.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        let base = self.base;
        self.slots.iter_mut().enumerate().filter_map(move |(slot, value)| {
            value.as_mut().map(|value| (base + slot as u64 * STRIDE, value))
        })
    }

    /// Removes every object that `doomed` names.
    pub(crate) fn remove_where(&mut self, doomed: impl Fn(&T) -> bool) {
        for slot in 0..self.slots.len() {
            if self.slots[slot].as_ref().is_some_and(&doomed) {
                self.slots[slot] = None;
                self.free.push(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_foreign_and_stale_handles_are_refused() {
        let mut streams = Table::new(0x1000_0000, Kind::Stream);
        let mut events = Table::new(0x1000_0000, Kind::Event);
        let stream = streams.insert("stream");
        let event = events.insert("event");
        assert_eq!(streams.get(stream), Some(&"stream"));
        for bad in [0, 1, 2, stream + 1, stream + STRIDE, event, u64::MAX] {
            assert_eq!(streams.get(bad), None, "{bad:#x}");
        }
        assert_eq!(streams.remove(stream), Some("stream"));
        assert_eq!(streams.remove(stream), None);
    }

    #[test]
    fn a_freed_handle_is_given_out_again() {
        let mut table = Table::new(0, Kind::Event);
        let first = table.insert(1);
        table.insert(2);
        table.remove(first);
        assert_eq!(table.insert(3), first);
    }
}
