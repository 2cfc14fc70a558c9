//! Half-open byte ranges in the address space of one process.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes `start..end`, `end` excluded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte; never below `start`.
    pub end: u64,
}

impl ByteRange {
    /// The range `start..end`; an `end` below `start` gives an empty range at `start`.
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end: if end < start { start } else { end } }
    }

    /// The range of `len` bytes from `start`, cut at the end of the address space.
    pub const fn with_len(start: u64, len: u64) -> Self {
        Self { start, end: start.saturating_add(len) }
    }

    /// Length in bytes.
    pub const fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether the range holds no byte.
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }

    /// Whether `address` lies inside.
    pub const fn contains(self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// Whether every byte of `other` lies inside.
    pub const fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The bytes in both, `None` when there are none.
    pub fn intersection(self, other: Self) -> Option<Self> {
        let start = self.start.max(other.start);
        let end = self.end.min(other.end);
        (start < end).then_some(Self { start, end })
    }
}

impl fmt::Debug for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:#x}, {:#x})", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRange;

    #[test]
    fn adjacent_ranges_do_not_intersect() {
        let (a, b) = (ByteRange::new(0, 10), ByteRange::new(10, 20));
        assert_eq!(a.intersection(b), None);
        assert_eq!(a.intersection(ByteRange::new(9, 20)), Some(ByteRange::new(9, 10)));
    }

    #[test]
    fn length_at_the_end_of_the_address_space_is_cut() {
        assert_eq!(ByteRange::with_len(u64::MAX - 1, 10).len(), 1);
    }
}
