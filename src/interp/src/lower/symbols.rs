//! Names: module symbols, and the nested scopes of a function body.

use std::collections::HashMap;

use streamsan_ptx::{Registers, Type};

use crate::code::{ClockKind, Slot, Special};

/// The meaning of a name inside a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbol {
    /// The first slot; a vector register has `vector` of them.
    Register {
        slot: Slot,
        ty: Type,
        vector: u32,
    },
    /// Local memory of the frame: `.local` variables and `.param` of functions.
    Local {
        offset: u32,
        size: u32,
    },
    /// Offset in the kernel's parameter block.
    KernelParam {
        offset: u32,
    },
    /// Index among the module's shared variables.
    Shared(u32),
    /// Index among the module's globals.
    Global(u32),
    Function(u32),
}

/// `.reg .b32 %r<10>`: members get slots when they are first used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    pub(super) count: u32,
    pub(super) ty: Type,
    pub(super) vector: u32,
}

/// One block of a function body.
#[derive(Debug, Default)]
pub(super) struct Scope<'m> {
    pub(super) names: HashMap<String, Symbol>,
    pub(super) families: HashMap<&'m str, Family>,
    pub(super) labels: HashMap<&'m str, u32>,
    pub(super) tables: HashMap<&'m str, &'m [String]>,
}

/// All scopes a statement is in, innermost last.
#[derive(Debug, Default)]
pub(super) struct Scopes<'m> {
    pub(super) stack: Vec<Scope<'m>>,
}

/// `%r12` as `%r` and 12.
fn family_member(name: &str) -> Option<(&str, u32)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((stem, digits.parse().ok()?))
}

impl<'m> Scopes<'m> {
    pub(super) fn innermost(&mut self) -> &mut Scope<'m> {
        if self.stack.is_empty() {
            self.stack.push(Scope::default());
        }
        let last = self.stack.len() - 1;
        &mut self.stack[last]
    }

    /// The symbol of a name; `allocate` gives slots to a family member on first use.
    pub(super) fn find(
        &mut self,
        name: &str,
        mut allocate: impl FnMut(u32) -> Slot,
    ) -> Option<Symbol> {
        let member = family_member(name);
        for scope in self.stack.iter_mut().rev() {
            if let Some(symbol) = scope.names.get(name) {
                return Some(*symbol);
            }
            if let Some((stem, number)) = member
                && let Some(family) = scope.families.get(stem)
                && number < family.count
            {
                let slot = allocate(family.vector);
                let symbol = Symbol::Register { slot, ty: family.ty, vector: family.vector };
                scope.names.insert(name.to_owned(), symbol);
                return Some(symbol);
            }
        }
        None
    }

    pub(super) fn label(&self, name: &str) -> Option<u32> {
        self.stack.iter().rev().find_map(|scope| scope.labels.get(name).copied())
    }

    pub(super) fn table(&self, name: &str) -> Option<&'m [String]> {
        self.stack.iter().rev().find_map(|scope| scope.tables.get(name).copied())
    }

    pub(super) fn declare_registers(
        &mut self,
        registers: &'m Registers,
        mut allocate: impl FnMut(u32) -> Slot,
    ) {
        let Registers { ty, vector, ref name, count } = *registers;
        match count {
            Some(count) => {
                self.innermost().families.insert(name, Family { count, ty, vector });
            }
            None => {
                let slot = allocate(vector);
                let symbol = Symbol::Register { slot, ty, vector };
                self.innermost().names.insert(name.clone(), symbol);
            }
        }
    }
}

/// The value of a special register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpecialValue {
    Thread(Special),
    Clock(ClockKind),
    Bits(u64),
    DynamicSharedSize,
    TotalSharedSize,
    GridWorkspace,
}

/// The special register of a name (PTX ISA, "Special Registers").
pub(super) fn special(name: &str) -> Option<SpecialValue> {
    use SpecialValue::{Bits, Clock, Thread};
    let (stem, axis) = match name.rsplit_once('.') {
        Some((stem, axis)) => {
            let axis = ["x", "y", "z", "w"].iter().position(|a| *a == axis)?;
            (stem, Some(axis as u8))
        }
        None => (name, None),
    };
    if let Some(axis) = axis {
        return Some(match stem {
            // The fourth component reads as zero.
            _ if axis == 3 => Bits(0),
            "%tid" => Thread(Special::Tid(axis)),
            "%ntid" => Thread(Special::Ntid(axis)),
            "%ctaid" | "%clusterid" => Thread(Special::Ctaid(axis)),
            "%nctaid" | "%nclusterid" => Thread(Special::Nctaid(axis)),
            "%cluster_ctaid" => Bits(0),
            "%cluster_nctaid" => Bits(1),
            _ => return None,
        });
    }
    Some(match name {
        "%laneid" => Thread(Special::Lane),
        "%warpid" => Thread(Special::Warp),
        "%nwarpid" => Thread(Special::WarpCount),
        "%lanemask_eq" => Thread(Special::MaskEqual),
        "%lanemask_lt" => Thread(Special::MaskLess),
        "%lanemask_le" => Thread(Special::MaskLessEqual),
        "%lanemask_gt" => Thread(Special::MaskGreater),
        "%lanemask_ge" => Thread(Special::MaskGreaterEqual),
        "%clock" | "%clock64" => Clock(ClockKind::Clock),
        "%clock_hi" => Clock(ClockKind::ClockHigh),
        "%globaltimer" | "%globaltimer_lo" => Clock(ClockKind::GlobalTimer),
        "%globaltimer_hi" => Clock(ClockKind::GlobalTimerHigh),
        "%dynamic_smem_size" => SpecialValue::DynamicSharedSize,
        "%total_smem_size" => SpecialValue::TotalSharedSize,
        "WARP_SZ" => Bits(32),
        "%nsmid" | "%cluster_nctarank" => Bits(1),
        "%smid" | "%gridid" | "%cluster_ctarank" | "%is_explicit_cluster" => Bits(0),
        // Upper and lower half of the address of the grid's workspace; the lower one is 0.
        "%envreg1" => SpecialValue::GridWorkspace,
        _ if name.starts_with("%envreg") || name.starts_with("%pm") => Bits(0),
        _ => return None,
    })
}
