//! The runtime's knowledge of the calling thread, and how the thread publishes a record.

use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::Ordering;

use streamsan_interpose::ThreadEnd;
use streamsan_wire::{Body, Producer, RecordKind, read_clock};

use crate::attach::{self, Attachment};
use crate::host::touched;
use crate::rings::{self, RingSlot};
use crate::room;
use crate::stacks::{Bounds, Place};

/// Room that every record but an END leaves, so that the END of a recorded call fits.
const SPARE: usize = 512;

/// Records dropped for want of a ring before the next attempt to create one.
const RING_RETRY: u32 = 1024;

/// State of a thread; without destructor, so that it can be used until the thread's last call.
pub(crate) struct Thread {
    attachment: Cell<u64>,
    slot: Cell<Option<&'static RingSlot>>,
    /// Whether the ring holds this thread's ThreadStart.
    announced: Cell<bool>,
    retry: Cell<u32>,
    /// Our own code is running: hooked calls made now are not the program's.
    pub(crate) busy: Cell<bool>,
    /// Hooked calls in progress.
    pub(crate) depth: Cell<u8>,
    /// `g` of the innermost of them, 0 if it was not recorded.
    pub(crate) op: Cell<u64>,
    /// Where its stack lies.
    pub(crate) stack_bounds: Bounds,
    /// Where it faulted without a fence, at which count of their moves, and how often in a row.
    pub(crate) fault: Cell<(u64, u64, u32)>,
    /// It records a fault: nothing of the program's may be allocated.
    pub(crate) in_fault: Cell<bool>,
    /// The program believes that it blocks SIGSEGV.
    pub(crate) segv_blocked: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            attachment: Cell::new(0),
            slot: Cell::new(None),
            announced: Cell::new(false),
            retry: Cell::new(0),
            busy: Cell::new(false),
            depth: Cell::new(0),
            op: Cell::new(0),
            stack_bounds: Bounds::unknown(),
            fault: Cell::new((0, 0, 0)),
            in_fault: Cell::new(false),
            segv_blocked: Cell::new(false),
        }
    };
}

/// Runs `with` on the calling thread's state.
#[inline]
pub(crate) fn with<R>(with: impl FnOnce(&Thread) -> R) -> R {
    THREAD.with(with)
}

/// A record about to be published.
pub(crate) struct Outgoing {
    pub(crate) kind: RecordKind,
    pub(crate) depth: u8,
    pub(crate) api: u16,
    /// Bytes after the leading words.
    pub(crate) body: usize,
}

impl Thread {
    /// Publishes a record; returns its index, or 0 after counting it as dropped.
    #[inline]
    pub(crate) fn publish(
        &self,
        attachment: &Attachment,
        record: Outgoing,
        fill: impl FnOnce(&mut Body),
    ) -> u64 {
        let published = self.try_publish(attachment, &record, fill);
        if published.is_none() {
            attachment.process.dropped.fetch_add(1, Ordering::Relaxed);
        }
        published.unwrap_or(0)
    }

    /// Bytes after the leading words that a record may have.
    pub(crate) fn largest_body(&self, attachment: &Attachment) -> usize {
        // SAFETY: the slot is this thread's, and the reference ends here.
        self.slot(attachment)
            .and_then(|slot| unsafe { slot.producer() }.map(|p| p.largest_body()))
            .unwrap_or(0)
    }

