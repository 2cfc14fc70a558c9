//! Loads and stores of instrumented code (`-fsanitize=thread`, linked with the stub library).
//!
//! The ranges that a thread touches are merged into a few ranges, as long as no record of any
//! thread comes in between: whoever publishes a record first publishes what all threads of the
//! process have gathered. The place of an access among the calls is thus exact: after every call
//! that was entered before it, before every call that is entered later.
//!
//! Therefore, once instrumented code runs, threads publish into each other's rings, and every ring
//! has a lock, held for some nanoseconds, or while the ring is full, and never across a call.
//! Without instrumented code nobody takes it.
//!
//! Invariant: a set of ranges is marked open and counted in [`OPEN`] until its record is published. Who
//! sees neither has nothing to publish; who sees them while another thread is at it waits for the lock.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use streamsan_wire::{HostCall, RecordKind, RecordedMode, host_body};

use super::{fences, interest};
use crate::attach::{self, Attachment};
use crate::call::guarded;
use crate::rings::{self, RingSlot};
use crate::room;
use crate::thread::{Outgoing, publish_into};

/// Ranges that are gathered before they are published.
const MOST_RANGES: usize = 16;

/// Looks at a lock without sleeping, which its holder seldom keeps for longer, and nanoseconds between
/// two looks from then on: the holder waits for room.
const YIELDS: u32 = 64;
const PAUSE: i64 = 100_000;

/// Whether instrumented code runs in this process.
static ON: AtomicBool = AtomicBool::new(false);

/// Threads with unpublished ranges.
static OPEN: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy)]
struct TouchedRange {
    start: u64,
    end: u64,
    mode: RecordedMode,
}

struct GatheredRanges {
    /// The next index of the run when the first range was touched.
    g: u64,
    len: usize,
    last: usize,
    ranges: [TouchedRange; MOST_RANGES],
}

impl GatheredRanges {
    /// Adds a range to one that it meets, or as a new one; `false` where there is no room.
    #[inline]
    fn add(&mut self, range: TouchedRange) -> bool {
        let meets = |old: &TouchedRange| {
            old.mode == range.mode && range.start <= old.end && old.start <= range.end
        };
        let ranges = &mut self.ranges[..self.len];
        // Loops touch the same few ranges over and over.
        let at = match ranges.get(self.last) {
            Some(last) if meets(last) => Some(self.last),
            _ => ranges.iter().position(meets),
        };
        if let Some(at) = at {
            let old = &mut ranges[at];
            old.start = old.start.min(range.start);
            old.end = old.end.max(range.end);
            self.last = at;
            return true;
        }
        if self.len == MOST_RANGES {
            return false;
        }
        self.ranges[self.len] = range;
        self.last = self.len;
        self.len += 1;
        true
    }
}

/// The host memory that a ring's thread has touched since the last record of the process.
pub(crate) struct Touched {
    locked: AtomicBool,
    open: AtomicBool,
    gathered: UnsafeCell<GatheredRanges>,
}

// SAFETY: `gathered` is only used under the lock.
unsafe impl Sync for Touched {}

impl Touched {
    pub(crate) const fn new() -> Self {
        let none = TouchedRange { start: 0, end: 0, mode: RecordedMode::Read };
        Self {
            locked: AtomicBool::new(false),
            open: AtomicBool::new(false),
            gathered: UnsafeCell::new(GatheredRanges {
                g: 0,
                len: 0,
                last: 0,
                ranges: [none; MOST_RANGES],
            }),
        }
    }

    /// In a forked child: it was the parent's, and the lock's holder may not exist here.
    pub(crate) fn forget(&self) {
        self.open.store(false, Ordering::Relaxed);
        self.locked.store(false, Ordering::Release);
        OPEN.store(0, Ordering::Relaxed);
    }

    fn lock(&self) -> TouchedLock<'_> {
        let mut tries = 0;
        while self.locked.swap(true, Ordering::Acquire) {
            tries += 1;
            if tries > YIELDS {
                room::sleep(PAUSE);
            } else {
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
            }
        }
        TouchedLock(&self.locked)
    }
}

/// Held by the one thread that may use a ring.
pub(crate) struct TouchedLock<'a>(&'a AtomicBool);

impl Drop for TouchedLock<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// To be called before a record is published into `slot`, the calling thread's own.
#[inline]
pub(crate) fn before_record<'a>(
    attachment: &Attachment,
    slot: &'a RingSlot,
) -> Option<TouchedLock<'a>> {
    if !ON.load(Ordering::Acquire) {
        return None;
    }
    publish_all(attachment);
    Some(slot.touched.lock())
}

