//! One single-producer ring, and why nothing below the watermark can still appear.
//!
//! To publish a record the producer (P) does, in this order:
//!
//! 1. `pending.store(lower)` with `lower` a value of `g` read before: a lower bound of step 2;
//! 2. `g.fetch_add(1)` with acquire-release: yields the record's index `x >= lower`;
//! 3. writes the bytes; 4. `head.store` with release; 5. `pending.store(IDLE)` with release.
//!
//! The consumer (C) reads `G = g` with acquire first, then looks for new rings, then reads every
//! ring's `pending` with acquire, takes `W = min(G, all pendings)`, and then reads every `head`.
//!
//! Claim: every record with `x < W` is below the `head` that C reads. Since `x < G`, the value
//! that C read from `g` comes from P's step 2 or from a later addition; all changes of `g` are
//! read-modify-writes, so they form one release sequence and step 2 synchronizes with C's read.
//! Hence step 1 happens before C's read of `pending`, which yields step 1's value or a later one.
//! Step 1's value is impossible: `W <= lower <= x`. A later value was stored at or after step 5,
//! so reading it synchronizes with a store behind step 4, and C sees that `head`.
//! A ring that C did not find was created after C looked, thus after C read `G`; the release of
//! its creation orders its first step 2 behind, so its records have `x >= G >= W`.
//!
//! `pending` covers the publication alone, never the driver's call: a blocked call stalls nobody.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::control::ABI_VERSION;
use crate::encode::{Body, HEADER, RecordKind, first_word};
use crate::map::Mapping;

/// `pending` of a producer that publishes nothing right now.
pub const IDLE: u64 = u64::MAX;

/// Bytes before a ring's data.
pub const RING_HEADER_BYTES: usize = 4096;

const MAGIC: u64 = 0x676e_6972_6d61_7274;

/// The first page of a ring file; the producer's and the consumer's words lie on separate lines.
#[derive(Debug)]
#[repr(C)]
pub struct RingHeader {
    magic: u64,
    version: u32,
    _reserved: u32,
    /// Data bytes, a power of two.
    pub bytes: u64,
    _line0: [u64; 5],
    /// Bytes written since the start.
    pub head: AtomicU64,
    /// Lower bound of the index being taken, or [`IDLE`].
    pub pending: AtomicU64,
    /// Thread that publishes now: lets the consumer tell that it died half-way.
    pub tid: AtomicU32,
    _line1: [u32; 11],
    /// Bytes that the consumer needs no more.
    pub tail: AtomicU64,
}

const _: () = assert!(core::mem::offset_of!(RingHeader, head) == 64);
const _: () = assert!(core::mem::offset_of!(RingHeader, tail) == 128);

impl RingHeader {
    /// Fills the header of a new ring file.
    pub fn initialise(&mut self, bytes: u64) {
        self.magic = MAGIC;
        self.version = ABI_VERSION;
        self.bytes = bytes;
        *self.pending.get_mut() = IDLE;
    }

    /// Data bytes if the header is sound for a file of `len` bytes.
    pub(crate) fn checked_bytes(&self, len: usize) -> Option<u64> {
        let bytes = self.bytes;
        (self.magic == MAGIC
            && self.version == ABI_VERSION
            && bytes.is_power_of_two()
            && RING_HEADER_BYTES as u64 + bytes <= len as u64)
            .then_some(bytes)
    }
}

/// The writing end, used by one thread at a time.
#[derive(Debug)]
pub struct Producer {
    header: NonNull<RingHeader>,
    data: NonNull<u8>,
    bytes: u64,
    head: u64,
    tail: u64,
}

// SAFETY: it owns its end of the mapping; one thread at a time uses it.
unsafe impl Send for Producer {}

impl Producer {
    /// Takes the writing end of a ring file that was mapped and initialised.
    ///
    /// # Safety
    /// The mapping stays valid as long as the producer is used, and this is its only producer.
    pub unsafe fn new(mapping: Mapping) -> Self {
        let header = mapping.start.cast::<RingHeader>();
        // SAFETY: the file is mapped in its whole length, header first (caller).
        let (bytes, head, tail, data) = unsafe {
            let h = header.as_ref();
            (
                h.bytes,
                h.head.load(Ordering::Relaxed),
                h.tail.load(Ordering::Relaxed),
                mapping.start.add(RING_HEADER_BYTES),
            )
        };
        Self { header, data, bytes, head, tail }
    }

    /// The shared header.
    #[inline]
    pub fn header(&self) -> &RingHeader {
        // SAFETY: valid as long as the producer is used (constructor).
        unsafe { self.header.as_ref() }
    }

    /// Bytes of a record with `body` bytes after its leading words.
    #[inline]
    pub const fn record_bytes(body: usize) -> usize {
        HEADER + body.next_multiple_of(8)
    }

    /// Largest body that this ring ever takes.
    #[inline]
    pub fn largest_body(&self) -> usize {
        (self.bytes / 4) as usize - HEADER
    }

    /// Whether a record with `body` bytes fits now and leaves `spare` bytes free.
    #[inline]
    pub fn has_room(&mut self, body: usize, spare: usize) -> bool {
        let size = Self::record_bytes(body) as u64;
        let needed = self.padding(size) + size + spare as u64;
        if needed <= self.bytes - (self.head - self.tail) {
            return true;
        }
        // Acquire: the consumer has read what it frees before it says so. A tail beyond the head
        // is the program's own doing and must not become free space.
        let tail = self.header().tail.load(Ordering::Acquire);
        if (self.tail..=self.head).contains(&tail) {
            self.tail = tail;
        }
        needed <= self.bytes - (self.head - self.tail)
    }

    /// Publishes a record whose room [`Producer::has_room`] has just confirmed; returns its index.
    #[inline]
    pub fn publish(
        &mut self,
        g: &AtomicU64,
        t_ns: u64,
        kind: RecordKind,
        (depth, api): (u8, u16),
        body: usize,
        fill: impl FnOnce(&mut Body),
    ) -> u64 {
        let size = Self::record_bytes(body);
        let padding = self.padding(size as u64);
        // SAFETY: valid as long as the producer is used (constructor); borrowed apart from
        // `self`, whose `head` changes below.
        let header = unsafe { self.header.as_ref() };
        header.pending.store(g.load(Ordering::Relaxed), Ordering::Relaxed);
        let index = g.fetch_add(1, Ordering::AcqRel);
        // SAFETY: `has_room` confirmed `padding + size` free bytes at `head`; the consumer does
        // not read beyond the published head; offsets are below `bytes` and 8-aligned, and
        // `padding` brings a record that would cross the end back to the start.
        unsafe {
            let mask = self.bytes - 1;
            if padding != 0 {
                let at = self.data.as_ptr().add((self.head & mask) as usize);
                at.cast::<u64>().write(first_word(padding as u32, RecordKind::Padding, 0, 0));
                self.head += padding;
            }
            let at = self.data.as_ptr().add((self.head & mask) as usize);
            let words = at.cast::<u64>();
            words.write(first_word(size as u32, kind, depth, api));
            words.add(1).write(index);
            words.add(2).write(t_ns);
            fill(&mut Body::new(at.add(HEADER), size - HEADER));
        }
        self.head += size as u64;
        header.head.store(self.head, Ordering::Release);
        header.pending.store(IDLE, Ordering::Release);
        index
    }

    #[inline]
    fn padding(&self, size: u64) -> u64 {
        let to_end = self.bytes - (self.head & (self.bytes - 1));
        if size > to_end { to_end } else { 0 }
    }
}
