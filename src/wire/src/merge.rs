//! The reading end of one ring, and the order in which several are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use crate::clock::Calibration;
use crate::decode::{Decoded, Head, Malformed, decode};
use crate::encode::HEADER;
use crate::guard::Guarded;
use crate::record::{Envelope, ProcessKey, ThreadKey, word_at};
use crate::ring::{IDLE, RING_HEADER_BYTES, RingHeader};

/// The reading end of a ring.
#[derive(Debug)]
pub(crate) struct RingView {
    mapping: Guarded,
    bytes: u64,
    /// Which process owns it.
    pub(crate) process: ProcessKey,
    /// Bytes handed out.
    cursor: u64,
    /// Bytes published when last looked.
    head: u64,
    thread: Option<(ThreadKey, u32)>,
    last_t_ns: u64,
    /// Nothing more is read from it: it held bytes that are no record.
    pub(crate) broken: bool,
}

impl RingView {
    /// Checks a mapped ring file; `None` (and unmapped) if it is none of this version.
    pub(crate) fn new(mapping: Guarded, process: ProcessKey) -> Option<Self> {
        // SAFETY: a mapping of at least a page is large enough for the header.
        let bytes = (mapping.len() >= RING_HEADER_BYTES)
            .then(|| unsafe { mapping.start().cast::<RingHeader>().as_ref() })
            .and_then(|header| header.checked_bytes(mapping.len()))?;
        Some(Self {
            mapping,
            bytes,
            process,
            cursor: 0,
            head: 0,
            thread: None,
            last_t_ns: 0,
            broken: false,
        })
    }

    pub(crate) fn header(&self) -> &RingHeader {
        // SAFETY: checked by the constructor; unmapped only when dropped.
        unsafe { self.mapping.start().cast::<RingHeader>().as_ref() }
    }

    /// Index being published, and the thread that does so.
    pub(crate) fn pending(&self) -> Option<(u64, u32)> {
        let header = self.header();
        let pending = header.pending.load(Ordering::Acquire);
        (pending != IDLE && !self.broken).then(|| (pending, header.tid.load(Ordering::Relaxed)))
    }

    /// Looks up how much is published.
    pub(crate) fn refresh(&mut self) {
        let head = self.header().head.load(Ordering::Acquire);
        let unread = head.wrapping_sub(self.cursor);
        if unread > self.bytes || !head.is_multiple_of(8) || self.mapping.is_torn() {
            self.broken = true;
        } else {
            self.head = head;
        }
    }

    /// Whether everything published was handed out.
    pub(crate) fn is_drained(&self) -> bool {
        self.broken || self.cursor == self.header().head.load(Ordering::Acquire)
    }

    /// Used share of the ring, unreleased bytes included.
    pub(crate) fn fill(&self) -> f64 {
        let header = self.header();
        let used = header
            .head
            .load(Ordering::Relaxed)
            .wrapping_sub(header.tail.load(Ordering::Relaxed))
            .min(self.bytes);
        used as f64 / self.bytes as f64
    }

    /// Frees everything handed out. Release: reading is over before the space is free.
    pub(crate) fn release(&self) {
        self.header().tail.store(self.cursor, Ordering::Release);
    }

    /// Index of the next record, padding skipped; `None` if there is none or the ring is broken.
    fn front(&mut self, taken: u64) -> Option<u64> {
        match self.try_front() {
            Ok(None) => None,
            Ok(Some((_, index))) if index < taken => Some(index),
            _ => {
                self.broken = true;
                None
            }
        }
    }

    fn try_front(&mut self) -> Result<Option<(Head, u64)>, Malformed> {
        while !self.broken && self.cursor < self.head {
            let unread = (self.head - self.cursor) as usize;
            let word = word_at(self.slice(8)?, 0).ok_or(Malformed)?;
            let head = Head::decode(word)?;
            if head.size > unread {
                return Err(Malformed);
            }
            if head.kind == crate::encode::RecordKind::Padding {
                self.cursor += head.size as u64;
                continue;
            }
            let index = word_at(self.slice(HEADER)?, 8).ok_or(Malformed)?;
            return Ok(Some((head, index)));
        }
        Ok(None)
    }

