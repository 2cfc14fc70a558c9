//! Many instructions differ in nothing but the numbers of their registers, one number, and the
//! predicate that guards them. A template stands for all of them, learned from a few that were
//! printed.
//!
//! Registers have four fields of eight bits in an encoding; immediate values, displacements and
//! offsets in constant banks lie in bits 32 to 63; the guard has bits 12 to 15. Which fields an
//! instruction has, where they are printed and how, is not known beforehand: it is concluded from
//! samples that differ in every field, and only if the template gives each sample exactly as it was
//! printed. What has the highest number of a kind (`RZ`, `URZ`) is never filled in, and neither is
//! a number that the samples allow to be read in two ways.

use super::instruction::{ConstantBank, Guard, Instruction, Operand, Register};
use smallvec::SmallVec;
use std::ops::RangeInclusive;

/// Where the fields of registers begin.
const FIELDS: [u32; 4] = [16, 24, 32, 64];
const FIELD: u128 = 0xff;
/// The third field is part of a number in instructions whose opcode has these bits in 9 to 11.
const NUMBERS: [u128; 4] = [0, 2, 4, 5];
/// The bits that stand for `RZ`, and for `URZ` in fields of six bits.
const ZEROS: [u128; 2] = [0xff, 0x3f];
/// Where the guard is, and what stands for none.
const GUARD: u32 = 12;
const GUARD_FIELD: u128 = 0xf;
const NO_GUARD: u8 = 7;

type Values = [u8; FIELDS.len()];

/// The numbers in the fields of registers.
fn values(encoding: u128) -> Values {
    FIELDS.map(|at| (encoding >> at & FIELD) as u8)
}

/// Whether it is control flow: such instructions have distances in the fields, so each stands
/// alone.
pub(super) fn is_control(encoding: u128) -> bool {
    matches!(encoding & 0xff, 0x40..=0x5f)
}

/// Whether it is one of the opcodes of loads, stores and atomics.
fn is_memory(encoding: u128) -> bool {
    matches!(encoding & 0xff, 0x80 | 0x81 | 0x83..=0x8f | 0xa0..=0xaf)
}

/// Whether its number is printed as a float, or may give it another name: FSEL, FSETP, FMUL, FADD,
/// FFMA, IMAD, DMUL, DADD, DSETP, DFMA, HADD2, HFMA2 and UIMAD. The others of that kind are found
/// out about, which takes another run of the disassembler.
pub(super) fn is_numbered(encoding: u128) -> bool {
    let number = matches!(encoding >> 9 & 7, 2 | 4);
    let opcode = encoding & 0xff;
    number
        && matches!(
            opcode,
            0x08 | 0x0b | 0x20 | 0x21 | 0x23 | 0x24 | 0x28
                ..=0x2b | 0x30 | 0x31 | 0x35 | 0xa4 | 0xa5
        )
}

/// The bits that may hold a number.
fn number_bits(encoding: u128) -> u128 {
    let bits = |from: u32, to: u32| (1_u128 << to) - (1_u128 << from);
    match encoding >> 9 & 7 {
        _ if is_control(encoding) => 0,
        _ if is_memory(encoding) => bits(40, 64),
        2 | 4 => bits(32, 64),
        3 | 5 => bits(38, 54),
        _ => 0,
    }
}

/// How a number may lie in an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// An immediate value, without and with sign.
    Immediate(bool),
    /// A displacement in bytes, without and with sign.
    Displacement(bool),
    /// An offset in a constant bank, without and with sign.
    Offset(bool),
}

impl Reading {
    const ALL: [Self; 6] = [
        Self::Immediate(false),
        Self::Immediate(true),
        Self::Displacement(false),
        Self::Displacement(true),
        Self::Offset(false),
        Self::Offset(true),
    ];

