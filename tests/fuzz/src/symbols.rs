//! Symbols and DWARF of host images.

use crate::numbers::Numbers;
use crate::scratch;
use std::fs;
use streamsan_symbols::Symbolizer;
use streamsan_testing::images::{Elf, Section};

/// Addresses that are asked for: inside and outside of the functions of the seeds.
const ASKED: [u64; 7] = [0, 1, 0x1001, 0x1010, 0x1028, 0x2000, u64::MAX];
/// Bytes of DWARF that may be read.
const ROOM: u64 = 16 << 20;

/// The sections of the `dwarf` target, in the order of the parts of its inputs.
const SECTIONS: [&str; 9] = [
    ".debug_abbrev",
    ".debug_info",
    ".debug_line",
    ".debug_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_addr",
    ".debug_line_str",
    ".debug_aranges",
];

/// A file as it is.
pub(crate) fn file(input: &[u8]) {
    let path = scratch::file("image");
    fs::write(&path, input).expect("there is room");
    let mut symbolizer = Symbolizer::with_debug_directories([]).reading_at_most(ROOM);
    for address in ASKED {
        symbolizer.source(&path, None, address);
    }
}

/// An image with these sections.
pub(crate) fn dwarf(input: &[u8]) {
    let mut numbers = Numbers(input);
    let sections = SECTIONS.map(|name| (name, numbers.part().to_vec()));
    file(&image(sections.into_iter().filter(|(_, data)| !data.is_empty())));
}

fn image(sections: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Vec<u8> {
    let mut all = vec![
        Section { kind: 3, ..Section::new(".strtab", b"\0outer\0_ZN5inner3runEv\0".to_vec()) },
        Section { kind: 2, link: 1, ..Section::new(".symtab", symbols()) },
    ];
    all.extend(sections.into_iter().map(|(name, data)| Section::new(name, data)));
    Elf::host(all).build()
}

/// Two functions, one of which lies in the other.
fn symbols() -> Vec<u8> {
    let mut table = vec![0; 24];
    for (name, address, size) in [(1_u32, 0x1000_u64, 0x40_u64), (7, 0x1020, 0x10)] {
        table.extend(name.to_le_bytes());
        table.extend([0x12, 0]);
        table.extend(1_u16.to_le_bytes());
        table.extend(address.to_le_bytes());
        table.extend(size.to_le_bytes());
    }
    table
}

/// A length in front of what follows it.
fn with_length(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes(), body].concat()
}

/// DWARF 4 of a function at 0x1000 with another one inlined at 0x1020, written by hand.
fn sections() -> [(&'static str, Vec<u8>); 4] {
    #[rustfmt::skip]
    let abbreviations = vec![
        // A unit: name, lines, low and high address.
        1, 0x11, 1, 0x03, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0,
        // A function: name in the table of strings, low and high address.
        2, 0x2e, 1, 0x03, 0x0e, 0x11, 0x01, 0x12, 0x06, 0, 0,
        // An inlined function: its origin, low and high address, file and line of its call.
        3, 0x1d, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0x58, 0x0b, 0x59, 0x0b, 0, 0,
        // A function that is only inlined.
        4, 0x2e, 0, 0x03, 0x08, 0, 0,
        0,
    ];
    let mut unit = 4_u16.to_le_bytes().to_vec();
    unit.extend(0_u32.to_le_bytes());
    unit.push(8);
    unit.push(1);
    unit.extend(b"a.cc\0");
    unit.extend(0_u32.to_le_bytes());
    unit.extend(0x1000_u64.to_le_bytes());
    unit.extend(0x40_u32.to_le_bytes());
    let origin = unit.len() as u32 + 4;
    unit.push(4);
    unit.extend(b"inner\0");
    unit.push(2);
    unit.extend(1_u32.to_le_bytes());
    unit.extend(0x1000_u64.to_le_bytes());
    unit.extend(0x40_u32.to_le_bytes());
    unit.push(3);
    unit.extend(origin.to_le_bytes());
    unit.extend(0x1020_u64.to_le_bytes());
    unit.extend(0x10_u32.to_le_bytes());
    unit.extend([1, 7, 0, 0]);

    let mut tables = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    tables.extend(b"src\0\0a.cc\0\x01\0\0\0");
    let mut program = vec![0, 9, 2];
    program.extend(0x1000_u64.to_le_bytes());
    program.extend([3, 4, 1, 2, 0x20, 3, 3, 1, 2, 0x20, 0, 1, 1]);
    let lines = [&4_u16.to_le_bytes()[..], &with_length(&tables), &program].concat();
    [
        (SECTIONS[0], abbreviations),
        (SECTIONS[1], with_length(&unit)),
        (SECTIONS[2], with_length(&lines)),
        (SECTIONS[3], b"\0outer\0".to_vec()),
    ]
}

pub(crate) fn file_seeds() -> Vec<Vec<u8>> {
    let link = [&b"image.debug\0"[..], &[1, 2, 3, 4]].concat();
    let note = [&[4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0], &b"GNU\0"[..], &[1, 2, 3, 4]].concat();
    let mut with_notes = vec![
        Section { kind: 7, ..Section::new(".note.gnu.build-id", note) },
        Section::new(".gnu_debuglink", link),
        Section::new(".gnu_debugdata", b"\xfd7zXZ\0".to_vec()),
    ];
    with_notes.extend(sections().map(|(name, data)| Section::new(name, data)));
    vec![image([]), image(sections()), Elf::host(with_notes).build()]
}

pub(crate) fn dwarf_seeds() -> Vec<Vec<u8>> {
    let parts = sections()
        .into_iter()
        .flat_map(|(_, data)| [(data.len() as u16).to_le_bytes().to_vec(), data].concat());
    vec![parts.collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds of the targets must be understood, or little of the code is reached.
    #[test]
    fn the_seeds_are_understood() {
        let path = scratch::file("image");
        fs::write(&path, image(sections())).expect("there is room");
        let mut symbolizer = Symbolizer::with_debug_directories([]);
        let names = |address| -> Vec<_> {
            let frames = symbolizer.source(&path, None, address);
            frames.into_iter().map(|f| (f.function.unwrap_or_default(), f.line)).collect()
        };
        let mut names = names;
        assert_eq!(names(0x1002), [("outer".into(), Some(5))]);
        assert_eq!(names(0x1028), [("inner".into(), Some(8)), ("outer".into(), Some(7))]);
    }
}
