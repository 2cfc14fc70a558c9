//! A lowered module: what the driver asks about it and what the interpreter runs.

use std::collections::HashMap;

use streamsan_kernels::ptx;

use super::code::{Code, KernelCode};
use super::fault::LowerError;

/// Index of a kernel in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KernelId(pub(crate) u32);

/// What a driver reports of a kernel. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelInfo {
    pub(crate) name: String,
    /// Offset and size of each parameter in the parameter block.
    pub(crate) params: Vec<(u32, u32)>,
    /// Bytes of the whole parameter block.
    pub(crate) params_size: u32,
    pub(crate) static_shared: u32,
    /// Local memory of one thread.
    pub(crate) local: u32,
    /// Threads of a block at most.
    pub(crate) max_threads: u32,
    /// 32-bit registers of a thread, estimated from the declared ones and bounded by 255.
    pub(crate) regs: u32,
    /// Whether it can execute `griddepcontrol.wait`.
    pub(crate) grid_wait: bool,
}

/// What an initialised variable holds where it is the address of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelocationTarget {
    /// Index into [`Program::globals`].
    Global(u32),
    /// A code address.
    Function(u32),
}

/// An 8-byte address inside an initialiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relocation {
    /// Bytes from the start of the variable.
    pub(crate) offset: u64,
    pub(crate) target: RelocationTarget,
    pub(crate) addend: i64,
}

/// A `.global` or `.const` variable, which the driver allocates when it loads the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GlobalVar {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) align: u32,
    /// `size` bytes; addresses are zero here and come from [`Program::initial_bytes`].
    pub(crate) init: Vec<u8>,
    pub(crate) relocations: Vec<Relocation>,
    /// `.const`: kernels only read it.
    pub(crate) constant: bool,
}

/// A module ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(super) kernels: Vec<KernelInfo>,
    pub(super) names: HashMap<String, KernelId>,
    pub(super) globals: Vec<GlobalVar>,
    pub(super) kernel_code: Vec<KernelCode>,
    pub(super) functions: Vec<Code>,
}

impl Program {
    /// Lowers a module: names resolved, instructions made dense.
    ///
    /// Fails on what no driver would compile (unknown opcodes, undeclared names, functions
    /// without a body). An instruction of the PTX ISA that the interpreter lacks is no error
    /// here: the real driver would load the module, and its other kernels run. It fails the
    /// launch of a kernel that contains it.
    pub(crate) fn lower(module: &ptx::Module) -> Result<Program, LowerError> {
        super::lower::lower(module)
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<KernelId> {
        self.names.get(name).copied()
    }

    pub(crate) fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    pub(crate) fn kernel_info(&self, kernel: KernelId) -> &KernelInfo {
        &self.kernels[kernel.0 as usize]
    }

    pub(crate) fn globals(&self) -> &[GlobalVar] {
        &self.globals
    }

    /// The initial contents of global `index` once every global has its address.
    pub(crate) fn initial_bytes(&self, index: usize, addresses: &[u64]) -> Vec<u8> {
        let global = &self.globals[index];
        let mut bytes = global.init.clone();
        for relocation in &global.relocations {
            let base = match relocation.target {
                RelocationTarget::Global(other) => addresses[other as usize],
                RelocationTarget::Function(code) => super::memory::CODE_WINDOW + u64::from(code),
            };
            let value = base.wrapping_add_signed(relocation.addend).to_le_bytes();
            let at = relocation.offset as usize;
            bytes[at..at + 8].copy_from_slice(&value);
        }
        bytes
    }
}
