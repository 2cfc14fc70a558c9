//! The few parts of an ELF file that are needed, read from the file where they lie.

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Sections larger than this are not unpacked: packed DWARF lies in memory as a whole.
const LARGEST_UNPACKED: u64 = 2 << 30;
/// More sections than any linker makes of a library.
const MOST_SECTIONS: u64 = 1 << 16;

/// A part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// Where a symbol table and its names lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolSection {
    pub(crate) symbols: Extent,
    pub(crate) names: Extent,
}

/// What is in an ELF file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) build_id: Option<Vec<u8>>,
    /// Name of the separate debug file and its checksum.
    pub(crate) debug_link: Option<(Vec<u8>, u32)>,
    /// Name of the file that debug files share, and its build id.
    pub(crate) shared_debug: Option<(Vec<u8>, Vec<u8>)>,
    /// The full table of symbols, or the dynamic one where that is stripped.
    pub(crate) symbols: Option<SymbolSection>,
    /// Whether the table is the full one.
    pub(crate) has_full_symbols: bool,
    /// Whether there is DWARF with lines, not too large to be unpacked.
    pub(crate) has_dwarf: bool,
}

impl Contents {
    /// Reads the headers of a file; `None` where it is no 64-bit little-endian ELF file.
    pub(crate) fn read(file: &File) -> Option<Self> {
        let cache = ReadCache::new(file);
        let data = &cache;
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        if endian != Endianness::Little || u64::from(header.e_shnum(endian)) > MOST_SECTIONS {
            return None;
        }
        let sections = header.sections(endian, data).ok()?;
        let mut contents = Self::default();
        let mut unpacked = 0u64;
        let length = data.len().ok()?;
        let extent = |section: &elf::SectionHeader64<Endianness>| {
            let (offset, size) = section.file_range(endian)?;
            (offset.checked_add(size)? <= length).then_some(Extent { offset, size })
        };
        for section in sections.iter() {
            let name = sections.section_name(endian, section).unwrap_or_default();
            match section.sh_type(endian) {
                elf::SHT_NOTE if contents.build_id.is_none() => {
                    contents.build_id = build_id(section, endian, data);
                }
                kind @ (elf::SHT_SYMTAB | elf::SHT_DYNSYM) => {
                    let full = kind == elf::SHT_SYMTAB;
                    let names = sections.section(section.link(endian)).ok().and_then(extent);
                    if let (Some(symbols), Some(names)) = (extent(section), names)
                        && (full || !contents.has_full_symbols)
                    {
                        contents.symbols = Some(SymbolSection { symbols, names });
                        contents.has_full_symbols = full;
                    }
                }
                elf::SHT_PROGBITS if name == b".gnu_debuglink" => {
                    contents.debug_link = extent(section).and_then(|at| debug_link(file, at));
                }
                elf::SHT_PROGBITS if name == b".gnu_debugaltlink" => {
                    contents.shared_debug = extent(section).and_then(|at| shared_debug(file, at));
                }
                elf::SHT_PROGBITS if name.starts_with(b".debug_") => {
                    contents.has_dwarf |= name == b".debug_line";
                    if let Ok(Some((packed, ..))) = section.compression(endian, data) {
                        unpacked = unpacked.saturating_add(packed.ch_size.get(endian));
                    }
                }
                _ => {}
            }
        }
        contents.has_dwarf &= unpacked <= LARGEST_UNPACKED;
        Some(contents)
    }
}

/// Opens a regular file: a path out of a trace may name a device or a pipe.
pub(crate) fn open(path: &Path) -> Option<File> {
    if !path.is_absolute() || !path.metadata().ok()?.is_file() {
        return None;
    }
    File::open(path).ok()
}

/// The bytes of a part of a file.
pub(crate) fn bytes(file: &File, at: Extent) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(at.size).ok()?];
    file.read_exact_at(&mut bytes, at.offset).ok()?;
    Some(bytes)
}

fn build_id<'a, R: ReadRef<'a>>(
    section: &elf::SectionHeader64<Endianness>,
    endian: Endianness,
    data: R,
) -> Option<Vec<u8>> {
    let mut notes = section.notes(endian, data).ok()??;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
            return Some(note.desc().to_vec());
        }
    }
    None
}

/// A name with its terminator, padded to four bytes, and a checksum.
fn debug_link(file: &File, at: Extent) -> Option<(Vec<u8>, u32)> {
    let bytes = bytes(file, Extent { size: at.size.min(8192), ..at })?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let checksum = bytes.get((end + 1).next_multiple_of(4)..)?.first_chunk::<4>()?;
    Some((bytes[..end].to_vec(), u32::from_le_bytes(*checksum)))
}

/// A name with its terminator, and a build id.
fn shared_debug(file: &File, at: Extent) -> Option<(Vec<u8>, Vec<u8>)> {
    let bytes = bytes(file, Extent { size: at.size.min(8192), ..at })?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((bytes[..end].to_vec(), bytes[end + 1..].to_vec()))
}
