//! Many instructions differ in nothing but the numbers of their registers. A template stands for
//! all of them, learned from a few that were printed.
//!
//! Registers have four fields of eight bits in an encoding. Which of them an instruction has, and
//! where they are printed, is not known beforehand: it is concluded from samples that differ in
//! every field, and only if the template gives each sample exactly as it was printed. What has the
//! highest number of a kind (`RZ`, `URZ`) is never filled in.

use super::instruction::{ConstantBank, Instruction, Operand, Register};

/// Where the fields of registers begin.
const FIELDS: [u32; 4] = [16, 24, 32, 64];
const FIELD: u128 = 0xff;
/// The third field is part of a number in instructions whose opcode has these bits in 9 to 11.
const NUMBERS: [u128; 4] = [0, 2, 4, 5];
/// What stands for `RZ`, and for `URZ` in fields of six bits.
const ZEROS: [u128; 2] = [0xff, 0x3f];

type Values = [u8; FIELDS.len()];

/// The numbers in the fields of registers.
fn values(encoding: u128) -> Values {
    FIELDS.map(|at| (encoding >> at & FIELD) as u8)
}

/// What instructions have in common that differ in registers only. Control flow has distances in
/// those fields, so each of its instructions stands alone.
pub(super) fn shape(encoding: u128) -> u128 {
    let form = encoding >> 9 & 7;
    let control = matches!(encoding & 0xff, 0x40..=0x5f);
    let mut shape = encoding;
    for at in FIELDS {
        let skipped = control || at == 32 && NUMBERS.contains(&form);
        if !skipped && !ZEROS.contains(&(encoding >> at & FIELD)) {
            shape &= !(FIELD << at);
        }
    }
    shape
}

/// What stands for all instructions of a shape.
#[derive(Clone, Debug)]
pub(super) struct Template {
    base: Instruction,
    values: Values,
    /// Where each field is printed; none where it has the same number in all samples.
    slots: [Vec<usize>; FIELDS.len()],
}

/// Members of a shape that between them have the lowest and the highest number of every field, and
/// one whose numbers are as different from each other as can be: indices, each once.
pub(super) fn samples(members: &[u128]) -> Vec<usize> {
    let indices = 0..members.len();
    let mut samples = Vec::new();
    for field in 0..FIELDS.len() {
        let number = |at: &usize| values(members[*at])[field];
        samples.extend(indices.clone().min_by_key(number));
        samples.extend(indices.clone().max_by_key(number));
    }
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
        let mut template =
            Self { base: (*base).clone(), values: values(*first), slots: Default::default() };
        let printed: Vec<_> =
            samples.iter().map(|(code, text)| (values(*code), registers(text))).collect();
        let count = printed[0].1.len();
        if printed.iter().any(|(_, registers)| registers.len() != count) {
            return None;
        }
        let mut taken = vec![false; count];
        for field in 0..FIELDS.len() {
            if printed.iter().all(|(values, _)| values[field] == template.values[field]) {
                continue;
            }
            let shows = |slot: &usize| {
                let kind = std::mem::discriminant(&printed[0].1[*slot]);
                printed.iter().all(|(values, registers)| {
                    let register = registers[*slot];
                    std::mem::discriminant(&register) == kind
                        && number(register) == Some(values[field])
                })
            };
            let slots: Vec<_> = (0..count).filter(shows).collect();
            // A slot that shows two fields in all samples tells nothing about either.
            if slots.is_empty()
                || slots.iter().any(|slot| std::mem::replace(&mut taken[*slot], true))
            {
                return None;
            }
            template.slots[field] = slots;
        }
        let right = |(code, text): &(u128, &Instruction)| {
            template.fill(*code).is_some_and(|filled| filled == **text)
        };
        samples.iter().all(right).then_some(template)
    }

    /// The instruction of an encoding of this shape. `None` where it differs in what was the same
    /// in all samples, or has a number that not all registers of the kind have.
    pub(super) fn fill(&self, encoding: u128) -> Option<Instruction> {
        let wanted = values(encoding);
        let mut instruction = self.base.clone();
        let mut slots: Vec<&mut Register> = Vec::new();
        for operand in &mut instruction.operands {
            collect(operand, &mut slots);
        }
        for ((slots_of, wanted), known) in self.slots.iter().zip(wanted).zip(self.values) {
            if slots_of.is_empty() && wanted != known {
                return None;
            }
            for slot in slots_of {
                let place = slots.get_mut(*slot)?;
                **place = numbered(**place, wanted)?;
            }
        }
        Some(instruction)
    }
}

fn registers(instruction: &Instruction) -> Vec<Register> {
    let mut copy = instruction.clone();
    let mut slots = Vec::new();
    for operand in &mut copy.operands {
        collect(operand, &mut slots);
    }
    slots.into_iter().map(|slot| *slot).collect()
}

/// The registers of an operand, in the order in which they are printed.
fn collect<'o>(operand: &'o mut Operand, slots: &mut Vec<&'o mut Register>) {
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
