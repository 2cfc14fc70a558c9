//! The needed parts of an ELF file, read from the file on demand. Source: System V ABI, chapter
//! "Object Files".
//!
//! Invariant: files are read and never mapped, so that a file which is truncated at that moment is
//! an error and not a signal.

use object::elf::{self, FileHeader64};
use object::read::CompressionFormat;
use object::read::elf::{CompressionHeader, FileHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Number of sections that no linker exceeds in a library.
const MOST_SECTIONS: u64 = 1 << 16;

/// A part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// The places of a symbol table and of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolSection {
    pub(crate) symbols: Extent,
    pub(crate) names: Extent,
}

/// A section with debug information.
#[derive(Clone, Debug)]
pub(crate) struct DebugSection {
    /// The section's name, for example `.debug_info`.
    pub(crate) name: String,
    /// The section's place in the file; for a packed section the place behind its header.
    pub(crate) at: Extent,
    pub(crate) packed: CompressionFormat,
    /// Size in bytes of the unpacked section.
    pub(crate) size: u64,
}

/// The parts of an ELF file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) build_id: Option<Vec<u8>>,
    /// Name of the separate debug file and its checksum.
    pub(crate) debug_link: Option<(Vec<u8>, u32)>,
    /// Name of the file that debug files share, and its build id.
    pub(crate) shared_debug: Option<(Vec<u8>, Vec<u8>)>,
    /// The full table of symbols, or the dynamic table where the full one is stripped.
    pub(crate) symbols: Option<SymbolSection>,
    /// Whether the table is the full one.
    pub(crate) has_full_symbols: bool,
    /// A packed image with the symbols that are missing in this file: MiniDebugInfo.
    pub(crate) packed_symbols: Option<Extent>,
    pub(crate) debug: Vec<DebugSection>,
}

impl Contents {
    /// Reads the headers of a file; `None` where it is no 64-bit little-endian ELF file.
    pub(crate) fn read(file: &File) -> Option<Self> {
        Self::parse(&ReadCache::new(file))
    }

    /// The headers of a file in memory, or of one that is read on demand.
    pub(crate) fn parse<'a, R: ReadRef<'a>>(data: R) -> Option<Self> {
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        if endian != Endianness::Little || u64::from(header.e_shnum(endian)) > MOST_SECTIONS {
            return None;
        }
        let sections = header.sections(endian, data).ok()?;
        let mut contents = Self::default();
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
                    contents.debug_link = extent(section).and_then(|at| debug_link(data, at));
                }
                elf::SHT_PROGBITS if name == b".gnu_debugaltlink" => {
                    contents.shared_debug = extent(section).and_then(|at| shared_debug(data, at));
                }
                elf::SHT_PROGBITS if name == b".gnu_debugdata" => {
                    contents.packed_symbols = extent(section);
                }
                elf::SHT_PROGBITS if name.starts_with(b".debug_") => {
                    let section = extent(section).zip(section.compression(endian, data).ok());
                    contents.debug.extend(section.and_then(|(at, packed)| {
                        debug_section(String::from_utf8_lossy(name).into_owned(), at, packed)
                    }));
                }
                _ => {}
            }
        }
        Some(contents)
    }

    /// Whether there is DWARF with lines.
    pub(crate) fn has_dwarf(&self) -> bool {
        self.debug.iter().any(|section| section.name == ".debug_line")
    }
}

/// A section; for a packed section its header and the place behind the header.
fn debug_section(
    name: String,
    at: Extent,
    packed: Option<(&elf::CompressionHeader64<Endianness>, u64, u64)>,
) -> Option<DebugSection> {
    let Some((header, offset, length)) = packed else {
        return Some(DebugSection { name, at, packed: CompressionFormat::None, size: at.size });
    };
    let format = match header.ch_type(Endianness::Little) {
        elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return None,
    };
    let size = header.ch_size.get(Endianness::Little);
    Some(DebugSection { name, at: Extent { offset, size: length }, packed: format, size })
}

/// Opens a regular file. A path out of a trace may name a device or a pipe, which is refused.
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
fn debug_link<'a, R: ReadRef<'a>>(data: R, at: Extent) -> Option<(Vec<u8>, u32)> {
    let bytes = data.read_bytes_at(at.offset, at.size.min(8192)).ok()?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let checksum = bytes.get((end + 1).next_multiple_of(4)..)?.first_chunk::<4>()?;
    Some((bytes[..end].to_vec(), u32::from_le_bytes(*checksum)))
}

/// A name with its terminator, and a build id.
fn shared_debug<'a, R: ReadRef<'a>>(data: R, at: Extent) -> Option<(Vec<u8>, Vec<u8>)> {
    let bytes = data.read_bytes_at(at.offset, at.size.min(8192)).ok()?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((bytes[..end].to_vec(), bytes[end + 1..].to_vec()))
}
