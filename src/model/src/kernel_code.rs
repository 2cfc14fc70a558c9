//! What the code of kernels says: the images it was loaded from, and which words of a kernel's
//! parameters are addresses.
//!
//! Invariant: nothing here changes what an operation touched; that stands with the operation.

use crate::{KernelId, Mode, ModuleId, ProcessId};
use serde::{Deserialize, Serialize};

/// A code image as a process loaded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its id in the trace.
    pub id: ModuleId,
    /// The process that loaded it.
    pub process: ProcessId,
    /// XXH3 of its bytes, 64 bits; `None` where they lie in a file and nobody read them.
    pub hash: Option<u64>,
    /// Bytes, 0 where unknown.
    pub size: u64,
    /// The file that it was loaded from; `None` where the program had it in memory only.
    pub path: Option<String>,
    /// Bytes in front of it in that file.
    pub offset: u64,
}

/// Where the knowledge of a kernel comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CodeSource {
    /// Nothing is known: its code was not found or not read.
    Unread,
    /// Its PTX.
    Ptx,
    /// Its machine code.
    Sass,
    /// It is machine code, and there was no disassembler to read it with.
    NoDisassembler,
}

impl CodeSource {
    /// All sources, in the order of their stored codes.
    pub const ALL: [Self; 4] = [Self::Unread, Self::Ptx, Self::Sass, Self::NoDisassembler];

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Unread => "not read",
            Self::Ptx => "PTX",
            Self::Sass => "machine code",
            Self::NoDisassembler => "machine code, no nvdisasm",
        }
    }

    /// Whether the code was read.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Ptx | Self::Sass)
    }
}

/// What a word of the parameters leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WordKind {
    /// Memory, directly.
    Pointer,
    /// A tensor, through the 128 bytes of a tensor map.
    TensorMap,
    /// A texture or surface.
    Handle,
}

impl WordKind {
    /// All kinds, in the order of their stored codes.
    pub const ALL: [Self; 3] = [Self::Pointer, Self::TensorMap, Self::Handle];

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Pointer => "pointer",
            Self::TensorMap => "tensor map",
            Self::Handle => "texture or surface",
        }
    }
}

/// A word of a kernel's parameters that is used as an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelWord {
    /// Index of the parameter.
    pub param: u32,
    /// Bytes from the start of the parameter.
    pub offset: u32,
    /// What it leads to.
    pub kind: WordKind,
    /// What is done to that; `None` for nothing but loading pointers or nothing at all,
    /// [`Mode::MayWrite`] where it is not known.
    pub mode: Option<Mode>,
    /// Pointers are loaded from what it points to, and used.
    pub table: bool,
}

/// A variable of the module that a kernel touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelGlobal {
    /// Its name.
    pub name: String,
    /// As in [`KernelWord`].
    pub mode: Option<Mode>,
    /// As in [`KernelWord`].
    pub table: bool,
}

/// What is known of a kernel from its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCode {
    /// The kernel.
    pub kernel: KernelId,
    /// The image that it comes from, where known.
    pub module: Option<ModuleId>,
    /// Where the knowledge comes from.
    pub source: CodeSource,
    /// Why the code was not read, or why it may touch anything; empty where neither is so.
    pub reason: String,
    /// Whether every access comes behind the wait for the kernel before it (programmatic dependent
    /// launch).
    pub waits_on_primary: bool,
    /// Words used as addresses, in the order of the parameter block.
    pub words: Vec<KernelWord>,
    /// Variables of the module, by name.
    pub globals: Vec<KernelGlobal>,
}
