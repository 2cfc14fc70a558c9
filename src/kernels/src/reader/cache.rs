//! Conclusions on disk, one file a kernel.
//!
//! A file is a checksum and packed data, and says itself what it speaks of: which image, device and
//! kernel, and which version of the analysis concluded it. One that is damaged in any way, that
//! speaks of something else than its name says, or that breaks the rule of `streamsan_directories`
//! is as good as none. It is written beside its place and moved there, so that nobody reads half of
//! it.

use super::ANALYSIS_VERSION;
use super::read::{CodeForm, Request};
use crate::access::{KernelAccess, TooLarge};
use crate::image::Target;
use serde::{Deserialize, Serialize};
use streamsan_directories::Directory;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The largest conclusion that is unpacked, in bytes.
const MAX_UNPACKED: usize = 256 << 20;
/// The largest file that is read: what cannot be packed gets a little larger.
const MAX_FILE: u64 = (MAX_UNPACKED + MAX_UNPACKED / 100) as u64;
/// Bytes of the checksum in front.
const CHECKSUM: usize = size_of::<u128>();

/// The conclusion that is kept of a kernel.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// A kernel that is too large would take as long the next time.
    pub(super) access: Result<KernelAccess, TooLarge>,
    pub(super) source: CodeForm,
    pub(super) target: Option<Target>,
    /// Which disassembler printed the machine code.
    pub(super) disassembler: Option<u64>,
}

impl Kept {
    pub(super) fn pack(&self) -> Option<Vec<u8>> {
        postcard::to_stdvec(self).ok()
    }

    pub(super) fn unpack(plain: &[u8]) -> Option<Self> {
        postcard::from_bytes(plain).ok()
    }
}

/// The subject of a conclusion: everything that it depends on but the disassembler, which stands in
/// the conclusion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    version: String,
    /// Hash of the image.
    image: u128,
    device: u32,
    kernel: String,
}

impl Subject {
    pub(super) fn new(image: u128, request: &Request<'_>) -> Self {
        Self {
            version: ANALYSIS_VERSION.to_owned(),
            image,
            device: request.device.number(),
            kernel: request.kernel.to_owned(),
        }
    }

    fn file_name(&self) -> String {
        let mut hash = Xxh3::new();
        hash.update(self.version.as_bytes());
        hash.update(&self.image.to_le_bytes());
        hash.update(&self.device.to_le_bytes());
        hash.update(self.kernel.as_bytes());
        format!("{:032x}.access", hash.digest128())
    }
}

/// A directory of conclusions.
#[derive(Debug)]
pub(super) struct Cache {
    folder: Directory,
}

impl Cache {
    pub(super) fn new(folder: Directory) -> Self {
        Self { folder }
    }

    /// The kept conclusion, if it is of the disassembler that is there now. Where there is none,
    /// that of any is better than nothing.
    pub(super) fn load(&self, subject: &Subject, disassembler: Option<u64>) -> Option<Kept> {
        let file = self.folder.read(&subject.file_name(), MAX_FILE).ok()?;
        let kept = unpack(&file, subject)?;
        let same = kept.disassembler == disassembler;
        (same || kept.source == CodeForm::Ptx || disassembler.is_none()).then_some(kept)
    }

    /// Keeps a packed conclusion. One that cannot be kept is made again the next time.
    pub(super) fn store(&self, subject: &Subject, plain: &[u8]) {
        let Ok(whole) = postcard::to_stdvec(subject) else { return };
        let packed = lz4_flex::block::compress_prepend_size(&[&whole, plain].concat());
        let checksum = xxh3_128(&packed).to_le_bytes();
        // A full disk: nothing that the user has to know.
        let _ = self.folder.replace(&subject.file_name(), 0o600, &[&checksum, &packed]);
    }
}

fn unpack(file: &[u8], subject: &Subject) -> Option<Kept> {
    let (checksum, packed) = file.split_at_checked(CHECKSUM)?;
    if checksum != xxh3_128(packed).to_le_bytes() {
        return None;
    }
    let (size, packed) = lz4_flex::block::uncompressed_size(packed).ok()?;
    let plain =
        (size <= MAX_UNPACKED).then(|| lz4_flex::block::decompress(packed, size).ok())??;
    let (told, kept) = postcard::take_from_bytes::<Subject>(&plain).ok()?;
    (told == *subject).then(|| Kept::unpack(kept))?
}
