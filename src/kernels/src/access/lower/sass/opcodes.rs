//! The meaning of each opcode of machine code. NVIDIA documents the opcodes by name only ("CUDA
//! Binary Utilities", instruction set reference); their meaning was found by compiling small
//! programs.
//!
//! Stage: lowering; from an instruction as it is printed to [`Lifted`] operations.
//!
//! Invariant: an opcode that is in no table here is never skipped: see [`Operation::Unknown`].

mod computes;
mod constants;
mod tables;
mod transfers;

use smallvec::SmallVec;
use smallvec::smallvec;

use super::constant_banks::{ConstantBanks, RETURN, register_of};
use super::operation::{
    AddressPart, BankWord, Bytes, Combine, Half, Lifted, LiftedSource, Memory, Modifier, NOWHERE,
    Operation, Order, SourceValue,
};
use super::spilled;
use crate::access::domain::expression::Index;
use crate::access::fixpoint::grid_control::Meeting;
use crate::access::summary::result::Touch;
use crate::sass::{ConstantBank, Instruction, Marks, Operand, Part, Register, Relocation};
use streamsan_model::WordKind;
use tables::{COMPUTES_SET, IDLE_SET};

/// Takes the operands of one instruction apart and makes operations of it.
pub(super) struct Lifter<'a> {
    pub(super) banks: &'a ConstantBanks<'a>,
    pub(super) instruction: &'a Instruction,
    /// Byte in its function.
    pub(super) place: u32,
    /// Word of the stack frame at a constant offset from R1: its register.
    pub(super) slots: &'a dyn Fn(i64) -> Option<u32>,
    /// Stands for the rest of local memory.
    pub(super) local: u32,
    /// All words of the frame that are followed.
    pub(super) frame: &'a [u32],
    /// The relocation that the loader applies to the instruction.
    pub(super) relocation: Option<&'a Relocation>,
    /// Local memory is reached in other ways than by LDL and STL.
    pub(super) stack_is_shared: bool,
    pub(super) out: &'a mut Vec<Lifted>,
}

type LiftedSources = SmallVec<[LiftedSource; 4]>;

fn constant(value: i64) -> LiftedSource {
    LiftedSource::plain(SourceValue::Constant(i64::from(value as i32)))
}

fn modifier(marks: &Marks) -> Modifier {
    Modifier { minus: marks.minus, not: marks.not, absolute: marks.absolute }
}

fn is_predicate(register: Register) -> bool {
    matches!(
        register,
        Register::Predicate(_)
            | Register::True
            | Register::UniformPredicate(_)
            | Register::UniformTrue
    )
}

/// The bits of a float of 16 bits that the disassembler prints in decimal.
fn half_bits(text: &str) -> Option<i64> {
    let value: f64 = match text {
        "+INF" => return Some(0x7c00),
        "-INF" => return Some(0xfc00),
        text => text.parse().ok()?,
    };
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    // Steps of 2^-24 below 2^-14, else 10 bits behind the first one.
    let bits = if size < 2f64.powi(-14) {
        size * 2f64.powi(24)
    } else {
        let exponent = size.log2().floor() as i32;
        (size / 2f64.powi(exponent) - 1.0) * 1024.0 + f64::from((exponent + 15) * 1024)
    };
    (bits.fract() == 0.0 && bits < 31744.0).then_some(sign | bits as i64)
}

