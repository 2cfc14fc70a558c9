//! What each opcode of machine code does. NVIDIA documents the opcodes by name only ("CUDA Binary
//! Utilities", instruction set reference); what they mean was found by compiling small programs.
//!
//! An opcode that is in no table here is never skipped: see [`Operation::Unknown`].

use std::sync::LazyLock;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use smallvec::smallvec;

use super::super::expression::Index;
use super::super::result::{Touch, WordKind};
use super::operation::{
    Bytes, Change, Combine, Half, Lifted, Memory, NOWHERE, Operation, Order, Origin, Source, Term,
    Word,
};
use super::words::{Words, register_of};
use crate::sass::{ConstantBank, Instruction, Marks, Operand, Part, Register, Relocation};

/// Opcodes that compute with registers, or synchronise, or work on memory that no other kernel
/// sees, and whose results, if they have any, are not followed.
const COMPUTES: &[&str] = &[
    "ARRIVES",
    "B2R",
    "BAR",
    "BMOV",
    "BMSK",
    "BREV",
    "CGAERRBAR",
    "CREDUX",
    "CS2R",
    "CS2UR",
    "DADD",
    "DEPBAR",
    "DFMA",
    "DMMA",
    "DMNMX",
    "DMUL",
    "DSET",
    "DSETP",
    "ELECT",
    "ENDCOLLECTIVE",
    "ERRBAR",
    "F2F",
    "F2FP",
    "F2I",
    "F2IP",
    "FADD",
    "FADD2",
    "FCHK",
    "FENCE",
    "FFMA",
    "FFMA2",
    "FLO",
    "FMNMX",
    "FMNMX3",
    "FMUL",
    "FMUL2",
    "FRND",
    "FSEL",
    "FSET",
    "FSETP",
    "FSWZADD",
    "GETLMEMBASE",
    "HADD2",
    "HADD2_32I",
    "HFMA2",
    "HGMMA",
    "HMMA",
    "HMNMX2",
    "HMUL2",
    "HSET2",
    "HSETP2",
    "I2F",
    "I2FP",
    "I2I",
    "I2IP",
    "IDP",
    "IDP4A",
    "IGMMA",
    "IMMA",
    "ISCADD",
    "LDGDEPBAR",
    "LDSM",
    "LDT",
    "LDTM",
    "LEPC",
    "MATCH",
    "MEMBAR",
    "MOVM",
    "MUFU",
    "NANOSLEEP",
    "OMMA",
    "P2R",
    "PMTRIG",
    "POPC",
    "PREEXIT",
    "QGMMA",
    "QMMA",
    "R2B",
    "REDUX",
    "S2R",
    "S2UR",
    "SHFL",
    "STSM",
    "STT",
    "STTM",
    "SYNCS",
    "UBREV",
    "UCGABAR_ARV",
    "UCGABAR_WAIT",
    "UCGABAR",
    "UF2FP",
    "UFADD",
    "UFFMA",
    "UFLO",
    "UFMNMX",
    "UFMUL",
    "UFRND",
    "UFSEL",
    "UFSET",
    "UFSETP",
    "UI2F",
    "UI2FP",
    "UF2I",
    "UF2IP",
    "UI2I",
    "UI2IP",
    "UIABS",
    "UP2UR",
    "UPOPC",
    "UREDGR",
    "USETMAXREG",
    "USETSHMSZ",
    "UTCATOMSWS",
    "UTCBAR",
    "UTCCP",
    "UTCHMMA",
    "UTCIMMA",
    "UTCMXQMMA",
    "UTCOMMA",
    "UTCQMMA",
    "UTCSHIFT",
    "UTMACMDFLUSH",
    "UVIRTCOUNT",
    "UVOTE",
    "VHMNMX",
    "VOTE",
    "VOTEU",
    "WARPGROUP",
    "WARPGROUPSET",
    "CCTL",
    "CCTLL",
    "CCTLT",
    "QSPC",
    "UBLKPF",
    "BGMMA",
    "UGETNEXTWORKID",
    "TTUCCTL",
    "R2P",
    "CREATEPOLICY",
    "SETLMEMBASE",
    "SETCTAID",
    "HMUL2_32I",
    "FMUL32I",
    "FADD32I",
    "FFMA32I",
    "FSETP2",
    "UCLEA",
    "VABSDIFF",
    "VABSDIFF4",
    "IDE",
    "UIDP",
    "MOVIMM",
    "UPSETP",
    "PSETP",
    "PSET",
    "PIXLD",
    "IPA",
    "RPCMOV",
    "SGXT",
    "USGXT",
    "UBMSK",
    "UR2UP",
    "UPRMT",
    "UMOV32I",
    "UHFMA2",
    "UHADD2",
    "UHMUL2",
    "HMNMX",
    "SPMETADATA",
    "GENMETADATA",
    "ACQSHMINIT",
    "SYNCSU",
    "FREE",
    "LDTMSTAT",
];

