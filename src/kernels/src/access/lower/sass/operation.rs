//! The operation of an instruction of machine code, apart from its notation: the registers that it
//! reads and assigns, and one of a few operations on 32-bit values.
//!
//! Stage: lowering; between `opcodes` and the transfer functions.
//!
//! Invariant: `reads` and `assigns` name every register that the operation reads or assigns.

use smallvec::SmallVec;

use crate::access::domain::expression::Index;
use crate::access::fixpoint::grid_control::Meeting;
use crate::access::summary::result::Touch;
use streamsan_model::WordKind;

/// No register: the result goes nowhere.
pub(in crate::access) const NOWHERE: u32 = u32::MAX;

/// A word of 32 bits that stands in a constant bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum BankWord {
    /// A word of the parameter block, by its offset in bytes.
    Param(u32),
    /// Half of an address so many bytes behind the start of the parameter block.
    ParamBlock {
        offset: i64,
        upper: bool,
    },
    Index(Index),
    /// Half of an address in shared or local memory.
    Window,
    /// Half of the address of a variable.
    Address {
        global: u32,
        addend: i64,
        upper: bool,
    },
    /// Loaded from a `__constant__` variable.
    Variable {
        global: u32,
        offset: i64,
    },
    Literal(i64),
    /// A word of the driver: no pointer of the program.
    Driver,
    Unknown,
}

/// The modification of a value before its use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::access) struct Modifier {
    pub(in crate::access) minus: bool,
    pub(in crate::access) not: bool,
    pub(in crate::access) absolute: bool,
}

/// Where an operand comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum SourceValue {
    Register(u32),
    Constant(i64),
    Word(BankWord),
    /// A predicate that always is this.
    Always(bool),
    /// Nothing is known.
    Other,
}

/// An operand: its source, and its modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) struct LiftedSource {
    pub(in crate::access) origin: SourceValue,
    pub(in crate::access) modifier: Modifier,
}

impl LiftedSource {
    /// An operand that nothing is done to.
    pub(in crate::access) fn plain(origin: SourceValue) -> LiftedSource {
        LiftedSource { origin, modifier: Modifier::default() }
    }
}

/// How a part of an address is made of sources, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum AddressPart {
    /// Two halves.
    Pair,
    /// 32 bits, extended with zeros.
    Unsigned,
    /// 32 bits, extended by the sign.
    Signed,
}

/// Which memory a load or store works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Memory {
    Global,
    Generic,
    Shared,
    /// A place in the stack frame that is followed; its words are sources or results.
    Slot,
    /// Any other place in local memory.
    Local,
    /// The driver's words in front of the parameter block, from this offset back.
    Driver,
    /// The parameter block, from this offset on.
    Param(i64),
    /// A `__constant__` variable, or all of them.
    Constant(Option<(u32, i64)>),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Order {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    Differs,
    Other,
}

impl Order {
    /// The word of PTX.
    pub(in crate::access) fn word(self) -> &'static str {
        match self {
            Order::Less => "lt",
            Order::LessEqual => "le",
            Order::Greater => "gt",
            Order::GreaterEqual => "ge",
            Order::Equal => "eq",
            Order::Differs => "ne",
            Order::Other => "",
        }
    }
}

/// How the result of a comparison is combined with another predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Combine {
    And,
    Or,
    Other,
}

/// Which half of a result of 64 bits an operation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Half {
    Low,
    High,
    Both,
}

/// Bytes that an access touches from its address on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::access) enum Bytes {
    Exactly(u32),
    /// 16 times the last source.
    Lines,
    /// The last source.
    Counted,
    Unknown,
}

