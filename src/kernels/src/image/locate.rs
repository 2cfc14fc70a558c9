//! How far an image reaches that is known by its address only: no call of the driver is told its
//! length.

use super::bytes::{u16_at, u32_at, u64_at};
use super::elf::ELF_MAGIC;
use super::fatbin::{CONTAINER_HEADER, CONTAINER_MAGIC, container_size};
use super::{ImageError, MAX_CODE};

/// First number of the wrapper that compilers put around a fat binary in a program.
pub(super) const WRAPPER_MAGIC: u32 = 0x4662_43b1;
/// Magic number, version, address of the fat binary, and a second address.
const WRAPPER_SIZE: usize = 24;
/// The most fat binaries of one wrapper.
const MOST_PARTS: usize = 1 << 16;
/// The largest fat binary, in bytes.
const MAX_CONTAINER: u64 = 1 << 34;
/// Texts are searched for their end in pieces that cross no page.
const PAGE: u64 = 4096;
const SECTION_NOBITS: u32 = 8;

/// Memory of the program that loads an image.
pub trait Memory {
    /// Fills `into` with what is at `address`; `false` when it cannot all be read.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// A stretch of memory that is an image which [`super::Image::read`] understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it starts.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// Where the image at an address lies: one part, or of a wrapper of version 2 the fat binary and
/// those that were linked into it before, which its second address lists, ended by a null.
///
/// Source of the wrapper: `fatbinary_section.h` of the CUDA Toolkit.
///
/// # Errors
/// When memory cannot be read, or what is there cannot be an image.
pub fn locate(memory: &impl Memory, address: u64) -> Result<Vec<Part>, ImageError> {
    let magic: [u8; 4] = read(memory, address)?;
    if u32::from_le_bytes(magic) != WRAPPER_MAGIC {
        return Ok(vec![part(memory, address)?]);
    }
    let wrapper: [u8; WRAPPER_SIZE] = read(memory, address)?;
    let word = |at| u64_at(&wrapper, at).unwrap_or_default();
    let version = u32_at(&wrapper, 4);
    if !matches!(version, Some(1 | 2)) {
        return Err(ImageError::Damaged { what: "the version of a wrapper", offset: 4 });
    }
    let mut parts = vec![part(memory, word(8))?];
    let list = word(16);
    if version == Some(2) && list != 0 {
        loop {
            let next = list.saturating_add(8 * (parts.len() as u64 - 1));
            let fatbin = u64::from_le_bytes(read(memory, next)?);
            if fatbin == 0 {
                break;
            }
            if parts.len() > MOST_PARTS {
                return Err(ImageError::Damaged { what: "the list of a wrapper", offset: 16 });
            }
            parts.push(part(memory, fatbin)?);
        }
    }
    Ok(parts)
}

fn part(memory: &impl Memory, address: u64) -> Result<Part, ImageError> {
    let magic: [u8; 4] = read(memory, address)?;
    let (length, limit) = if u32::from_le_bytes(magic) == CONTAINER_MAGIC {
        let header: [u8; CONTAINER_HEADER] = read(memory, address)?;
        let what = "the header of a fat binary";
        let size = container_size(&header).ok_or(ImageError::Damaged { what, offset: 0 })?;
        (size, MAX_CONTAINER)
    } else if magic == ELF_MAGIC {
        (elf_size(memory, address)?, MAX_CODE)
    } else if magic.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        (text_length(memory, address)?, MAX_CODE)
    } else {
        return Err(ImageError::Unrecognized);
    };
    if length > limit {
        return Err(ImageError::TooLarge { claimed: length, limit });
    }
    Ok(Part { address, length })
}

/// An ELF file reaches to the end of its tables and sections.
fn elf_size(memory: &impl Memory, address: u64) -> Result<u64, ImageError> {
    let header: [u8; 64] = read(memory, address)?;
    if header[4..6] != [2, 1] {
        return Err(ImageError::Class);
    }
    let word = |at| u64_at(&header, at).unwrap_or_default();
    let half = |at| u64::from(u16_at(&header, at).unwrap_or_default());
    let (programs, sections) = (word(32), word(40));
    let (program_size, program_count) = (half(54), half(56));
    let (section_size, section_count) = (half(58), half(60));
    let mut end = 64u64.max(programs.saturating_add(program_size * program_count));
    end = end.max(sections.saturating_add(section_size * section_count));
    for index in 0..section_count {
        let at = address.saturating_add(sections).saturating_add(index * section_size);
        let section: [u8; 64] = read(memory, at)?;
        if u32_at(&section, 4) != Some(SECTION_NOBITS) {
            let word = |at| u64_at(&section, at).unwrap_or_default();
            end = end.max(word(24).saturating_add(word(32)));
        }
    }
    Ok(end)
}

/// Bytes in front of the NUL that ends a text.
fn text_length(memory: &impl Memory, address: u64) -> Result<u64, ImageError> {
    let mut length = 0;
    let mut page = [0; PAGE as usize];
    while length <= MAX_CODE {
        let at = address.saturating_add(length);
        let piece = &mut page[..(PAGE - at % PAGE) as usize];
        fill(memory, at, piece)?;
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            return Ok(length + end as u64);
        }
        length += piece.len() as u64;
    }
    Ok(length)
}

fn read<const N: usize>(memory: &impl Memory, address: u64) -> Result<[u8; N], ImageError> {
    let mut bytes = [0; N];
    fill(memory, address, &mut bytes)?;
    Ok(bytes)
}

fn fill(memory: &impl Memory, address: u64, into: &mut [u8]) -> Result<(), ImageError> {
    let length = into.len() as u64;
    let there = address.checked_add(length).is_some() && memory.read(address, into);
    if there { Ok(()) } else { Err(ImageError::Memory { address, length }) }
}
