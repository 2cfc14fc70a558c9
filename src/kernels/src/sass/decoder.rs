//! Encodings to instructions, by the disassembler, each distinct one once.
//!
//! An instruction has 128 bits. Those from 105 on tell the scheduler when it may be issued; they
//! change nothing of what is printed but the marks `.reuse` and those for the scheduler, which are
//! dropped. Two encodings that differ in them only are one instruction. They are not cleared for
//! the disassembler, which refuses some combinations, so that the first one stands for all.
//!
//! Operands that are places in the code are printed as addresses, which are of no use among
//! instructions that stand in no order. Which encodings have one is found out by printing some of
//! each kind a second time elsewhere: what is printed for them differs.
//!
//! The printed instructions are kept. The instructions of a template are made again for each
//! kernel: it takes many times the memory of the code.

use super::code::{Code, Function};
use super::instruction::{Instruction, Operand};
use super::object::{INSTRUCTION, RawCode, RawFunction};
use super::parse;
use super::template::{self, Template};
use crate::disassembler::{Disassembler, DisassemblyError};
use crate::image::{ComputeCapability, Target, Variant};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bits that say what is done; the rest is for the scheduler.
const MEANING: u128 = (1 << 105) - 1;
/// Bits of the opcode, which tell the kinds of operands too.
const OPCODE: u128 = (1 << 12) - 1;
/// The first bit of the modifiers of control flow, which may give it another operand.
const MODIFIERS: u32 = 84;
/// The number of encodings of one shape from which a template is learned.
const FEWEST: usize = 6;
/// The number of encodings that are printed in about the time in which the disassembler starts.
const AT_ONCE: usize = 30_000;
/// How many encodings of a kind are printed a second time.
const SAMPLES: usize = 4;
/// When more instructions than this are known, they are forgotten before the next batch.
const MAX_KNOWN: usize = 300_000;

/// The instruction or template that stands for an encoding.
#[derive(Clone, Debug)]
enum Known {
    /// The disassembler refuses it.
    Refused,
    Plain(Arc<Instruction>),
    /// An operand is a place: its index, and how far it is from the instruction, in bytes.
    Relative(Arc<Instruction>, usize, i64),
}

#[derive(Debug, Default)]
struct Architecture {
    known: HashMap<u128, Known>,
    /// Kinds of instructions, and which operand of them is a place, counted from 1 at the last one.
    kinds: HashMap<u64, Option<usize>>,
    /// The templates that stand for all instructions of a shape.
    templates: HashMap<u128, Template>,
    /// More opcodes whose numbers are printed in a way of their own: see [`template::is_numbered`].
    narrow: HashSet<u16>,
    /// Shapes that have no template.
    single: HashSet<u128>,
}

/// Decodes kernels, and remembers instructions.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The disassembler's names of targets.
    names: HashMap<Target, String>,
    architectures: HashMap<String, Architecture>,
    /// For kernels without code.
    nothing: Architecture,
}

impl Decoder {
    /// Decodes kernels of one target. The disassembler is run once for all of them, if there is
    /// anything new.
    ///
    /// # Errors
    /// When the disassembler does not know the target, cannot be run, or fails.
    pub fn decode(
        &mut self,
        disassembler: &Disassembler,
        target: Target,
        kernels: Vec<RawCode>,
    ) -> Result<Vec<Code>, DisassemblyError> {
        Ok(self.decode_each(disassembler, target, kernels)?.collect())
    }

    /// As [`Self::decode`], for kernels that are looked at one by one: their instructions take many
    /// times the memory of their code.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_each(
        &mut self,
        disassembler: &Disassembler,
        target: Target,
        kernels: Vec<RawCode>,
    ) -> Result<impl ExactSizeIterator<Item = Code> + Send + use<'_>, DisassemblyError> {
        if !self.names.contains_key(&target)
            && let Some(name) = names(target).into_iter().find(|name| self.knows(name))
        {
            self.names.insert(target, name);
        }
        let name = self.names.get(&target);
        let mut architecture = name.and_then(|name| self.architectures.get_mut(name));
        if let Some(known) =
            architecture.as_mut().map(|a| &mut a.known).filter(|k| k.len() > MAX_KNOWN)
        {
            known.clear();
        }
        let known = architecture.map(|architecture| &architecture.known);
        let mut unknown = Vec::new();
        let mut new: HashMap<u128, u128> = HashMap::default();
        for kernel in &kernels {
            for function in [&kernel.entry].into_iter().chain(&kernel.functions) {
                for code in &function.code {
                    let encoding = u128::from_le_bytes(*code);
                    let key = encoding & MEANING;
                    if known.as_ref().is_some_and(|known| known.contains_key(&key)) {
                        continue;
                    }
                    new.entry(key).or_insert_with(|| {
                        unknown.push(key);
                        encoding
                    });
                }
            }
        }
        let unknown: Vec<u128> = unknown.iter().map(|key| new[key]).collect();
        drop(new);
        let architecture = if unknown.is_empty() && !self.names.contains_key(&target) {
            &self.nothing
        } else {
            let name = self.learn(disassembler, target, &unknown)?;
            &self.architectures[&name]
        };
        Ok(kernels.into_iter().map(move |kernel| architecture.code(target, kernel)))
    }

    fn knows(&self, name: &str) -> bool {
        self.architectures.get(name).is_some_and(|architecture| !architecture.kinds.is_empty())
    }

    /// Has new encodings printed. Tells the architecture's name.
    fn learn(
        &mut self,
        disassembler: &Disassembler,
        target: Target,
        encodings: &[u128],
    ) -> Result<String, DisassemblyError> {
        let candidates = match self.names.get(&target) {
            Some(name) => vec![name.clone()],
            None => names(target),
        };
        let mut refusal = DisassemblyError::Architecture(target.to_string());
        for name in candidates {
            let architecture = self.architectures.entry(name.clone()).or_default();
            match architecture.learn(disassembler, &name, encodings) {
                Ok(()) => {
                    self.names.insert(target, name.clone());
                    return Ok(name);
                }
                Err(DisassemblyError::Architecture(_)) => {}
                Err(error) => {
                    refusal = error;
                    break;
                }
            }
        }
        Err(refusal)
    }
}

