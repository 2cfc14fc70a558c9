//! The functions of a symbol table, by address.
//!
//! Invariant: a symbol names only addresses that its size covers.

use crate::elf::{Extent, SymbolSection};
use object::Endianness;
use object::elf::{self, Sym64};
use object::pod::slice_from_bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes of the table that are read at once: a multiple of a symbol's size.
const CHUNK: usize = 24 * 2048;
/// Number of symbols before an address that may still cover it: functions that contain labels of
/// others.
const ENCLOSING: usize = 16;
/// Bytes of a name that are read.
const LONGEST_NAME: u64 = 64 * 1024;

/// A function: 16 bytes, since a large library has hundreds of thousands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    address: u64,
    size: u32,
    /// Offset of the function's name among the names.
    name: u32,
}

/// The source of a symbol table.
#[derive(Debug)]
pub(crate) enum Source {
    File(File),
    /// An image that was unpacked.
    Memory(Vec<u8>),
}

impl Source {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(bytes, offset),
            Self::Memory(memory) => {
                let start = usize::try_from(offset).ok();
                let from = start.and_then(|start| memory.get(start..)?.get(..bytes.len()));
                bytes.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

/// The functions of one symbol table, and the source of their names.
#[derive(Debug)]
pub(crate) struct FunctionTable {
    source: Source,
    names: Extent,
    functions: Vec<Function>,
}

impl FunctionTable {
    /// Reads the table.
    pub(crate) fn read(source: Source, section: SymbolSection) -> Option<Self> {
        let mut functions = Vec::new();
        let mut chunk = vec![0; CHUNK];
        let end = section.symbols.offset + section.symbols.size / 24 * 24;
        let mut at = section.symbols.offset;
        while at < end {
            let length = (end - at).min(CHUNK as u64) as usize;
            source.read_exact_at(&mut chunk[..length], at).ok()?;
            let (symbols, _) =
                slice_from_bytes::<Sym64<Endianness>>(&chunk[..length], length / 24).ok()?;
            functions.extend(symbols.iter().filter_map(function));
            at += length as u64;
        }
        // Among names for the same bytes, the first one in the table comes first.
        functions.sort_by_key(|(rank, function)| (function.address, *rank));
        let mut functions: Vec<Function> = functions.into_iter().map(|(_, f)| f).collect();
        functions.dedup_by_key(|function| (function.address, function.size));
        functions.shrink_to_fit();
        Some(Self { source, names: section.names, functions })
    }

    /// The name of the function whose bytes include an address.
    pub(crate) fn name(&self, address: u64) -> Option<String> {
        let after = self.functions.partition_point(|function| function.address <= address);
        let function = self.functions[..after]
            .iter()
            .rev()
            .take(ENCLOSING)
            .find(|function| address - function.address < u64::from(function.size))?;
        let offset = u64::from(function.name);
        let room = self.names.size.checked_sub(offset)?.min(LONGEST_NAME) as usize;
        let mut name = Vec::new();
        // Most names are short.
        for step in [256, LONGEST_NAME as usize] {
            name.resize(room.min(step), 0);
            self.source.read_exact_at(&mut name, self.names.offset + offset).ok()?;
            if let Some(end) = name.iter().position(|&byte| byte == 0) {
                name.truncate(end);
                return (end > 0).then(|| String::from_utf8_lossy(&name).into_owned());
            }
        }
        None
    }
}

/// A symbol that is a function with bytes of its own, with its rank among names for the same bytes.
fn function(symbol: &Sym64<Endianness>) -> Option<(u8, Function)> {
    let endian = Endianness::Little;
    let size = symbol.st_size.get(endian);
    let is_function = matches!(symbol.st_info.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
    let is_defined = symbol.st_shndx.get(endian) != elf::SHN_UNDEF;
    if !is_function || !is_defined || size == 0 {
        return None;
    }
    let rank = match symbol.st_info.st_bind() {
        elf::STB_GLOBAL => 0,
        elf::STB_WEAK => 1,
        _ => 2,
    };
    let function = Function {
        address: symbol.st_value.get(endian),
        size: u32::try_from(size).unwrap_or(u32::MAX),
        name: symbol.st_name.get(endian),
    };
    Some((rank, function))
}
