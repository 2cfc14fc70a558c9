//! The machine code of one kernel, ready to be analysed: its instructions, those of the functions
//! that it may call, and what the cubin says of the constants and addresses in them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::instruction::Instruction;
use crate::image::{ParameterLayout, Target};

/// A function in machine code. Instructions are 16 bytes long: instruction `n` stands at byte
/// `16 * n`.
#[derive(Clone, Debug)]
pub struct Function {
    /// Mangled.
    pub name: String,
    /// `None` where the disassembler does not know the instruction.
    pub instructions: Vec<Option<Arc<Instruction>>>,
    /// The values that the linker or the driver puts into an instruction, by the byte that the
    /// instruction begins at.
    pub relocations: BTreeMap<u32, Relocation>,
    /// Targets of indirect branches (`BRX`, `JMX`), by the byte that the branch begins at, where
    /// the cubin tells them (EIATTR_INDIRECT_BRANCH_TARGETS).
    pub branch_targets: BTreeMap<u32, Vec<u32>>,
    /// Device functions that stand behind the kernel's own code in the same section and are part
    /// of `instructions`, by the byte that they begin at. Calls of them are [`Operand::Target`]s.
    ///
    /// [`Operand::Target`]: super::Operand::Target
    pub inner: BTreeMap<u32, String>,
}

/// Which part of an address is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The lower 32 bits.
    Low,
    /// The upper 32 bits.
    High,
    /// All 64 bits.
    Whole,
    /// A distance within the code, or a kind that is not known.
    Other,
}

/// An address that is put into code or constants when they are loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    pub part: Part,
    /// The symbol: a function or a variable.
    pub symbol: String,
    /// Bytes behind it.
    pub addend: i64,
}

/// A constant bank other than the one of parameters: what is known of its contents.
#[derive(Clone, Debug, Default)]
pub struct Bank {
    pub bytes: Vec<u8>,
    /// By offset in the bank.
    pub relocations: BTreeMap<u32, Relocation>,
    /// `__constant__` variables: name, offset and size. Their contents may be replaced by the host.
    pub variables: Vec<(String, u32, u32)>,
}

/// A kernel in machine code.
#[derive(Clone, Debug)]
pub struct Code {
    pub target: Target,
    /// The kernel.
    pub entry: Function,
    /// Functions beside it, by name.
    pub functions: HashMap<String, Function>,
    /// Where the parameters lie in constant bank 0, and how.
    pub parameters: ParameterLayout,
    /// The other banks of the kernel, by number.
    pub banks: BTreeMap<u8, Bank>,
    /// Variables in global memory by name, with their size.
    pub variables: HashMap<String, u64>,
}