/// The names that the disassembler may have for a target, the best first. Code runs on devices of
/// the same major version and a higher minor one too (CUDA C++ Programming Guide, "Binary
/// Compatibility"), so what reads the code of those reads it as well; the letters stand for
/// supersets.
fn names(target: Target) -> Vec<String> {
    let ComputeCapability { major, minor } = target.capability;
    let last = if target.variant == Variant::Specific { minor } else { minor.max(9) };
    let mut names = Vec::new();
    for minor in minor..=last {
        let number = ComputeCapability { major, minor }.number();
        let letters: &[&str] = if number < 90 { &[""] } else { &["a", "f", ""] };
        names.extend(letters.iter().map(|letter| format!("SM{number}{letter}")));
    }
    names
}

impl Architecture {
    fn learn(
        &mut self,
        disassembler: &Disassembler,
        name: &str,
        encodings: &[u128],
    ) -> Result<(), DisassemblyError> {
        if encodings.is_empty() {
            return Ok(());
        }
        let mut left = encodings.to_vec();
        loop {
            left = self.learn_some(disassembler, name, left)?;
            if left.len() <= AT_ONCE {
                return self.print(disassembler, name, &left);
            }
        }
    }

    /// Has a few printed of the encodings that differ in registers, a number and the guard only, or
    /// all where there are not many. Tells which encodings are left: those of shapes that turned
    /// out to be too wide, and what the template of its shape does not give.
    fn learn_some(
        &mut self,
        disassembler: &Disassembler,
        name: &str,
        encodings: Vec<u128>,
    ) -> Result<Vec<u128>, DisassemblyError> {
        let mut shapes: HashMap<u128, Vec<u128>> = HashMap::default();
        for encoding in encodings {
            shapes.entry(self.shape(encoding)).or_default().push(encoding);
        }
        let mut shapes: Vec<_> = shapes.into_iter().collect();
        shapes.sort_unstable_by_key(|(shape, _)| *shape);
        for (shape, members) in &mut shapes {
            members.retain(|member| !self.fits(*shape, *member));
        }
        let few = shapes.iter().map(|(_, members)| members.len()).sum::<usize>() <= AT_ONCE;
        let (mut printed, mut learning) = (Vec::new(), Vec::new());
        for (shape, members) in shapes {
            let alone = self.single.contains(&shape) || self.templates.contains_key(&shape);
            if members.len() < FEWEST || alone {
                printed.extend(members);
            } else {
                let samples = template::samples(&members);
                let sampled: Vec<_> = samples.iter().map(|at| members[*at]).collect();
                printed.extend(if few { &members } else { &sampled });
                learning.push((shape, members, sampled));
            }
        }
        self.print(disassembler, name, &printed)?;
        let mut left = Vec::new();
        for (shape, members, sampled) in learning {
            let samples = sampled.iter().map(|sample| match self.known.get(&(sample & MEANING)) {
                Some(Known::Plain(instruction)) => Some((*sample, &**instruction)),
                _ => None,
            });
            let samples: Option<Vec<_>> = samples.collect();
            match samples.and_then(|samples| Template::learn(&samples)) {
                Some(template) => {
                    self.templates.insert(shape, template);
                }
                None if template::is_wide(&members) => {
                    self.narrow.insert(opcode(shape));
                }
                None => {
                    self.single.insert(shape);
                }
            }
            for member in members {
                if !self.known.contains_key(&(member & MEANING)) && !self.fits(shape, member) {
                    left.push(member);
                }
            }
        }
        Ok(left)
    }

    /// The bits that it has in common with others that a template may stand for.
    fn shape(&self, encoding: u128) -> u128 {
        let encoding = encoding & MEANING;
        if template::is_numbered(encoding) || self.narrow.contains(&opcode(encoding)) {
            template::narrow_shape(encoding)
        } else {
            template::shape(encoding)
        }
    }

