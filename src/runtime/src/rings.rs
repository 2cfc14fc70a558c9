//! The rings of this process and which of them are free.
//!
//! A ring whose thread ended is taken over by the next new thread, so that memory follows the
//! largest number of threads that ever called at once, not their total. The list is only touched
//! when a thread makes its first recorded call and when it ends.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use streamsan_wire::{PathBuffer, Producer, RING_HEADER_BYTES, RingHeader, map_new};

use crate::attach::Attachment;
use crate::host::touched::Touched;
use crate::stacks::{self, Place};

/// Threads that can record at once; others drop and count.
const SLOTS: usize = 4096;

/// Ring size where the wanted one does not fit the file system.
const SMALL_RING: u64 = 64 << 10;

/// The writing end of a ring, owned by one thread at a time.
pub(crate) struct RingSlot {
    producer: UnsafeCell<Option<Producer>>,
    /// The host memory that the ring's thread touched and has not published; see
    /// [`crate::host::touched`].
    pub(crate) touched: Touched,
    /// The state that the ring's thread needs to record stacks.
    pub(crate) stacks: Place,
    next: AtomicU32,
}

// SAFETY: `producer` is only used by the thread that took the slot from the free list.
unsafe impl Sync for RingSlot {}

const NONE: u32 = u32::MAX;

static TABLE: [RingSlot; SLOTS] = [const {
    RingSlot {
        producer: UnsafeCell::new(None),
        touched: Touched::new(),
        stacks: Place::new(),
        next: AtomicU32::new(NONE),
    }
}; SLOTS];
static FREE: AtomicU32 = AtomicU32::new(NONE);
static USED: AtomicU32 = AtomicU32::new(0);
static BUSY: AtomicBool = AtomicBool::new(false);

impl RingSlot {
    /// The writing end.
    ///
    /// # Safety
    /// The calling thread took this slot and has not given it back (or holds the lock of what the
    /// thread that did so touched), and holds no other reference to its producer.
    #[expect(clippy::mut_from_ref, reason = "the slot is a cell owned by one thread")]
    pub(crate) unsafe fn producer(&self) -> Option<&mut Producer> {
        // SAFETY: passed on to the caller.
        unsafe { (*self.producer.get()).as_mut() }
    }
}

/// Forgets all rings: they are another process's.
pub(crate) fn restart() {
    used().for_each(|slot| slot.touched.forget());
    stacks::restart();
    USED.store(0, Ordering::Relaxed);
    FREE.store(NONE, Ordering::Relaxed);
    // A fork may have copied the lock while another thread of the parent held it.
    BUSY.store(false, Ordering::Release);
}

/// All rings that were ever taken.
pub(crate) fn used() -> impl Iterator<Item = &'static RingSlot> {
    TABLE.iter().take(USED.load(Ordering::Acquire) as usize)
}

/// Takes a ring for the calling thread, a free one or a new one.
pub(crate) fn take(attachment: &Attachment) -> Option<&'static RingSlot> {
    let _lock = RingsLock::take();
    let free = FREE.load(Ordering::Relaxed);
    if let Some(slot) = TABLE.get(free as usize) {
        FREE.store(slot.next.load(Ordering::Relaxed), Ordering::Relaxed);
        return Some(slot);
    }
    let number = USED.load(Ordering::Relaxed);
    let slot = TABLE.get(number as usize)?;
    let producer = create(attachment, number)?;
    // SAFETY: nobody owns a slot that was never used.
    unsafe { *slot.producer.get() = Some(producer) };
    USED.store(number + 1, Ordering::Release);
    // The collector opens the ring when it sees this count: see the proof in the ring's module.
    attachment.process.rings.store(number + 1, Ordering::Release);
    Some(slot)
}

/// Gives the calling thread's ring to whoever comes next.
pub(crate) fn give_back(slot: &'static RingSlot) {
    let offset = core::ptr::from_ref(slot) as usize - TABLE.as_ptr() as usize;
    let number = (offset / size_of::<RingSlot>()) as u32;
    let _lock = RingsLock::take();
    slot.next.store(FREE.load(Ordering::Relaxed), Ordering::Relaxed);
    FREE.store(number, Ordering::Relaxed);
}

fn create(attachment: &Attachment, number: u32) -> Option<Producer> {
    let directory = crate::attach::directory()?;
    let process = attachment.process.number;
    let path = PathBuffer::format(format_args!("{directory}/ring-{process}-{number}"))?;
    for bytes in [attachment.control.ring_bytes, SMALL_RING] {
        let Ok(mapping) = map_new(path.as_c_str(), RING_HEADER_BYTES + bytes as usize) else {
            continue;
        };
        mapping.exclude_from_fork();
        // SAFETY: a fresh zeroed mapping of header and data, valid as zeroes, known to nobody
        // else and never unmapped; this is its only producer.
        unsafe {
            mapping.start.cast::<RingHeader>().as_mut().initialise(bytes);
            return Some(Producer::new(mapping));
        }
    }
    None
}

/// A spinning lock; its holders never call the driver.
struct RingsLock;

impl RingsLock {
    fn take() -> Self {
        while BUSY.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            // SAFETY: no preconditions.
            unsafe { libc::sched_yield() };
        }
        Self
    }
}

impl Drop for RingsLock {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}
