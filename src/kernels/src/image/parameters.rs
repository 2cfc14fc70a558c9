//! Where the parameters of a kernel lie, as its machine code tells in `.nv.info.<kernel>`.
//!
//! The section is a list of attributes: format (u8), code (u8), and by the format nothing, a byte
//! or a half word, padded to two bytes, or a length (u16) and as many bytes. NVIDIA does not
//! document it; `cuobjdump --dump-elf` and `readelf` of its own toolkit name the attributes:
//!
//! | code | name | content |
//! |---|---|---|
//! | 0x0a | PARAM_CBANK | symbol (u32), offset of the parameters in the constant bank (u16), their size (u16) |
//! | 0x17 | KPARAM_INFO | index (u32), ordinal (u16), offset (u16), then a word whose upper 14 bits are the size |
//! | 0x19 | CBANK_PARAM_SIZE | size of all parameters (u16) |
//! | 0x34 | INDIRECT_BRANCH_TARGETS | for each branch its place (u32), a word, the number of targets (u32), and each of them (u32), in bytes from the start of the code |
//! | 0x45 | KPARAM_INFO_V2 | as 0x17, but the lower half of the word is the size; for kernels with a parameter of 16 KiB and more. The upper half is no part of it: code for sm_100 and later marks pointers there |

use super::ImageError;
use super::bytes::{u16_at, u32_at};

const PARAM_CBANK: u8 = 0x0a;
const KPARAM_INFO: u8 = 0x17;
const CBANK_PARAM_SIZE: u8 = 0x19;
const INDIRECT_BRANCH_TARGETS: u8 = 0x34;
const KPARAM_INFO_V2: u8 = 0x45;

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Counted from 0.
    pub index: u32,
    /// In bytes from the start of the parameter block.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

/// Where the parameters of a kernel lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterLayout {
    /// By index, without gaps.
    pub parameters: Vec<Parameter>,
    /// Bytes of the parameter block.
    pub size: u32,
    /// Where in constant bank 0 the machine code finds the parameter block, in bytes.
    pub bank_offset: Option<u32>,
}

impl ParameterLayout {
    /// Reads the attributes of a kernel.
    pub(super) fn parse(section: &[u8]) -> Result<Self, ImageError> {
        let mut layout = Self::default();
        for attribute in Attributes::new(section) {
            let Attribute { offset, code, value } = attribute?;
            let damaged = |what| ImageError::Damaged { what, offset };
            match code {
                PARAM_CBANK => {
                    let missing = || damaged("PARAM_CBANK of .nv.info");
                    layout.bank_offset = Some(u16_at(value, 4).ok_or_else(missing)?.into());
                    layout.size = u16_at(value, 6).ok_or_else(missing)?.into();
                }
                CBANK_PARAM_SIZE => {
                    let size = u16_at(value, 0);
                    layout.size =
                        size.ok_or_else(|| damaged("CBANK_PARAM_SIZE of .nv.info"))?.into();
                }
                KPARAM_INFO | KPARAM_INFO_V2 => {
                    let parameter = parameter(value, code == KPARAM_INFO_V2);
                    let parameter = parameter.ok_or_else(|| damaged("KPARAM_INFO of .nv.info"))?;
                    layout.parameters.push(parameter);
                }
                _ => {}
            }
        }
        layout.finish()
    }

    fn finish(mut self) -> Result<Self, ImageError> {
        self.parameters.sort_by_key(|parameter| parameter.index);
        let gapless = self.parameters.iter().zip(0..).all(|(p, index)| p.index == index);
        let damaged = |what| ImageError::Damaged { what, offset: 0 };
        if !gapless {
            return Err(damaged("the numbering of parameters in .nv.info"));
        }
        let end = self.parameters.iter().map(|p| p.offset.saturating_add(p.size)).max();
        if end.is_some_and(|end| end > self.size) {
            return Err(damaged("the size of the parameter block in .nv.info"));
        }
        Ok(self)
    }
}

fn parameter(value: &[u8], wide: bool) -> Option<Parameter> {
    let word = u32_at(value, 8)?;
    Some(Parameter {
        index: u16_at(value, 4)?.into(),
        offset: u16_at(value, 6)?.into(),
        // A parameter block has less than 64 KiB.
        size: if wide { word & 0xffff } else { word >> 18 },
    })
}

/// Where the indirect branches of a function lead, each with its place. Ends at the first that is
/// damaged.
pub(crate) fn branch_targets(section: &[u8]) -> Vec<(u32, Vec<u32>)> {
    let mut branches = Vec::new();
    let attributes = Attributes::new(section).map_while(Result::ok);
    for attribute in attributes.filter(|a| a.code == INDIRECT_BRANCH_TARGETS) {
        let words: Vec<_> = attribute.value.chunks_exact(4).filter_map(|w| u32_at(w, 0)).collect();
        let mut rest = &words[..];
        while let [branch, _, count, behind @ ..] = rest {
            let Some((targets, behind)) = behind.split_at_checked(*count as usize) else { break };
            branches.push((*branch, targets.to_vec()));
            rest = behind;
        }
    }
    branches
}

/// An attribute of `.nv.info`, or of `.nv.compat`, which is built alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attribute<'a> {
    /// In bytes from the start of the section.
    pub(super) offset: u64,
    pub(super) code: u8,
    pub(super) value: &'a [u8],
}

/// The attributes of a section. Ends at the first damaged one.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    section: &'a [u8],
    at: usize,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(section: &'a [u8]) -> Self {
        Self { section, at: 0 }
    }

    fn read(&self) -> Option<(Attribute<'a>, usize)> {
        let rest = &self.section[self.at..];
        let (format, code) = (*rest.first()?, *rest.get(1)?);
        let half = usize::from(u16_at(rest, 2)?);
        let value = match format {
            1 => &[][..],
            2 | 3 => rest.get(2..4)?,
            4 => rest.get(4..4 + half)?,
            _ => return None,
        };
        let length = if format == 4 { 4 + half } else { 4 };
        Some((Attribute { offset: self.at as u64, code, value }, length))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, ImageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.section.len() {
            return None;
        }
        let Some((attribute, length)) = self.read() else {
            let offset = self.at as u64;
            self.at = self.section.len();
            return Some(Err(ImageError::Damaged { what: "an attribute of .nv.info", offset }));
        };
        self.at += length;
        Some(Ok(attribute))
    }
}