    /// The state that the thread needs to record stacks.
    #[inline]
    pub(crate) fn stack_place(&self, attachment: &Attachment) -> Option<&'static Place> {
        self.slot(attachment).map(|slot| &slot.stacks)
    }

    #[inline]
    fn try_publish(
        &self,
        attachment: &Attachment,
        record: &Outgoing,
        fill: impl FnOnce(&mut Body),
    ) -> Option<u64> {
        let slot = self.slot(attachment)?;
        // Ranges that host threads touched before this record must stand before it.
        let _lock = touched::before_record(attachment, slot);
        // SAFETY: the slot is this thread's; `busy` keeps hooked calls made by our own code, and
        // by signal handlers that interrupt it, from coming here meanwhile. Where other threads
        // may publish into it, the lock is held.
        let producer = unsafe { slot.producer() }?;
        if record.body > producer.largest_body() || !self.announce(attachment, producer) {
            return None;
        }
        publish_into(attachment, producer, record, fill)
    }

    /// Tells the ring's reader whose it is from here on, once.
    fn announce(&self, attachment: &Attachment, producer: &mut Producer) -> bool {
        if self.announced.get() {
            return true;
        }
        let body = 8;
        if !room::wait(attachment, || producer.has_room(body, SPARE)) {
            return false;
        }
        // SAFETY: no preconditions.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        producer.header().tid.store(tid, Ordering::Relaxed);
        let kind = RecordKind::ThreadStart;
        let time = read_clock(attachment.control.clock());
        producer.publish(&attachment.control.g, time, kind, (0, 0), body, |body| {
            body.word(u64::from(tid));
        });
        self.announced.set(true);
        true
    }

    /// This thread's ring, ready for other threads to publish into it on this thread's behalf.
    pub(crate) fn shared_slot(&self, attachment: &Attachment) -> Option<&'static RingSlot> {
        let slot = self.slot(attachment)?;
        if !self.announced.get() {
            let _lock = touched::before_record(attachment, slot);
            // SAFETY: as in `try_publish`.
            let producer = unsafe { slot.producer() }?;
            if !self.announce(attachment, producer) {
                return None;
            }
        }
        Some(slot)
    }

    /// This thread's ring in this attachment.
    #[inline]
    fn slot(&self, attachment: &Attachment) -> Option<&'static RingSlot> {
        match self.slot.get() {
            Some(slot) if self.attachment.get() == attachment.number => Some(slot),
            _ => self.take_slot(attachment),
        }
    }

    #[cold]
    fn take_slot(&self, attachment: &Attachment) -> Option<&'static RingSlot> {
        if self.attachment.get() == attachment.number && self.retry.get() > 0 {
            self.retry.set(self.retry.get() - 1);
            return None;
        }
        self.attachment.set(attachment.number);
        self.announced.set(false);
        let slot = rings::take(attachment);
        self.slot.set(slot);
        self.retry.set(RING_RETRY);
        if slot.is_some() {
            watch_for_end(self.in_fault.get());
        }
        slot
    }
}

/// Publishes a record that fits the ring; `None` where the collector makes no room.
#[inline]
pub(crate) fn publish_into(
    attachment: &Attachment,
    producer: &mut Producer,
    record: &Outgoing,
    fill: impl FnOnce(&mut Body),
) -> Option<u64> {
    let spare = if record.kind == RecordKind::End { 0 } else { SPARE };
    if !producer.has_room(record.body, spare)
        && !room::wait(attachment, || producer.has_room(record.body, spare))
    {
        return None;
    }
    let call = (record.depth, record.api);
    let time = read_clock(attachment.control.clock());
    Some(producer.publish(&attachment.control.g, time, record.kind, call, record.body, fill))
}

/// The program's `errno`.
pub(crate) fn errno() -> i32 {
    // SAFETY: the location is valid for the calling thread.
    unsafe { *libc::__errno_location() }
}

/// Sets the program's `errno` back.
pub(crate) fn set_errno(value: i32) {
    // SAFETY: the location is valid for the calling thread.
    unsafe { *libc::__errno_location() = value };
}

/// Other destructors may still call the driver: the ring goes back in the last of the rounds that
/// glibc makes (PTHREAD_DESTRUCTOR_ITERATIONS).
const LAST_ROUND: usize = 4;

/// Keys below are kept in the thread itself (glibc's `PTHREAD_KEY_2NDLEVEL_SIZE`).
const KEYS_WITHOUT_MEMORY: u32 = 32;

static END: ThreadEnd = ThreadEnd::new(thread_ends);

/// `in_fault`: the interrupted thread may be allocating; where the C library would too, the ring
/// stays with the process when the thread ends.
fn watch_for_end(in_fault: bool) {
    END.watch(|key| !in_fault || key < KEYS_WITHOUT_MEMORY);
}

unsafe extern "C" fn thread_ends(round: *mut c_void) {
    if END.is_before(round, LAST_ROUND) {
        return;
    }
    with(|thread| {
        let slot = thread.slot.take();
        // In a forked child the slot would be the parent's.
        if let Some(slot) = slot
            && thread.attachment.get() == attach::current_number()
        {
            touched::thread_ends(slot);
            rings::give_back(slot);
        }
        thread.attachment.set(0);
    });
}