/// The operation of an instruction; results and sources are those of its [`Lifted`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::access) enum Operation {
    /// Results become the sources, one by one.
    Move,
    /// `[sum, carry, carry] = a + b + c`, with two predicates added where `extended`.
    Add {
        extended: bool,
    },
    /// Addition of 64-bit values: `[low, high]` of pairs.
    AddPairs,
    /// `[low, high, carry] = a * b + (c, upper c)`, with a predicate added where `extended`.
    Multiply {
        half: Half,
        signed: bool,
        extended: bool,
    },
    /// `[result, carry] = (a << shift) + b`; the upper half is of `(c, a)` or of `a`'s sign.
    Scale {
        shift: u32,
        half: Half,
        extended: bool,
        signed: bool,
    },
    /// `[result]` of `(low, by, high)`.
    Shift {
        left: bool,
        signed: bool,
        upper: bool,
        wide: bool,
    },
    /// `[result, predicate]` of three values, by a table of 8 bits.
    Logic {
        table: u8,
    },
    /// `[predicate, predicate]` of three predicates, by tables of 8 bits.
    PredicateLogic {
        tables: [u8; 2],
    },
    /// `[result] = predicate ? a : b`; of pairs: `[low, high]` of `(a, a, b, b, predicate)`.
    Choose {
        pair: bool,
    },
    /// The lesser of two where the predicate is true, else the greater; of `a + b` and `c` where
    /// `sum`.
    Extreme {
        signed: bool,
        sum: bool,
    },
    /// `[predicate, predicate]` of `(a, b, with)` and, where `extended`, what compared the lower
    /// halves.
    Compare {
        order: Order,
        signed: bool,
        extended: bool,
        combine: Combine,
    },
    /// Comparison of 64-bit values: `(a, upper a, b, upper b, with)`.
    ComparePairs {
        order: Order,
        signed: bool,
        combine: Combine,
    },
    /// `[result]` of bytes of `a` and `b` by a selector: `(a, selector, b)`.
    Permute,
    Absolute,
    Special(Option<Index>),
    /// An address of shared or local memory.
    Window,
    /// The value of another lane.
    Shuffle,
    /// Loads `bytes` in all into the results. `width` is of one element.
    Load {
        memory: Memory,
        bytes: u32,
        signed: bool,
        /// By strong operations at system scope.
        strong: bool,
        terms: SmallVec<[AddressPart; 2]>,
        offset: i64,
    },
    /// Stores the sources behind the address.
    Store {
        memory: Memory,
        bytes: u32,
        strong: bool,
        terms: SmallVec<[AddressPart; 2]>,
        offset: i64,
    },
    /// Touches memory in another way; the results become opaque.
    Access {
        touch: Touch,
        kind: WordKind,
        bytes: Bytes,
        terms: SmallVec<[AddressPart; 2]>,
        offset: i64,
        /// Perhaps fewer bytes, or by fewer threads, than the conditions say.
        partly: bool,
    },
    /// `[predicate]`: whether an atomic operation found its address in global memory.
    InGlobal {
        terms: SmallVec<[AddressPart; 2]>,
        offset: i64,
    },
    /// `[result]`: the first source, with the predicates behind it in those bits of `mask` that are
    /// predicates, moved up by `first`.
    SpillPredicates {
        first: u8,
        mask: u8,
    },
    /// Predicates become such bits of the source.
    ReloadPredicates {
        first: u8,
        mask: u8,
    },
    /// Something of the sources. `keeps`: what the results held may stay.
    Opaque {
        bounds: Option<(i64, i64)>,
        keeps: bool,
    },
    /// The sources may be addresses, two of them at a time, and anything may be touched.
    Unknown {
        reason: String,
    },
    /// `griddepcontrol.wait`.
    Wait,
    /// `griddepcontrol.launch_dependents`.
    Trigger,
    /// Threads meet others.
    Meet(Meeting),
}

/// An instruction.
#[derive(Debug, Clone)]
pub(in crate::access) struct Lifted {
    pub(in crate::access) operation: Operation,
    pub(in crate::access) results: SmallVec<[u32; 4]>,
    pub(in crate::access) sources: SmallVec<[LiftedSource; 4]>,
    /// Byte in its function.
    pub(in crate::access) place: u32,
}

impl Lifted {
    /// Whether the operation must be interpreted even if nothing reads its results.
    pub(in crate::access) fn acts(&self) -> bool {
        match &self.operation {
            Operation::Load { memory, .. } => {
                matches!(memory, Memory::Global | Memory::Generic | Memory::Constant(_))
            }
            Operation::Store { memory, .. } => {
                matches!(memory, Memory::Global | Memory::Generic)
            }
            Operation::Access { .. }
            | Operation::Unknown { .. }
            | Operation::Wait
            | Operation::Trigger
            | Operation::Meet(_) => true,
            _ => false,
        }
    }

    /// The registers that are read.
    pub(in crate::access) fn reads(&self) -> impl Iterator<Item = u32> + '_ {
        self.sources.iter().filter_map(|source| match source.origin {
            SourceValue::Register(register) => Some(register),
            _ => None,
        })
    }

    /// The registers that are assigned.
    pub(in crate::access) fn assigns(&self) -> impl Iterator<Item = u32> + '_ {
        self.results.iter().copied().filter(|&register| register != NOWHERE)
    }
}
