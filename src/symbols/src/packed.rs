//! MiniDebugInfo: the symbols of a stripped image, packed with xz into a section of it.

use crate::elf::{self, Contents, Extent};
use crate::table::{FunctionTable, Source};
use lzma_rust2::XzReader;
use std::fs::File;
use std::io::Read;

/// Size in bytes above which a section is not read and an unpacked image is given up. Those of the
/// largest libraries of distributions are some MiB.
const LARGEST: u64 = 256 << 20;
/// KiB of memory for the decoder beside the image; xz at its strongest takes 65 MiB.
const DECODER_KIB: u32 = 256 << 10;

/// The functions that a section with packed symbols names.
pub(crate) fn functions(file: &File, section: Extent) -> Option<FunctionTable> {
    if section.size > LARGEST {
        return None;
    }
    let packed = elf::bytes(file, section)?;
    let mut image = Vec::new();
    let mut decoder = XzReader::new_mem_limit(&*packed, true, DECODER_KIB).take(LARGEST + 1);
    decoder.read_to_end(&mut image).ok()?;
    if image.len() as u64 > LARGEST {
        return None;
    }
    let symbols = Contents::parse(&*image)?.symbols?;
    FunctionTable::read(Source::Memory(image), symbols)
}
