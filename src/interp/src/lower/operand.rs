//! Operands to slots and addresses.

use streamsan_ptx::{Address, AddressBase, Immediate, Operand, Type};

use super::form::{Lowered, Problem, invalid};
use super::function::FunctionLowering;
use super::symbols::{SpecialValue, Symbol, special};
use crate::alu::{Convert, Round, convert};
use crate::code::{Constant, LOCAL_BASE, Op, Place, SINK, Slot};

/// Base slot and offset of an address, and the place its symbol lies in.
pub(super) struct Location {
    pub(super) base: Slot,
    pub(super) offset: i32,
    /// `None` for a register: the instruction says.
    pub(super) place: Option<Place>,
}

fn mask(ty: Type) -> u64 {
    if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 }
}

/// The bits of a literal in an operand of type `ty`.
fn literal(value: Immediate, ty: Type) -> u64 {
    let from_double = |value: f64| {
        let spec = Convert {
            from: Type::F64,
            to: ty,
            round: Round::Nearest,
            integral: false,
            saturate: false,
            flush: false,
            relu: false,
        };
        if spec.supported() { convert(spec, value.to_bits()) } else { value.to_bits() }
    };
    match value {
        Immediate::Int(value) if ty == Type::Pred => u64::from(value != 0),
        Immediate::Int(value) => value as u64 & mask(ty),
        Immediate::F32(bits) if ty == Type::F64 => from_double(f64::from(f32::from_bits(bits))),
        Immediate::F32(bits) => u64::from(bits),
        Immediate::F64(bits) if ty.is_float() && ty != Type::F64 => {
            from_double(f64::from_bits(bits))
        }
        Immediate::F64(bits) => bits,
    }
}

impl FunctionLowering<'_, '_> {
    pub(super) fn find(&mut self, name: &str) -> Option<Symbol> {
        let slots = &mut self.code.slots;
        let found = self.scopes.find(name, |count| {
            *slots += count;
            *slots - count
        });
        let symbol = found.or_else(|| self.context.find(name))?;
        if let Symbol::Shared(index) = symbol
            && !self.shared_used.contains(&index)
        {
            self.shared_used.push(index);
        }
        Some(symbol)
    }

    /// A register, or a component of a vector register: slot and type.
    fn typed_register(&mut self, name: &str) -> Option<(Slot, Type)> {
        if let Some(Symbol::Register { slot, ty, vector: 1 }) = self.find(name) {
            return Some((slot, ty));
        }
        let (stem, component) = name.rsplit_once('.')?;
        let at = match component {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            "w" | "a" => 3,
            _ => return None,
        };
        match self.find(stem) {
            Some(Symbol::Register { slot, ty, vector }) if at < vector => Some((slot + at, ty)),
            _ => None,
        }
    }

    pub(super) fn register(&mut self, name: &str) -> Lowered<Slot> {
        match self.typed_register(name) {
            Some((slot, _)) => Ok(slot),
            None => invalid(format!("`{name}` is not a declared register")),
        }
    }

    /// Where a result goes, and the width in bits of that register.
    pub(super) fn sized_destination(&mut self, operand: &Operand) -> Lowered<(Slot, u32)> {
        match operand {
            Operand::Sink => Ok((SINK, 64)),
            Operand::Name(name) => match self.typed_register(name) {
                Some((slot, ty)) => Ok((slot, ty.bits())),
                None => invalid(format!("`{name}` is not a declared register")),
            },
            Operand::Group(items) if items.len() == 1 => self.sized_destination(&items[0]),
            _ => invalid("the result must be a register"),
        }
    }

    pub(super) fn destination(&mut self, operand: &Operand) -> Lowered<Slot> {
        Ok(self.sized_destination(operand)?.0)
    }

    /// Destination and optional predicate of `d|p`.
    pub(super) fn destination_pair(&mut self, operand: &Operand) -> Lowered<(Slot, Slot)> {
        match operand {
            Operand::Pair(first, second) => {
                Ok((self.destination(first)?, self.destination(second)?))
            }
            other => Ok((self.destination(other)?, SINK)),
        }
    }

    pub(super) fn bits(&mut self, bits: u64) -> Slot {
        self.constant(Constant::Bits(bits))
    }

