//! Loads from constant banks.
//!
//! Stage: lowering. Invariant: a load from a place that the layout does not name is not followed.

use super::*;

impl Lifter<'_> {
    pub(super) fn load_constant(&mut self) {
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
            let variable = match self.banks.at(bank, offset) {
                BankWord::Variable { global, offset } => Some((global, offset)),
                _ => None,
            };
            if variable.is_none() {
                let sources = (0..results.len() as u8).map(|n| self.source(1, n)).collect();
                return self.push(Operation::Move, results, sources);
            }
        }
        let mut sources: LiftedSources = smallvec![];
        let mut terms = smallvec![];
        if let Some(register) = register {
            sources.push(Self::register_source(register, 0, Modifier::default()));
            terms.push(AddressPart::Signed);
        }
        let param = self.banks.param_offset(bank, offset);
        let memory = if bank == 0 {
            match param {
                Some(at) => Memory::Param(at),
                None => Memory::Driver,
            }
        } else if self.banks.is_addresses(bank) {
            // A table of addresses of functions and variables that the loader fills.
            return self.unread(results, "");
        } else {
            match self.banks.at(bank, offset) {
                BankWord::Variable { global, offset } => Memory::Constant(Some((global, offset))),
                _ if self.banks.has_variables(bank) => Memory::Constant(None),
                _ => return self.unread(results, ""),
            }
        };
        self.push(
            Operation::Load { memory, bytes, signed, strong: false, terms, offset: 0 },
            results,
            sources,
        );
    }

    /// Constants of the compiler, or of the driver, at a place that is not known.
    pub(super) fn unread(&mut self, results: SmallVec<[u32; 4]>, reason: &str) {
        if !reason.is_empty() {
            let operation = Operation::Unknown { reason: reason.to_owned() };
            self.push(operation, smallvec![], smallvec![]);
        }
        self.push(Operation::Opaque { bounds: None, keeps: false }, results, smallvec![]);
    }
}
