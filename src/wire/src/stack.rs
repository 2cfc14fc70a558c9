//! Host stacks: the places that calls come from.
//!
//! A BEGIN names its stack by a key. Each thread that uses a key sends the key's frames once, in a
//! record before the first such BEGIN; the loaded objects of the frames come before that.
//! Invariant: a key always stands for the same frames in a process, so that a second record of the
//! key holds nothing new.

use crate::encode::Body;
use crate::record::word_at;

/// The stacks that a program's threads record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackMode {
    /// Native frames.
    pub native: bool,
    /// Python frames, where the process runs an interpreter that is understood.
    pub python: bool,
}

impl StackMode {
    /// None.
    pub const OFF: Self = Self { native: false, python: false };

    /// Whether nothing is recorded.
    pub const fn is_off(self) -> bool {
        !self.native && !self.python
    }

    pub(crate) const fn to_word(self) -> u32 {
        self.native as u32 | (self.python as u32) << 1
    }

    pub(crate) const fn from_word(word: u32) -> Self {
        Self { native: word & 1 != 0, python: word & 2 != 0 }
    }
}

/// Most bytes of a file or function name in a frame.
pub const LONGEST_FRAME_TEXT: usize = 1024;

const NATIVE: u64 = 0;
const PYTHON: u64 = 1;

/// One frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackFrame<'a> {
    /// Machine code.
    Native {
        /// Number of the loaded object, as its record says; 0: in none.
        object: u32,
        /// Return address, less the object's load bias.
        offset: u64,
    },
    /// A function of Python.
    Python {
        file: &'a [u8],
        /// Its name.
        function: &'a [u8],
        /// The line in it, from 1; 0 where it is not known.
        line: u32,
    },
}

impl StackFrame<'_> {
    /// Bytes that the frame takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Native { .. } => 16,
            Self::Python { file, function, .. } => {
                16 + file.len().next_multiple_of(8) + function.len().next_multiple_of(8)
            }
        }
    }

    /// The bytes of these frames, one behind the other.
    pub fn written(frames: &[Self]) -> Vec<u8> {
        let mut bytes = vec![0; frames.iter().map(Self::bytes).sum()];
        // SAFETY: the buffer has this many bytes.
        let mut body = unsafe { Body::new(bytes.as_mut_ptr(), bytes.len()) };
        frames.iter().for_each(|frame| frame.write(&mut body));
        bytes
    }

    /// Writes the frame.
    pub fn write(&self, body: &mut Body) {
        match *self {
            Self::Native { object, offset } => {
                body.word(NATIVE | u64::from(object) << 32);
                body.word(offset);
            }
            Self::Python { file, function, line } => {
                body.word(PYTHON | u64::from(line) << 32);
                body.word(file.len() as u64 | (function.len() as u64) << 32);
                for text in [file, function] {
                    // SAFETY: a live slice.
                    unsafe { body.bytes(text.as_ptr(), text.len()) };
                    body.align(text.len());
                }
            }
        }
    }
}

/// The frames of a stack, innermost first.
#[derive(Clone, Copy)]
pub struct StackFrames<'a>(&'a [u8]);

impl<'a> StackFrames<'a> {
    /// The frames that [`StackFrame::write`] wrote.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// All frames up to the first that is none.
    pub fn iter(&self) -> impl Iterator<Item = StackFrame<'a>> + 'a {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (frame, behind) = split_frame(rest)?;
            rest = behind;
            Some(frame)
        })
    }
}

fn split_frame(bytes: &[u8]) -> Option<(StackFrame<'_>, &[u8])> {
    let (head, second) = (word_at(bytes, 0)?, word_at(bytes, 8)?);
    let (kind, number) = (head & u64::from(u32::MAX), (head >> 32) as u32);
    let rest = bytes.get(16..)?;
    match kind {
        NATIVE => Some((StackFrame::Native { object: number, offset: second }, rest)),
        PYTHON => {
            let (file, rest) = split_text(rest, second as u32 as usize)?;
            let (function, rest) = split_text(rest, (second >> 32) as usize)?;
            Some((StackFrame::Python { file, function, line: number }, rest))
        }
        _ => None,
    }
}

fn split_text(bytes: &[u8], len: usize) -> Option<(&[u8], &[u8])> {
    let text = bytes.get(..len)?;
    Some((text, bytes.get(len.checked_next_multiple_of(8)?..)?))
}

impl std::fmt::Debug for StackFrames<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An executable or library that a process has loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedObject<'a> {
    /// Its number among all that the process ever had, from 1.
    pub number: u32,
    /// Its GNU build id, empty where it has none.
    pub build_id: &'a [u8],
    pub path: &'a [u8],
}

impl LoadedObject<'_> {
    /// Bytes of the record behind its leading words.
    pub fn body_bytes(&self) -> usize {
        16 + self.build_id.len().next_multiple_of(8) + self.path.len().next_multiple_of(8)
    }

    /// Writes what stands behind the leading words.
    pub fn write(&self, body: &mut Body) {
        body.word(u64::from(self.number));
        body.word(self.build_id.len() as u64 | (self.path.len() as u64) << 32);
        for bytes in [self.build_id, self.path] {
            // SAFETY: a live slice.
            unsafe { body.bytes(bytes.as_ptr(), bytes.len()) };
            body.align(bytes.len());
        }
    }
}

pub(crate) fn decode_object(body: &[u8]) -> Option<LoadedObject<'_>> {
    let (number, lengths) = (word_at(body, 0)? as u32, word_at(body, 8)?);
    let (build_id, rest) = split_text(body.get(16..)?, lengths as u32 as usize)?;
    let (path, _) = split_text(rest, (lengths >> 32) as usize)?;
    Some(LoadedObject { number, build_id, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        let frames = [
            StackFrame::Native { object: 3, offset: u64::MAX },
            StackFrame::Python { file: b"train.py", function: b"step.<locals>.f", line: 7 },
            StackFrame::Python { file: b"", function: b"x", line: 0 },
            StackFrame::Native { object: 0, offset: 1 },
        ];
        let bytes = StackFrame::written(&frames);
        assert_eq!(StackFrames::new(&bytes).iter().collect::<Vec<_>>(), frames);
        // Cut anywhere: no panic, and only whole frames.
        for len in 0..bytes.len() {
            assert!(StackFrames::new(&bytes[..len]).iter().count() < frames.len());
        }
    }

    #[test]
    fn objects_come_back() {
        let object = LoadedObject { number: 9, build_id: &[1, 2, 3], path: b"/usr/lib/libx.so" };
        let mut bytes = vec![0u8; object.body_bytes()];
        // SAFETY: the buffer has this many bytes.
        let mut body = unsafe { Body::new(bytes.as_mut_ptr(), bytes.len()) };
        object.write(&mut body);
        assert_eq!(decode_object(&bytes), Some(object));
        assert_eq!(decode_object(&bytes[..20]), None);
    }
}