/// The thread that owns `slot` gives it back.
pub(crate) fn thread_ends(slot: &'static RingSlot) {
    if ON.load(Ordering::Acquire)
        && let Some(attachment) = attach::attachment()
    {
        let _lock = slot.touched.lock();
        publish(&attachment, slot);
    }
}

#[cold]
fn publish_all(attachment: &Attachment) {
    if OPEN.load(Ordering::Acquire) == 0 {
        return;
    }
    for slot in rings::used().filter(|slot| slot.touched.open.load(Ordering::Acquire)) {
        let _lock = slot.touched.lock();
        publish(attachment, slot);
    }
}

/// Publishes what the thread of `slot` has touched. The slot's lock is held.
fn publish(attachment: &Attachment, slot: &RingSlot) {
    if !slot.touched.open.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: the lock is held (caller).
    let gathered = unsafe { &*slot.touched.gathered.get() };
    let count = 3 * gathered.len;
    let record = Outgoing {
        kind: RecordKind::Host,
        depth: 0,
        api: HostCall::Touched as u16,
        body: host_body(count, 0),
    };
    // SAFETY: the lock is held (caller), and whoever publishes into the ring holds it.
    let published = unsafe { slot.producer() }.and_then(|producer| {
        publish_into(attachment, producer, &record, |body| {
            body.word(count as u64);
            // Gathered over many calls: it has no stack.
            body.word(0);
            for range in &gathered.ranges[..gathered.len] {
                body.word(range.start);
                body.word(range.end);
                body.word(range.mode as u64);
            }
        })
    });
    if published.is_none() {
        attachment.process.dropped.fetch_add(1, Ordering::Relaxed);
    }
    // Only now: a record that another thread publishes meanwhile must not get an index below.
    slot.touched.open.store(false, Ordering::Release);
    OPEN.fetch_sub(1, Ordering::AcqRel);
}

/// The data that the stub library needs.
#[repr(C)]
struct StubView {
    /// Bit for each page that accesses may matter in.
    pages: *const u64,
    /// Mask for page numbers.
    mask: u64,
    touched: extern "C" fn(u64, u64, u32),
}

/// Called by the stub library when instrumented code is loaded. Answers 0 where nothing is
/// recorded.
///
/// # Safety
/// `view` is writable.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn streamsan_tsan_attach(view: *mut StubView) -> i32 {
    if attach::attachment().is_none() {
        return 0;
    }
    let (pages, mask) = interest::switch_on();
    ON.store(true, Ordering::Release);
    // SAFETY: promised by the caller.
    unsafe { view.write(StubView { pages, mask, touched: streamsan_tsan_touched }) };
    1
}

/// The calling thread touches `len` bytes at `address`: 0 read, 1 write, 2 atomic.
extern "C" fn streamsan_tsan_touched(address: u64, len: u64, mode: u32) {
    let Some(mode) = RecordedMode::from_u32(mode) else { return };
    let range = TouchedRange { start: address, end: address.saturating_add(len), mode };
    guarded(|thread| {
        // Inside a driver call nothing but the driver runs.
        if thread.depth.get() != 0 {
            return;
        }
        let Some(attachment) = attach::attachment() else { return };
        thread.busy.set(true);
        match thread.shared_slot(&attachment) {
            Some(slot) => gather(&attachment, slot, range),
            None => {
                attachment.process.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        thread.busy.set(false);
    });
    if fences::any() {
        fences::told(address, len, mode != RecordedMode::Read);
    }
}

fn gather(attachment: &Attachment, slot: &RingSlot, range: TouchedRange) {
    let _lock = slot.touched.lock();
    let next = attachment.control.g.load(Ordering::Acquire);
    // SAFETY: the lock is held.
    let gathered = unsafe { &mut *slot.touched.gathered.get() };
    let open = slot.touched.open.load(Ordering::Relaxed);
    if open && gathered.g == next && gathered.add(range) {
        return;
    }
    publish(attachment, slot);
    // SAFETY: the lock is held, and the reference above is not used any more.
    let gathered = unsafe { &mut *slot.touched.gathered.get() };
    gathered.g = attachment.control.g.load(Ordering::Acquire);
    gathered.len = 0;
    gathered.add(range);
    OPEN.fetch_add(1, Ordering::AcqRel);
    slot.touched.open.store(true, Ordering::Release);
}

/// The last touched ranges are published when the program ends.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static GOODBYE: extern "C" fn() = {
    extern "C" fn goodbye() {
        if !ON.load(Ordering::Acquire) {
            return;
        }
        guarded(|thread| {
            let Some(attachment) = attach::attachment() else { return };
            thread.busy.set(true);
            publish_all(&attachment);
            thread.busy.set(false);
        });
    }
    goodbye
};
