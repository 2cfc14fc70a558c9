//! Reading mapped files that another process may truncate meanwhile.
//!
//! The files of a run directory belong to the programs too. Where a program truncates a file that
//! is mapped here, the next access raises SIGBUS, which would end the collector and with it the
//! recording of all other programs. A guarded mapping is then replaced by zeroes as a whole and
//! marked: data read from it afterwards has no meaning. Invariant: only the owner of that file is
//! lost.
//!
//! The handler is installed with the first guarded mapping, that is, in collectors only; the
//! runtime never makes one. A SIGBUS elsewhere goes to the handler that was installed before.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use crate::map::Mapping;

/// The handler's data of a mapping. A slot is used again and never freed, so that the handler may
/// read it at any time.
#[derive(Default)]
struct Slot {
    /// 0 while it is free.
    start: AtomicUsize,
    len: AtomicUsize,
    torn: AtomicBool,
}

/// Slots come in segments, each twice as large as the one before. The handler goes through them
/// without a lock.
const FIRST_SEGMENT: usize = 64;
const SEGMENTS: usize = 26;
static TABLE: [AtomicPtr<Slot>; SEGMENTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS];

/// Data for registration, not for the handler.
struct Book {
    free: Vec<&'static Slot>,
    segments: usize,
}
static BOOK: Mutex<Book> = Mutex::new(Book { free: Vec::new(), segments: 0 });

static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A mapping whose file may shrink. Unmaps it when dropped.
#[derive(Debug)]
pub(crate) struct Guarded {
    mapping: Mapping,
    slot: Option<&'static Slot>,
}

impl core::fmt::Debug for Slot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Slot").field("torn", &self.torn).finish_non_exhaustive()
    }
}

impl Guarded {
    /// Takes over a mapping, which no other code unmaps.
    pub(crate) fn new(mapping: Mapping) -> Self {
        install();
        let slot = take_slot();
        if let Some(slot) = slot {
            slot.torn.store(false, Ordering::Relaxed);
            slot.len.store(mapping.len, Ordering::Relaxed);
            slot.start.store(mapping.start.addr().get(), Ordering::Release);
        }
        Self { mapping, slot }
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.mapping.start
    }

    pub(crate) fn len(&self) -> usize {
        self.mapping.len
    }

    /// Whether its file was cut: what was read since then are zeroes.
    pub(crate) fn is_torn(&self) -> bool {
        // The handler runs on this thread: what was read before this is read before it looks.
        compiler_fence(Ordering::SeqCst);
        self.slot.is_some_and(|slot| slot.torn.load(Ordering::Relaxed))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.start.store(0, Ordering::Release);
            BOOK.lock().unwrap_or_else(PoisonError::into_inner).free.push(slot);
        }
        // SAFETY: taken over by the constructor; no reference into it outlives its owner.
        unsafe { self.mapping.unmap() };
    }
}

/// A free slot; `None` where there are more mappings than any run has. Such a mapping is not
/// guarded.
fn take_slot() -> Option<&'static Slot> {
    let mut book = BOOK.lock().unwrap_or_else(PoisonError::into_inner);
    if book.free.is_empty() {
        let place = TABLE.get(book.segments)?;
        let slots: Vec<Slot> =
            (0..FIRST_SEGMENT << book.segments).map(|_| Slot::default()).collect();
        let slots = Box::leak(slots.into_boxed_slice());
        place.store(slots.as_mut_ptr(), Ordering::Release);
        book.segments += 1;
        // The handler reads them through the table; all fields are atomic.
        book.free.extend(slots.iter());
    }
    book.free.pop()
}

fn find(address: usize) -> Option<&'static Slot> {
    for (number, segment) in TABLE.iter().enumerate() {
        let slots = NonNull::new(segment.load(Ordering::Acquire))?;
        // SAFETY: a leaked slice of this length, stored once (`take_slot`).
        let slots = unsafe { core::slice::from_raw_parts(slots.as_ptr(), FIRST_SEGMENT << number) };
        let holds = |slot: &&Slot| {
            let start = slot.start.load(Ordering::Acquire);
            start != 0 && address.wrapping_sub(start) < slot.len.load(Ordering::Relaxed)
        };
        if let Some(slot) = slots.iter().find(holds) {
            return Some(slot);
        }
    }
    None
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: zeroed is a valid `sigaction`; the pointers are to live values; the handler is
        // async-signal-safe: it reads atomics and calls the system.
        unsafe {
            let mut before: libc::sigaction = core::mem::zeroed();
            libc::sigaction(libc::SIGBUS, ptr::null(), &mut before);
            let _ = BEFORE.set(before);
            let mut ours: libc::sigaction = core::mem::zeroed();
            ours.sa_sigaction = on_bus_error as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut());
        }
    });
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a valid `siginfo_t` to handlers with SA_SIGINFO. The range is a
    // mapping of ours, whose readers expect any bytes; the location of errno is this thread's.
    unsafe {
        if let Some(slot) = find((*info).si_addr().addr()) {
            let errno = *libc::__errno_location();
            slot.torn.store(true, Ordering::Relaxed);
            let zeroes = libc::mmap(
                ptr::with_exposed_provenance_mut(slot.start.load(Ordering::Relaxed)),
                slot.len.load(Ordering::Relaxed),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            );
            *libc::__errno_location() = errno;
            if zeroes != libc::MAP_FAILED {
                return;
            }
        }
    }
    hand_on(signal, info, context);
}

/// Passes the signal on, as if this handler did not exist.
fn hand_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = BEFORE.get().map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: the default is restored; the instruction is run again and ends the process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    let with_info = BEFORE.get().is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: the handler that was installed before, called as its flags say.
    unsafe {
        if with_info {
            type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            core::mem::transmute::<usize, Handler>(handler)(signal, info, context);
        } else {
            core::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal);
        }
    }
}
