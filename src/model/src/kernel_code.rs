//! Knowledge from the code of kernels: the images that kernels were loaded from, and the words of a
//! kernel's parameters that are addresses.
//!
//! Invariant: nothing here changes the accesses of an operation; they stand with the operation.

use crate::{KernelId, Mode, ModuleId, ProcessId};
use serde::{Deserialize, Serialize};

/// A code image as a process loaded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its id in the trace.
    pub id: ModuleId,
    /// The process that loaded it.
    pub process: ProcessId,
    /// XXH3 of the image's bytes, 64 bits; `None` where the bytes lie in a file that nothing read.
    pub hash: Option<u64>,
    /// Size in bytes; 0 where unknown.
    pub size: u64,
    /// The file that the image was loaded from; `None` where the program had the image in memory
    /// only.
    pub path: Option<String>,
    /// Offset of the image in that file, in bytes.
    pub offset: u64,
}

/// The source of the knowledge about a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CodeSource {
    /// None: the kernel's code was not found or not read.
    Unread,
    /// The kernel's PTX.
    Ptx,
    /// The kernel's machine code.
    Sass,
    /// Machine code, without a disassembler to read it.
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

/// The object that a word of the parameters leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// The object that the word leads to.
    pub kind: WordKind,
    /// The access to that object. `None` where the kernel only loads pointers from the object or
    /// does not touch it; [`Mode::MayWrite`] where the access is not known.
    pub mode: Option<Mode>,
    /// Whether the kernel loads pointers from the object and uses them.
    pub table: bool,
}

/// A variable of the module that a kernel touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelGlobal {
    pub name: String,
    /// As in [`KernelWord`].
    pub mode: Option<Mode>,
    /// As in [`KernelWord`].
    pub table: bool,
}

/// The reason of a kernel that follows pointers which it loads from memory; the place in its code stands
/// in front of it.
pub const FOLLOWS_POINTERS: &str = "uses a pointer that was loaded from memory";

/// The knowledge of a kernel from its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCode {
    pub kernel: KernelId,
    /// The image that holds the kernel, where known.
    pub module: Option<ModuleId>,
    /// The source of the knowledge.
    pub source: CodeSource,
    /// Why the code was not read, or why the kernel may touch anything; empty where neither holds.
    pub reason: String,
    /// Whether every access comes behind the kernel's wait for the kernel before it (programmatic
    /// dependent launch).
    pub waits_on_primary: bool,
    /// Words used as addresses, in the order of the parameter block.
    pub words: Vec<KernelWord>,
    /// Variables of the module, by name.
    pub globals: Vec<KernelGlobal>,
}

impl KernelCode {
    /// Whether the code was read and all of it understood: the kernel touches no variable of its module
    /// but those in `globals`. Memory that it reaches by pointers which it loads may be unknown.
    pub fn is_understood(&self) -> bool {
        let is_read = matches!(self.source, CodeSource::Ptx | CodeSource::Sass);
        let mut reasons = self.reason.split("; ").filter(|reason| !reason.is_empty());
        is_read && reasons.all(|reason| reason.ends_with(FOLLOWS_POINTERS))
    }
}

#[cfg(test)]
mod tests {
    use super::{CodeSource, FOLLOWS_POINTERS, KernelCode};
    use crate::KernelId;

    #[test]
    fn pointers_in_memory_are_understood_and_unknown_code_is_not() {
        let follows = format!("at 0x10 and one other place: {FOLLOWS_POINTERS}");
        for (source, reason, expected) in [
            (CodeSource::Sass, String::new(), true),
            (CodeSource::Ptx, follows.clone(), true),
            (CodeSource::Sass, format!("{follows}; at 0x80: calls a function"), false),
            (CodeSource::Sass, "the loops of the kernel are not understood".to_owned(), false),
            (CodeSource::Unread, String::new(), false),
        ] {
            let code = KernelCode {
                kernel: KernelId(0),
                module: None,
                source,
                reason,
                waits_on_primary: false,
                words: Vec::new(),
                globals: Vec::new(),
            };
            assert_eq!(code.is_understood(), expected, "{code:?}");
        }
    }
}