    fn number(self, encoding: u128) -> i64 {
        let (start, width, signed) = match self {
            Self::Immediate(signed) => (32, 32, signed),
            Self::Displacement(signed) => (40, 24, signed),
            Self::Offset(signed) => (38, 16, signed),
        };
        let field = (encoding >> start) as u64 & ((1 << width) - 1);
        if signed { (field << (64 - width)) as i64 >> (64 - width) } else { field as i64 }
    }
}

/// The bits common to instructions that differ in registers, a number and the guard only.
pub(super) fn shape(encoding: u128) -> u128 {
    if is_control(encoding) {
        return encoding;
    }
    let form = encoding >> 9 & 7;
    let mut shape = encoding & !(GUARD_FIELD << GUARD) & !number_bits(encoding);
    for at in FIELDS {
        let skipped = at == 32 && NUMBERS.contains(&form) && !is_memory(encoding);
        if !skipped && !ZEROS.contains(&(encoding >> at & FIELD)) {
            shape &= !(FIELD << at);
        }
    }
    shape
}

/// As [`shape`], of those whose number is the same too.
pub(super) fn narrow_shape(encoding: u128) -> u128 {
    let bits = number_bits(encoding);
    shape(encoding) & !bits | encoding & bits
}

/// Whether encodings differ in their number.
pub(super) fn is_wide(members: &[u128]) -> bool {
    let bits = members.first().map_or(0, |first| number_bits(*first));
    members.iter().any(|member| (member ^ members[0]) & bits != 0)
}

/// The template that stands for all instructions of a shape.
#[derive(Clone, Debug)]
pub(super) struct Template {
    base: Instruction,
    /// Its registers, in the order in which they are printed.
    registers: Vec<Register>,
    encoding: u128,
    /// Where each field is printed; none where it has the same number in all samples.
    slots: [Vec<usize>; FIELDS.len()],
    /// The number, where it is not the same in all samples.
    number: Option<Number>,
    /// The kind of predicate, where any sample has a guard.
    guard: Option<fn(u8) -> Register>,
}

#[derive(Clone, Debug)]
struct Number {
    /// Where it is printed.
    slots: Vec<usize>,
    /// The ways to read it that give what was printed.
    readings: Vec<Reading>,
    /// The bits of the samples: beyond them there might be something else.
    range: RangeInclusive<u128>,
}

/// Members of a shape that between them have the lowest and the highest number of every field, and
/// one whose numbers are as different from each other as can be: indices, each once.
pub(super) fn samples(members: &[u128]) -> Vec<usize> {
    let indices = 0..members.len();
    let mut samples = Vec::new();
    let mut extremes = |number: &dyn Fn(&usize) -> u128| {
        samples.extend(indices.clone().min_by_key(number));
        samples.extend(indices.clone().max_by_key(number));
    };
    for field in 0..FIELDS.len() {
        extremes(&|at| values(members[*at])[field].into());
    }
    extremes(&|at| members[*at] & number_bits(members[*at]));
    extremes(&|at| members[*at] >> GUARD & GUARD_FIELD);
    let distinct = |at: &usize| {
        let mut numbers = values(members[*at]).to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    };
    samples.extend(indices.max_by_key(distinct));
    samples.sort_unstable();
    samples.dedup();
    samples
}

impl Template {
    /// Concludes a template from samples.
    pub(super) fn learn(samples: &[(u128, &Instruction)]) -> Option<Self> {
        let (first, base) = samples.first()?;
        let mut template = Self {
            base: (*base).clone(),
            registers: registers(base),
            encoding: *first,
            slots: Default::default(),
            number: None,
            guard: samples.iter().find_map(|(_, text)| kind(text.guard?.predicate)),
        };
        template.slots = slots(samples)?;
        let bits = number_bits(*first);
        if samples.iter().any(|(code, _)| (code ^ first) & bits != 0) {
            template.number = Some(Number::learn(samples)?);
        }
        let right = |(code, text): &(u128, &Instruction)| {
            template.fill(*code).is_some_and(|filled| filled == **text)
        };
        samples.iter().all(right).then_some(template)
    }

