//! The summary as plain data, independent of any launch.
//!
//! Stage: the summary; the result of the stages before, and the input of launches.
//!
//! Invariant: ids of expressions and symbols are places in the tables of the same [`KernelAccess`].
//! An access with `exact` is made by every thread that meets its conditions; an access without
//! `exact` may be made by fewer threads.

use serde::{Deserialize, Serialize};
use streamsan_model::{Trigger, WordKind};

use crate::access::Touched;
use crate::access::domain::condition::Condition;
use crate::access::domain::expression::{ExprId, Polynomial, Symbol, SymbolId};
use crate::access::fixpoint::grid_control::Waited;

/// The effect of one instruction on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Touch {
    Read,
    Write,
    Atomic,
    /// May read and may write.
    Unknown,
    /// A load, a store or an atomic operation that the instruction performs as strong operation at
    /// system scope (PTX ISA, Memory Consistency Model).
    StrongRead,
    StrongWrite,
    StrongAtomic,
}

impl Touch {
    /// The same effect by strong operations at system scope; an unknown effect stays unknown.
    #[must_use]
    pub(in crate::access) const fn strong(self, is_strong: bool) -> Touch {
        match self {
            Touch::Read if is_strong => Touch::StrongRead,
            Touch::Write if is_strong => Touch::StrongWrite,
            Touch::Atomic if is_strong => Touch::StrongAtomic,
            touch => touch,
        }
    }

    /// The effect, whatever the strength of the operations.
    #[must_use]
    pub const fn weak(self) -> Touch {
        match self {
            Touch::StrongRead => Touch::Read,
            Touch::StrongWrite => Touch::Write,
            Touch::StrongAtomic => Touch::Atomic,
            touch => touch,
        }
    }
}

/// The effect of a kernel on the memory that a word points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParameterMode {
    None,
    Read,
    Write,
    ReadWrite,
    /// Atomic operations only.
    Atomic,
    Unknown,
}

impl ParameterMode {
    /// The word of tables.
    pub const fn description(self) -> &'static str {
        match self {
            ParameterMode::None => "none",
            ParameterMode::Read => "read",
            ParameterMode::Write => "write",
            ParameterMode::ReadWrite => "read-write",
            ParameterMode::Atomic => "atomic",
            ParameterMode::Unknown => "unknown",
        }
    }

    /// This and one more access. Atomic operations beside plain ones are both a read and a write.
    #[must_use]
    pub const fn and(self, touch: Touch) -> ParameterMode {
        match (self, touch.weak()) {
            (ParameterMode::Unknown, _) | (_, Touch::Unknown) => ParameterMode::Unknown,
            (ParameterMode::None | ParameterMode::Read, Touch::Read) => ParameterMode::Read,
            (ParameterMode::None | ParameterMode::Write, Touch::Write) => ParameterMode::Write,
            (ParameterMode::None | ParameterMode::Atomic, Touch::Atomic) => ParameterMode::Atomic,
            _ => ParameterMode::ReadWrite,
        }
    }
}

/// An 8-byte word of the parameters that is used as an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerWord {
    /// Index of the parameter.
    pub param: u32,
    /// Bytes from the start of the parameter.
    pub offset: u32,
    /// Bytes from the start of the parameter block.
    pub block_offset: u32,
    pub kind: WordKind,
    pub mode: ParameterMode,
    /// Whether the kernel loads pointers from that memory and uses them.
    pub table: bool,
}

/// A module variable in global or constant memory that the kernel touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalUse {
    pub name: String,
    pub mode: ParameterMode,
    /// Pointers are loaded from it, and used.
    pub table: bool,
}

/// A pointer in a module global that the kernel uses and does not change. The writer of the
/// variable decides its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalPointer {
    /// Index into [`KernelAccess::globals`].
    pub global: u32,
    /// Bytes from the start of the variable.
    pub offset: u32,
    /// The effect on the memory behind the pointer.
    pub mode: ParameterMode,
}

/// The base that an access is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Base {
    /// Index into [`KernelAccess::pointers`].
    Pointer(u32),
    /// Index into [`KernelAccess::globals`].
    Global(u32),
    /// Index into [`KernelAccess::global_pointers`]: to the value that stands there.
    GlobalPointer(u32),
}

