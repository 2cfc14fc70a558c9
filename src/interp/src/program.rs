//! A lowered module: what the driver asks about it and what the interpreter runs.

use std::collections::HashMap;

use streamsan_ptx as ptx;

use crate::code::{Code, KernelCode};
use crate::fault::LowerError;

/// Index of a kernel in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u32);

/// The attributes that a driver reports of a kernel. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelInfo {
    pub name: String,
    /// Offset and size of each parameter in the parameter block.
    pub params: Vec<(u32, u32)>,
    /// Bytes of the whole parameter block.
    pub params_size: u32,
    pub static_shared: u32,
    /// Local memory of one thread.
    pub local: u32,
    /// Threads of a block at most.
    pub max_threads: u32,
    /// 32-bit registers of a thread, estimated from the declared ones and bounded by 255.
    pub regs: u32,
    /// Whether it can execute `griddepcontrol.wait`.
    pub grid_wait: bool,
}

/// The object whose address an initialised variable holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelocationTarget {
    /// Index into [`Program::globals`].
    Global(u32),
    /// A code address.
    Function(u32),
}

/// An 8-byte address inside an initialiser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Bytes from the start of the variable.
    pub offset: u64,
    pub target: RelocationTarget,
    pub addend: i64,
}

/// A `.global` or `.const` variable, which the driver allocates when it loads the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalVar {
    pub name: String,
    pub size: u64,
    pub align: u32,
    /// `size` bytes; addresses are zero here and come from [`Program::initial_bytes`].
    pub init: Vec<u8>,
    pub relocations: Vec<Relocation>,
    /// `.const`: kernels only read it.
    pub constant: bool,
}

/// A module ready to run.
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) kernels: Vec<KernelInfo>,
    pub(crate) names: HashMap<String, KernelId>,
    pub(crate) globals: Vec<GlobalVar>,
    pub(crate) kernel_code: Vec<KernelCode>,
    pub(crate) functions: Vec<Code>,
}

impl Program {
    /// Lowers a module: names resolved, instructions made dense.
    ///
    /// # Errors
    ///
    /// Code that no driver would compile (unknown opcodes, undeclared names, functions without a
    /// body). An instruction of the PTX ISA that the interpreter lacks is no error here: the real
    /// driver would load the module, and its other kernels run. It fails the launch of a kernel
    /// that contains it.
    pub fn lower(module: &ptx::Module) -> Result<Program, LowerError> {
        crate::lower::lower(module)
    }

    pub fn kernel(&self, name: &str) -> Option<KernelId> {
        self.names.get(name).copied()
    }

    pub fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    pub fn kernel_info(&self, kernel: KernelId) -> &KernelInfo {
        &self.kernels[kernel.0 as usize]
    }

    pub fn globals(&self) -> &[GlobalVar] {
        &self.globals
    }

    /// The initial contents of global `index` once every global has its address.
    pub fn initial_bytes(&self, index: usize, addresses: &[u64]) -> Vec<u8> {
        let global = &self.globals[index];
        let mut bytes = global.init.clone();
        for relocation in &global.relocations {
            let base = match relocation.target {
                RelocationTarget::Global(other) => addresses[other as usize],
                RelocationTarget::Function(code) => crate::memory::CODE_WINDOW + u64::from(code),
            };
            let value = base.wrapping_add_signed(relocation.addend).to_le_bytes();
            let at = relocation.offset as usize;
            bytes[at..at + 8].copy_from_slice(&value);
        }
        bytes
    }
}
