//! The code of kernels, and the variables of the modules that kernels come from.

use super::Resolution;
use crate::kernel_code::{Capability, CodeId};
use crate::resolve::kernels::KnownKernel;
use crate::resolve::memory::Block;
use streamsan_model::{Backing, ByteRange, KernelGap, MemoryKind};

/// Where made-up addresses of variables begin, behind those of arrays, and how far apart they are.
const FIRST_VARIABLE: u64 = 1 << 61;
const LARGEST_VARIABLE: u64 = 1 << 32;

impl Resolution<'_> {
    /// The compute capability of the current context's device; where that device is not known, the
    /// lowest one of any device.
    pub(in crate::resolve) fn capability(&self) -> Option<Capability> {
        let tables = &self.tables;
        let context = tables.contexts.get(&self.call.context);
        let device = context.and_then(|context| tables.devices.get(context));
        let known = device.and_then(|device| tables.capabilities.get(device));
        known.or_else(|| tables.capabilities.values().min()).copied()
    }

    /// The code of a kernel that is launched, if it was seen being loaded.
    pub(in crate::resolve) fn code(&mut self, kernel: &KnownKernel) -> Option<CodeId> {
        let (images, device) = (kernel.images?, self.capability()?);
        Some(self.codes.launched(kernel.id, &kernel.name, images, device, self.items))
    }

    /// Counts what is not known of a kernel's launch. Where exact accesses come from elsewhere,
    /// nothing is missing.
    pub(in crate::resolve) fn kernel_gap(&mut self, gap: KernelGap, kernel: &str) {
        if !self.codes.exact {
            self.gaps.kernel(gap, kernel);
        }
    }

    /// A variable of the module that a kernel comes from. One that the program never asked for has
    /// made-up addresses until it does.
    pub(in crate::resolve) fn variable(&mut self, code: CodeId, name: &str) -> Block {
        let key = (self.codes.images_of(code), Box::from(name));
        if let Some(block) = self.tables.variables.get(&key) {
            return *block;
        }
        let start = FIRST_VARIABLE + self.tables.made_up_variables * LARGEST_VARIABLE;
        self.tables.made_up_variables += 1;
        let range = ByteRange::with_len(start, LARGEST_VARIABLE);
        let backing = Some(Backing { memory: self.ids.backing(), offset: 0 });
        let kind = MemoryKind::Global;
        let api = String::new();
        let name = Some(name.to_owned());
        let id = self.declare_allocation(range, kind, (None, backing), api, name, None);
        let (made_by, born, returned) = (self.call.api, 0, 0);
        let block =
            Block { id, range, kind, context: None, backing, made_by, born, returned, stack: None };
        self.tables.global_pointers.made_up(key.0, &key.1, id);
        self.tables.variables.insert(key, block);
        block
    }
}
