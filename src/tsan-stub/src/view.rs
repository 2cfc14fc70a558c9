//! The way to the runtime, and the look that decides whether to take it.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

const PAGE_SHIFT: u32 = 12;

/// How memory is touched, as the runtime counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read = 0,
    Write = 1,
    Atomic = 2,
}

/// The data that the runtime gives.
#[repr(C)]
struct StubView {
    pages: *const u64,
    mask: u64,
    touched: extern "C" fn(u64, u64, u32),
}

/// Bit for each page that accesses matter in; null without the runtime.
static PAGES: AtomicPtr<u64> = AtomicPtr::new(ptr::null_mut());
static MASK: AtomicU64 = AtomicU64::new(0);
static TOUCHED: AtomicUsize = AtomicUsize::new(0);

/// Looks for the runtime. Called by the constructors of instrumented objects.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __tsan_init() {
    if !PAGES.load(Ordering::Acquire).is_null() {
        return;
    }
    // SAFETY: a NUL-terminated name.
    let attach = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"streamsan_tsan_attach".as_ptr()) };
    if attach.is_null() {
        return;
    }
    let mut view = MaybeUninit::<StubView>::uninit();
    // SAFETY: the runtime's function of this signature fills the view where it answers 1.
    let view = unsafe {
        let attach: unsafe extern "C" fn(*mut StubView) -> i32 =
            core::mem::transmute::<*mut c_void, _>(attach);
        if attach(view.as_mut_ptr()) != 1 {
            return;
        }
        view.assume_init()
    };
    TOUCHED.store(view.touched as usize, Ordering::Relaxed);
    MASK.store(view.mask, Ordering::Relaxed);
    PAGES.store(view.pages.cast_mut(), Ordering::Release);
}

/// An access within a page or two.
#[inline(always)]
pub(crate) fn touch(address: usize, len: u64, mode: Mode) {
    let pages = PAGES.load(Ordering::Acquire);
    if pages.is_null() {
        return;
    }
    let last = (address as u64).wrapping_add(len - 1) >> PAGE_SHIFT;
    if is_marked(pages, address as u64 >> PAGE_SHIFT) || is_marked(pages, last) {
        hand_over(address as u64, len, mode);
    }
}

/// An access of any length.
pub(crate) fn touch_range(address: usize, len: u64, mode: Mode) {
    let pages = PAGES.load(Ordering::Acquire);
    if pages.is_null() || len == 0 {
        return;
    }
    let first = address as u64 >> PAGE_SHIFT;
    let last = (address as u64).saturating_add(len - 1) >> PAGE_SHIFT;
    if (first..=last).any(|page| is_marked(pages, page)) {
        hand_over(address as u64, len, mode);
    }
}

#[inline(always)]
fn is_marked(pages: *mut u64, page: u64) -> bool {
    let page = page & MASK.load(Ordering::Relaxed);
    // SAFETY: the runtime's map has a bit for each masked page and stays. Others change it by
    // atomic operations.
    let word = unsafe { AtomicU64::from_ptr(pages.add((page / 64) as usize)) };
    word.load(Ordering::Relaxed) >> (page % 64) & 1 != 0
}

#[cold]
fn hand_over(address: u64, len: u64, mode: Mode) {
    let touched = TOUCHED.load(Ordering::Relaxed);
    // SAFETY: set before the pages, from the runtime's function of this signature.
    unsafe {
        let touched: extern "C" fn(u64, u64, u32) = core::mem::transmute(touched);
        touched(address, len, mode as u32);
    }
}
