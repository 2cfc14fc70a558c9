//! The layout of the constant banks of a kernel, and how its registers are numbered.
//!
//! Stage: lowering. The places of the launch's size and of the stack's start in bank 0 are not
//! documented; they were found by compiling small programs for each architecture.
//!
//! Invariant: a word that no layout explains is the driver's own or unknown, never a parameter.

use std::collections::HashMap;

use super::operation::BankWord;
use crate::access::domain::expression::Index;
use crate::sass::{Bank, Code, ConstantBank, Part, Register, Relocation};

/// General registers, uniform ones, and two kinds of predicates.
const UNIFORM: u32 = 256;
const PREDICATE: u32 = 512;
const UNIFORM_PREDICATE: u32 = 520;
/// Both halves of the place that a function returns to, in which registers are kept too.
pub(super) const RETURN: u32 = 528;
/// The first number that is free for other things.
pub(super) const FREE: u32 = 530;

/// The number of the register that follows `register` at a distance of `further`. `None` for
/// registers with a constant value.
pub(super) fn register_of(register: Register, further: u8) -> Option<u32> {
    let number = match register {
        Register::General(n) => u32::from(n) + u32::from(further),
        Register::Uniform(n) => UNIFORM + u32::from(n) + u32::from(further),
        Register::Predicate(n) => PREDICATE + u32::from(n),
        Register::UniformPredicate(n) => UNIFORM_PREDICATE + u32::from(n),
        _ => return None,
    };
    let last = match register {
        Register::General(_) => 254,
        Register::Uniform(_) => PREDICATE - 2,
        Register::Predicate(_) => UNIFORM_PREDICATE - 1,
        _ => RETURN - 1,
    };
    (number <= last).then_some(number)
}

pub(super) fn is_predicate(register: u32) -> bool {
    (PREDICATE..RETURN).contains(&register)
}

/// Offsets in bank 0.
#[derive(Debug, Clone, Copy)]
struct Header {
    block_size: i64,
    grid_size: i64,
    stack: i64,
    /// Start of local memory among generic addresses, 8 bytes.
    local: i64,
    /// Address of the parameter block, 8 bytes.
    param_block: i64,
    /// Address of the bank itself, 8 bytes. Only libraries use it, to find tensor maps in their
    /// parameters: in the launches that were measured, the tensors that were loaded are those of
    /// the maps that stand there (docs/kernel-access.md).
    bank: i64,
    params: i64,
}

const TO_SM_89: Header = Header {
    block_size: 0,
    grid_size: 0xc,
    stack: 0x28,
    local: 0x20,
    param_block: -8,
    bank: -8,
    params: 0x160,
};
const SM_90: Header = Header { param_block: 0x198, bank: 0xc0, params: 0x210, ..TO_SM_89 };
const FROM_SM_100: Header = Header {
    block_size: 0x360,
    grid_size: 0x370,
    stack: 0x37c,
    local: 0x2f8,
    param_block: 0x348,
    bank: -8,
    params: 0x380,
};