/// Opcodes that say nothing about registers or memory.
const IDLE: &[&str] = &[
    "NOP",
    "BPT",
    "BSSY",
    "WARPSYNC",
    "YIELD",
    "BREAK",
    "KILL",
    "RTT",
    "BMOV",
    "BAR",
    "DEPBAR",
    "MEMBAR",
    "ERRBAR",
    "FENCE",
    "CGAERRBAR",
    "NANOSLEEP",
    "ENDCOLLECTIVE",
    "LDGDEPBAR",
    "PREEXIT",
    "WARPGROUP",
    "UTMACMDFLUSH",
    "COLLECTIVE",
    "WARPSYNC",
    "STSM",
    "UCGABAR_ARV",
    "UCGABAR_WAIT",
    "USETMAXREG",
    "UBLKPF",
    "STTM",
    "STT",
    "PMTRIG",
    "CCTLL",
    "CCTLT",
    "USETSHMSZ",
    "WARPGROUPSET",
    "UTCCP",
    "UTCHMMA",
    "UTCIMMA",
    "UTCQMMA",
    "UTCOMMA",
    "UTCBAR",
    "UTCMXQMMA",
    "UTCSHIFT",
];

static COMPUTES_SET: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| COMPUTES.iter().copied().collect());
static IDLE_SET: LazyLock<FxHashSet<&str>> = LazyLock::new(|| IDLE.iter().copied().collect());

/// Takes the operands of one instruction apart and makes operations of it.
pub(super) struct Lifter<'a> {
    pub(super) words: &'a Words<'a>,
    pub(super) instruction: &'a Instruction,
    /// Byte in its function.
    pub(super) place: u32,
    /// Word of the stack frame at a constant offset from R1: its register.
    pub(super) slots: &'a dyn Fn(i64) -> Option<u32>,
    /// Stands for the rest of local memory.
    pub(super) local: u32,
    /// All words of the frame that are followed.
    pub(super) frame: &'a [u32],
    /// What the loader puts into the instruction.
    pub(super) relocation: Option<&'a Relocation>,
    /// Local memory is reached in other ways than by LDL and STL.
    pub(super) stack_is_shared: bool,
    pub(super) out: Vec<Lifted>,
}

type Sources = SmallVec<[Source; 4]>;

fn constant(value: i64) -> Source {
    Source::plain(Origin::Constant(i64::from(value as i32)))
}

