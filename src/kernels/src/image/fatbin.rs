//! Fat binaries: containers of entries, each code for one target.
//!
//! NVIDIA does not document the layout. What is used here was seen in the output of its
//! `fatbinary` of CUDA 12.9 and 13.5 and is the common knowledge of other readers. Container, 16
//! bytes: magic number, version (u16), size of this header (u16), size of the entries (u64). Entry:
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 2 | kind: 1 PTX, 2 machine code |
//! | 4 | 4 | size of the header: 64 and more |
//! | 8 | 8 | size of the payload, padding included; the next entry follows |
//! | 16 | 4 | size of the packed data, where it is packed |
//! | 28 | 4 | number of the target, as in `sm_90` |
//! | 40 | 8 | flags: 0x2000 LZ4, 0x8000 Zstandard, 0x10_0000 target `a`, 0x20_0000 target `f` |
//! | 56 | 8 | size of the code, where it is packed |

use super::bytes::{u16_at, u32_at, u64_at, until_nul};
use super::compression::unpack;
use super::{Compression, ComputeCapability, ImageError, MAX_CODE, Target, Variant};
use std::borrow::Cow;

/// First number of a container.
pub(super) const CONTAINER_MAGIC: u32 = 0xba55_ed50;
pub(super) const CONTAINER_HEADER: usize = 16;
const CONTAINER_VERSION: u16 = 1;
const ENTRY_HEADER: usize = 64;

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;

/// The kind of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeKind {
    /// Text that the driver compiles.
    Ptx,
    /// Machine code in an ELF file.
    Cubin,
    /// Something that the driver does not load by itself, such as code for link-time optimisation.
    Other(u16),
}

/// A piece of code for one target.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The kind of the code.
    pub kind: CodeKind,
    /// The target of the code; `None` where neither header nor code tell.
    pub target: Option<Target>,
    /// How it is packed.
    pub compression: Compression,
    /// Bytes of the code, unpacked, as the header says.
    pub size: u64,
    payload: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Code that is in no container.
    pub(super) fn bare(kind: CodeKind, target: Option<Target>, payload: &'a [u8]) -> Self {
        let size = payload.len() as u64;
        Self { kind, target, compression: Compression::None, size, payload }
    }

    /// The code as it stands in the container, packed or not.
    pub(crate) fn packed(&self) -> &'a [u8] {
        self.payload
    }

    /// The code itself, unpacked. PTX is without the NUL bytes behind it.
    ///
    /// # Errors
    /// When packed data is damaged, or larger than [`MAX_CODE`].
    pub fn code(&self) -> Result<Cow<'a, [u8]>, ImageError> {
        let text = self.kind == CodeKind::Ptx;
        if self.compression == Compression::None {
            return Ok(Cow::Borrowed(if text { until_nul(self.payload) } else { self.payload }));
        }
        let mut code = unpack(self.compression, self.payload, self.size)?;
        if text {
            code.truncate(until_nul(&code).len());
        }
        Ok(Cow::Owned(code))
    }
}

/// A fat binary, or bare code as a container of one entry.
#[derive(Clone, Debug)]
pub struct Container<'a> {
    /// Where it starts, in bytes from the start of the image.
    pub offset: u64,
    /// Bytes from there on.
    pub size: u64,
    /// Its pieces are meant to be linked first and are loaded only as a result of that
    /// (`__nv_relfatbin`).
    pub relocatable: bool,
    /// In the order of the container.
    pub entries: Vec<Entry<'a>>,
}

/// Bytes of a container, header included, as its header says. `None` where none starts here.
pub(super) fn container_size(header: &[u8]) -> Option<u64> {
    let magic = u32_at(header, 0)? == CONTAINER_MAGIC && u16_at(header, 4)? == CONTAINER_VERSION;
    let head = u64::from(u16_at(header, 6)?);
    let size = head.checked_add(u64_at(header, 8)?)?;
    (magic && head >= CONTAINER_HEADER as u64).then_some(size)
}

