//! The place of code that a call has loaded.
//!
//! Code in a file that the process has mapped is named by that file: libraries bring hundreds of
//! megabytes of it. Other code is copied once, by its content, into the run directory.

use core::fmt;

use crate::encode::Body;
use crate::path::PathBuffer;

/// How the collector gets at an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ImageOrigin {
    /// The code could not be kept: the disk is full, or the bytes are no image.
    Lost = 0,
    /// In the run directory, under [`image_file`].
    Copied = 1,
    /// In a file, `size` bytes from `offset` on; all of the file where `size` is 0.
    File = 2,
}

impl ImageOrigin {
    pub(crate) fn from_u32(origin: u32) -> Option<Self> {
        [Self::Lost, Self::Copied, Self::File].into_iter().find(|&o| o as u32 == origin)
    }
}

/// Code that was loaded.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// The place of the code.
    pub origin: ImageOrigin,
    /// XXH3 of its bytes, 0 where they were not read.
    pub hash: u64,
    /// Bytes in front of it in the file.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// The file, absolute.
    pub path: &'a [u8],
}

impl Image<'_> {
    /// Bytes of the record behind its leading words.
    pub fn body_bytes(&self) -> usize {
        40 + self.path.len().next_multiple_of(8)
    }
}

/// Writes what stands behind the leading words: code that the call at `op` has loaded.
pub fn image_body(body: &mut Body, op: u64, image: &Image<'_>) {
    body.word(op);
    body.word(u64::from(image.origin as u32) | (image.path.len() as u64) << 32);
    body.word(image.hash);
    body.word(image.offset);
    body.word(image.size);
    // SAFETY: a live slice.
    unsafe { body.bytes(image.path.as_ptr(), image.path.len()) };
    body.align(image.path.len());
}

/// The file of a copied image; `None` where its path is too long.
pub fn image_file(directory: impl fmt::Display, hash: u64, size: u64) -> Option<PathBuffer> {
    PathBuffer::format(format_args!("{directory}/image-{hash:016x}-{size:x}"))
}
