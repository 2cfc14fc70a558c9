//! The structures that patched kernels, the drain and the host share, as `device/log.h` and
//! `device/drain.cu` lay them out, and what the marks of a page say.
//!
//! Invariant: sizes and places are those of the device code; a test compares them with the sources.

use std::ops::Range;

/// The patches' common part of every log.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Table {
    pub(crate) keys: u64,
    pub(crate) marks: u64,
    pub(crate) loads: u64,
    pub(crate) mask: u32,
    pub(crate) load_mask: u32,
}

/// The user data of one launch, or one of a graph's.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Log {
    pub(crate) table: Table,
    pub(crate) id: u32,
    pub(crate) lost: u32,
    pub(crate) lost_loads: u32,
    pub(crate) inexact: u32,
    pub(crate) nodes: u32,
    pub(crate) grid: u64,
}

/// The marks of one page for one mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Record {
    pub(crate) key: u64,
    /// The mode in the lowest byte; above it 1 + the number of its raw marks, 0 for none.
    pub(crate) mode: u32,
    /// Every word of the page, where there are no raw marks.
    pub(crate) word: u32,
}

/// The counts of the drain.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Counters {
    pub(crate) records: u32,
    pub(crate) raws: u32,
    pub(crate) loads: u32,
    /// Entries that found no room and are still in the table.
    pub(crate) left: u32,
}

/// The counts of a log, and the grid that has taken it (0 for none, and for a launch).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Loss {
    pub(crate) grid: u64,
    /// Accesses that found no room.
    pub(crate) lost: u32,
    /// Loads through tensor maps that found no room.
    pub(crate) lost_loads: u32,
    /// Whether the library did not tell the exact bytes of an access.
    pub(crate) inexact: u32,
    pub(crate) padding: u32,
}

/// The argument of the drain.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Job {
    pub(crate) table: Table,
    pub(crate) logs: u64,
    pub(crate) ended: u64,
    pub(crate) ids: u64,
    pub(crate) id_count: u32,
    pub(crate) record_capacity: u32,
    pub(crate) raw_capacity: u32,
    pub(crate) load_capacity: u32,
    pub(crate) counters: u64,
    pub(crate) records: u64,
    pub(crate) raws: u64,
    pub(crate) loads: u64,
    pub(crate) losses: u64,
}

/// A copy through a tensor map.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TensorLoad {
    pub(crate) key: u64,
    pub(crate) coordinates: [i32; 5],
    pub(crate) rank: u32,
    pub(crate) mode: u32,
    pub(crate) arguments: u32,
    pub(crate) padding: [u64; 3],
    pub(crate) map: [u64; 16],
}

/// How often each entry is there: for reads, writes and atomic accesses.
pub(crate) const MODES: usize = 3;
/// Words of a page's marks.
pub(crate) const WORDS: usize = 256;
/// Bytes of the marks of an entry.
pub(crate) const ENTRY_BYTES: u64 = (MODES * WORDS * 4) as u64;

const ID_SHIFT: u32 = 46;
const ID_MASK: u64 = 0x1_ffff;
const OF_BYTES: u64 = 1 << 45;
const PAGE_BITS: u32 = 13;
const SECTOR_BITS: u32 = 5;

/// The launch that a key belongs to.
pub(crate) fn id_of(key: u64) -> u32 {
    ((key >> ID_SHIFT) & ID_MASK) as u32
}

impl Record {
    /// The record's mode, below [`MODES`] in what the drain writes.
    pub(crate) fn mode(self) -> usize {
        (self.mode & 0xff) as usize
    }

    /// Number of its raw marks.
    pub(crate) fn raw(self) -> Option<usize> {
        (self.mode >> 8).checked_sub(1).map(|at| at as usize)
    }

    /// Appends the bytes that the page's marks stand for, in ascending order.
    pub(crate) fn ranges(self, raws: &[[u32; WORDS]], found: &mut Vec<Range<u64>>) {
        let shift = if self.key & OF_BYTES == 0 { SECTOR_BITS } else { 0 };
        let base = (self.key & (OF_BYTES - 1)) << PAGE_BITS;
        let mut add = |from: u64, to: u64| {
            let (start, end) = ((base + from) << shift, (base + to) << shift);
            match found.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => found.push(start..end),
            }
        };
        if self.raw().is_none() && self.word == u32::MAX {
            return add(0, 1 << PAGE_BITS);
        }
        let raw = self.raw().and_then(|at| raws.get(at));
        for at in 0..WORDS {
            let mut word = raw.map_or(self.word, |raw| raw[at]);
            let mut bit = at as u64 * 32;
            while word != 0 {
                let skip = word.trailing_zeros();
                let ones = (!(word >> skip)).trailing_zeros().min(32 - skip);
                add(bit + u64::from(skip), bit + u64::from(skip + ones));
                let done = skip + ones;
                word = if done == 32 { 0 } else { word >> done };
                bit += u64::from(done);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "lists of byte ranges")]
mod tests {
    use super::*;

    const LOG: &str = include_str!("../device/log.h");
    const DRAIN: &str = include_str!("../device/drain.cu");

    fn key(id: u32, bytes: bool, page: u64) -> u64 {
        1 << 63 | u64::from(id) << ID_SHIFT | u64::from(bytes) << 45 | page
    }

    fn ranges(record: Record, raws: &[[u32; WORDS]]) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        record.ranges(raws, &mut found);
        found
    }

    #[test]
    fn sizes_are_those_that_the_device_code_asserts() {
        for (source, name, size) in [
            (LOG, "Table", size_of::<Table>()),
            (LOG, "Log", size_of::<Log>()),
            (LOG, "TensorLoad", size_of::<TensorLoad>()),
            (DRAIN, "Record", size_of::<Record>()),
            (DRAIN, "Loss", size_of::<Loss>()),
        ] {
            let wanted = format!("static_assert(sizeof({name}) == {size});");
            assert!(source.contains(&wanted), "{wanted}");
        }
        for line in [
            "constexpr uint32_t ID_SHIFT = 46;",
            "constexpr uint32_t ID_MASK = 0x1ffff;",
            "constexpr uint64_t OF_BYTES = 1ull << 45;",
            "constexpr uint32_t PAGE_BITS = 13;",
            "constexpr uint32_t SECTOR_BITS = 5;",
        ] {
            assert!(LOG.contains(line), "{line}");
        }
        assert_eq!(WORDS, 1 << (PAGE_BITS - 5));
    }

    #[test]
    fn a_page_marked_throughout_is_one_range() {
        let record = Record { key: key(3, false, 5), mode: 1, word: u32::MAX };
        assert_eq!(ranges(record, &[]), [5 << 18..6 << 18]);
        assert_eq!((id_of(record.key), record.mode(), record.raw()), (3, 1, None));
    }

    #[test]
    fn equal_words_repeat_their_pattern() {
        let record = Record { key: key(0, true, 1), mode: 0, word: 0x0000_0ff0 };
        let found = ranges(record, &[]);
        assert_eq!(found.len(), WORDS);
        assert_eq!(found[0], 8192 + 4..8192 + 12);
        assert_eq!(found[255], 8192 + 255 * 32 + 4..8192 + 255 * 32 + 12);
    }

    #[test]
    fn raw_marks_join_across_words() {
        let mut raw = [0; WORDS];
        (raw[0], raw[1], raw[255]) = (1 << 31, 0b1011, u32::MAX);
        let record = Record { key: key(0, true, 0), mode: 2 | 2 << 8, word: 0 };
        assert_eq!(ranges(record, &[[7; WORDS], raw]), [31..34, 35..36, 8160..8192]);
    }
}
