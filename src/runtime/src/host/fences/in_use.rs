//! Buffers in watched memory that system calls use at the moment.
//!
//! A call that waits for bytes (a read of a pipe, say) may find a fence around its buffer when they
//! come, which another thread has placed for a neighbour on the same page, and fails. So who makes
//! such a call tells of its buffer first and opens what stands there then; who places looks here after
//! the fence is in its table. One of the two sees the other.
//!
//! A thread that is cancelled in such a call leaves its buffer here: its pages are not fenced any more.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use streamsan_wire::page_bytes;

use super::pages::Pages;

/// Buffers that are kept; while there are more, nothing is fenced.
const MOST: usize = 64;

struct Buffer {
    /// 0 where there is none.
    end: AtomicU64,
    start: AtomicU64,
}

pub(super) struct BuffersInUse {
    buffers: [Buffer; MOST],
    count: AtomicU32,
    /// Those without a place.
    more: AtomicU32,
}

pub(super) static LIST: BuffersInUse = BuffersInUse::new();

/// Stands for a buffer without a place.
const ELSEWHERE: u32 = u32::MAX >> 1;

impl BuffersInUse {
    const fn new() -> Self {
        Self {
            buffers: [const { Buffer { end: AtomicU64::new(0), start: AtomicU64::new(0) } }; MOST],
            count: AtomicU32::new(0),
            more: AtomicU32::new(0),
        }
    }

    /// A system call is about to use the bytes. The answer is for [`Self::remove`]; never 0, and below
    /// `1 << 31`.
    pub(super) fn add(&self, start: u64, end: u64) -> u32 {
        self.count.fetch_add(1, Ordering::SeqCst);
        for (index, buffer) in self.buffers.iter().enumerate() {
            // Until its begin is known it counts as everything below its end.
            let free = buffer.end.load(Ordering::SeqCst) == 0;
            if free
                && buffer
                    .end
                    .compare_exchange(0, end.max(1), Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok()
            {
                buffer.start.store(start, Ordering::SeqCst);
                return index as u32 + 1;
            }
        }
        self.more.fetch_add(1, Ordering::SeqCst);
        ELSEWHERE
    }

    /// The system call is over.
    pub(super) fn remove(&self, number: u32) {
        match number.checked_sub(1).and_then(|index| self.buffers.get(index as usize)) {
            Some(buffer) => {
                buffer.start.store(0, Ordering::SeqCst);
                buffer.end.store(0, Ordering::SeqCst);
            }
            None if number == ELSEWHERE => {
                self.more.fetch_sub(1, Ordering::SeqCst);
            }
            None => return,
        }
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a system call uses some of the pages.
    pub(super) fn meets(&self, pages: Pages) -> bool {
        if self.count.load(Ordering::SeqCst) == 0 {
            return false;
        }
        self.more.load(Ordering::SeqCst) != 0
            || self.buffers.iter().any(|buffer| {
                let end = buffer.end.load(Ordering::SeqCst);
                let start = buffer.start.load(Ordering::SeqCst) & !(page_bytes() - 1);
                end != 0 && pages.meets(start, end)
            })
    }

    /// In a forked child, which has one thread.
    pub(super) fn after_fork(&self) {
        self.buffers.iter().for_each(|buffer| buffer.end.store(0, Ordering::SeqCst));
        self.count.store(0, Ordering::SeqCst);
        self.more.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_seen_until_it_is_not() {
        let list = BuffersInUse::new();
        let bytes = page_bytes();
        let page = |at: u64| Pages { start: at * bytes, end: (at + 1) * bytes };
        let number = list.add(bytes + 8, 2 * bytes + 1);
        assert!(list.meets(page(1)) && list.meets(page(2)));
        assert!(!list.meets(page(0)) && !list.meets(page(3)));
        list.remove(number);
        assert!(!list.meets(page(1)));
        list.remove(0);
    }

    #[test]
    fn more_buffers_than_have_a_place_count_as_everything() {
        let list = BuffersInUse::new();
        let bytes = page_bytes();
        let numbers: Vec<u32> = (0..=MOST as u64).map(|_| list.add(bytes, 2 * bytes)).collect();
        let far = Pages { start: 100 * bytes, end: 101 * bytes };
        assert!(list.meets(far));
        list.remove(*numbers.last().unwrap());
        assert!(!list.meets(far));
        numbers[..MOST].iter().for_each(|number| list.remove(*number));
        assert_eq!(list.count.load(Ordering::SeqCst), 0);
    }
}
