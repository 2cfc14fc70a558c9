//! The bytes of a record, written in place into a ring.
//!
//! Every record is a multiple of 8 bytes and starts with three words: size, kind, depth and call
//! packed into one; the global index; the time. The rest depends on the kind and is written by
//! [`Body`].

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Skipped: fills the end of the ring.
    Padding = 0,
    /// A thread takes the ring: `[tid]`.
    ThreadStart = 1,
    /// `[context, stack, args..., blobs...]`
    Begin = 2,
    /// `[begin, result, outs...]`
    End = 3,
    /// `[function, name bytes | parameters << 32, module, library, (offset | size << 32)..., name]`
    Kernel = 4,
    /// `[op, complete, (start, end, mode)...]`
    Accesses = 5,
    /// `[op]`
    HostFunctionBegin = 6,
    /// `[op]`
    HostFunctionEnd = 7,
    /// `[words | text bytes << 32, stack, words..., text]`, with a [`crate::HostCall`] in place of a call
    Host = 8,
    /// `[host, result]`
    HostReturn = 9,
    /// `[op, origin | path bytes << 32, hash, offset, size, path]`
    Image = 10,
    /// A loaded object: [`crate::LoadedObject`].
    Object = 11,
    /// `[key, is cut, frames...]`, see [`crate::StackFrame`].
    Stack = 12,
    /// `[op, node, complete | flags << 32, (start, width, pitch, rows, mode | flags << 32)...]`, see
    /// [`crate::MeasuredRun`].
    Measured = 13,
    /// `[op, reason | text bytes << 32, text]`, see [`crate::NotMeasured`].
    NotMeasured = 14,
    /// A part of a graph that was read back: [`crate::GraphPart`].
    Graph = 16,
}

impl RecordKind {
    pub(crate) fn from_u8(kind: u8) -> Option<Self> {
        Some(match kind {
            0 => Self::Padding,
            1 => Self::ThreadStart,
            2 => Self::Begin,
            3 => Self::End,
            4 => Self::Kernel,
            5 => Self::Accesses,
            6 => Self::HostFunctionBegin,
            7 => Self::HostFunctionEnd,
            8 => Self::Host,
            9 => Self::HostReturn,
            10 => Self::Image,
            11 => Self::Object,
            12 => Self::Stack,
            13 => Self::Measured,
            14 => Self::NotMeasured,
            16 => Self::Graph,
            _ => return None,
        })
    }
}

/// Tags of blobs that belong to no single parameter; smaller tags are parameter indices.
#[derive(Debug)]
pub struct BlobTag;

impl BlobTag {
    /// Parameter bytes of the launched kernel, packed at their offsets.
    pub const KERNEL_PARAMS: u32 = 0xff00;
    /// `CUlaunchAttribute` array.
    pub const LAUNCH_ATTRIBUTES: u32 = 0xff01;
    /// Parameter bytes of the first kernel of a launch on several devices; the further ones follow.
    pub const MEMBER_PARAMS: u32 = 0xff10;
}

/// Parameter count in a [`RecordKind::Kernel`] record whose layout is unknown.
pub const NO_LAYOUT: u32 = u32::MAX;

/// Bytes of the three leading words.
pub(crate) const HEADER: usize = 24;

/// Packs the first word.
#[inline]
pub(crate) fn first_word(size: u32, kind: RecordKind, depth: u8, api: u16) -> u64 {
    u64::from(size) | (kind as u64) << 32 | u64::from(depth) << 40 | u64::from(api) << 48
}

/// Writes what follows the leading words; never writes beyond the reserved bytes.
#[derive(Debug)]
pub struct Body {
    at: *mut u8,
    left: usize,
}

impl Body {
    /// # Safety
    /// `at` is valid for writes of `left` bytes and nobody else reads or writes them meanwhile.
    #[inline]
    pub unsafe fn new(at: *mut u8, left: usize) -> Self {
        Self { at, left }
    }

    /// Bytes that [`Body::blob`] takes for `len` bytes of content.
    #[inline]
    pub const fn blob_bytes(len: usize) -> usize {
        8 + len.next_multiple_of(8)
    }

    /// Appends a word.
    #[inline]
    pub fn word(&mut self, word: u64) {
        if self.left < 8 {
            return;
        }
        // SAFETY: `at` has `left >= 8` writable bytes (constructor).
        unsafe {
            self.at.cast::<u64>().write_unaligned(word);
            self.at = self.at.add(8);
        }
        self.left -= 8;
    }

    /// Appends the head of a blob of `len` bytes, which follow by [`Body::bytes`] and
    /// [`Body::align`].
    #[inline]
    pub fn blob_head(&mut self, tag: u32, len: usize) {
        self.word(u64::from(tag) | (len as u64) << 32);
    }

    /// Appends a blob.
    ///
    /// # Safety
    /// `from` is valid for reads of `len` bytes.
    #[inline]
    pub unsafe fn blob(&mut self, tag: u32, from: *const u8, len: usize) {
        self.blob_head(tag, len);
        // SAFETY: passed on to the caller.
        unsafe { self.bytes(from, len) };
        self.align(len);
    }

    /// Appends bytes.
    ///
    /// # Safety
    /// `from` is valid for reads of `len` bytes.
    #[inline]
    pub unsafe fn bytes(&mut self, from: *const u8, len: usize) {
        if len > self.left {
            self.left = 0;
            return;
        }
        // SAFETY: `at` has `left >= len` writable bytes (constructor), `from` has `len` (caller).
        unsafe {
            core::ptr::copy_nonoverlapping(from, self.at, len);
            self.at = self.at.add(len);
        }
        self.left -= len;
    }

    /// Appends zeroes.
    #[inline]
    pub fn zeros(&mut self, len: usize) {
        let len = len.min(self.left);
        // SAFETY: `at` has `left >= len` writable bytes (constructor).
        unsafe {
            core::ptr::write_bytes(self.at, 0, len);
            self.at = self.at.add(len);
        }
        self.left -= len;
    }

    /// Pads after `len` bytes of content to the next word.
    #[inline]
    pub fn align(&mut self, len: usize) {
        self.zeros(len.next_multiple_of(8) - len);
    }

    /// Where the next `len` bytes go, for the caller to write; `None` if they do not fit. What the
    /// caller leaves out keeps the bytes of an older record.
    #[inline]
    pub fn gather(&mut self, len: usize) -> Option<*mut u8> {
        if len > self.left {
            return None;
        }
        let at = self.at;
        // SAFETY: `at` has `left >= len` writable bytes (constructor).
        self.at = unsafe { at.add(len) };
        self.left -= len;
        Some(at)
    }
}
