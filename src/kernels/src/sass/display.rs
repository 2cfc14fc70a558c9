//! Instructions as text: what the disassembler prints, in one form for every version of it.

use super::instruction::{AddressTerm, ConstantBank, Guard, Instruction, Marks, Operand, Register};
use std::fmt::{self, Display, Formatter};

impl Display for Register {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::General(number) => write!(f, "R{number}"),
            Self::Zero => f.write_str("RZ"),
            Self::Uniform(number) => write!(f, "UR{number}"),
            Self::UniformZero => f.write_str("URZ"),
            Self::Predicate(number) => write!(f, "P{number}"),
            Self::True => f.write_str("PT"),
            Self::UniformPredicate(number) => write!(f, "UP{number}"),
            Self::UniformTrue => f.write_str("UPT"),
            Self::Barrier(number) => write!(f, "B{number}"),
        }
    }
}

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let not = if self.negated { "!" } else { "" };
        write!(f, "@{not}{}", self.predicate)
    }
}

/// A name with its marks around it. Predicates are negated by `!`, all else by `~`.
fn marked(
    f: &mut Formatter<'_>,
    marks: &Marks,
    predicate: bool,
    name: &dyn Display,
) -> fmt::Result {
    if marks.minus {
        f.write_str("-")?;
    }
    if marks.not {
        f.write_str(if predicate { "!" } else { "~" })?;
    }
    let bar = if marks.absolute { "|" } else { "" };
    write!(f, "{bar}{name}")?;
    for suffix in &marks.suffixes {
        write!(f, ".{suffix}")?;
    }
    f.write_str(bar)
}

fn is_predicate(register: Register) -> bool {
    use Register::{Predicate, True, UniformPredicate, UniformTrue};
    matches!(register, Predicate(_) | True | UniformPredicate(_) | UniformTrue)
}

/// Hexadecimal, with the sign in front.
struct Hex(i64);

impl Display for Hex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{:#x}", self.0.unsigned_abs())
    }
}

struct Constant<'a> {
    bank: &'a ConstantBank,
    register: &'a Option<Register>,
    offset: i64,
}

impl Display for Constant<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.bank {
            ConstantBank::Number(number) => write!(f, "c[{number:#x}]")?,
            ConstantBank::Descriptor(register) => write!(f, "cx[{register}]")?,
        }
        match (self.register, self.offset) {
            (None, offset) => write!(f, "[{}]", Hex(offset)),
            (Some(register), 0) => write!(f, "[{register}]"),
            (Some(register), offset) => write!(f, "[{register}+{}]", Hex(offset)),
        }
    }
}

impl Display for AddressTerm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        marked(f, &self.marks, false, &self.register)
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(register, marks) => marked(f, marks, is_predicate(*register), register),
            Self::Integer(number) => Hex(*number).fmt(f),
            Self::Constant { bank, register, offset, marks } => {
                marked(f, marks, false, &Constant { bank, register, offset: *offset })
            }
            Self::Address { terms, offset, descriptor } => {
                if let Some((word, register)) = descriptor {
                    write!(f, "{word}[{register}]")?;
                }
                f.write_str("[")?;
                for (at, term) in terms.iter().enumerate() {
                    write!(f, "{}{term}", if at > 0 { "+" } else { "" })?;
                }
                match (terms.is_empty(), *offset) {
                    (true, offset) => write!(f, "{}", Hex(offset))?,
                    (false, 0) => {}
                    (false, offset) => write!(f, "+{}", Hex(offset))?,
                }
                f.write_str("]")
            }
            Self::Special(text) | Self::Other(text) => f.write_str(text),
            // Never printed by the disassembler in this way.
            Self::Target(at) => write!(f, "`({})", Hex(*at)),
        }
    }
}

impl Display for Instruction {
    /// As in `@!P0 LDG.E.64 R2, desc[UR4][R2.64+0x10]`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "{guard} ")?;
        }
        f.write_str(&self.opcode)?;
        for modifier in self.modifiers.iter() {
            write!(f, ".{modifier}")?;
        }
        for (at, operand) in self.operands.iter().enumerate() {
            write!(f, "{} {operand}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}
