//! DWARF, read into memory and parsed a unit at a time.
//!
//! Only sections about functions and lines are read. Units of split DWARF are read from their own
//! files on demand. Invariant: the sections of an image never take more memory than the given
//! bound. Source: DWARF 5 standard.

use crate::elf::{self, Contents, DebugSection};
use addr2line::{Context, FrameIter, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{
    AbbreviationsCacheStrategy, DwarfPackage, EndianArcSlice, LittleEndian, Reader, SectionId,
};
use object::read::{CompressedData, CompressionFormat};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A part of a section; its bytes live as long as any part does.
type Bytes = EndianArcSlice<LittleEndian>;

/// The reason why a file's DWARF is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The DWARF would take more memory than allowed.
    TooLarge,
    /// The DWARF cannot be read or not be understood.
    Broken,
}

/// The DWARF of an image.
pub(crate) struct Dwarf {
    context: Context<Bytes>,
    /// Units of split DWARF, packed together.
    package: Option<DwarfPackage<Bytes>>,
    /// Number of bytes that may still be read.
    room: Cell<u64>,
}

impl Dwarf {
    /// Reads the DWARF of a file and of the file that it shares debug information with, in at most
    /// `room` bytes of memory.
    pub(crate) fn read(
        path: &Path,
        (file, contents): (&File, &Contents),
        shared: Option<&Path>,
        room: u64,
    ) -> Result<Self, Refusal> {
        let shared = shared.and_then(elf::open);
        let shared = shared.and_then(|file| Some((Contents::read(&file)?, file)));
        let of_shared = shared.as_ref().map_or(0, |(contents, _)| wanted(contents));
        let left = room.checked_sub(wanted(contents).saturating_add(of_shared));
        let room = Cell::new(left.ok_or(Refusal::TooLarge)?);
        let mut dwarf = gimli::Dwarf::load(|id| section(file, contents, id.name()))?;
        if let Some((contents, file)) = &shared {
            dwarf.load_sup(|id| section(file, contents, id.name()))?;
        }
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let context = Context::from_dwarf(dwarf).map_err(|_| Refusal::Broken)?;
        let package = package(path, &room);
        Ok(Self { context, package, room })
    }

    /// The functions at an address, innermost first.
    pub(crate) fn frames(&self, address: u64) -> Option<FrameIter<'_, Bytes>> {
        let mut looked_up = self.context.find_frames(address);
        loop {
            let (load, continuation) = match looked_up {
                LookupResult::Output(frames) => return frames.ok(),
                LookupResult::Load { load, continuation } => (load, continuation),
            };
            looked_up = continuation.resume(self.unit(&load));
        }
    }

    /// A unit of split DWARF.
    fn unit(&self, load: &SplitDwarfLoad<Bytes>) -> Option<Arc<gimli::Dwarf<Bytes>>> {
        if let Some(package) = &self.package
            && let Ok(Some(unit)) = package.find_cu(load.dwo_id, &load.parent)
        {
            return Some(Arc::new(unit));
        }
        let mut path = PathBuf::new();
        for part in [load.comp_dir.as_ref(), Some(load.path.as_ref()?)].into_iter().flatten() {
            path.push(OsStr::from_bytes(&part.to_slice().ok()?));
        }
        let (file, contents) = open_within(&path, &self.room)?;
        let mut dwarf =
            gimli::Dwarf::load(|id| optional_section(&file, &contents, id.dwo_name())).ok()?;
        let header = dwarf.units().next().ok()??;
        if dwarf.unit(header).ok()?.dwo_id != Some(load.dwo_id) {
            return None;
        }
        dwarf.make_dwo(&load.parent);
        Some(Arc::new(dwarf))
    }
}

/// The package of a program's split units, beside the program.
fn package(path: &Path, room: &Cell<u64>) -> Option<DwarfPackage<Bytes>> {
    let mut name = OsString::from(path);
    name.push(".dwp");
    let (file, contents) = open_within(Path::new(&name), room)?;
    let load = |id: SectionId| optional_section(&file, &contents, id.dwo_name());
    DwarfPackage::load(|id| load(id).map_err(|_| gimli::Error::Io), empty()).ok()
}

/// Opens a file of split DWARF if it fits.
fn open_within(path: &Path, room: &Cell<u64>) -> Option<(File, Contents)> {
    let file = elf::open(path)?;
    let contents = Contents::read(&file)?;
    room.set(room.get().checked_sub(wanted(&contents))?);
    Some((file, contents))
}

/// Bytes of memory that the sections of a file take.
fn wanted(contents: &Contents) -> u64 {
    let sections = contents.debug.iter().filter(|section| is_wanted(&section.name));
    sections.fold(0, |sum, section| sum.saturating_add(section.size.max(section.at.size)))
}

/// Whether a section is about functions or lines. Other sections (places of variables, macros) are
/// as large.
fn is_wanted(name: &str) -> bool {
    const WANTED: [&str; 13] = [
        "abbrev",
        "addr",
        "aranges",
        "cu_index",
        "info",
        "line",
        "line_str",
        "ranges",
        "rnglists",
        "str",
        "str_offsets",
        "tu_index",
        "types",
    ];
    let name = name.strip_prefix(".debug_").unwrap_or_default();
    WANTED.contains(&name.strip_suffix(".dwo").unwrap_or(name))
}

fn empty() -> Bytes {
    Bytes::new(Arc::from([]), LittleEndian)
}

fn optional_section(
    file: &File,
    contents: &Contents,
    name: Option<&'static str>,
) -> Result<Bytes, Refusal> {
    name.map_or_else(|| Ok(empty()), |name| section(file, contents, name))
}

/// The unpacked bytes of a section; none where there is no such section or it is not needed.
fn section(file: &File, contents: &Contents, name: &str) -> Result<Bytes, Refusal> {
    let found = contents.debug.iter().find(|section| section.name == name);
    let Some(section) = found.filter(|_| is_wanted(name)) else { return Ok(empty()) };
    let bytes = bytes(file, section).ok_or(Refusal::Broken)?;
    Ok(Bytes::new(bytes, LittleEndian))
}

fn bytes(file: &File, section: &DebugSection) -> Option<Arc<[u8]>> {
    let length = usize::try_from(section.at.size).ok()?;
    if section.packed == CompressionFormat::None {
        // Allocated in its final place.
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
        file.read_exact_at(Arc::get_mut(&mut bytes)?, section.at.offset).ok()?;
        return Some(bytes);
    }
    let packed = elf::bytes(file, section.at)?;
    let (format, uncompressed_size) = (section.packed, section.size);
    let unpacked = CompressedData { format, data: &packed, uncompressed_size }.decompress().ok()?;
    Some(Arc::from(unpacked))
}
