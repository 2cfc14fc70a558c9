//! Sets of bytes of one small allocation.

use streamsan_model::{ByteRange, Extent};

/// Bytes of one allocation: a bit for each.
#[derive(Clone, Debug)]
pub(crate) struct Bytes(Vec<u64>);

impl Bytes {
    /// The bytes of an access to the allocation at `allocation`, one by one.
    pub(crate) fn of(extent: &Extent, allocation: ByteRange) -> Self {
        let mut bytes = Self(vec![0; allocation.len().div_ceil(64) as usize]);
        match extent {
            Extent::Range(range) => bytes.add(*range, allocation),
            Extent::Strided(pattern) => {
                for slice in 0..pattern.slices {
                    for row in 0..pattern.rows {
                        let start =
                            pattern.start + slice * pattern.slice_pitch + row * pattern.pitch;
                        bytes.add(ByteRange::with_len(start, pattern.width), allocation);
                    }
                }
            }
        }
        bytes
    }

    fn add(&mut self, range: ByteRange, allocation: ByteRange) {
        assert!(allocation.covers(range), "random programs stay inside their allocations");
        for address in range.start..range.end {
            let offset = (address - allocation.start) as usize;
            self.0[offset / 64] |= 1 << (offset % 64);
        }
    }

    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
        self
    }

    pub(crate) fn without(mut self, other: &Self) -> Self {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The smallest range around them, in an allocation at `start`.
    pub(crate) fn hull(&self, start: u64) -> ByteRange {
        let holds = |&offset: &u64| self.0[offset as usize / 64] >> (offset % 64) & 1 == 1;
        let all = || (0..self.0.len() as u64 * 64).filter(holds);
        let (first, last) = (all().min(), all().max());
        ByteRange::new(start + first.expect("not empty"), start + last.expect("not empty") + 1)
    }
}
