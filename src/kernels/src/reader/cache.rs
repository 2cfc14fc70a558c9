//! Conclusions on disk, one file a kernel.
//!
//! A file is a checksum and packed data. One that is damaged in any way is as good as none. It is
//! written beside its place and moved there, so that nobody reads half of it.

use super::ANALYSIS_VERSION;
use super::read::{CodeSource, Request};
use crate::access::{KernelAccess, TooLarge};
use crate::image::Target;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The largest conclusion that is unpacked, in bytes.
const MAX_UNPACKED: usize = 256 << 20;
/// Bytes of the checksum in front.
const CHECKSUM: usize = size_of::<u128>();

/// What is kept of a kernel.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// A kernel that is too large would take as long the next time.
    pub(super) access: Result<KernelAccess, TooLarge>,
    pub(super) source: CodeSource,
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

/// Which conclusion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key(u128);

impl Key {
    /// Everything that a conclusion depends on but the disassembler, which the file itself tells.
    pub(super) fn new(image: u128, request: &Request<'_>) -> Self {
        let mut hash = Xxh3::new();
        hash.update(ANALYSIS_VERSION.as_bytes());
        hash.update(&image.to_le_bytes());
        hash.update(&request.device.number().to_le_bytes());
        hash.update(request.kernel.as_bytes());
        Self(hash.digest128())
    }
}

/// A directory of conclusions.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What is kept, if it is of the disassembler that is there now. Where there is none, that of
    /// any is better than nothing.
    pub(super) fn load(&self, key: Key, disassembler: Option<u64>) -> Option<Kept> {
        let kept = unpack(&fs::read(self.path(key)).ok()?)?;
        let same = kept.disassembler == disassembler;
        (same || kept.source == CodeSource::Ptx || disassembler.is_none()).then_some(kept)
    }

    /// Keeps a packed conclusion. One that cannot be kept is made again the next time.
    pub(super) fn store(&self, key: Key, plain: &[u8]) {
        let packed = lz4_flex::block::compress_prepend_size(plain);
        // A full disk, or a directory of somebody else: nothing that the user has to know.
        let _ = self.write(&self.path(key), &packed);
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder.join(format!("{:032x}.access", key.0))
    }

    fn write(&self, path: &Path, packed: &[u8]) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let written = path.with_extension(format!("{}-{number}.new", std::process::id()));
        let outcome = File::create_new(&written).and_then(|mut file| {
            file.write_all(&xxh3_128(packed).to_le_bytes())?;
            file.write_all(packed)
        });
        let outcome = outcome.and_then(|()| fs::rename(&written, path));
        if outcome.is_err() {
            // Nothing more can be done about a file that is in the way.
            let _ = fs::remove_file(&written);
        }
        outcome
    }
}

fn unpack(file: &[u8]) -> Option<Kept> {
    let (checksum, packed) = file.split_at_checked(CHECKSUM)?;
    if checksum != xxh3_128(packed).to_le_bytes() {
        return None;
    }
    let (size, packed) = lz4_flex::block::uncompressed_size(packed).ok()?;
    let plain =
        (size <= MAX_UNPACKED).then(|| lz4_flex::block::decompress(packed, size).ok())??;
    Kept::unpack(&plain)
}
