//! Opcodes that touch memory, and opcodes whose results are not followed.
//!
//! Stage: lowering. Invariant: no access is missed: an access of unknown size is unknown, and
//! behind an unknown form the kernel may touch anything.

use super::*;

/// Opcodes that move the bits of their operands in a way that is not followed. Through other
/// arithmetic no pointer passes.
const CARRIES: &[&str] =
    &["SGXT", "USGXT", "BREV", "UBREV", "REDUX", "CREDUX", "I2I", "I2IP", "ISCADD", "MOVM"];

impl Lifter<'_> {
    fn address(&self) -> Option<usize> {
        self.instruction.operands.iter().position(|o| matches!(o, Operand::Address { .. }))
    }

    /// The parts of an address: how they are made, their sources, and the offset.
    fn address_parts(&self, at: usize) -> (SmallVec<[AddressPart; 2]>, LiftedSources, i64) {
        let (mut terms, mut sources) = (SmallVec::new(), LiftedSources::new());
        let Some(Operand::Address { terms: parts, offset, .. }) = self.operand(at) else {
            return (terms, sources, 0);
        };
        for part in parts {
            if matches!(part.register, Register::Zero | Register::UniformZero) {
                continue;
            }
            let modifier = modifier(&part.marks);
            let has = |word: &str| part.marks.suffixes.iter().any(|s| s == word);
            let term = match () {
                () if has("U32") => AddressPart::Unsigned,
                () if has("S32") => AddressPart::Signed,
                () => AddressPart::Pair,
            };
            sources.push(Self::register_source(part.register, 0, modifier));
            if term == AddressPart::Pair {
                sources.push(Self::register_source(part.register, 1, modifier));
            }
            terms.push(term);
        }
        (terms, sources, *offset)
    }

    /// Bytes of one access.
    fn bytes(&self) -> u32 {
        let sizes: [(&str, u32); 19] = [
            ("256", 32),
            ("128", 16),
            ("64", 8),
            ("U8", 1),
            ("S8", 1),
            ("U16", 2),
            ("S16", 2),
            ("F64", 8),
            ("S64", 8),
            ("U64", 8),
            ("F16x4", 8),
            ("BF16x4", 8),
            ("F16x8", 16),
            ("BF16x8", 16),
            ("F32x2", 8),
            ("F32x4", 16),
            ("BF16_V4", 8),
            ("F16_V4", 8),
            ("M88", 4),
        ];
        let known = sizes.iter().filter(|(word, _)| self.has(word)).map(|s| s.1).max();
        known.unwrap_or(4)
    }

    /// Whether the instruction performs strong operations whose scope is the system: what `ptxas`
    /// makes of `.relaxed.sys`, `.acquire.sys`, `.release.sys`, `.volatile` and `.mmio`. (Before
    /// Ampere weak loads have `SYS` alone.)
    fn is_strong_at_system_scope(&self) -> bool {
        self.has("SYS") && (self.has("STRONG") || self.has("MMIO"))
    }

    fn signed(&self) -> bool {
        self.has("S8") || self.has("S16")
    }

    /// Registers in front of the address, each as wide as a part of the result.
    fn loaded_registers(&self, before: usize, bytes: u32) -> SmallVec<[u32; 4]> {
        let general: Vec<usize> = (0..before).filter(|&at| !self.is_predicate(at)).collect();
        let each = (bytes.div_ceil(4) as usize).div_ceil(general.len().max(1)) as u8;
        general.iter().flat_map(|&at| (0..each).map(move |n| self.target(at, n))).collect()
    }

    /// Lifts an instruction that touches memory. Returns whether it is one.
    pub(super) fn memory(&mut self, name: &str) -> bool {
        let address = self.address();
        match (name, address) {
            ("LDG" | "LD" | "LDS" | "LDL" | "LDSM" | "ATOMS", Some(at)) => self.load(name, at),
            ("STG" | "ST" | "STL", Some(at)) => self.store(name, at),
            ("STS" | "STAS" | "REDS" | "REDAS", _) => {}
            ("ATOMG" | "ATOM" | "RED" | "REDG" | "LDGMC" | "REDGMC", Some(at)) => {
                self.atomic(name, at);
            }
            ("LDGSTS", Some(_)) => {
                let Some(at) = self.second_address() else { return false };
                let partly = self.instruction.operands.len() > at + 1;
                let bytes = Bytes::Exactly(self.bytes());
                self.access(at, Touch::Read, WordKind::Pointer, bytes, partly);
            }
            ("UBLKCP" | "UBLKRED", Some(first)) => {
                let order: Vec<&str> =
                    self.instruction.modifiers.iter().map(String::as_str).collect();
                let touch = if name == "UBLKRED" { Touch::Atomic } else { Touch::Write };
                match (&order[..], self.second_address()) {
                    (["S", "G", ..], Some(at)) => self.lines(at, Touch::Read),
                    (["G", "S", ..], _) => self.lines(first, touch),
                    (["S", "S", ..], _) => {}
                    _ => return false,
                }
            }
            ("UTMALDG" | "UTMASTG" | "UTMAREDG", Some(_)) => {
                let Some(at) = self.second_address() else { return false };
                let touch = match name {
                    "UTMALDG" => Touch::Read,
                    "UTMASTG" => Touch::Write,
                    _ => Touch::Atomic,
                };
                self.access(at, touch, WordKind::TensorMap, Bytes::Unknown, true);
            }
            ("UTMAPF" | "UTMACCTL", _) => {}
            ("TEX" | "TLD" | "TLD4" | "TMML" | "TXD" | "TXQ", _) => self.texture(),
            ("SULD", _) => self.surface(Touch::Read),
            ("SUST", _) => self.surface(Touch::Write),
            ("SUATOM" | "SURED" | "SUREDG", _) => self.surface(Touch::Atomic),
            ("CCTL", Some(at)) => {
                const HARMLESS: [&str; 12] = [
                    "PF1", "PF2", "PF1.5", "IV", "IVALL", "WB", "WBALL", "RS", "U", "C", "I", "PF",
                ];
                if !self.instruction.modifiers.iter().any(|m| HARMLESS.contains(&m.as_str())) {
                    self.access(at, Touch::Write, WordKind::Pointer, Bytes::Exactly(128), true);
                }
            }
            _ => return false,
        }
        true
    }

    fn second_address(&self) -> Option<usize> {
        let is_address = |o: &Operand| matches!(o, Operand::Address { .. });
        let first = self.address()?;
        let rest = self.instruction.operands.iter().skip(first + 1);
        rest.into_iter().position(is_address).map(|at| first + 1 + at)
    }

    fn load(&mut self, name: &str, at: usize) {
        let mut bytes = self.bytes();
        if name == "LDSM" {
            bytes = match () {
                () if self.has("4") => 16,
                () if self.has("2") => 8,
                () => 4,
            };
        }
        let results = self.loaded_registers(at, bytes);
        let signed = self.signed();
        self.opaque_predicates(at);
        let (terms, sources, offset) = match name {
            "LDG" | "LD" => self.address_parts(at),
            _ => (SmallVec::new(), LiftedSources::new(), 0),
        };
        let memory = match name {
            "LDG" => Memory::Global,
            "LD" => Memory::Generic,
            "LDL" => return self.load_local(at, bytes, signed, results),
            _ => Memory::Shared,
        };
        let strong = self.is_strong_at_system_scope();
        self.push(
            Operation::Load { memory, bytes, signed, strong, terms, offset },
            results,
            sources,
        );
    }

    /// The words of the frame that an address with a constant offset from R1 means.
    fn frame_words(&self, at: usize, bytes: u32) -> Option<Vec<u32>> {
        let Some(Operand::Address { terms, offset, .. }) = self.operand(at) else { return None };
        let [term] = &terms[..] else { return None };
        if term.register != Register::General(1) || offset % 4 != 0 {
            return None;
        }
        (0..i64::from(bytes.div_ceil(4))).map(|n| (self.slots)(offset + 4 * n)).collect()
    }

    fn load_local(&mut self, at: usize, bytes: u32, signed: bool, results: SmallVec<[u32; 4]>) {
        let register = |&r: &u32| LiftedSource::plain(SourceValue::Register(r));
        let (terms, offset, strong) = (SmallVec::new(), 0, false);
        if self.stack_is_shared {
            let (memory, sources) = (Memory::Shared, LiftedSources::new());
            return self.push(
                Operation::Load { memory, bytes, signed, strong, terms, offset },
                results,
                sources,
            );
        }
        let (memory, sources) = match self.frame_words(at, bytes) {
            Some(banks) => {
                let mut sources: LiftedSources = banks.iter().map(register).collect();
                sources.push(LiftedSource::plain(SourceValue::Register(self.local)));
                (Memory::Slot, sources)
            }
            None => {
                let mut sources: LiftedSources = self.frame.iter().map(register).collect();
                sources.push(LiftedSource::plain(SourceValue::Register(self.local)));
                (Memory::Local, sources)
            }
        };
        self.push(
            Operation::Load { memory, bytes, signed, strong, terms, offset },
            results,
            sources,
        );
    }

    fn store(&mut self, name: &str, at: usize) {
        let bytes = self.bytes();
        let memory = match name {
            "STG" => Memory::Global,
            "ST" => Memory::Generic,
            _ => return self.store_local(at, bytes),
        };
        let (terms, sources, offset) = self.address_parts(at);
        let strong = self.is_strong_at_system_scope();
        let operation = Operation::Store { memory, bytes, strong, terms, offset };
        self.push(operation, SmallVec::new(), sources);
    }

    fn store_local(&mut self, at: usize, bytes: u32) {
        let count = bytes.div_ceil(4) as u8;
        let sources: LiftedSources = (0..count).map(|n| self.source(at + 1, n)).collect();
        match self.frame_words(at, bytes) {
            Some(banks) if bytes >= 4 => {
                self.push(Operation::Move, banks.into(), sources);
            }
            Some(banks) => {
                let operation = Operation::Opaque { bounds: None, keeps: true };
                self.push(operation, banks.into(), sources);
            }
            None => {
                let operation = Operation::Opaque { bounds: None, keeps: true };
                self.push(operation, smallvec![self.local], sources);
            }
        }
    }

    fn atomic(&mut self, name: &str, at: usize) {
        let bytes = self.bytes();
        let (terms, sources, offset) = self.address_parts(at);
        // Halves have no operation on shared or local memory: the predicate leads around another
        // way.
        let halves = self.instruction.modifiers.iter().any(|modifier| modifier.contains("F16"));
        let found = halves && name == "ATOM" && self.is_predicate(0);
        if found && self.instruction.guard.is_none() {
            let (operation, result) =
                (Operation::InGlobal { terms: terms.clone(), offset }, self.target(0, 0));
            self.push(operation, smallvec![result], sources.clone());
        } else {
            self.opaque_predicates(at);
        }
        let (touch, bytes) = match name {
            "LDGMC" => (Touch::Read, Bytes::Unknown),
            "REDGMC" => (Touch::Atomic, Bytes::Unknown),
            _ => {
                let strong = self.is_strong_at_system_scope();
                (Touch::Atomic.strong(strong), Bytes::Exactly(bytes))
            }
        };
        let width = match bytes {
            Bytes::Exactly(bytes) => bytes,
            _ => 16,
        };
        let results = self.loaded_registers(at, width);
        let kind = WordKind::Pointer;
        let operation = Operation::Access { touch, kind, bytes, terms, offset, partly: false };
        self.push(operation, results, sources);
    }

    fn access(&mut self, at: usize, touch: Touch, kind: WordKind, bytes: Bytes, partly: bool) {
        let (terms, sources, offset) = self.address_parts(at);
        let operation = Operation::Access { touch, kind, bytes, terms, offset, partly };
        self.push(operation, SmallVec::new(), sources);
    }

    /// A copy whose size stands in the last operand, in units of 16 bytes.
    fn lines(&mut self, at: usize, touch: Touch) {
        let (terms, mut sources, offset) = self.address_parts(at);
        let second = self.second_address().unwrap_or(at).max(at);
        let size = second + 1;
        let masked = self.instruction.operands.len() > size + 1;
        sources.push(self.source(size, 0));
        let bytes = if masked { Bytes::Unknown } else { Bytes::Lines };
        let kind = WordKind::Pointer;
        let operation = Operation::Access { touch, kind, bytes, terms, offset, partly: true };
        self.push(operation, SmallVec::new(), sources);
    }

    /// Before Hopper, a handle that is no value of a register stands in the instruction as a
    /// constant bank and the place in it, counted in words.
    fn named_handle(&self, first: usize) -> Option<LiftedSource> {
        let operands = self.instruction.operands.get(first..)?;
        let (bank, word) = operands.windows(2).find_map(|pair| match pair {
            [Operand::Integer(bank), Operand::Integer(word)] => Some((*bank, *word)),
            _ => None,
        })?;
        Some(LiftedSource::plain(match self.banks.at(u8::try_from(bank).ok()?, word * 4) {
            BankWord::Literal(value) => SourceValue::Constant(value),
            word => SourceValue::Word(word),
        }))
    }

    /// The handle of a texture or surface: the uniform register, else any register.
    fn handle(&mut self, first: usize, touch: Touch) {
        let registers: Vec<Register> = self
            .instruction
            .operands
            .iter()
            .skip(first)
            .filter_map(|operand| match operand {
                Operand::Register(register, _) if !is_predicate(*register) => Some(*register),
                _ => None,
            })
            .collect();
        let uniform: Vec<Register> =
            registers.iter().copied().filter(|r| matches!(r, Register::Uniform(_))).collect();
        let handles: Vec<LiftedSource> = match self.named_handle(first) {
            Some(named) => vec![named],
            None => {
                let handles = if uniform.is_empty() { registers } else { uniform };
                let source = |register| Self::register_source(register, 0, Modifier::default());
                handles.into_iter().map(source).collect()
            }
        };
        for handle in handles {
            let sources = smallvec![handle];
            let operation = Operation::Access {
                touch,
                kind: WordKind::Handle,
                bytes: Bytes::Unknown,
                terms: smallvec![AddressPart::Unsigned],
                offset: 0,
                partly: true,
            };
            self.push(operation, SmallVec::new(), sources);
        }
    }

    fn texture(&mut self) {
        let first = self.predicates(0);
        let mut results: SmallVec<[u32; 4]> = SmallVec::new();
        for at in first..first + 2 {
            results.extend((0..2).map(|n| self.target(at, n)));
        }
        self.opaque_predicates(first);
        if self.instruction.opcode != "TXQ" {
            self.handle(first + 2, Touch::Read);
        }
        self.push(Operation::Opaque { bounds: None, keeps: false }, results, SmallVec::new());
    }

    fn surface(&mut self, touch: Touch) {
        let at = self.address().unwrap_or(0);
        let results = (0..at)
            .filter(|&at| !self.is_predicate(at))
            .flat_map(|at| (0..4).map(move |n| (at, n)))
            .map(|(at, n)| self.target(at, n))
            .collect();
        self.opaque_predicates(at);
        self.handle(at + 1, touch);
        self.push(Operation::Opaque { bounds: None, keeps: true }, results, SmallVec::new());
    }

    /// Registers that the first result takes.
    fn width(&self) -> u8 {
        let name = self.instruction.opcode.as_str();
        let first = self.instruction.modifiers.first().map_or("", String::as_str);
        match name {
            "DADD" | "DMUL" | "DFMA" | "DMNMX" | "LEPC" | "FADD2" | "FMUL2" | "FFMA2" => 2,
            "CS2R" | "CS2UR" if !self.has("32") => 2,
            "F2F" | "I2F" | "FRND" | "UI2F" | "UFRND" if first == "F64" => 2,
            "F2I" | "UF2I" if self.has("S64") || self.has("U64") => 2,
            "HMMA" if !self.has("F32") => 2,
            "HMMA" | "IMMA" | "QMMA" | "OMMA" | "DMMA" => 4,
            "HGMMA" | "IGMMA" | "QGMMA" | "BGMMA" => {
                let columns = self.instruction.modifiers.iter().find_map(|m| {
                    let mut parts = m.split('x');
                    let (rows, columns) = (parts.next()?, parts.next()?);
                    (rows == "64").then(|| columns.parse::<u32>().ok()).flatten()
                });
                columns.map_or(128, |n| (n / 2).min(128) as u8)
            }
            "LDTM" => {
                let times = self
                    .instruction
                    .modifiers
                    .iter()
                    .find_map(|m| m.strip_prefix('x').and_then(|n| n.parse::<u32>().ok()));
                let wide = |word: &str| self.instruction.modifiers.iter().any(|m| m.contains(word));
                let each = match () {
                    () if wide("256") => 4,
                    () if wide("128") => 2,
                    () => 1,
                };
                (times.unwrap_or(128) * each).min(128) as u8
            }
            _ if self.has("64") => 2,
            _ => 1,
        }
    }

    /// Opcodes whose results are not followed, and unknown opcodes.
    pub(super) fn other(&mut self, name: &str) {
        let known = COMPUTES_SET.contains(name)
            || COMPUTES_SET.contains(self.instruction.opcode.as_str())
            || CARRIES.contains(&name)
            || matches!(name, "IMNMX" | "VIMNMX" | "VIADDMNMX");
        if !known {
            return self.not_known();
        }
        let mut results: SmallVec<[u32; 4]> = SmallVec::new();
        let further = match (self.is_predicate(0), name) {
            (true, "ELECT" | "MATCH") => 1,
            (true, "FSETP" | "DSETP" | "HSETP2" | "UFSETP" | "PSETP" | "UPSETP") => 1,
            (true, _) => 0,
            (false, _) if self.is_predicate(1) => 1,
            (false, _) => 0,
        };
        if self.is_predicate(0) {
            results.push(self.target(0, 0));
        } else {
            results.extend((0..self.width()).map(|n| self.target(0, n)));
        }
        results.extend((1..=further).map(|at| self.target(at, 0)));
        let sources = match CARRIES.contains(&name) {
            true => (1..self.instruction.operands.len()).flat_map(|at| self.parts(at)).collect(),
            false => LiftedSources::new(),
        };
        let bounds = match name {
            "POPC" | "UPOPC" => Some((0, 32)),
            "FLO" | "UFLO" => Some((-1, 31)),
            "CS2R" | "CS2UR" if self.is_special(1, "SR_CgaSize") => Some((0, 1 << 16)),
            _ => None,
        };
        self.push(Operation::Opaque { bounds, keeps: false }, results, sources);
    }

    fn not_known(&mut self) {
        let sources: LiftedSources = (0..self.instruction.operands.len())
            .flat_map(|at| match self.operand(at) {
                Some(Operand::Register(register, _)) if !is_predicate(*register) => [0, 1]
                    .map(|n| Self::register_source(*register, n, Modifier::default()))
                    .to_vec(),
                _ => {
                    let mut parts = self.parts(at);
                    parts.resize(parts.len().next_multiple_of(2), constant(0));
                    parts
                }
            })
            .collect();
        let reason = format!("`{}` is not known", self.instruction.opcode);
        self.push(Operation::Unknown { reason }, SmallVec::new(), sources.clone());
        let mut results: SmallVec<[u32; 4]> = SmallVec::new();
        for at in 0..2 {
            let count = if self.is_predicate(at) { 1 } else { 8 };
            results.extend((0..count).map(|n| self.target(at, n)));
        }
        self.push(Operation::Opaque { bounds: None, keeps: true }, results, sources);
    }
}
