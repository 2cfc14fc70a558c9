//! ELF files, of hosts and of GPUs: 64 bits, little-endian.

use super::ImageError;
use object::LittleEndian as LE;
use object::elf::{EM_CUDA, ET_REL, FileHeader64, SHT_NOBITS, SHT_SYMTAB, STT_FUNC};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};

/// First bytes of an ELF file.
pub(super) const ELF_MAGIC: &[u8] = b"\x7fELF";

/// How many names a byte of a file may be in, on average: linkers let the ends of names share bytes.
const MOST_NAMES: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct Elf<'a> {
    bytes: &'a [u8],
    header: &'a FileHeader64<LE>,
    sections: SectionTable<'a, FileHeader64<LE>>,
}

/// A section that has bytes in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElfSection<'a> {
    pub(super) name: &'a [u8],
    /// In bytes from the start of the file.
    pub(super) offset: u64,
    pub(super) data: &'a [u8],
}

/// A function that a symbol names.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionSymbol<'a> {
    /// Index of its symbol.
    pub(super) symbol: u32,
    pub(super) name: &'a [u8],
    /// Bytes of its code.
    pub(super) size: u64,
    /// The flags that the machine defines (st_other).
    pub(super) other: u8,
}

impl<'a> Elf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, ImageError> {
        if bytes.get(4..6).is_some_and(|class| class != [2, 1]) {
            return Err(ImageError::Class);
        }
        let header = FileHeader64::<LE>::parse(bytes)?;
        let sections = header.sections(LE, bytes)?;
        let elf = Self { bytes, header, sections };
        elf.check_proportion()?;
        Ok(elf)
    }

    /// Refuses a file whose sections lie over each other, or whose names do: what is made of them
    /// would be larger than the file by any factor.
    fn check_proportion(&self) -> Result<(), ImageError> {
        let length = self.bytes.len() as u64;
        let damaged = |what| Err(ImageError::Damaged { what, offset: 0 });
        let (mut data, mut names) = (0_u64, 0_u64);
        for section in self.sections.iter() {
            let (_, size) = section.file_range(LE).unwrap_or_default();
            data = data.saturating_add(size);
            let name = self.sections.section_name(LE, section).unwrap_or_default();
            names = names.saturating_add(name.len() as u64);
        }
        if data > length {
            return damaged("sections that lie over each other");
        }
        let symbols = self.sections.symbols(LE, self.bytes, SHT_SYMTAB)?;
        for symbol in symbols.iter() {
            let name = symbol.name(LE, symbols.strings()).unwrap_or_default();
            names = names.saturating_add(name.len() as u64);
            if names > length.saturating_mul(MOST_NAMES) {
                return damaged("names that lie over each other");
            }
        }
        Ok(())
    }

    pub(super) fn is_for_gpu(&self) -> bool {
        self.header.e_machine.get(LE) == EM_CUDA
    }

    pub(super) fn is_relocatable(&self) -> bool {
        self.header.e_type.get(LE) == ET_REL
    }

    /// Version of the machine's conventions (EI_ABIVERSION).
    pub(super) fn abi_version(&self) -> u8 {
        self.header.e_ident.abi_version
    }

    pub(super) fn flags(&self) -> u32 {
        self.header.e_flags.get(LE).0
    }

    /// Sections with bytes in the file, in order.
    pub(super) fn sections(&self) -> impl Iterator<Item = Result<ElfSection<'a>, ImageError>> + '_ {
        let here = self.sections.iter().filter(|section| section.sh_type(LE) != SHT_NOBITS);
        here.map(|section| {
            let name = self.sections.section_name(LE, section)?;
            let data = section.data(LE, self.bytes)?;
            Ok(ElfSection { name, offset: section.sh_offset.get(LE), data })
        })
    }

    /// Functions that are defined in the file, in the order of their symbols.
    pub(super) fn functions(&self) -> Result<Vec<FunctionSymbol<'a>>, ImageError> {
        let symbols = self.sections.symbols(LE, self.bytes, SHT_SYMTAB)?;
        let defined =
            symbols.enumerate().filter(|(_, s)| s.st_type() == STT_FUNC && !s.is_undefined(LE));
        defined
            .map(|(index, symbol)| {
                let name = symbol.name(LE, symbols.strings())?;
                let (size, other) = (symbol.st_size.get(LE), symbol.st_other.0);
                Ok(FunctionSymbol { symbol: index.0 as u32, name, size, other })
            })
            .collect()
    }
}
