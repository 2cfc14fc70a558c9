//! File, function and line of a frame, read from its code object.
//!
//! Allocates nothing; texts longer than the buffers here are cut at their ends.

use core::fmt::Write;

use super::PythonFrame;
use super::layout::{self, PythonLayout};
use super::walk::{NOT_STARTED, UNKNOWN, i32_at, pointer, word};

/// A frame in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Description<'a> {
    /// `co_filename`, as the program has it: often relative to where it was started.
    pub(crate) file: &'a str,
    /// Its qualified name, before 3.11 its plain name.
    pub(crate) function: &'a str,
    /// From 1. `None` where the compiler gave the instruction none.
    pub(crate) line: Option<u32>,
}

/// No line table of a function is longer: what says so is none.
const LONGEST_TABLE: usize = 1 << 24;

/// # Safety
/// `frame` comes from a walk of this thread that its caller has not returned from; it is of the
/// version of `layout` and not hidden.
pub(super) unsafe fn describe(
    layout: &PythonLayout,
    frame: &PythonFrame,
    sink: &mut dyn FnMut(Description<'_>),
) {
    let (mut file, mut function) = (Text::<1024>::new(), Text::<256>::new());
    let code = frame.code;
    // SAFETY: fields of a code object that its frame keeps alive.
    let line = unsafe {
        file.read(layout, word(code + layout.file));
        function.read(layout, word(code + layout.shown_name));
        let first = i32_at(code + layout.first_line);
        let offset = match frame.instruction {
            NOT_STARTED => Some(-1),
            UNKNOWN => None,
            offset => i32::try_from(offset).ok(),
        };
        offset.and_then(|offset| {
            layout.lines.line(bytes(word(code + layout.line_table))?, first, offset)
        })
    };
    sink(Description { file: file.as_str(), function: function.as_str(), line });
}

/// # Safety
/// `object` is 0 or a `PyBytes` that stays.
unsafe fn bytes<'a>(object: usize) -> Option<&'a [u8]> {
    let object = pointer(object)?;
    // SAFETY: fields of the object (caller).
    unsafe {
        let len = word(object + layout::SIZE);
        let start = (object + layout::BYTES) as *const u8;
        (len < LONGEST_TABLE).then(|| core::slice::from_raw_parts(start, len))
    }
}

/// A text of at most `N` bytes.
struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    fn new() -> Text<N> {
        Text { bytes: [0; N], len: 0 }
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Takes over a Python string; what is no character becomes U+FFFD.
    ///
    /// # Safety
    /// `object` is 0 or a `PyUnicode` of the version of `layout`.
    unsafe fn read(&mut self, layout: &PythonLayout, object: usize) {
        let Some(object) = pointer(object) else { return };
        // SAFETY: fields of the object (caller).
        let (len, state) =
            unsafe { (word(object + layout::SIZE), i32_at(object + layout::STATE) as u32) };
        if state & layout::STATE_COMPACT == 0 {
            return;
        }
        let ascii = state & layout::STATE_ASCII != 0;
        let start = object + if ascii { layout.ascii } else { layout.compact };
        let width = match (state >> layout::STATE_KIND_SHIFT) & 7 {
            kind @ (1 | 2 | 4) => kind as usize,
            _ => return,
        };
        for index in 0..len.min(N) {
            let at = start + index * width;
            // SAFETY: the string has `len` characters of `width` bytes from `start` on.
            let value = unsafe {
                match width {
                    1 => u32::from((at as *const u8).read()),
                    2 => u32::from((at as *const u16).read()),
                    _ => (at as *const u32).read(),
                }
            };
            let character = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
            if self.write_char(character).is_err() {
                return;
            }
        }
    }
}

impl<const N: usize> Write for Text<N> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(core::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}
