//! How far an image reaches that is known by its address only: no call of the driver is told its
//! length.
//!
//! Source of the wrapper and the container: `fatbinary_section.h` of the CUDA Toolkit, and what
//! compilers write.

use super::memory::{number, read};

/// First number of the wrapper that compilers put around a fat binary in a program.
const WRAPPER: u64 = 0x4662_43b1;
/// First number of a fat binary.
const CONTAINER: u64 = 0xba55_ed50;
/// First number of an ELF file.
const ELF: u64 = 0x464c_457f;
/// The most fat binaries of one wrapper.
const MOST_PARTS: u64 = 1 << 16;
/// The largest fat binary, and the largest other image, in bytes.
const LARGEST_CONTAINER: u64 = 1 << 34;
const LARGEST: u64 = 1 << 30;
/// Texts are searched for their end in pieces that cross no page.
const PAGE: u64 = 4096;
const SECTION_NOBITS: u64 = 8;

/// A stretch of memory that is a fat binary, an ELF file, or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) address: u64,
    pub(super) length: u64,
}

/// Finds the image at an address: one part, or of a wrapper of version 2 the fat binary and those
/// that were linked into it before, which its second address lists, ended by a null. `None` where
/// something could not be followed; the parts before it were found.
pub(super) fn locate(address: u64, found: &mut dyn FnMut(Part)) -> Option<()> {
    let mut wrapper = [0; 24];
    if !read(address, &mut wrapper[..4]) || number::<4>(&wrapper, 0) != WRAPPER {
        found(part(address)?);
        return Some(());
    }
    if !read(address, &mut wrapper) {
        return None;
    }
    let version = number::<4>(&wrapper, 4);
    if !matches!(version, 1 | 2) {
        return None;
    }
    found(part(number::<8>(&wrapper, 8))?);
    let list = number::<8>(&wrapper, 16);
    if version == 1 || list == 0 {
        return Some(());
    }
    for index in 0..MOST_PARTS {
        let mut next = [0; 8];
        if !read(list.checked_add(8 * index)?, &mut next) {
            return None;
        }
        match u64::from_le_bytes(next) {
            0 => return Some(()),
            fatbin => found(part(fatbin)?),
        }
    }
    None
}

fn part(address: u64) -> Option<Part> {
    let mut head = [0; 16];
    if !read(address, &mut head[..4]) {
        return None;
    }
    let (length, limit) = match number::<4>(&head, 0) {
        CONTAINER => {
            // Behind the magic number: version and size of the header, 16 bits each, and the bytes
            // that follow it.
            if !read(address, &mut head) {
                return None;
            }
            (number::<2>(&head, 6).checked_add(number::<8>(&head, 8))?, LARGEST_CONTAINER)
        }
        ELF => (elf_size(address)?, LARGEST),
        _ if head[..4].iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) => {
            (text_length(address)?, LARGEST)
        }
        _ => return None,
    };
    (length <= limit).then_some(Part { address, length })
}

/// An ELF file reaches to the end of its tables and sections.
fn elf_size(address: u64) -> Option<u64> {
    let mut header = [0; 64];
    if !read(address, &mut header) || header[4..6] != [2, 1] {
        return None;
    }
    let (programs, sections) = (number::<8>(&header, 32), number::<8>(&header, 40));
    let half = |at| number::<2>(&header, at);
    let (section_size, section_count) = (half(58), half(60));
    let mut end = 64u64.max(programs.checked_add(half(54) * half(56))?);
    end = end.max(sections.checked_add(section_size * section_count)?);
    for index in 0..section_count {
        let mut section = [0; 64];
        let at = address.checked_add(sections)?.checked_add(index * section_size)?;
        if !read(at, &mut section) {
            return None;
        }
        if number::<4>(&section, 4) != SECTION_NOBITS {
            end = end.max(number::<8>(&section, 24).checked_add(number::<8>(&section, 32))?);
        }
    }
    Some(end)
}

/// Bytes in front of the NUL that ends a text.
fn text_length(address: u64) -> Option<u64> {
    let mut length = 0;
    let mut page = [0; PAGE as usize];
    while length <= LARGEST {
        let at = address.checked_add(length)?;
        let piece = &mut page[..(PAGE - at % PAGE) as usize];
        if !read(at, piece) {
            return None;
        }
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            return Some(length + end as u64);
        }
        length += piece.len() as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(address: u64) -> (Vec<Part>, bool) {
        let mut found = Vec::new();
        let whole = locate(address, &mut |part| found.push(part)).is_some();
        (found, whole)
    }

    fn container(payload: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((CONTAINER as u32).to_le_bytes());
        bytes.extend([1, 0, 16, 0]);
        bytes.extend(payload.to_le_bytes());
        bytes.resize(16 + payload as usize, 7);
        bytes
    }

    fn wrapper(version: u32, data: u64, list: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((WRAPPER as u32).to_le_bytes());
        bytes.extend(version.to_le_bytes());
        bytes.extend(data.to_le_bytes());
        bytes.extend(list.to_le_bytes());
        bytes
    }

    fn at(bytes: &[u8]) -> u64 {
        bytes.as_ptr() as u64
    }

    #[test]
    fn texts_end_at_their_nul() {
        let text = b".version 8.0\n.target sm_80\n\0behind";
        let (address, length) = (at(text), 27);
        assert_eq!(parts(address), (vec![Part { address, length }], true));
    }

    #[test]
    fn fat_binaries_say_their_size() {
        let (first, second) = (container(100), container(40));
        let part = |bytes: &[u8]| Part { address: at(bytes), length: bytes.len() as u64 };
        assert_eq!(parts(at(&first)), (vec![part(&first)], true));
        let old = wrapper(1, at(&first), 99);
        assert_eq!(parts(at(&old)), (vec![part(&first)], true));
        let list = [at(&second), at(&first), 0];
        let new = wrapper(2, at(&first), list.as_ptr() as u64);
        assert_eq!(parts(at(&new)), (vec![part(&first), part(&second), part(&first)], true));
    }

    #[test]
    fn what_is_no_image_is_not_followed() {
        for bytes in [wrapper(3, 0, 0), wrapper(1, 8, 0), vec![0; 64], vec![1, 2, 3, 4]] {
            assert_eq!(parts(at(&bytes)), (vec![], false));
        }
        assert_eq!(parts(8), (vec![], false));
        let first = container(8);
        let half = wrapper(2, at(&first), 8);
        let (found, whole) = parts(at(&half));
        assert!(found.len() == 1 && !whole);
    }
}
