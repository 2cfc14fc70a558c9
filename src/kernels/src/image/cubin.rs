//! Cubins: ELF files of machine code for one target.
//!
//! Sections of kernels are found by name; those that begin with `.nv.merc.` or `.nv.capmerc.`
//! describe a second form of the same kernels and are left alone.

use super::elf::Elf;
use super::parameters::Attributes;
use super::{ComputeCapability, ImageError, ParameterLayout, Target, Variant};
use std::collections::BTreeMap;

/// The bit that a kernel's symbol has in its st_other, and that of a device function has not
/// (STO_CUDA_ENTRY).
const ENTRY_SYMBOL: u8 = 0x10;
const INFO_PREFIX: &[u8] = b".nv.info.";
const COMPAT_SECTION: &[u8] = b".nv.compat";
/// Attribute of `.nv.compat`: 1 in code for targets with the letter `a`, else 0.
const COMPAT_SPECIFIC: u8 = 0x09;

/// Machine code of one target.
#[derive(Clone, Debug)]
pub struct Cubin<'a> {
    /// The target of the code. A cubin does not tell the letter `f`; the container around it does.
    pub target: Option<Target>,
    /// It has to be linked before it is loaded.
    pub relocatable: bool,
    /// In the order of its symbols.
    pub kernels: Vec<CubinKernel>,
    /// Indices of the symbols of functions that kernels call.
    pub functions: Vec<u32>,
    infos: BTreeMap<&'a [u8], &'a [u8]>,
}

/// A kernel in a cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CubinKernel {
    /// As the driver knows it, that is mangled.
    pub name: String,
    /// Bytes of its code.
    pub code_size: u64,
    /// Index of its symbol in the cubin.
    pub symbol: u32,
}

impl<'a> Cubin<'a> {
    /// Reads the tables of a cubin; parameters are read when they are asked for.
    ///
    /// # Errors
    /// When it is no machine code for GPUs, or damaged.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ImageError> {
        Self::from_elf(&Elf::parse(bytes)?)
    }

    pub(super) fn from_elf(elf: &Elf<'a>) -> Result<Self, ImageError> {
        if !elf.is_for_gpu() {
            return Err(ImageError::NotCubin);
        }
        let mut infos = BTreeMap::new();
        let mut compat = &[][..];
        for section in elf.sections() {
            let section = section?;
            if section.name == COMPAT_SECTION {
                compat = section.data;
            } else if let Some(kernel) = section.name.strip_prefix(INFO_PREFIX) {
                infos.insert(kernel, section.data);
            }
        }
        let (kernels, functions): (Vec<_>, Vec<_>) =
            elf.functions()?.into_iter().partition(|f| f.other & ENTRY_SYMBOL != 0);
        let kernels = kernels.into_iter().map(|function| CubinKernel {
            name: String::from_utf8_lossy(function.name).into_owned(),
            code_size: function.size,
            symbol: function.symbol,
        });
        Ok(Self {
            target: target(elf, compat),
            relocatable: elf.is_relocatable(),
            kernels: kernels.collect(),
            functions: functions.into_iter().map(|function| function.symbol).collect(),
            infos,
        })
    }

    /// Where the parameters of a kernel lie.
    ///
    /// # Errors
    /// When the cubin does not tell, or the description is damaged.
    pub fn parameters(&self, kernel: &str) -> Result<ParameterLayout, ImageError> {
        let info = self.infos.get(kernel.as_bytes());
        ParameterLayout::parse(info.ok_or_else(|| ImageError::NoParameters(kernel.to_owned()))?)
    }
}

/// Flags of the file header, by the version of the conventions: to 7 (CUDA 12) the number is in
/// the lowest byte and 0x800 marks `a`; from 8 (CUDA 13) it is in the second byte and 0x8 marks
/// `a`. Source: LLVM's definitions of EF_CUDA_*, and cubins of CUDA 12.9 and 13.5, of which the
/// latter mark `a` in `.nv.compat` only.
fn target(elf: &Elf<'_>, compat: &[u8]) -> Option<Target> {
    let flags = elf.flags();
    let (number, specific) = if elf.abi_version() <= 7 {
        (flags & 0xff, flags & 0x800 != 0)
    } else {
        (flags >> 8 & 0xff, flags & 0x8 != 0)
    };
    let marked = Attributes::new(compat)
        .map_while(Result::ok)
        .any(|a| a.code == COMPAT_SPECIFIC && a.value.first() == Some(&1));
    let variant = if specific || marked { Variant::Specific } else { Variant::Portable };
    let capability = ComputeCapability::from_number(number)?;
    Some(Target { capability, variant })
}