impl Lifter<'_> {
    fn operand(&self, at: usize) -> Option<&Operand> {
        self.instruction.operands.get(at)
    }

    fn has(&self, modifier: &str) -> bool {
        self.instruction.has(modifier)
    }

    /// The register of an operand, that many behind it. Predicates have none behind them.
    fn target(&self, at: usize, further: u8) -> u32 {
        match self.operand(at) {
            Some(Operand::Register(register, _)) => {
                register_of(*register, further).unwrap_or(NOWHERE)
            }
            _ => NOWHERE,
        }
    }

    fn register_source(register: Register, further: u8, modifier: Modifier) -> LiftedSource {
        let origin = match register {
            Register::Zero | Register::UniformZero => SourceValue::Constant(0),
            Register::True | Register::UniformTrue => SourceValue::Always(true),
            _ => match register_of(register, further) {
                Some(register) => SourceValue::Register(register),
                None => SourceValue::Other,
            },
        };
        LiftedSource { origin, modifier }
    }

    /// The value of an operand; with `further` the 32 bits that many behind it.
    fn source(&self, at: usize, further: u8) -> LiftedSource {
        match self.operand(at) {
            Some(Operand::Register(register, marks)) => {
                // Parts of a register are not followed.
                let part = |s: &String| {
                    matches!(
                        s.as_str(),
                        "H0" | "H1" | "B0" | "B1" | "B2" | "B3" | "H0_H0" | "H1_H1"
                    )
                };
                if marks.suffixes.iter().any(part) {
                    return LiftedSource::plain(SourceValue::Other);
                }
                Self::register_source(*register, further, modifier(marks))
            }
            Some(Operand::Integer(_)) if self.relocation.is_some() => self.relocated(further),
            Some(Operand::Integer(value)) => {
                constant(if further == 0 { *value } else { *value >> 32 })
            }
            Some(Operand::Constant {
                bank: ConstantBank::Number(bank),
                register: None | Some(Register::Zero | Register::UniformZero),
                offset,
                marks,
            }) => {
                let word = self.banks.at(*bank, offset + 4 * i64::from(further));
                let origin = match word {
                    BankWord::Literal(value) => SourceValue::Constant(value),
                    word => SourceValue::Word(word),
                };
                LiftedSource { origin, modifier: modifier(marks) }
            }
            _ => LiftedSource::plain(SourceValue::Other),
        }
    }

    /// An immediate that the loader puts in.
    fn relocated(&self, further: u8) -> LiftedSource {
        let word = self.relocation.map(|relocation| match relocation.part {
            Part::Low => self.banks.address(relocation, false),
            Part::High => self.banks.address(relocation, true),
            Part::Whole => self.banks.address(relocation, further > 0),
            Part::Other => BankWord::Unknown,
        });
        LiftedSource::plain(SourceValue::Word(word.unwrap_or(BankWord::Unknown)))
    }

    fn push(&mut self, operation: Operation, results: SmallVec<[u32; 4]>, sources: LiftedSources) {
        self.out.push(Lifted { operation, results, sources, place: self.place });
    }

    /// Lifts the instruction. Branches are not lifted here.
    pub(super) fn lift(&mut self) {
        self.constants();
        let name = self.instruction.opcode.as_str();
        let plain = match name {
            "UIADD3" | "UIMAD" | "ULEA" | "USHF" | "ULOP3" | "USEL" | "UMOV" | "UISETP"
            | "UPLOP3" | "UPRMT" | "UIMNMX" | "UVIMNMX" | "UVIADD" | "UVIADDMNMX" | "UIABS"
            | "USHL" | "USHR" | "UIADD" => &name[1..],
            other => other,
        };
        match plain {
            "MOV" | "MOV32I" | "MOV64IUR" => self.moves(),
            "R2UR" => {
                let at = usize::from(self.is_predicate(0));
                let (result, source) = (self.target(at, 0), self.source(at + 1, 0));
                self.push(Operation::Move, smallvec![result], smallvec![source]);
                if at == 1 {
                    self.opaque_predicate(0);
                }
            }
            "S2R" | "S2UR" => self.special(),
            "CS2R" if self.is_special(1, "SRZ") => {
                let wide = !self.has("32");
                let results = (0..1 + u8::from(wide)).map(|n| self.target(0, n)).collect();
                self.push(Operation::Move, results, smallvec![constant(0); 1 + usize::from(wide)]);
            }
            "HFMA2" if self.half_constant().is_some() => {
                let value = constant(self.half_constant().unwrap_or(0));
                let result = self.target(0, 0);
                self.push(Operation::Move, smallvec![result], smallvec![value]);
            }
            "IADD3" | "IADD" | "VIADD" | "IADD32I" => self.add(),
            "IMAD" | "IMUL" => self.multiply(),
            "LEA" => self.scale(),
            "SHF" => self.shift(),
            "SHL" | "SHR" => self.plain_shift(plain == "SHL"),
            "LOP3" => self.logic(),
            "PLOP3" => self.predicate_logic(),
            "SEL" | "FSEL" => self.choose(),
            "IMNMX" | "VIMNMX" if !self.has("S16x2") && !self.has("U16x2") => self.extreme(false),
            "VIMNMX3" => self.extreme_of_three(),
            "VIADDMNMX" if !self.has("S16x2") && !self.has("U16x2") => self.extreme(true),
            "ISETP" => self.compare(),
            "PRMT" => {
                let sources = (1..4).map(|at| self.source(at, 0)).collect();
                let result = self.target(0, 0);
                self.push(Operation::Permute, smallvec![result], sources);
            }
            "IABS" => {
                let (result, source) = (self.target(0, 0), self.source(1, 0));
                self.push(Operation::Absolute, smallvec![result], smallvec![source]);
            }
            "LDC" | "ULDC" | "LDCU" => self.load_constant(),
            "SHFL" => {
                let (result, source) = (self.target(1, 0), self.source(2, 0));
                self.push(Operation::Shuffle, smallvec![result], smallvec![source]);
                self.opaque_predicate(0);
            }
            "RPCMOV" => self.move_return(),
            "ACQBULK" => self.push(Operation::Wait, smallvec![], smallvec![]),
            "PREEXIT" => self.push(Operation::Trigger, smallvec![], smallvec![]),
            "BAR" | "UCGABAR_ARV" | "UCGABAR_WAIT" => self.meet(plain),
            "SYNCS" => {
                self.meet(plain);
                self.other(plain);
            }
            "P2R" => self.spill_predicates(),
            "R2P" => self.reload_predicates(),
            "BSYNC" => {}
            other if IDLE_SET.contains(other) => {}
            other => {
                if !self.memory(other) {
                    self.other(other);
                }
            }
        }
    }

    /// Barriers: `BAR.SYNC 0x0`, with a number of threads behind it `BAR.SYNC 0x1, 0x40`; `SYNCS`
    /// works on `mbarrier` objects.
    fn meet(&mut self, name: &str) {
        let counts = self.operand(1).is_some() && !self.is_predicate(1);
        let meeting = match name {
            "UCGABAR_ARV" => Meeting::ClusterArrive,
            "UCGABAR_WAIT" => Meeting::ClusterWait,
            "SYNCS" if self.has("PHASECHK") => Meeting::Some,
            "SYNCS" => Meeting::Signal,
            _ if self.has("ARV") => Meeting::Signal,
            _ if counts => Meeting::Some,
            _ => Meeting::Block,
        };
        self.push(Operation::Meet(meeting), smallvec![], smallvec![]);
    }

    fn is_predicate(&self, at: usize) -> bool {
        matches!(self.operand(at), Some(Operand::Register(r, _)) if is_predicate(*r))
    }

    fn is_special(&self, at: usize, wanted: &str) -> bool {
        matches!(self.operand(at), Some(Operand::Special(name)) if name == wanted)
    }

    /// `HFMA2 R5, -RZ, RZ, 1.875, 0`: two halves are moved.
    fn half_constant(&self) -> Option<i64> {
        let zero = |at| {
            matches!(
                self.operand(at),
                Some(Operand::Register(Register::Zero | Register::UniformZero, _))
            )
        };
        let half = |at| match self.operand(at) {
            Some(Operand::Other(text)) => half_bits(text),
            Some(Operand::Integer(0)) => Some(0),
            _ => None,
        };
        let known = zero(1) && zero(2) && self.instruction.operands.len() == 5;
        known.then(|| Some(half(3)? << 16 | half(4)?)).flatten()
    }

    /// Reads of `__constant__` variables by the operands of any instruction.
    fn constants(&mut self) {
        if matches!(self.instruction.opcode.as_str(), "LDC" | "ULDC" | "LDCU") {
            return;
        }
        for at in 0..self.instruction.operands.len() {
            let Some(Operand::Constant { bank, register, offset, .. }) = self.operand(at) else {
                continue;
            };
            let variable = match (bank, register) {
                (
                    ConstantBank::Number(bank),
                    None | Some(Register::Zero | Register::UniformZero),
                ) => match self.banks.at(*bank, *offset) {
                    BankWord::Variable { global, offset } => Some((global, offset)),
                    _ => continue,
                },
                (ConstantBank::Number(bank), Some(_)) if !self.banks.has_variables(*bank) => {
                    continue;
                }
                _ => None,
            };
            let memory = Memory::Constant(variable);
            let operation = Operation::Load {
                memory,
                bytes: if self.has("64") || self.has("WIDE") { 8 } else { 4 },
                signed: false,
                strong: false,
                terms: smallvec![],
                offset: 0,
            };
            self.push(operation, smallvec![], smallvec![]);
        }
    }

    /// `P2R R1, PR, R2, 0x7f`, or `P2R.B1` for the second byte.
    fn spill_predicates(&mut self) {
        let byte = ["B1", "B2", "B3"].iter().position(|byte| self.has(byte));
        let first = byte.map_or(0, |at| 8 * (at as u8 + 1));
        match (self.is_special(1, "PR"), self.operand(3)) {
            (true, Some(&Operand::Integer(mask))) => {
                let mask = mask as u8;
                let predicates = spilled::bits(mask).map(|bit| {
                    Self::register_source(Register::Predicate(bit), 0, Modifier::default())
                });
                let sources = std::iter::once(self.source(2, 0)).chain(predicates).collect();
                let result = self.target(0, 0);
                self.push(Operation::SpillPredicates { first, mask }, smallvec![result], sources);
            }
            _ => self.opaque_of_all(),
        }
    }

    /// `R2P PR, R1, 0x7f`, or `R1.B1` for the second byte.
    fn reload_predicates(&mut self) {
        let mask = match self.operand(2) {
            Some(&Operand::Integer(mask)) => Some(mask as u8),
            _ => None,
        };
        let results = spilled::bits(mask.unwrap_or(0x7f))
            .map(|bit| register_of(Register::Predicate(bit), 0).unwrap_or(NOWHERE))
            .collect();
        let Some((Operand::Register(register, marks), mask)) = self.operand(1).zip(mask) else {
            let operation = Operation::Opaque { bounds: None, keeps: false };
            return self.push(operation, results, smallvec![]);
        };
        let byte = |name: &&str| marks.suffixes.iter().any(|suffix| suffix == name);
        let first = ["B1", "B2", "B3"].iter().position(byte).map_or(0, |at| 8 * (at as u8 + 1));
        let source = Self::register_source(*register, 0, Modifier::default());
        self.push(Operation::ReloadPredicates { first, mask }, results, smallvec![source]);
    }

    fn opaque_predicate(&mut self, at: usize) {
        let result = self.target(at, 0);
        if result != NOWHERE {
            let operation = Operation::Opaque { bounds: None, keeps: false };
            self.push(operation, smallvec![result], smallvec![]);
        }
    }

    /// The predicates in front of an operand become unknown.
    fn opaque_predicates(&mut self, before: usize) {
        for at in 0..before {
            if self.is_predicate(at) {
                self.opaque_predicate(at);
            }
        }
    }

    /// The results are something of all the operands.
    pub(super) fn opaque_of_all(&mut self) {
        let mut end = 1;
        while self.is_predicate(end) && end < 3 {
            end += 1;
        }
        let results = (0..end).map(|at| self.target(at, 0)).collect();
        let sources = (end..self.instruction.operands.len())
            .filter(|&at| !self.is_predicate(at))
            .flat_map(|at| self.parts(at))
            .collect();
        self.push(Operation::Opaque { bounds: None, keeps: false }, results, sources);
    }

    /// The registers and words of an operand, those of an address too.
    fn parts(&self, at: usize) -> Vec<LiftedSource> {
        match self.operand(at) {
            Some(Operand::Address { terms, .. }) => terms
                .iter()
                .flat_map(|term| {
                    [0, 1].map(|n| Self::register_source(term.register, n, Modifier::default()))
                })
                .collect(),
            Some(Operand::Constant { register: Some(register), .. }) => {
                vec![Self::register_source(*register, 0, Modifier::default())]
            }
            Some(Operand::Register(register, marks)) => {
                vec![Self::register_source(*register, 0, modifier(marks))]
            }
            Some(Operand::Constant { .. }) => vec![self.source(at, 0)],
            _ => vec![],
        }
    }
}
