//! What was seen and could not be resolved.

use std::collections::BTreeMap;
use streamsan_model::IncompleteReason;

/// Counts of what keeps a run from being called clean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    not_understood: BTreeMap<String, u64>,
    unknown_parameters: BTreeMap<String, u64>,
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

    /// The reasons, in a fixed order.
    pub(crate) fn reasons(&self) -> Vec<IncompleteReason> {
        let calls = self.not_understood.iter();
        let calls =
            calls.map(|(api, &calls)| IncompleteReason::NotUnderstood { api: api.clone(), calls });
        let kernels = self.unknown_parameters.iter();
        let kernels = kernels.map(|(kernel, &launches)| {
            IncompleteReason::UnknownKernelParameters { kernel: kernel.clone(), launches }
        });
        calls.chain(kernels).collect()
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