fn change(marks: &Marks) -> Change {
    Change { minus: marks.minus, not: marks.not, absolute: marks.absolute }
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

    fn register_source(register: Register, further: u8, change: Change) -> Source {
        let origin = match register {
            Register::Zero | Register::UniformZero => Origin::Constant(0),
            Register::True | Register::UniformTrue => Origin::Always(true),
            _ => match register_of(register, further) {
                Some(register) => Origin::Register(register),
                None => Origin::Other,
            },
        };
        Source { origin, change }
    }

    /// The value of an operand; with `further` the 32 bits that many behind it.
    fn source(&self, at: usize, further: u8) -> Source {
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
                    return Source::plain(Origin::Other);
                }
                Self::register_source(*register, further, change(marks))
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
                let word = self.words.at(*bank, offset + 4 * i64::from(further));
                let origin = match word {
                    Word::Literal(value) => Origin::Constant(value),
                    word => Origin::Word(word),
                };
                Source { origin, change: change(marks) }
            }
            _ => Source::plain(Origin::Other),
        }
    }

    /// An immediate that the loader puts in.
    fn relocated(&self, further: u8) -> Source {
        let word = self.relocation.map(|relocation| match relocation.part {
            Part::Low => self.words.address(relocation, false),
            Part::High => self.words.address(relocation, true),
            Part::Whole => self.words.address(relocation, further > 0),
            Part::Other => Word::Unknown,
        });
        Source::plain(Origin::Word(word.unwrap_or(Word::Unknown)))
    }

    fn push(&mut self, operation: Operation, results: SmallVec<[u32; 4]>, sources: Sources) {
        self.out.push(Lifted { operation, results, sources, place: self.place });
    }

    /// Lifts the instruction. Branches are not lifted here.
    pub(super) fn lift(&mut self) {
        self.constants();
        let name = self.instruction.opcode.clone();
        let plain = match name.as_str() {
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
            "ACQBULK" => self.push(Operation::Wait, smallvec![], smallvec![]),
            "R2P" => {
                let mask = match self.operand(2) {
                    Some(Operand::Integer(mask)) => *mask,
                    _ => 0x7f,
                };
                let results = (0..7u8)
                    .filter(|bit| mask >> bit & 1 == 1)
                    .filter_map(|bit| register_of(Register::Predicate(bit), 0))
                    .collect();
                self.push(Operation::Opaque { bounds: None, keeps: false }, results, smallvec![]);
            }
            "BSYNC" => {}
            other if IDLE_SET.contains(other) => {}
            other => {
                if !self.memory(other) {
                    self.other(other);
                }
            }
        }
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
                ) => match self.words.at(*bank, *offset) {
                    Word::Variable { global, offset } => Some((global, offset)),
                    _ => continue,
                },
                (ConstantBank::Number(bank), Some(_)) if !self.words.has_variables(*bank) => {
                    continue;
                }
                _ => None,
            };
            let memory = Memory::Constant(variable);
            let operation = Operation::Load {
                memory,
                bytes: if self.has("64") || self.has("WIDE") { 8 } else { 4 },
                signed: false,
                terms: smallvec![],
                offset: 0,
            };
            self.push(operation, smallvec![], smallvec![]);
        }
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

    fn moves(&mut self) {
        let count = if self.has("64") { 2 } else { 1 };
        let results = (0..count).map(|n| self.target(0, n)).collect();
        let sources = (0..count).map(|n| self.source(1, n)).collect();
        self.push(Operation::Move, results, sources);
    }

    fn special(&mut self) {
        let name = match self.operand(1) {
            Some(Operand::Special(name)) => name.as_str(),
            _ => "",
        };
        let dimension = match name.as_bytes().last() {
            Some(b'X') => 0,
            Some(b'Y') => 1,
            _ => 2,
        };
        let index = match name {
            "SR_TID.X" | "SR_TID.Y" | "SR_TID.Z" => Some(Index::Thread(dimension)),
            "SR_CTAID.X" | "SR_CTAID.Y" | "SR_CTAID.Z" => Some(Index::Block(dimension)),
            "SR_NTID.X" | "SR_NTID.Y" | "SR_NTID.Z" => Some(Index::BlockSize(dimension)),
            "SR_NCTAID.X" | "SR_NCTAID.Y" | "SR_NCTAID.Z" => Some(Index::GridSize(dimension)),
            "SR_LANEID" => Some(Index::Lane),
            _ => None,
        };
        let operation = match name {
            "SR_SWINHI" | "SR_SWINLO" | "SR_LWINHI" | "SR_LWINLO" => Operation::Window,
            _ => Operation::Special(index),
        };
        let result = self.target(0, 0);
        self.push(operation, smallvec![result], smallvec![]);
    }

    /// Predicates in a row from an operand on; their end.
    fn predicates(&self, from: usize) -> usize {
        let mut at = from;
        while self.is_predicate(at) {
            at += 1;
        }
        at
    }

    fn add(&mut self) {
        let first = self.predicates(1);
        let mut results: SmallVec<[u32; 4]> = smallvec![self.target(0, 0)];
        let carries: Vec<u32> = (1..first).map(|at| self.target(at, 0)).collect();
        let last = self.predicates(self.value_end(first));
        if self.has("64") {
            results.push(self.target(0, 1));
            let end = self.value_end(first);
            let sources = (first..end).flat_map(|at| [self.source(at, 0), self.source(at, 1)]);
            let sources = sources.collect();
            self.push(Operation::AddPairs, results, sources);
            (1..first).for_each(|at| self.opaque_predicate(at));
            return;
        }
        results.extend(carries);
        results.resize(3, NOWHERE);
        let end = self.value_end(first);
        let mut sources: Sources = (first..end).map(|at| self.source(at, 0)).collect();
        sources.truncate(3);
        sources.resize(3, constant(0));
        let extended = self.has("X");
        if extended {
            sources.extend((end..last).map(|at| self.source(at, 0)));
        }
        self.push(Operation::Add { extended }, results, sources);
    }

    /// The first operand from `first` on that is a predicate or missing.
    fn value_end(&self, first: usize) -> usize {
        let mut at = first;
        while self.operand(at).is_some() && !self.is_predicate(at) {
            at += 1;
        }
        at
    }

    fn multiply(&mut self) {
        let first = self.predicates(1);
        let carry = if first > 1 { self.target(1, 0) } else { NOWHERE };
        let half = match (self.has("WIDE"), self.has("HI")) {
            (true, _) => Half::Both,
            (_, true) => Half::High,
            _ => Half::Low,
        };
        let upper = if half == Half::Both { self.target(0, 1) } else { NOWHERE };
        let results = smallvec![self.target(0, 0), upper, carry];
        let mut sources: Sources = (first..first + 3).map(|at| self.source(at, 0)).collect();
        if self.operand(first + 2).is_none() {
            sources[2] = constant(0);
        }
        let second = if half == Half::Low { constant(0) } else { self.source(first + 2, 1) };
        sources.push(second);
        let extended = self.has("X");
        if extended {
            sources.push(self.source(first + 3, 0));
        }
        let signed = !self.has("U32");
        self.push(Operation::Multiply { half, signed, extended }, results, sources);
    }

    fn scale(&mut self) {
        let first = self.predicates(1);
        let mut results: SmallVec<[u32; 4]> = smallvec![self.target(0, 0)];
        results.extend((1..first).map(|at| self.target(at, 0)));
        results.resize(2, NOWHERE);
        let high = self.has("HI");
        let signed = self.has("SX32");
        let extended = self.has("X");
        let end = self.value_end(first);
        // The shift is the last value; a third one in front of it is the upper half.
        let shift = match self.operand(end.saturating_sub(1)) {
            Some(Operand::Integer(shift)) => Some(*shift),
            _ => None,
        };
        let Some(shift @ 0..=31) = shift else {
            return self.opaque_of_all();
        };
        let mut sources: Sources = (first..end - 1).map(|at| self.source(at, 0)).collect();
        sources.resize(3, constant(0));
        if extended {
            sources.push(self.source(end, 0));
        }
        let half = if high { Half::High } else { Half::Low };
        let operation = Operation::Scale { shift: shift as u32, half, extended, signed };
        self.push(operation, results, sources);
    }

    fn shift(&mut self) {
        let left = self.has("L");
        let wide = self.has("U64") || self.has("S64");
        let signed = self.has("S32") || self.has("S64");
        let operation = Operation::Shift { left, signed, upper: self.has("HI"), wide };
        let sources = (1..4).map(|at| self.source(at, 0)).collect();
        let result = self.target(0, 0);
        self.push(operation, smallvec![result], sources);
    }

    fn plain_shift(&mut self, left: bool) {
        let signed = !self.has("U32");
        let operation = Operation::Shift { left, signed, upper: !left, wide: false };
        let (value, by) = (self.source(1, 0), self.source(2, 0));
        let sources = match left {
            true => smallvec![value, by, constant(0)],
            false => smallvec![constant(0), by, value],
        };
        let result = self.target(0, 0);
        self.push(operation, smallvec![result], sources);
    }

    fn logic(&mut self) {
        let first = usize::from(self.is_predicate(0));
        let result = self.target(first, 0);
        let predicate = if first == 1 { self.target(0, 0) } else { NOWHERE };
        let end = self.value_end(first + 1);
        let table = match self.operand(end.saturating_sub(1)) {
            Some(Operand::Integer(table)) => *table as u8,
            _ => return self.opaque_of_all(),
        };
        let mut sources: Sources = (first + 1..end - 1).map(|at| self.source(at, 0)).collect();
        if sources.len() != 3 {
            return self.opaque_of_all();
        }
        sources.push(self.source(end, 0));
        self.push(Operation::Logic { table }, smallvec![result, predicate], sources);
    }

    fn predicate_logic(&mut self) {
        let results = smallvec![self.target(0, 0), self.target(1, 0)];
        let sources: Sources = (2..5).map(|at| self.source(at, 0)).collect();
        let table = |at| match self.operand(at) {
            Some(Operand::Integer(table)) => Some(*table as u8),
            _ => None,
        };
        match (table(5), table(6)) {
            (Some(a), Some(b)) => {
                self.push(Operation::PredicateLogic { tables: [a, b] }, results, sources);
            }
            _ => self.opaque_of_all(),
        }
    }

    fn choose(&mut self) {
        let pair = self.has("64");
        let count = 1 + u8::from(pair);
        let results = (0..count).map(|n| self.target(0, n)).collect();
        let mut sources = Sources::new();
        for at in 1..3 {
            sources.extend((0..count).map(|n| self.source(at, n)));
        }
        sources.push(self.source(3, 0));
        self.push(Operation::Choose { pair }, results, sources);
    }

    fn extreme(&mut self, sum: bool) {
        let end = self.value_end(1);
        let mut sources: Sources = (1..end).map(|at| self.source(at, 0)).collect();
        if sources.len() != 2 + usize::from(sum) {
            return self.opaque_of_all();
        }
        sources.push(self.source(end, 0));
        let signed = !self.has("U32");
        let result = self.target(0, 0);
        self.push(Operation::Extreme { signed, sum }, smallvec![result], sources);
    }

    /// The least or greatest of three: the first two, and what that is with the third.
    fn extreme_of_three(&mut self) {
        let end = self.value_end(1);
        let result = self.target(0, 0);
        // The result may be one of the sources of the second step.
        if end != 4 || self.source(3, 0).origin == Origin::Register(result) {
            return self.opaque_of_all();
        }
        let signed = !self.has("U32");
        let which = self.source(end, 0);
        let first = smallvec![self.source(1, 0), self.source(2, 0), which];
        let operation = Operation::Extreme { signed, sum: false };
        self.push(operation.clone(), smallvec![result], first);
        let between = Source::plain(Origin::Register(result));
        let second = smallvec![between, self.source(3, 0), which];
        self.push(operation, smallvec![result], second);
    }

    fn compare(&mut self) {
        let order = match self.instruction.modifiers.first().map_or("", String::as_str) {
            "LT" => Order::Less,
            "LE" => Order::LessEqual,
            "GT" => Order::Greater,
            "GE" => Order::GreaterEqual,
            "EQ" => Order::Equal,
            "NE" => Order::Differs,
            _ => Order::Other,
        };
        let combine = match (self.has("AND"), self.has("OR")) {
            (true, _) => Combine::And,
            (_, true) => Combine::Or,
            _ => Combine::Other,
        };
        let results = smallvec![self.target(0, 0), self.target(1, 0)];
        if self.has("U64") || self.has("S64") || self.has("64") {
            let signed = !self.has("U64");
            let halves = [(2, 0), (2, 1), (3, 0), (3, 1), (4, 0)];
            let sources =
                halves.map(|(at, further)| self.source(at, further)).into_iter().collect();
            return self.push(Operation::ComparePairs { order, signed, combine }, results, sources);
        }
        let extended = self.has("EX");
        let sources = (2..5 + usize::from(extended)).map(|at| self.source(at, 0)).collect();
        let signed = !self.has("U32");
        self.push(Operation::Compare { order, signed, extended, combine }, results, sources);
    }

    fn load_constant(&mut self) {
        let (bytes, signed) = match () {
            () if self.has("128") => (16, false),
            () if self.has("64") => (8, false),
            () if self.has("U8") => (1, false),
            () if self.has("S8") => (1, true),
            () if self.has("U16") => (2, false),
            () if self.has("S16") => (2, true),
            () => (4, false),
        };
        let results: SmallVec<[u32; 4]> =
            (0..(bytes as u8).div_ceil(4)).map(|n| self.target(0, n)).collect();
        let Some(Operand::Constant { bank: ConstantBank::Number(bank), register, offset, .. }) =
            self.operand(1)
        else {
            return self.unread(results, "reads constants through a descriptor");
        };
        let (bank, offset) = (*bank, *offset);
        let register = register.filter(|r| !matches!(r, Register::Zero | Register::UniformZero));
        let whole = bytes >= 4;
        if let (None, true) = (register, whole) {
            let variable = match self.words.at(bank, offset) {
                Word::Variable { global, offset } => Some((global, offset)),
                _ => None,
            };
            if variable.is_none() {
                let sources = (0..results.len() as u8).map(|n| self.source(1, n)).collect();
                return self.push(Operation::Move, results, sources);
            }
        }
        let mut sources: Sources = smallvec![];
        let mut terms = smallvec![];
        if let Some(register) = register {
            sources.push(Self::register_source(register, 0, Change::default()));
            terms.push(Term::Signed);
        }
        let param = self.words.param_offset(bank, offset);
        let memory = if bank == 0 {
            match param {
                Some(at) => Memory::Param(at),
                None => Memory::Driver,
            }
        } else if self.words.is_addresses(bank) {
            // A table of addresses of functions and variables that the loader fills.
            return self.unread(results, "");
        } else {
            match self.words.at(bank, offset) {
                Word::Variable { global, offset } => Memory::Constant(Some((global, offset))),
                _ if self.words.has_variables(bank) => Memory::Constant(None),
                _ => return self.unread(results, ""),
            }
        };
        self.push(Operation::Load { memory, bytes, signed, terms, offset: 0 }, results, sources);
    }

    /// Constants of the compiler, or of the driver, at a place that is not known.
    fn unread(&mut self, results: SmallVec<[u32; 4]>, reason: &str) {
        if !reason.is_empty() {
            let operation = Operation::Unknown { reason: reason.to_owned() };
            self.push(operation, smallvec![], smallvec![]);
        }
        self.push(Operation::Opaque { bounds: None, keeps: false }, results, smallvec![]);
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
    fn parts(&self, at: usize) -> Vec<Source> {
        match self.operand(at) {
            Some(Operand::Address { terms, .. }) => terms
                .iter()
                .flat_map(|term| {
                    [0, 1].map(|n| Self::register_source(term.register, n, Change::default()))
                })
                .collect(),
            Some(Operand::Constant { register: Some(register), .. }) => {
                vec![Self::register_source(*register, 0, Change::default())]
            }
            Some(Operand::Register(register, marks)) => {
                vec![Self::register_source(*register, 0, change(marks))]
            }
            Some(Operand::Constant { .. }) => vec![self.source(at, 0)],
            _ => vec![],
        }
    }
}

mod transfers;