/// The constant banks of a kernel.
#[derive(Debug)]
pub(super) struct ConstantBanks<'a> {
    code: &'a Code,
    header: Header,
    params: i64,
    /// Variables, in the order of the result.
    pub(super) globals: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl<'a> ConstantBanks<'a> {
    pub(super) fn new(code: &'a Code) -> ConstantBanks<'a> {
        let header = match code.target.capability.number() {
            ..90 => TO_SM_89,
            90..100 => SM_90,
            100.. => FROM_SM_100,
        };
        let params = code.parameters.bank_offset.map_or(header.params, i64::from);
        let constants = code.banks.values().flat_map(|bank| &bank.variables).map(|v| &v.0);
        let mut globals: Vec<String> = code.variables.keys().chain(constants).cloned().collect();
        globals.sort();
        globals.dedup();
        let numbers = globals.iter().cloned().zip(0..).collect();
        ConstantBanks { code, header, params, globals, numbers }
    }

    /// The value that a relocation inserts.
    pub(super) fn address(&self, relocation: &Relocation, upper: bool) -> BankWord {
        match self.numbers.get(&relocation.symbol) {
            Some(&global) => BankWord::Address { global, addend: relocation.addend, upper },
            None => BankWord::Unknown,
        }
    }

    /// Offset in the parameter block.
    pub(super) fn param_offset(&self, bank: u8, offset: i64) -> Option<i64> {
        (bank == 0 && offset >= self.params).then_some(offset - self.params)
    }

    /// Whether the bank is the one of addresses, which nothing but the loader writes.
    pub(super) fn is_addresses(&self, bank: u8) -> bool {
        bank == 4
    }

    /// Whether there are `__constant__` variables in it.
    pub(super) fn has_variables(&self, bank: u8) -> bool {
        self.code.banks.get(&bank).is_some_and(|bank| !bank.variables.is_empty())
    }

    /// The 32 bits at an offset of a bank.
    pub(super) fn at(&self, bank: u8, offset: i64) -> BankWord {
        if bank == 0 {
            return self.driver_word(offset);
        }
        let Some(bank) = self.code.banks.get(&bank) else { return BankWord::Unknown };
        if let Some(word) = self.relocated(bank, offset) {
            return word;
        }
        let inside = |&&(_, at, size): &&(String, u32, u32)| {
            (i64::from(at)..i64::from(at) + i64::from(size)).contains(&offset)
        };
        if let Some((name, at, _)) = bank.variables.iter().find(inside) {
            let global = self.numbers.get(name).copied();
            let offset = offset - i64::from(*at);
            return global
                .map_or(BankWord::Unknown, |global| BankWord::Variable { global, offset });
        }
        if !bank.variables.is_empty() {
            return BankWord::Unknown;
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        match bank.bytes.get(start..start.saturating_add(4)) {
            Some(&[a, b, c, d]) => BankWord::Literal(i64::from(i32::from_le_bytes([a, b, c, d]))),
            _ => BankWord::Unknown,
        }
    }

    fn relocated(&self, bank: &Bank, offset: i64) -> Option<BankWord> {
        let at = |offset: i64| {
            u32::try_from(offset).ok().and_then(|offset| bank.relocations.get(&offset))
        };
        if let Some(relocation) = at(offset) {
            return Some(match relocation.part {
                Part::Low | Part::Whole => self.address(relocation, false),
                Part::High => self.address(relocation, true),
                Part::Other => BankWord::Unknown,
            });
        }
        let whole = at(offset - 4).filter(|relocation| relocation.part == Part::Whole);
        whole.map(|relocation| self.address(relocation, true))
    }

    fn driver_word(&self, offset: i64) -> BankWord {
        let header = &self.header;
        let dimension = |start: i64| (offset - start) / 4;
        match offset {
            _ if offset >= self.params => BankWord::Param((offset - self.params) as u32),
            _ if (header.block_size..header.block_size + 12).contains(&offset) => {
                BankWord::Index(Index::BlockSize(dimension(header.block_size) as u8))
            }
            _ if (header.grid_size..header.grid_size + 12).contains(&offset) => {
                BankWord::Index(Index::GridSize(dimension(header.grid_size) as u8))
            }
            _ if offset == header.stack => BankWord::Window,
            _ if offset == header.local || offset == header.local + 4 => BankWord::Window,
            _ if offset == header.param_block || offset == header.param_block + 4 => {
                BankWord::ParamBlock { offset: 0, upper: offset != header.param_block }
            }
            _ if offset == header.bank || offset == header.bank + 4 => {
                BankWord::ParamBlock { offset: -self.params, upper: offset != header.bank }
            }
            _ => BankWord::Driver,
        }
    }

    /// Variables in constant memory.
    pub(super) fn constants(&self) -> Vec<u32> {
        let variables = self.code.banks.values().flat_map(|bank| &bank.variables);
        variables.filter_map(|v| self.numbers.get(&v.0).copied()).collect()
    }

    /// The symbol whose address stands at an offset of a bank.
    pub(super) fn symbol(&self, bank: ConstantBank, offset: i64) -> Option<String> {
        let ConstantBank::Number(bank) = bank else { return None };
        let relocations = &self.code.banks.get(&bank)?.relocations;
        relocations.get(&u32::try_from(offset).ok()?).map(|relocation| relocation.symbol.clone())
    }

    /// Bytes of the parameter block, and the end of the parameter that an offset is in.
    pub(super) fn param_end(&self, offset: u32) -> u32 {
        let layout = &self.code.parameters;
        let holds = |p: &&crate::image::Parameter| p.offset <= offset && offset < p.offset + p.size;
        layout.parameters.iter().find(holds).map_or(layout.size, |p| p.offset + p.size)
    }

    /// Whether the word is the start of local memory among generic addresses.
    pub(super) fn is_local_window(&self, bank: u8, offset: i64) -> bool {
        bank == 0 && (self.header.local..self.header.local + 8).contains(&offset)
    }
}