    /// Whether it gives an encoding of this shape: not one that differs in what was the same in all
    /// samples, or has a number that not all registers of the kind have.
    pub(super) fn fits(&self, encoding: u128) -> bool {
        self.differs(encoding).is_some()
    }

    /// The instruction of an encoding of this shape, if it [fits](Self::fits).
    pub(super) fn fill(&self, encoding: u128) -> Option<Instruction> {
        let (guard, number) = self.differs(encoding)?;
        let mut instruction = Instruction { guard, ..self.base.clone() };
        if let (Some(number), Some(places)) = (number, &self.number) {
            places.fill(number, &mut instruction);
        }
        let wanted = values(encoding);
        let mut slots = Slots::new();
        for operand in &mut instruction.operands {
            collect(operand, &mut slots);
        }
        for (field, slots_of) in self.slots.iter().enumerate() {
            for slot in slots_of {
                let place = slots.get_mut(*slot)?;
                **place = numbered(**place, wanted[field])?;
            }
        }
        drop(slots);
        Some(instruction)
    }

    /// The parts that an encoding has of its own beside registers: the guard and the number.
    fn differs(&self, encoding: u128) -> Option<(Option<Guard>, Option<i64>)> {
        let (wanted, known) = (values(encoding), values(self.encoding));
        let guard = self.guard(encoding)?;
        let bits = number_bits(encoding);
        let number = match &self.number {
            None if (encoding ^ self.encoding) & bits != 0 => return None,
            None => None,
            Some(number) => Some(number.read(encoding)?),
        };
        for (field, slots_of) in self.slots.iter().enumerate() {
            // The bits that are part of the number were looked at above.
            let part = bits >> FIELDS[field] & FIELD != 0;
            if slots_of.is_empty() && wanted[field] != known[field] && !part {
                return None;
            }
            for slot in slots_of {
                numbered(*self.registers.get(*slot)?, wanted[field])?;
            }
        }
        Some((guard, number))
    }

    fn guard(&self, encoding: u128) -> Option<Option<Guard>> {
        let field = (encoding >> GUARD & GUARD_FIELD) as u8;
        let (number, negated) = (field & 7, field & 8 != 0);
        if field == NO_GUARD {
            return Some(None);
        }
        if number == NO_GUARD {
            // Never executed: seldom enough to be printed.
            return None;
        }
        Some(Some(Guard { predicate: self.guard?(number), negated }))
    }
}

/// Where the fields of registers are printed.
fn slots(samples: &[(u128, &Instruction)]) -> Option<[Vec<usize>; FIELDS.len()]> {
    let printed: Vec<_> =
        samples.iter().map(|(code, text)| (values(*code), registers(text))).collect();
    let (first, bits) = (printed.first()?, number_bits(samples.first()?.0));
    let count = first.1.len();
    if printed.iter().any(|(_, registers)| registers.len() != count) {
        return None;
    }
    let mut taken = vec![false; count];
    let mut all: [Vec<usize>; FIELDS.len()] = Default::default();
    for field in 0..FIELDS.len() {
        let same = printed.iter().all(|(values, _)| values[field] == first.0[field]);
        if same || bits >> FIELDS[field] & FIELD != 0 {
            continue;
        }
        let shows = |slot: &usize| {
            let kind = std::mem::discriminant(&first.1[*slot]);
            printed.iter().all(|(values, registers)| {
                let register = registers[*slot];
                std::mem::discriminant(&register) == kind && number(register) == Some(values[field])
            })
        };
        let slots: Vec<_> = (0..count).filter(shows).collect();
        // A slot that shows two fields in all samples tells nothing about either.
        if slots.is_empty() || slots.iter().any(|slot| std::mem::replace(&mut taken[*slot], true)) {
            return None;
        }
        all[field] = slots;
    }
    Some(all)
}

