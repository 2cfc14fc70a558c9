//! Which pages of host memory matter: those that the driver knows or that copies used. Only what
//! instrumented code touches there is recorded.
//!
//! A bit a page, over the whole address space of a program; only what is used of the map takes
//! memory. A page stays marked when its memory is freed: too many marks cost time, nothing else.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use streamsan_wire::Api;

use super::operands;

const PAGE_SHIFT: u32 = 12;

/// Pages below 2^47, the end of the address space of programs on x86-64. On aarch64 it ends at 2^48, and
/// two pages, mostly one of a library's and one of nothing, share a bit.
const PAGES: u64 = 1 << (47 - PAGE_SHIFT);

/// Pages that the smaller map tells apart, where there is no room for the large one.
const FEW_PAGES: u64 = 1 << 20;

static SMALL: [AtomicU64; (FEW_PAGES / 64) as usize] =
    [const { AtomicU64::new(0) }; (FEW_PAGES / 64) as usize];

/// All pages matter.
static EVERYTHING: AtomicU64 = AtomicU64::new(u64::MAX);

static MAP: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
static MASK: AtomicU64 = AtomicU64::new(0);

/// Whether memory may have become known that nobody marked.
static MISSED: AtomicBool = AtomicBool::new(false);

/// Begins to mark, and answers the map with the mask for page numbers. Where memory became known
/// before (instrumented code was loaded late), everything matters.
pub(super) fn switch_on() -> (*const u64, u64) {
    if MAP.load(Ordering::Acquire).is_null() {
        let (map, mask) = if MISSED.load(Ordering::Relaxed) {
            (ptr::from_ref(&EVERYTHING).cast_mut(), 0)
        } else {
            match map_everything() {
                Some(map) => (map, PAGES - 1),
                None => (SMALL.as_ptr().cast_mut(), FEW_PAGES - 1),
            }
        };
        MASK.store(mask, Ordering::Relaxed);
        MAP.store(map, Ordering::Release);
    }
    (MAP.load(Ordering::Acquire).cast_const().cast(), MASK.load(Ordering::Relaxed))
}

fn map_everything() -> Option<*mut AtomicU64> {
    // SAFETY: fresh private memory.
    let map = unsafe {
        libc::mmap(
            ptr::null_mut(),
            (PAGES / 8) as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (map != libc::MAP_FAILED).then_some(map.cast())
}

fn mark(start: u64, len: u64) {
    let map = MAP.load(Ordering::Acquire);
    let mask = MASK.load(Ordering::Relaxed);
    if map.is_null() || mask == 0 || len == 0 || start == 0 {
        return;
    }
    let first = start >> PAGE_SHIFT;
    let last = start.saturating_add(len - 1) >> PAGE_SHIFT;
    if last - first >= mask {
        return (0..=mask / 64).for_each(|word| set(map, word, u64::MAX));
    }
    let mut page = first;
    while page <= last {
        let bit = page % 64;
        let count = (64 - bit).min(last - page + 1);
        let bits = if count == 64 { u64::MAX } else { ((1 << count) - 1) << bit };
        set(map, (page & mask) / 64, bits);
        page += count;
    }
}

fn set(map: *mut AtomicU64, word: u64, bits: u64) {
    // SAFETY: the map has a bit for each masked page, and is never unmapped.
    let word = unsafe { &*map.add(word as usize) };
    if word.load(Ordering::Relaxed) & bits != bits {
        word.fetch_or(bits, Ordering::Relaxed);
    }
}

/// A call is about to enter the driver: marks the host memory that it names.
#[inline]
pub(crate) fn before_call(api: Api, words: &[u64]) {
    if MAP.load(Ordering::Acquire).is_null() {
        // A load first: many threads come by.
        if !MISSED.load(Ordering::Relaxed) {
            MISSED.store(true, Ordering::Relaxed);
        }
        return;
    }
    mark_arguments(api, words);
}

#[cold]
fn mark_arguments(api: Api, words: &[u64]) {
    operands::each(api, words, &mut |operand| {
        if !operand.of_device {
            mark(operand.start, operand.len);
        }
    });
    if matches!(api, Api::cuMemHostRegister | Api::cuMemHostRegister_v2) {
        mark(words[0], words[1]);
    }
}

/// A call has succeeded: marks the host memory that it made.
#[inline]
pub(crate) fn after_call(api: Api, words: &[u64]) {
    if !MAP.load(Ordering::Acquire).is_null() {
        mark_results(api, words);
    }
}

#[cold]
fn mark_results(api: Api, words: &[u64]) {
    let out = |index: usize| match words.get(index).map(|word| *word as *const u64) {
        // SAFETY: the driver has just written a result there.
        Some(at) if !at.is_null() => unsafe { at.read_unaligned() },
        _ => 0,
    };
    match api {
        Api::cuMemAllocHost
        | Api::cuMemAllocHost_v2
        | Api::cuMemHostAlloc
        | Api::cuMemAllocManaged => {
            mark(out(0), words[1]);
        }
        // A variable may be managed.
        Api::cuLibraryGetManaged | Api::cuLibraryGetGlobal | Api::cuModuleGetGlobal_v2 => {
            mark(out(0), out(1));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_pages_of_a_range_and_no_others() {
        // The one test that uses the map: others would share it.
        let (map, mask) = switch_on();
        let marked = |address: u64| {
            let page = (address >> PAGE_SHIFT) & mask;
            // SAFETY: inside the map.
            unsafe { *map.add((page / 64) as usize) >> (page % 64) & 1 != 0 }
        };
        let start = 0x7f00_0003_e000;
        mark(start + 8, 3 * 4096);
        for (page, expected) in [(-1, false), (0, true), (1, true), (3, true), (4, false)] {
            assert_eq!(marked(start.wrapping_add_signed(page * 4096)), expected, "{page}");
        }
    }
}