    /// Whether there is a template of its shape that gives it.
    fn fits(&self, shape: u128, encoding: u128) -> bool {
        self.templates.get(&shape).is_some_and(|template| template.fits(encoding))
    }

    /// Makes an instruction from the template of its shape. An opcode may have turned out to be one
    /// of those with numbers of their own after the template had been learned.
    fn fill(&self, encoding: u128) -> Option<Arc<Instruction>> {
        let (own, wide) = (self.shape(encoding), template::shape(encoding & MEANING));
        let fill = |shape| self.templates.get(&shape)?.fill(encoding).map(Arc::new);
        fill(own).or_else(|| if own == wide { None } else { fill(wide) })
    }

    /// Has encodings printed as they are.
    fn print(
        &mut self,
        disassembler: &Disassembler,
        name: &str,
        encodings: &[u128],
    ) -> Result<(), DisassemblyError> {
        if encodings.is_empty() {
            return Ok(());
        }
        let mut samples: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, encoding) in encodings.iter().enumerate() {
            let kind = kind(*encoding);
            if !self.kinds.contains_key(&kind) {
                let samples = samples.entry(kind).or_default();
                if samples.len() < SAMPLES {
                    samples.push(at);
                }
            }
        }
        let again: Vec<usize> = samples.values().flatten().copied().collect();
        let all = encodings.iter().chain(again.iter().map(|at| &encodings[*at]));
        let code: Vec<u8> = all.flat_map(|encoding| encoding.to_le_bytes()).collect();
        let printed = disassembler.print(name, &code)?;
        let mut texts = vec![None; code.len() / INSTRUCTION];
        for (at, text) in printed.instructions() {
            if let Some(place) = texts.get_mut(at) {
                *place = Some(text);
            }
        }
        let (texts, texts_again) = texts.split_at(encodings.len());
        for (first, second) in again.iter().zip(texts_again) {
            let place = different(texts[*first], *second);
            let known = self.kinds.entry(kind(encodings[*first])).or_default();
            *known = known.or(place);
        }
        self.known.reserve(encodings.len());
        for (at, (encoding, text)) in encodings.iter().zip(texts).enumerate() {
            let place = self.kinds.get(&kind(*encoding)).copied().flatten();
            let known = match text.and_then(parse::instruction) {
                None => Known::Refused,
                Some(instruction) => {
                    // Operands in front of it are not in every instruction.
                    let place = place.and_then(|last| instruction.operands.len().checked_sub(last));
                    match place.map(|place| (place, instruction.operands.get(place))) {
                        Some((place, Some(Operand::Integer(address)))) => {
                            let distance = address.wrapping_sub((at * INSTRUCTION) as i64);
                            Known::Relative(Arc::new(instruction), place, distance)
                        }
                        _ => Known::Plain(Arc::new(instruction)),
                    }
                }
            };
            self.known.insert(encoding & MEANING, known);
        }
        Ok(())
    }

    fn code(&self, target: Target, raw: RawCode) -> Code {
        let RawCode { entry, functions, parameters, banks, variables } = raw;
        let functions = functions.into_iter().map(|function| self.function(function));
        Code {
            target,
            entry: self.function(entry),
            functions: functions.map(|function| (function.name.clone(), function)).collect(),
            parameters,
            banks,
            variables,
        }
    }

    fn function(&self, raw: RawFunction) -> Function {
        let RawFunction { name, code, relocations, branch_targets, inner } = raw;
        let instructions = code.iter().enumerate().map(|(at, code)| {
            let encoding = u128::from_le_bytes(*code);
            match self.known.get(&(encoding & MEANING)) {
                None => self.fill(encoding),
                Some(Known::Refused) => None,
                Some(Known::Plain(instruction)) => Some(instruction.clone()),
                Some(Known::Relative(instruction, place, distance)) => {
                    let mut instruction = (**instruction).clone();
                    let target = distance.wrapping_add((at * INSTRUCTION) as i64);
                    instruction.operands[*place] = Operand::Target(target);
                    Some(Arc::new(instruction))
                }
            }
        });
        let instructions = instructions.collect();
        Function { name, instructions, relocations, branch_targets, inner }
    }
}

fn opcode(encoding: u128) -> u16 {
    (encoding & OPCODE) as u16
}

/// The bits common to instructions that have operands of the same kinds: the opcode, and of
/// control flow the modifiers.
fn kind(encoding: u128) -> u64 {
    let encoding = encoding & MEANING;
    let modifiers = if template::is_control(encoding) { encoding >> MODIFIERS << 12 } else { 0 };
    (encoding & OPCODE | modifiers) as u64
}

/// The operand in which two prints of an instruction differ, counted from 1 at the last one.
fn different(first: Option<&str>, second: Option<&str>) -> Option<usize> {
    if first == second {
        return None;
    }
    let (first, second) = (parse::instruction(first?)?, parse::instruction(second?)?);
    let operands = first.operands.iter().zip(&second.operands).rev();
    (1..).zip(operands).find(|(_, (first, second))| first != second).map(|(last, _)| last)
}