impl Number {
    fn learn(samples: &[(u128, &Instruction)]) -> Option<Self> {
        let printed: Vec<_> = samples.iter().map(|(code, text)| (*code, numbers(text))).collect();
        let count = printed.first()?.1.len();
        if printed.iter().any(|(_, numbers)| numbers.len() != count) {
            return None;
        }
        let shows = |reading: Reading, slot: usize| {
            printed.iter().all(|(code, numbers)| numbers[slot] == reading.number(*code))
        };
        let readings_of = |slot| Reading::ALL.into_iter().filter(move |r| shows(*r, slot));
        let slots: Vec<_> = (0..count).filter(|slot| readings_of(*slot).next().is_some()).collect();
        let readings = slots.iter().flat_map(|slot| readings_of(*slot)).collect();
        let bits = |(code, _): &(u128, &Instruction)| code & number_bits(*code);
        let (least, most) = (samples.iter().map(bits).min()?, samples.iter().map(bits).max()?);
        (!slots.is_empty()).then_some(Self { slots, readings, range: least..=most })
    }

    /// The number of an encoding, if there is but one way to read it.
    fn read(&self, encoding: u128) -> Option<i64> {
        if !self.range.contains(&(encoding & number_bits(encoding))) {
            return None;
        }
        let mut numbers = self.readings.iter().map(|reading| reading.number(encoding));
        let number = numbers.next()?;
        numbers.all(|other| other == number).then_some(number)
    }

    fn fill(&self, number: i64, instruction: &mut Instruction) {
        let places = instruction.operands.iter_mut().filter_map(number_of).enumerate();
        for (at, place) in places {
            if self.slots.contains(&at) {
                *place = number;
            }
        }
    }
}

/// The number of an operand that has one.
fn number_of(operand: &mut Operand) -> Option<&mut i64> {
    match operand {
        Operand::Integer(number)
        | Operand::Constant { offset: number, .. }
        | Operand::Address { offset: number, .. } => Some(number),
        Operand::Register(..) | Operand::Special(_) | Operand::Target(_) | Operand::Other(_) => {
            None
        }
    }
}

fn numbers(instruction: &Instruction) -> Vec<i64> {
    let mut copy = instruction.clone();
    copy.operands.iter_mut().filter_map(number_of).map(|number| *number).collect()
}

/// Predicates of the same kind.
fn kind(predicate: Register) -> Option<fn(u8) -> Register> {
    match predicate {
        Register::Predicate(_) => Some(Register::Predicate),
        Register::UniformPredicate(_) => Some(Register::UniformPredicate),
        _ => None,
    }
}

fn registers(instruction: &Instruction) -> Vec<Register> {
    let mut copy = instruction.clone();
    let mut slots = Slots::new();
    for operand in &mut copy.operands {
        collect(operand, &mut slots);
    }
    slots.into_iter().map(|slot| *slot).collect()
}

/// The registers of an instruction.
type Slots<'o> = SmallVec<[&'o mut Register; 8]>;

/// The registers of an operand, in the order in which they are printed.
fn collect<'o>(operand: &'o mut Operand, slots: &mut Slots<'o>) {
    match operand {
        Operand::Register(register, _) => slots.push(register),
        Operand::Constant { bank, register, .. } => {
            if let ConstantBank::Descriptor(register) = bank {
                slots.push(register);
            }
            slots.extend(register);
        }
        Operand::Address { terms, descriptor, .. } => {
            slots.extend(descriptor.as_mut().map(|(_, register)| register));
            slots.extend(terms.iter_mut().map(|term| &mut term.register));
        }
        Operand::Integer(_) | Operand::Special(_) | Operand::Target(_) | Operand::Other(_) => {}
    }
}

fn number(register: Register) -> Option<u8> {
    match register {
        Register::General(number) | Register::Uniform(number) => Some(number),
        _ => None,
    }
}

/// A register of the same kind with another number.
fn numbered(register: Register, number: u8) -> Option<Register> {
    match register {
        Register::General(_) if number < 0xff => Some(Register::General(number)),
        // Higher ones are not in every architecture; the bits may be something else.
        Register::Uniform(_) if number < 0x3f => Some(Register::Uniform(number)),
        _ => None,
    }
}