    /// `len` bytes at the cursor.
    fn slice(&self, len: usize) -> Result<&[u8], Malformed> {
        let at = (self.cursor & (self.bytes - 1)) as usize;
        if at + len > self.bytes as usize {
            return Err(Malformed);
        }
        // SAFETY: inside the mapping (checked above). The producer does not write between the
        // consumer's tail and the published head; a program that does so by overwriting random
        // memory can make us read nonsense, which the decoder must survive, not more.
        Ok(unsafe {
            std::slice::from_raw_parts(
                self.mapping.start().as_ptr().add(RING_HEADER_BYTES + at),
                len,
            )
        })
    }
}

/// The records that a drain may hand out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Records from here on may still be preceded by others.
    pub(crate) watermark: u64,
    /// No record has this index or a greater one yet.
    pub(crate) taken: u64,
    /// Records to hand out at most.
    pub(crate) max: usize,
}

/// Merges rings by global index.
#[derive(Debug)]
pub(crate) struct Merger {
    calibration: Calibration,
    /// Everything below was handed out or never written.
    watermark: u64,
    /// Last index handed out.
    last: u64,
    threads: u32,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Merger {
    /// Last index handed out, 0 before the first.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn new(calibration: Calibration) -> Self {
        Self { calibration, watermark: 0, last: 0, threads: 0, heap: BinaryHeap::new() }
    }

    /// Hands out records of rings that were refreshed after the watermark was determined (see
    /// `ring.rs`).
    pub(crate) fn drain(
        &mut self,
        rings: &mut [Option<RingView>],
        Bounds { watermark, taken, max }: Bounds,
        sink: &mut dyn FnMut(Envelope<'_>),
    ) -> usize {
        // A stale lower bound of a pending index may be below an earlier watermark; what was
        // certain then stays so.
        self.watermark = self.watermark.max(watermark);
        self.calibration.refine();
        self.heap.clear();
        for (number, ring) in rings.iter_mut().enumerate() {
            if let Some(index) = ring.as_mut().and_then(|ring| ring.front(taken)) {
                self.heap.push(Reverse((index, number)));
            }
        }
        let mut count = 0;
        while count < max {
            let Some(Reverse((index, number))) = self.heap.pop() else { break };
            if index >= self.watermark {
                break;
            }
            let next = self.heap.peek().map_or(self.watermark, |Reverse((next, _))| *next);
            let Some(ring) = rings.get_mut(number).and_then(Option::as_mut) else { continue };
            let limit = next.min(self.watermark);
            while count < max {
                match self.take(ring, limit, sink) {
                    Ok(Some(handed_out)) => count += usize::from(handed_out),
                    Ok(None) => break,
                    Err(Malformed) => ring.broken = true,
                }
            }
            if let Some(index) = ring.front(taken) {
                self.heap.push(Reverse((index, number)));
            }
        }
        count
    }

    /// Takes the next record below `limit` out of `ring`; `Some(false)` for one that only the
    /// consumer needs.
    fn take(
        &mut self,
        ring: &mut RingView,
        limit: u64,
        sink: &mut dyn FnMut(Envelope<'_>),
    ) -> Result<Option<bool>, Malformed> {
        let Some((head, g)) = ring.try_front()? else { return Ok(None) };
        if g >= limit {
            return Ok(None);
        }
        if g <= self.last {
            return Err(Malformed);
        }
        let (process, owner) = (ring.process, ring.thread);
        let bytes = ring.slice(head.size)?;
        let decoded = decode(head, bytes)?;
        let time = self.calibration.nanoseconds(word_at(bytes, 16).ok_or(Malformed)?);
        // A refined calibration may move times by some nanoseconds, but no thread's time back.
        let t_ns = time.max(ring.last_t_ns);
        if ring.mapping.is_torn() {
            return Err(Malformed);
        }
        let mut started = None;
        match decoded {
            Decoded::ThreadStart { tid } => {
                started = Some((ThreadKey(self.threads), tid));
                self.threads += 1;
            }
            Decoded::Record(record) => {
                let (thread, tid) = owner.ok_or(Malformed)?;
                sink(Envelope { process, thread, tid, g, t_ns, record });
            }
        }
        self.last = g;
        ring.last_t_ns = t_ns;
        if started.is_some() {
            ring.thread = started;
        }
        ring.cursor += head.size as u64;
        Ok(Some(started.is_none()))
    }
}