    /// The slot of a value of type `ty`.
    pub(super) fn source(&mut self, operand: &Operand, ty: Type) -> Lowered<Slot> {
        match operand {
            Operand::Immediate(value) => Ok(self.bits(literal(*value, ty))),
            Operand::Name(name) => self.named_value(name, 0, ty),
            Operand::SymbolOffset(name, offset) => self.named_value(name, *offset, ty),
            Operand::Not(inner) => {
                let a = self.source(inner, Type::Pred)?;
                let d = self.temporary();
                self.push(Op::Alu1 { f: |a| a ^ 1, d, a });
                Ok(d)
            }
            Operand::Group(items) if items.len() == 1 => self.source(&items[0], ty),
            // `st` of a sink, as compilers never write.
            Operand::Sink => Ok(self.bits(0)),
            Operand::Address(_) | Operand::Vector(_) | Operand::Pair(..) | Operand::Group(_) => {
                invalid("this operand cannot be read as a value")
            }
        }
    }

    fn named_value(&mut self, name: &str, offset: i64, ty: Type) -> Lowered<Slot> {
        if let Some((slot, _)) = self.typed_register(name) {
            return if offset == 0 { Ok(slot) } else { invalid("a register has no offset here") };
        }
        if let Some(symbol) = self.find(name) {
            return Ok(match symbol {
                Symbol::Register { .. } => return Err(Problem::Unsupported),
                Symbol::Local { offset: at, .. } => {
                    let b = self.bits((i64::from(at) + offset) as u64);
                    let d = self.temporary();
                    self.push(Op::Add64 { d, a: LOCAL_BASE, b });
                    d
                }
                Symbol::KernelParam { offset: at } => self.bits((i64::from(at) + offset) as u64),
                Symbol::Shared(index) => self.constant(Constant::Shared(index, offset)),
                Symbol::Global(index) => self.constant(Constant::Global(index, offset)),
                Symbol::Function(index) => self.constant(Constant::Function(index)),
            });
        }
        match special(name) {
            Some(SpecialValue::Thread(register)) => Ok(self.special(register)),
            Some(SpecialValue::Bits(bits)) => Ok(self.bits(bits)),
            Some(SpecialValue::DynamicSharedSize) => Ok(self.constant(Constant::DynamicSharedSize)),
            Some(SpecialValue::GridWorkspace) => Ok(self.constant(Constant::GridWorkspace)),
            Some(SpecialValue::TotalSharedSize) => Ok(self.constant(Constant::TotalSharedSize)),
            Some(SpecialValue::Clock(kind)) => {
                let d = self.temporary();
                self.push(Op::Clock { kind, d });
                if ty.bits() <= 32 {
                    self.push(Op::Alu1 { f: |a| a & 0xffff_ffff, d, a: d });
                }
                Ok(d)
            }
            // Shared memory that the driver keeps for itself.
            None if name.starts_with("%reserved_smem_offset") => {
                Err(Problem::Lacking(name.to_owned()))
            }
            None => invalid(format!("`{name}` is not declared")),
        }
    }

    pub(super) fn list(&mut self, slots: &[Slot]) -> u32 {
        let at = self.code.lists.len() as u32;
        self.code.lists.extend_from_slice(slots);
        at
    }

    fn place_of(&mut self, name: &str) -> Lowered<(Slot, i64, Option<Place>)> {
        if let Some((slot, _)) = self.typed_register(name) {
            return Ok((slot, 0, None));
        }
        Ok(match self.find(name) {
            Some(Symbol::Local { offset, .. }) => {
                (LOCAL_BASE, i64::from(offset), Some(Place::Local))
            }
            Some(Symbol::KernelParam { offset }) => {
                (self.bits(0), i64::from(offset), Some(Place::Param))
            }
            Some(Symbol::Shared(index)) => {
                (self.constant(Constant::Shared(index, 0)), 0, Some(Place::Shared))
            }
            Some(Symbol::Global(index)) => {
                (self.constant(Constant::Global(index, 0)), 0, Some(Place::Global))
            }
            Some(Symbol::Register { .. } | Symbol::Function(_)) | None => {
                return invalid(format!("`{name}` is not a declared register or variable"));
            }
        })
    }

    pub(super) fn address(&mut self, operand: &Operand) -> Lowered<Location> {
        let Operand::Address(Address { base, offset, rest }) = operand else {
            return invalid("an address in brackets is expected");
        };
        if !rest.is_empty() {
            return Err(Problem::Unsupported);
        }
        let (mut base, start, place) = match base {
            AddressBase::Name(name) => self.place_of(name)?,
            AddressBase::Absolute => {
                let base = self.bits(*offset as u64);
                return Ok(Location { base, offset: 0, place: None });
            }
        };
        let offset = start.wrapping_add(*offset);
        let offset = match i32::try_from(offset) {
            Ok(offset) => offset,
            Err(_) => {
                let (a, b) = (base, self.bits(offset as u64));
                base = self.temporary();
                self.push(Op::Add64 { d: base, a, b });
                0
            }
        };
        Ok(Location { base, offset, place })
    }
}