/// Bytes of one access from its address on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(in crate::access) enum Length {
    Bytes(u32),
    AtMost(u32),
    Expression(ExprId),
    Unknown,
}

/// One access with its symbolic address and the conditions under which it happens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SymbolicAccess {
    pub base: Base,
    pub touch: Touch,
    /// The whole address, including the base, but without the value of a pointer in a module global; `None` where
    /// the address escapes.
    pub(in crate::access) address: Option<ExprId>,
    pub(in crate::access) length: Length,
    pub(in crate::access) conditions: Vec<Condition>,
    /// Whether the conditions are enough for the access to happen.
    pub(in crate::access) exact: bool,
    /// Whether the access comes behind the kernel's wait for its prerequisite grids.
    pub waited: Waited,
    /// Other bases have the same access: one of them is touched, and which is not known.
    pub(in crate::access) several: bool,
    /// Pointers are loaded by it, and used.
    pub(in crate::access) leads_on: bool,
}

/// A gated φ: one of several values, each under its gate. One of the gates holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::access) struct GatedPhi {
    pub(in crate::access) symbol: SymbolId,
    /// The value and its gate.
    pub(in crate::access) inputs: Vec<(ExprId, Vec<Condition>)>,
}

/// A loop that accesses depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::access) struct LoopBound {
    pub(in crate::access) header: u32,
    pub(in crate::access) back_edge: Vec<Condition>,
    pub(in crate::access) single_test: bool,
}

/// The summary of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelAccess {
    pub name: String,
    /// Bytes of the parameter block that launches must give.
    pub params_size: u32,
    /// Words used as addresses, in the order of the parameter block.
    pub pointers: Vec<PointerWord>,
    pub globals: Vec<GlobalUse>,
    /// The pointers in module globals.
    pub global_pointers: Vec<GlobalPointer>,
    pub accesses: Vec<SymbolicAccess>,
    /// Whether the kernel executes `griddepcontrol.wait`.
    pub waits: bool,
    /// Every access to global memory comes behind that wait.
    pub waits_on_primary: bool,
    /// When its dependents may begin.
    pub trigger: Trigger,
    /// Why the kernel may touch anything; empty where it does not.
    pub unknown: Vec<String>,
    /// One of the reasons is another one than pointers that are loaded from known places.
    pub(in crate::access) unbounded: bool,
    pub(in crate::access) expressions: Vec<Polynomial>,
    pub(in crate::access) symbols: Vec<Symbol>,
    /// Bounds of symbols by their number, where known.
    pub(in crate::access) bounds: Vec<Option<(i64, i64)>>,
    /// The gated φs among the symbols, by their number.
    pub(in crate::access) gated_phis: Vec<GatedPhi>,
    pub(in crate::access) loops: Vec<LoopBound>,
    /// Names of the module's variables, as the symbols number them.
    pub(in crate::access) global_names: Vec<String>,
}

impl KernelAccess {
    /// Whether the kernel may touch memory that neither a word, nor a variable, nor a known pointer
    /// in a variable leads to.
    pub fn may_touch_anything(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Whether one launch may do so. Much code takes pointers or tables of pointers, depending on
    /// its arguments, and a table that this launch does not read leads nowhere. `touched` is the
    /// answer of [`instantiate`](crate::access::instantiate()) for the launch.
    pub fn may_touch_anything_at(&self, touched: &[Touched]) -> bool {
        self.unbounded || touched.iter().any(|touched| touched.leads_on)
    }

    /// The reasons in one line: the places of each reason counted, but for the first.
    pub fn reasons(&self) -> String {
        let mut counted: Vec<(&str, &str, usize)> = Vec::new();
        for reason in &self.unknown {
            let (place, text) = reason.split_once(": ").unwrap_or(("", reason));
            match counted.iter_mut().find(|(_, known, _)| *known == text) {
                Some((_, _, more)) => *more += 1,
                None => counted.push((place, text, 0)),
            }
        }
        let reasons = counted.into_iter().map(|(place, text, more)| match (place, more) {
            ("", _) => text.to_owned(),
            (place, 0) => format!("{place}: {text}"),
            (place, 1) => format!("{place} and one other place: {text}"),
            (place, more) => format!("{place} and {more} other places: {text}"),
        });
        reasons.collect::<Vec<_>>().join("; ")
    }
}