/// Reads the container at `offset` of an image, and tells the offset behind it.
pub(super) fn read_container(
    image: &[u8],
    offset: usize,
) -> Result<(Container<'_>, usize), ImageError> {
    let rest = image.get(offset..).unwrap_or_default();
    let truncated = |what, at: usize| ImageError::Truncated { what, offset: at as u64 };
    let header = rest
        .get(..CONTAINER_HEADER)
        .ok_or_else(|| truncated("the header of a fat binary", offset))?;
    let damaged =
        || ImageError::Damaged { what: "the header of a fat binary", offset: offset as u64 };
    let size = container_size(header).ok_or_else(damaged)?;
    let bytes = usize::try_from(size)
        .ok()
        .and_then(|size| rest.get(..size))
        .ok_or_else(|| truncated("a fat binary", offset))?;
    let mut at = usize::from(u16_at(header, 6).unwrap_or_default());
    if at > bytes.len() {
        return Err(damaged());
    }
    let mut entries = Vec::new();
    while at < bytes.len() {
        let (entry, length) = read_entry(&bytes[at..], offset + at)?;
        entries.extend(entry);
        at += length;
    }
    let container = Container { offset: offset as u64, size, relocatable: false, entries };
    Ok((container, offset + bytes.len()))
}

/// Reads the entry at the start of `bytes`, and tells how long it is. Padding is no entry.
fn read_entry(bytes: &[u8], offset: usize) -> Result<(Option<Entry<'_>>, usize), ImageError> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok((None, bytes.len()));
    }
    let truncated = |what| ImageError::Truncated { what, offset: offset as u64 };
    let damaged = |what| ImageError::Damaged { what, offset: offset as u64 };
    let fields = || -> Option<_> {
        let numbers = (u16_at(bytes, 0)?, u32_at(bytes, 4)? as usize, u64_at(bytes, 8)?);
        Some((numbers, u32_at(bytes, 16)? as usize, u32_at(bytes, 28)?, u64_at(bytes, 40)?))
    };
    let header = "the header of an entry";
    let ((kind, head, payload), packed, number, flags) =
        fields().ok_or_else(|| truncated(header))?;
    let unpacked = u64_at(bytes, 56).ok_or_else(|| truncated(header))?;
    if head < ENTRY_HEADER {
        return Err(damaged("the size of the header of an entry"));
    }
    let code = usize::try_from(payload)
        .ok()
        .and_then(|payload| bytes.get(head..head.checked_add(payload)?))
        .ok_or_else(|| truncated("the code of an entry"))?;
    let compression = match (flags & FLAG_LZ4 != 0, flags & FLAG_ZSTD != 0) {
        (false, false) => Compression::None,
        (true, false) => Compression::Lz4,
        (false, true) => Compression::Zstd,
        (true, true) => return Err(damaged("an entry that is packed in two ways")),
    };
    let (data, size) = match compression {
        Compression::None => (code, payload),
        _ => {
            let data = code.get(..packed).ok_or_else(|| damaged("the size of packed code"))?;
            (data, unpacked)
        }
    };
    if size > MAX_CODE {
        return Err(ImageError::TooLarge { claimed: size, limit: MAX_CODE });
    }
    let variant = match (flags & FLAG_SPECIFIC != 0, flags & FLAG_FAMILY != 0) {
        (true, _) => Variant::Specific,
        (false, true) => Variant::Family,
        (false, false) => Variant::Portable,
    };
    let kind = match kind {
        1 => CodeKind::Ptx,
        2 => CodeKind::Cubin,
        other => CodeKind::Other(other),
    };
    let capability = ComputeCapability::from_number(number);
    let target = capability.map(|capability| Target { capability, variant });
    Ok((Some(Entry { kind, target, compression, size, payload: data }), head + code.len()))
}
