//! Which pages of host memory matter: those that the driver knows or that copies used. Only what
//! instrumented code touches there is recorded.
//!
//! A bit a page, over the whole address space of a program; only what is used of the map takes
//! memory. A page stays marked when its memory is freed: too many marks cost time, nothing else.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use streamsan_wire::Api;

const PAGE_SHIFT: u32 = 12;

/// Pages below the end of the address space of programs, 2^47.
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
    let signature = api.signature();
    let word = |name: &str| signature.index_of(name).and_then(|index| words.get(index)).copied();
    let with_attributes = || api.name().starts_with("cuMemcpyWithAttributes").then(|| word("size"));
    if let Some(bytes) = word("ByteCount").or_else(|| with_attributes()?) {
        for name in ["dstHost", "srcHost", "dst", "src"] {
            if let Some(start) = word(name) {
                mark(start, bytes);
            }
        }
    }
    // SAFETY: the program passes valid pointers, as the driver documents.
    unsafe {
        match (word("pCopy"), api.name()) {
            (Some(at), name)
                if at != 0 && name.starts_with("cuMemcpy2D") && name.contains("_v2") =>
            {
                mark_box(at, &PLANE);
            }
            (Some(at), name)
                if at != 0
                    && name.starts_with("cuMemcpy3D")
                    && name != "cuMemcpy3D"
                    && name != "cuMemcpy3DAsync" =>
            {
                mark_box(at, &VOLUME);
            }
            (_, name) if name.starts_with("cuMemcpyBatchAsync") => {
                let list = |name| word(name).map(|at| at as *const u64).filter(|at| !at.is_null());
                let (Some(sizes), Some(count)) = (list("sizes"), word("count")) else { return };
                for starts in [list("dsts"), list("srcs")].into_iter().flatten() {
                    for index in 0..count as usize {
                        mark(starts.add(index).read_unaligned(), sizes.add(index).read_unaligned());
                    }
                }
            }
            (_, name) if name.starts_with("cuMemcpy3DBatchAsync") => {
                let (Some(list), Some(count)) = (word("opList"), word("numOps")) else { return };
                for index in 0..if list == 0 { 0 } else { count } {
                    mark_operands(list + index * OPERATION_BYTES);
                }
            }
            (_, name) if name.starts_with("cuMemcpy3DWithAttributesAsync") => {
                if let Some(at) = word("op").filter(|at| *at != 0) {
                    mark_operands(at);
                }
            }
            (_, "cuMemHostRegister" | "cuMemHostRegister_v2") => mark(words[0], words[1]),
            _ => {}
        }
    }
}

/// Offsets in a copy descriptor: host address, device address, pitch and rows of a slice of both
/// ends, then depth. `None`: the descriptor has no slices.
struct Layout {
    ends: [(usize, usize, usize, Option<usize>); 2],
    y: [usize; 2],
    z: Option<[usize; 2]>,
    width: usize,
    height: usize,
    depth: Option<usize>,
}

/// `CUDA_MEMCPY2D`.
const PLANE: Layout = Layout {
    ends: [(24, 32, 48, None), (80, 88, 104, None)],
    y: [8, 64],
    z: None,
    width: 112,
    height: 120,
    depth: None,
};

/// `CUDA_MEMCPY3D`, `CUDA_MEMCPY3D_PEER`.
const VOLUME: Layout = Layout {
    ends: [(40, 48, 72, Some(80)), (128, 136, 160, Some(168))],
    y: [8, 96],
    z: Some([16, 104]),
    width: 176,
    height: 184,
    depth: Some(192),
};

/// Marks everything from the address that a descriptor names to the end of its last row.
///
/// # Safety
/// `at` points to a descriptor of this layout.
unsafe fn mark_box(at: u64, layout: &Layout) {
    // SAFETY: inside the descriptor (caller).
    let field =
        |offset: usize| unsafe { (at as *const u8).add(offset).cast::<u64>().read_unaligned() };
    let (width, height) = (field(layout.width), field(layout.height));
    for (index, (host, device, pitch, rows)) in layout.ends.into_iter().enumerate() {
        let pitch = field(pitch).max(width);
        let slice = rows.map_or(0, field).max(height);
        let depth = layout.depth.map_or(1, field) + layout.z.map_or(0, |z| field(z[index]));
        let rows = slice.saturating_mul(depth.saturating_sub(1));
        let rows = rows.saturating_add(field(layout.y[index])).saturating_add(height);
        let bytes = pitch.saturating_mul(rows.saturating_add(1));
        mark(field(host), bytes);
        mark(field(device), bytes);
    }
}

/// Bytes of `CUDA_MEMCPY3D_BATCH_OP`.
const OPERATION_BYTES: u64 = 112;

/// Marks the memory of both operands of an operation: each is a type (1: an address), an address,
/// the length of a row and the rows of a layer; the extent follows.
///
/// # Safety
/// `at` points to a `CUDA_MEMCPY3D_BATCH_OP`.
unsafe fn mark_operands(at: u64) {
    // SAFETY: inside the operation (caller).
    let field =
        |offset: usize| unsafe { (at as *const u8).add(offset).cast::<u64>().read_unaligned() };
    let (width, height, depth) = (field(80), field(88), field(96));
    for operand in [0, 40] {
        if field(operand) as u32 == 1 {
            let row = field(operand + 16).max(width);
            let layer = row.saturating_mul(field(operand + 24).max(height));
            mark(field(operand + 8), layer.saturating_mul(depth.max(1)));
        }
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
