//! Machine code as it lies in a cubin: the bytes of a kernel, and what the tables of the cubin say
//! of them.
//!
//! Facts seen in the output of the compilers of CUDA 12 and 13, which are not documented: the code
//! of a kernel is the section `.text.<kernel>`, with the device functions that only it calls behind
//! its own code; what is in constant bank N is in the sections `.nv.constantN`, for all kernels,
//! and `.nv.constantN.<kernel>`. Bank 0 is laid out by `.nv.info.<kernel>`, bank 2 has tables of
//! the compiler, 3 the `__constant__` variables, and 4 addresses that the driver fills in, which
//! are the relocations of that section. Sections whose names begin with `.nv.merc.` and
//! `.nv.capmerc.` repeat the same for another form of code and are left alone.

use super::code::{Bank, Part, Relocation};
use crate::image::{Cubin, ImageError, ParameterLayout, Target};
use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHT_NOBITS, SHT_REL, SHT_RELA, SHT_SYMTAB, STT_FUNC, STT_OBJECT};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of an instruction.
pub(super) const INSTRUCTION: usize = 16;
/// More functions beside a kernel than this are not followed.
const MAX_FUNCTIONS: usize = 256;

/// A cubin with its tables read. Kernels are taken from it one by one.
#[derive(Debug)]
pub struct Object<'a> {
    bytes: Cow<'a, [u8]>,
    tables: Arc<Tables>,
}

/// The tables of a cubin, apart from its bytes: those lie in the image in most cases, and an image
/// can be large.
#[derive(Debug)]
pub(crate) struct Tables {
    target: Option<Target>,
    sections: Vec<ObjectSection>,
    symbols: Vec<ElfSymbol>,
    by_name: HashMap<String, usize>,
    kernels: HashMap<String, usize>,
    layouts: HashMap<String, Result<ParameterLayout, ImageError>>,
}

#[derive(Debug)]
struct ObjectSection {
    name: String,
    data: Range<usize>,
    /// The values put into it, by the byte in it.
    relocations: Vec<(u64, Put)>,
    /// Symbols of functions in it, and of variables.
    functions: Vec<usize>,
    variables: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Put {
    kind: u32,
    symbol: usize,
    addend: i64,
}

#[derive(Debug)]
struct ElfSymbol {
    name: String,
    section: usize,
    value: u64,
    size: u64,
    function: bool,
    variable: bool,
}

/// The code of a function.
#[derive(Clone, Debug)]
pub(super) struct RawFunction {
    pub(super) name: String,
    pub(super) code: Vec<[u8; INSTRUCTION]>,
    pub(super) relocations: BTreeMap<u32, Relocation>,
    pub(super) branch_targets: BTreeMap<u32, Vec<u32>>,
    pub(super) inner: BTreeMap<u32, String>,
}

/// The code of a kernel, not decoded yet.
#[derive(Clone, Debug)]
pub struct RawCode {
    pub(super) entry: RawFunction,
    pub(super) functions: Vec<RawFunction>,
    pub(super) parameters: ParameterLayout,
    pub(super) banks: BTreeMap<u8, Bank>,
    pub(super) variables: HashMap<String, u64>,
}

impl RawCode {
    /// Bytes of code.
    #[must_use]
    pub fn size(&self) -> usize {
        let functions = self.functions.iter().chain([&self.entry]);
        functions.map(|function| function.code.len() * INSTRUCTION).sum()
    }
}

impl Tables {
    /// # Errors
    /// When it is no machine code for GPUs, or damaged.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ImageError> {
        let cubin = Cubin::parse(bytes)?;
        let target = cubin.target;
        let names = cubin.kernels.iter();
        let layouts = names.map(|k| (k.name.clone(), cubin.parameters(&k.name))).collect();
        let header = FileHeader64::<LE>::parse(bytes)?;
        let table = header.sections(LE, bytes)?;
        let mut sections = Vec::with_capacity(table.len());
        let mut by_name = HashMap::with_capacity(table.len());
        for section in table.iter() {
            let name = String::from_utf8_lossy(table.section_name(LE, section)?).into_owned();
            let empty = section.sh_type(LE) == SHT_NOBITS;
            let data = if empty { 0 } else { section.data(LE, bytes)?.len() };
            let start = if empty { 0 } else { section.sh_offset.get(LE) as usize };
            by_name.entry(name.clone()).or_insert(sections.len());
            sections.push(ObjectSection {
                name,
                data: start..start + data,
                relocations: Vec::new(),
                functions: Vec::new(),
                variables: Vec::new(),
            });
        }
        let table_of_symbols = table.symbols(LE, bytes, SHT_SYMTAB)?;
        let mut symbols = Vec::with_capacity(table_of_symbols.len());
        for (index, symbol) in table_of_symbols.enumerate() {
            let section = table_of_symbols.symbol_section(LE, symbol, index)?;
            let name = symbol.name(LE, table_of_symbols.strings())?;
            let (function, variable) =
                (symbol.st_type() == STT_FUNC, symbol.st_type() == STT_OBJECT);
            let section = section.map_or(0, |section| section.0);
            if let Some(section) = sections.get_mut(section) {
                section.functions.extend(function.then_some(symbols.len()));
                section.variables.extend(variable.then_some(symbols.len()));
            }
            symbols.push(ElfSymbol {
                name: String::from_utf8_lossy(name).into_owned(),
                section,
                value: symbol.st_value.get(LE),
                size: symbol.st_size.get(LE),
                function,
                variable,
            });
        }
        for section in table.iter() {
            let into = section.sh_info.get(LE) as usize;
            let kind = section.sh_type(LE);
            let known = sections.get(into).is_some_and(|s| is_loaded(&s.name));
            if !known || !matches!(kind, SHT_REL | SHT_RELA) {
                continue;
            }
            let data = section.data(LE, bytes)?;
            let size = if kind == SHT_RELA { 24 } else { 16 };
            let entries = data.chunks_exact(size).filter_map(relocation);
            sections[into].relocations.extend(entries.filter(|(_, p)| p.symbol < symbols.len()));
        }
        let kernels = cubin.kernels.iter().map(|k| (k.name.clone(), k.symbol as usize));
        let kernels = kernels.collect();
        Ok(Self { target, sections, symbols, by_name, kernels, layouts })
    }

