//! Texts that a program hands to NVTX: in bytes, in wide characters, or registered before.
//!
//! Registered texts and the names of domains are kept for good, each once, in a table that the
//! handles number: a handle that the program made up, or that another tool gave it, leads nowhere.
//! They are copies in the runtime's own memory, so they are known in forked children too.

use core::ffi::{c_char, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Most bytes of a record's text.
pub(super) const LONGEST_NAME: usize = 256;

/// Texts that are kept; a program registers its texts once and has some hundreds.
const MOST_KEPT: usize = 16384;

/// A text for a record, without memory of its own.
pub(super) struct Text {
    bytes: [u8; LONGEST_NAME],
    len: usize,
}

impl Text {
    pub(super) fn new() -> Self {
        Self { bytes: [0; LONGEST_NAME], len: 0 }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Appends at most so many bytes.
    pub(super) fn push(&mut self, text: &[u8], most: usize) {
        let text = &text[..text.len().min(most).min(LONGEST_NAME - self.len)];
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text);
        self.len += text.len();
    }

    /// Appends a string.
    ///
    /// # Safety
    /// `text` is null or a NUL-terminated string.
    pub(super) unsafe fn push_narrow(&mut self, text: *const c_char) {
        if text.is_null() {
            return;
        }
        // SAFETY: nothing behind the NUL is read (caller).
        let text = unsafe {
            core::slice::from_raw_parts(text.cast::<u8>(), libc::strnlen(text, LONGEST_NAME))
        };
        self.push(text, LONGEST_NAME);
    }

    /// Appends a string of `wchar_t` as UTF-8.
    ///
    /// # Safety
    /// `text` is null or a NUL-terminated string of `wchar_t`.
    pub(super) unsafe fn push_wide(&mut self, text: *const u32) {
        if text.is_null() {
            return;
        }
        for index in 0.. {
            // SAFETY: nothing behind the NUL is read (caller).
            let wide = unsafe { text.add(index).read_unaligned() };
            let character = char::from_u32(wide).unwrap_or(char::REPLACEMENT_CHARACTER);
            if wide == 0 || self.len + character.len_utf8() > LONGEST_NAME {
                break;
            }
            self.len += character.encode_utf8(&mut self.bytes[self.len..]).len();
        }
    }
}

static KEPT: [AtomicPtr<Box<[u8]>>; MOST_KEPT] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST_KEPT];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Keeps a text. Answers its handle, null where no more are kept.
pub(super) fn keep(text: &[u8]) -> *const c_void {
    let handle = |index: usize| ptr::without_provenance(index + 1);
    let count = COUNT.load(Ordering::Acquire).min(MOST_KEPT);
    if let Some(index) = (0..count).find(|&index| at(index) == Some(text)) {
        return handle(index);
    }
    let index = COUNT.fetch_add(1, Ordering::AcqRel);
    let Some(slot) = KEPT.get(index) else {
        COUNT.store(MOST_KEPT, Ordering::Release);
        return ptr::null();
    };
    slot.store(Box::into_raw(Box::new(text.into())), Ordering::Release);
    handle(index)
}

/// The text of a handle that [`keep`] gave.
pub(super) fn kept(handle: *const c_void) -> Option<&'static [u8]> {
    at(handle.addr().checked_sub(1)?)
}

fn at(index: usize) -> Option<&'static [u8]> {
    // SAFETY: null, or a box that is never dropped.
    unsafe { KEPT.get(index)?.load(Ordering::Acquire).as_ref() }.map(|text| &**text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_once_and_made_up_handles_lead_nowhere() {
        let (a, b) = (keep(b"forward"), keep(b"backward"));
        assert_ne!(a, b);
        assert_eq!(keep(b"forward"), a);
        assert_eq!((kept(a), kept(b)), (Some(&b"forward"[..]), Some(&b"backward"[..])));
        for wild in [0, MOST_KEPT, MOST_KEPT + 1, 0x7f00_1234_5678, usize::MAX] {
            assert_eq!(kept(ptr::without_provenance(wild)), None, "{wild:#x}");
        }
    }

    #[test]
    fn texts_end_at_their_room() {
        let mut text = Text::new();
        text.push(&[b'd'; 300], 64);
        assert_eq!(text.as_bytes().len(), 64);
        let wide: Vec<u32> = "\u{e9}".repeat(400).chars().map(u32::from).chain([0]).collect();
        // SAFETY: the list ends with NUL.
        unsafe { text.push_wide(wide.as_ptr()) };
        assert_eq!(text.as_bytes().len(), LONGEST_NAME);
        assert!(std::str::from_utf8(text.as_bytes()).is_ok());
        // SAFETY: null is a text without characters.
        unsafe { text.push_narrow(ptr::null()) };
        // SAFETY: the string ends with NUL.
        unsafe { text.push_narrow(c"more".as_ptr()) };
        assert_eq!(text.as_bytes().len(), LONGEST_NAME);
    }

    #[test]
    fn wide_characters_that_are_none_are_replaced() {
        let mut text = Text::new();
        // SAFETY: the list ends with NUL.
        unsafe { text.push_wide([u32::from('a'), 0xd800, 0x11_0000, 0].as_ptr()) };
        assert_eq!(text.as_bytes(), "a\u{fffd}\u{fffd}".as_bytes());
    }
}
