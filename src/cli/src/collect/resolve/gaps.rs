//! What was seen and could not be resolved.

use std::collections::BTreeMap;
use streamsan_model::IncompleteReason;
use streamsan_store::{KernelCount, KernelGap};

/// Counts of what keeps a run from being called clean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    not_understood: BTreeMap<String, u64>,
    unknown_parameters: BTreeMap<String, u64>,
    pointers_in_memory: BTreeMap<String, u64>,
    kernels: BTreeMap<(KernelGap, String), u64>,
}

impl Gaps {
    /// A call, or a part of one, whose effect is not modelled.
    pub(crate) fn not_understood(&mut self, what: &str) {
        count(&mut self.not_understood, what, 1);
    }

    /// A launch that may touch anything.
    pub(crate) fn unknown_parameters(&mut self, kernel: &str) {
        count(&mut self.unknown_parameters, kernel, 1);
    }

    /// A launch of a kernel that follows pointers which it loads from memory.
    pub(crate) fn pointers_in_memory(&mut self, kernel: &str) {
        count(&mut self.pointers_in_memory, kernel, 1);
    }

    /// What is only counted: of a kernel's launch, or of an image.
    pub(crate) fn kernel(&mut self, gap: KernelGap, name: &str) {
        *self.kernels.entry((gap, name.to_owned())).or_default() += 1;
    }

    /// What was only counted, in a fixed order.
    pub(crate) fn kernels(&self) -> Vec<KernelCount> {
        let kernels = self.kernels.iter();
        kernels
            .map(|((gap, name), &count)| KernelCount { gap: *gap, name: name.clone(), count })
            .collect()
    }

    /// The reasons, in a fixed order.
    pub(crate) fn reasons(&self) -> Vec<IncompleteReason> {
        let calls = self.not_understood.iter();
        let calls =
            calls.map(|(api, &calls)| IncompleteReason::NotUnderstood { api: api.clone(), calls });
        let kernels = self.unknown_parameters.iter();
        let kernels = kernels.map(|(kernel, &launches)| {
            IncompleteReason::UnknownKernelParameters { kernel: kernel.clone(), launches }
        });
        let pointers = self.pointers_in_memory.iter();
        let pointers = pointers.map(|(kernel, &launches)| IncompleteReason::PointersInMemory {
            kernel: kernel.clone(),
            launches,
        });
        calls.chain(kernels).chain(pointers).collect()
    }
}

fn count(table: &mut BTreeMap<String, u64>, key: &str, by: u64) {
    match table.get_mut(key) {
        Some(n) => *n += by,
        None => {
            table.insert(key.to_owned(), by);
        }
    }
}
