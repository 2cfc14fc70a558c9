//! The exact bytes of global memory that a launch touched.
//!
//! Sets are bitmaps by page while a kernel runs: recording is a few instructions whatever the
//! access pattern, and contiguous accesses of many threads cost one bit a byte. Ranges are built
//! at the end. Shared, local and parameter memory never appear here.

use std::collections::HashMap;
use std::ops::Range;

const PAGE_BITS: u32 = 12;
const PAGE_SIZE: u64 = 1 << PAGE_BITS;
const WORDS: usize = (PAGE_SIZE / 64) as usize;
const CACHE: usize = 64;

/// A set of byte addresses, read back as sorted, merged, half-open ranges.
#[derive(Debug, Clone)]
pub struct ByteSet {
    index: HashMap<u64, u32>,
    pages: Vec<(u64, [u64; WORDS])>,
    /// Direct-mapped: page number and its place in `pages`.
    cache: [(u64, u32); CACHE],
}

impl Default for ByteSet {
    fn default() -> Self {
        ByteSet { index: HashMap::new(), pages: Vec::new(), cache: [(u64::MAX, 0); CACHE] }
    }
}

impl ByteSet {
    /// Adds `[address, address + size)`. The end must not pass the end of the address space.
    #[inline]
    pub fn insert(&mut self, address: u64, size: u64) {
        let bit = address % 64;
        if size <= 8 && bit + size <= 64 {
            let mask = ((1u64 << size) - 1) << bit;
            let at = self.page(address >> PAGE_BITS);
            self.pages[at].1[(address % PAGE_SIZE / 64) as usize] |= mask;
        } else {
            self.insert_long(address, size);
        }
    }

    fn insert_long(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let mut from = address;
        while from < end {
            let word_end = (from | 63).saturating_add(1).min(end);
            let (bit, count) = (from % 64, word_end - from);
            let mask = if count >= 64 { u64::MAX } else { ((1u64 << count) - 1) << bit };
            let at = self.page(from >> PAGE_BITS);
            self.pages[at].1[(from % PAGE_SIZE / 64) as usize] |= mask;
            from = word_end;
        }
    }

    #[inline]
    fn page(&mut self, number: u64) -> usize {
        let slot = number as usize % CACHE;
        let (cached, at) = self.cache[slot];
        if cached == number {
            return at as usize;
        }
        let pages = &mut self.pages;
        let at = *self.index.entry(number).or_insert_with(|| {
            pages.push((number, [0; WORDS]));
            (pages.len() - 1) as u32
        });
        self.cache[slot] = (number, at);
        at as usize
    }

    /// The set as sorted, disjoint, non-adjacent, half-open ranges.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut order: Vec<usize> = (0..self.pages.len()).collect();
        order.sort_unstable_by_key(|&at| self.pages[at].0);
        let mut out: Vec<Range<u64>> = Vec::new();
        for at in order {
            let (number, words) = &self.pages[at];
            for (word, &bits) in words.iter().enumerate() {
                let base = (number << PAGE_BITS) + word as u64 * 64;
                let mut rest = bits;
                while rest != 0 {
                    let first = rest.trailing_zeros();
                    let count = (rest >> first).trailing_ones();
                    let start = base + u64::from(first);
                    let end = start + u64::from(count);
                    match out.last_mut() {
                        Some(last) if last.end == start => last.end = end,
                        _ => out.push(start..end),
                    }
                    if first + count >= 64 {
                        break;
                    }
                    rest &= u64::MAX << (first + count);
                }
            }
        }
        out
    }
}

/// Bytes of global memory that were read, written and updated atomically.
#[derive(Debug, Clone, Default)]
pub struct AccessSets {
    pub reads: ByteSet,
    pub writes: ByteSet,
    pub atomics: ByteSet,
}

/// The accesses of a launch to global memory.
#[derive(Debug, Clone, Default)]
pub struct AccessLog {
    /// By weak operations, and strong ones whose scope is not the system.
    pub weak: AccessSets,
    /// By strong operations at system scope (PTX ISA, Memory Consistency Model).
    pub strong: AccessSets,
    /// The accesses of threads that had not waited for the prerequisite grids, of a kernel that
    /// waits.
    pub before_wait: Option<Box<AccessLog>>,
}

impl AccessLog {
    /// The sets of strong operations at system scope, or of all others.
    pub(crate) fn sets(&mut self, strong: bool) -> &mut AccessSets {
        if strong { &mut self.strong } else { &mut self.weak }
    }
}