    /// Bytes that they take in memory, roughly.
    pub(crate) fn weight(&self) -> usize {
        (self.sections.len() + self.symbols.len()) * 200
    }
}

impl<'a> Object<'a> {
    /// Reads the tables of a cubin.
    ///
    /// # Errors
    /// When it is no machine code for GPUs, or damaged.
    pub fn parse(bytes: impl Into<Cow<'a, [u8]>>) -> Result<Self, ImageError> {
        let bytes = bytes.into();
        let tables = Arc::new(Tables::read(&bytes)?);
        Ok(Self { bytes, tables })
    }

    /// A cubin whose tables were read before.
    pub(crate) fn of(bytes: impl Into<Cow<'a, [u8]>>, tables: Arc<Tables>) -> Self {
        Self { bytes: bytes.into(), tables }
    }

    /// The target that it names itself; the letter `f` only a container tells.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        self.tables.target
    }

    /// The names of its kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.tables.kernels.keys().map(String::as_str)
    }

    /// Whether there is a kernel of this name.
    #[must_use]
    pub fn has(&self, kernel: &str) -> bool {
        self.tables.kernels.contains_key(kernel)
    }

    /// The code of a kernel. `None` where there is none.
    ///
    /// # Errors
    /// When its parameters are not described.
    pub fn kernel(&self, name: &str) -> Result<Option<RawCode>, ImageError> {
        let Some(&symbol) = self.tables.kernels.get(name) else { return Ok(None) };
        let layout = self.tables.layouts.get(name).cloned();
        let parameters = layout.ok_or_else(|| ImageError::NoParameters(name.to_owned()))??;
        let entry = self.function(symbol);
        let mut banks = BTreeMap::new();
        for number in 1..32_u8 {
            let shared = format!(".nv.constant{number}");
            let own = format!("{shared}.{name}");
            for section in [shared, own] {
                if let Some(&section) = self.tables.by_name.get(&section) {
                    banks.insert(number, self.bank(section));
                }
            }
        }
        // Functions and variables that anything in it leads to.
        let mut functions = Vec::new();
        let mut variables = HashMap::new();
        let mut seen = BTreeSet::from([self.tables.symbols[symbol].section]);
        let mut ahead: Vec<usize> = self.leads_to(self.tables.symbols[symbol].section);
        for number in banks.keys() {
            for section in [format!(".nv.constant{number}"), format!(".nv.constant{number}.{name}")]
            {
                let section = self.tables.by_name.get(&section);
                ahead.extend(section.into_iter().flat_map(|&section| self.leads_to(section)));
            }
        }
        while let Some(at) = ahead.pop() {
            let symbol = &self.tables.symbols[at];
            if symbol.variable {
                variables.insert(symbol.name.clone(), symbol.size);
            }
            let there = symbol.function && symbol.section != 0 && functions.len() < MAX_FUNCTIONS;
            if there && seen.insert(symbol.section) {
                ahead.extend(self.leads_to(symbol.section));
                functions.push(self.function(at));
            }
        }
        Ok(Some(RawCode { entry, functions, parameters, banks, variables }))
    }

    /// Symbols that the relocations of a section name.
    fn leads_to(&self, section: usize) -> Vec<usize> {
        let section = self.tables.sections.get(section);
        let puts = section.into_iter().flat_map(|section| &section.relocations);
        puts.map(|(_, put)| put.symbol).collect()
    }

    fn data(&self, section: usize) -> &[u8] {
        let range = self.tables.sections.get(section).map(|section| section.data.clone());
        range.and_then(|range| self.bytes.get(range)).unwrap_or_default()
    }

    fn function(&self, at: usize) -> RawFunction {
        let symbol = &self.tables.symbols[at];
        let data = self.data(symbol.section);
        let start = (symbol.value as usize).min(data.len());
        let size = if symbol.size == 0 { data.len() } else { symbol.size as usize };
        let end = start.saturating_add(size).min(data.len());
        let place = |value: u64| {
            let inside = (start as u64..end as u64).contains(&value);
            inside.then(|| (value - start as u64) as u32)
        };
        let mut function = RawFunction {
            name: symbol.name.clone(),
            code: data[start..end].as_chunks().0.to_vec(),
            relocations: BTreeMap::new(),
            branch_targets: BTreeMap::new(),
            inner: BTreeMap::new(),
        };
        let Some(section) = self.tables.sections.get(symbol.section) else { return function };
        for (offset, put) in &section.relocations {
            let at = place(*offset).map(|at| at / INSTRUCTION as u32 * INSTRUCTION as u32);
            function.relocations.extend(at.map(|at| (at, self.relocation(*put))));
        }
        for inner in section.functions.iter().filter(|inner| **inner != at) {
            let inner = &self.tables.symbols[*inner];
            let at = place(inner.value).filter(|at| *at > 0);
            function.inner.extend(at.map(|at| (at, inner.name.clone())));
        }
        let info = self.tables.by_name.get(&format!(".nv.info.{}", symbol.name));
        let targets = info.map(|info| crate::image::branch_targets(self.data(*info)));
        for (branch, targets) in targets.unwrap_or_default() {
            let Some(branch) = place(branch.into()) else { continue };
            let targets = targets.into_iter().filter_map(|target| place(target.into()));
            function.branch_targets.insert(branch, targets.collect());
        }
        function
    }

    fn relocation(&self, put: Put) -> Relocation {
        let symbol = self.tables.symbols.get(put.symbol).map(|symbol| symbol.name.clone());
        let (part, addend) = (part(put.kind), put.addend);
        Relocation { part, symbol: symbol.unwrap_or_default(), addend }
    }

    fn bank(&self, at: usize) -> Bank {
        let section = &self.tables.sections[at];
        let relocations = section.relocations.iter().filter_map(|(offset, put)| {
            Some((u32::try_from(*offset).ok()?, self.relocation(*put)))
        });
        let variables = section.variables.iter().map(|variable| {
            let ElfSymbol { name, value, size, .. } = &self.tables.symbols[*variable];
            (name.clone(), *value as u32, *size as u32)
        });
        Bank {
            bytes: self.data(at).to_vec(),
            relocations: relocations.collect(),
            variables: variables.collect(),
        }
    }
}

/// Sections that the driver loads and that code refers to.
fn is_loaded(name: &str) -> bool {
    name.starts_with(".text.") || name.starts_with(".nv.constant")
}

fn relocation(entry: &[u8]) -> Option<(u64, Put)> {
    let word = |at: usize| Some(u64::from_le_bytes(entry.get(at..at + 8)?.try_into().ok()?));
    let info = word(8)?;
    let addend = word(16).unwrap_or(0) as i64;
    Some((word(0)?, Put { kind: info as u32, symbol: (info >> 32) as usize, addend }))
}

/// The kinds that put addresses into code and constants whole or by halves; the names are those
/// that `cuobjdump --dump-elf` prints. All others put in distances, or fields of other widths.
fn part(kind: u32) -> Part {
    match kind {
        // R_CUDA_64.
        2 => Part::Whole,
        // R_CUDA_32, R_CUDA_ABS32_LO_32.
        1 | 56 => Part::Low,
        // R_CUDA_ABS32_HI_32.
        57 => Part::High,
        _ => Part::Other,
    }
}
