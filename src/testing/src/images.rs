//! Images built by hand: the same bytes that NVIDIA's tools write, as far as the reader looks.

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

pub const PTX: u16 = 1;
pub const CUBIN: u16 = 2;
pub const SPECIFIC: u64 = 0x10_0000;
pub const FAMILY: u64 = 0x20_0000;

pub const SAXPY: &str = "\
// by hand
.version 8.0
.target sm_80
.address_size 64
.visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
    ret;
}
";

#[derive(Clone, Copy, Debug)]
pub enum Packing {
    None,
    Lz4,
    Zstd,
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// An entry of a fat binary.
pub fn entry(kind: u16, number: u32, flags: u64, code: &[u8], packing: Packing) -> Vec<u8> {
    let (data, packing) = match packing {
        Packing::None => (code.to_vec(), 0),
        Packing::Lz4 => (lz4_flex::block::compress(code), 0x2000),
        Packing::Zstd => (compress_to_vec(code, CompressionLevel::Fastest), 0x8000),
    };
    let packed = if packing == 0 { 0 } else { data.len() as u32 };
    raw_entry(kind, number, flags | packing, packed, code.len() as u64, data)
}

/// An entry whose fields need not agree.
pub fn raw_entry(
    kind: u16,
    number: u32,
    flags: u64,
    packed: u32,
    unpacked: u64,
    data: Vec<u8>,
) -> Vec<u8> {
    let head: u32 = if kind == PTX { 80 } else { 64 };
    let data = padded(data);
    let mut bytes = Vec::new();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0x101_u16.to_le_bytes());
    bytes.extend(head.to_le_bytes());
    bytes.extend((data.len() as u64).to_le_bytes());
    bytes.extend(packed.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(number.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(flags.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(if packed == 0 { 0 } else { unpacked }.to_le_bytes());
    bytes.resize(head as usize, 0);
    bytes.extend(data);
    bytes
}

/// A fat binary.
pub fn container(entries: &[Vec<u8>]) -> Vec<u8> {
    let entries = entries.concat();
    let mut bytes = 0xba55_ed50_u32.to_le_bytes().to_vec();
    bytes.extend(1_u16.to_le_bytes());
    bytes.extend(16_u16.to_le_bytes());
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes.extend(entries);
    bytes
}

#[derive(Debug)]
pub struct Section {
    pub name: String,
    pub kind: u32,
    pub link: u32,
    pub data: Vec<u8>,
}

impl Section {
    pub fn new(name: &str, data: Vec<u8>) -> Self {
        Self { name: name.to_owned(), kind: 1, link: 0, data }
    }
}

#[derive(Debug)]
pub struct Elf {
    pub machine: u16,
    pub kind: u16,
    pub flags: u32,
    pub abi_version: u8,
    pub sections: Vec<Section>,
    /// Without section headers, as after `strip --strip-section-headers`.
    pub headless: bool,
}

impl Elf {
    pub fn host(sections: Vec<Section>) -> Self {
        Self { machine: 62, kind: 3, flags: 0, abi_version: 0, sections, headless: false }
    }

    pub fn build(mut self) -> Vec<u8> {
        let mut names = vec![0];
        self.sections.insert(0, Section { kind: 0, ..Section::new("", Vec::new()) });
        self.sections.push(Section { kind: 3, ..Section::new(".shstrtab", Vec::new()) });
        let mut starts = Vec::new();
        for section in &self.sections {
            starts.push(names.len() as u32);
            names.extend(section.name.bytes().chain([0]));
        }
        let last = self.sections.len() - 1;
        self.sections[last].data = names;
        let mut body = Vec::new();
        let mut headers = Vec::new();
        for (section, name) in self.sections.iter().zip(starts) {
            let offset = 64 + body.len() as u64;
            let entry_size: u64 = if section.kind == 2 { 24 } else { 0 };
            headers.extend(name.to_le_bytes());
            headers.extend(section.kind.to_le_bytes());
            headers.extend([0; 16]);
            headers.extend(offset.to_le_bytes());
            headers.extend((section.data.len() as u64).to_le_bytes());
            headers.extend(section.link.to_le_bytes());
            headers.extend([0; 4]);
            headers.extend(8_u64.to_le_bytes());
            headers.extend(entry_size.to_le_bytes());
            body.extend(padded(section.data.clone()));
        }
        let (table, count) = match self.headless {
            true => (0, 0),
            false => (64 + body.len() as u64, self.sections.len() as u16),
        };
        let mut bytes = b"\x7fELF\x02\x01\x01\x33".to_vec();
        bytes.extend([self.abi_version, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend(self.machine.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(table.to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        for field in [64_u16, 56, 0, 64, count, last as u16 * u16::from(!self.headless)] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(body);
        if !self.headless {
            bytes.extend(headers);
        }
        bytes
    }
}

/// An attribute of `.nv.info` that has a length.
pub fn attribute(code: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![4, code];
    bytes.extend((value.len() as u16).to_le_bytes());
    bytes.extend(value);
    bytes
}

/// A parameter, in the older form or the newer.
pub fn parameter(index: u16, offset: u16, size: u32, wide: bool) -> Vec<u8> {
    let mut value = 0_u32.to_le_bytes().to_vec();
    value.extend(index.to_le_bytes());
    value.extend(offset.to_le_bytes());
    let word = if wide { size | 0x0500_0000 } else { size << 18 | 0x1_f500 };
    value.extend(word.to_le_bytes());
    attribute(if wide { 0x45 } else { 0x17 }, &value)
}

/// Where the parameters lie in the constant bank, and their size in a form of its own.
pub fn bank(base: u16, size: u16) -> Vec<u8> {
    let mut value = 1_u32.to_le_bytes().to_vec();
    value.extend(base.to_le_bytes());
    value.extend(size.to_le_bytes());
    let mut bytes = attribute(0x0a, &value);
    bytes.extend([3, 0x19]);
    bytes.extend(size.to_le_bytes());
    bytes
}

/// Machine code of kernels that are given by their names and attributes.
#[derive(Debug)]
pub struct Cubin {
    pub flags: u32,
    pub abi_version: u8,
    pub relocatable: bool,
    pub kernels: Vec<(&'static str, Vec<u8>)>,
    /// Names of functions that are no kernels.
    pub functions: Vec<&'static str>,
    pub more: Vec<Section>,
}

impl Cubin {
    /// For `sm_NN` of the conventions of CUDA 13.
    pub fn new(number: u32, kernels: Vec<(&'static str, Vec<u8>)>) -> Self {
        let flags = 0x600_0002 | number << 8;
        let (functions, more) = (Vec::new(), Vec::new());
        Self { flags, abi_version: 8, relocatable: false, kernels, functions, more }
    }

    pub fn build(self) -> Vec<u8> {
        let mut sections = vec![
            Section { kind: 3, ..Section::new(".strtab", Vec::new()) },
            Section { kind: 2, link: 1, ..Section::new(".symtab", vec![0; 24]) },
        ];
        let mut names = vec![0];
        let kernels = self.kernels.iter().map(|(name, _)| (*name, 0x10_u8));
        for (name, other) in self.functions.iter().map(|name| (*name, 0)).chain(kernels) {
            let text = sections.len() as u16 + 1;
            sections.push(Section::new(&format!(".text.{name}"), vec![0; 128]));
            let mut symbol = (names.len() as u32).to_le_bytes().to_vec();
            symbol.extend([0x12, other]);
            symbol.extend(text.to_le_bytes());
            symbol.extend(0_u64.to_le_bytes());
            symbol.extend(128_u64.to_le_bytes());
            sections[1].data.extend(symbol);
            names.extend(name.bytes().chain([0]));
        }
        sections[0].data = names;
        for (name, info) in self.kernels {
            sections.push(Section::new(&format!(".nv.info.{name}"), info));
        }
        sections.extend(self.more);
        let kind = if self.relocatable { 1 } else { 2 };
        let (flags, abi_version) = (self.flags, self.abi_version);
        Elf { machine: 190, kind, flags, abi_version, sections, headless: false }.build()
    }
}

/// A cubin of the kernel `saxpy`, laid out as in [`SAXPY`].
pub fn saxpy_cubin(number: u32) -> Vec<u8> {
    Cubin::new(number, vec![("saxpy", saxpy_info())]).build()
}

/// The table of the parameters of `saxpy`: the last first, as ptxas writes them.
pub fn saxpy_info() -> Vec<u8> {
    let parameters = [(3, 20, 4), (2, 16, 4), (1, 8, 8), (0, 0, 8)];
    let mut info = vec![4, 0x37, 4, 0, 0x81, 0, 0, 0, 3, 0x1b, 0xff, 0];
    info.extend(
        parameters.into_iter().flat_map(|(i, offset, size)| parameter(i, offset, size, false)),
    );
    info.extend(bank(0x210, 24));
    info
}
