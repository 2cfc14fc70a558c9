//! Knowledge about launches that comes after the launches were taken.

use std::collections::HashMap;
use streamsan_model::{Access, GridControl, OpSeq};

/// The late knowledge about launches that were taken: what they touched, and what their kernels do
/// about the kernels before and behind them.
#[derive(Default)]
pub(super) struct Late {
    pub(super) accesses: HashMap<OpSeq, Vec<Access>>,
    pub(super) controls: HashMap<OpSeq, GridControl>,
    /// How many of the accesses may come before the kernel's wait.
    pub(super) early: HashMap<OpSeq, u32>,
}

impl Late {
    pub(super) fn len(&self) -> usize {
        self.accesses.len() + self.controls.len() + self.early.len()
    }

    pub(super) fn extend(&mut self, later: Late) {
        self.accesses.extend(later.accesses);
        self.controls.extend(later.controls);
        self.early.extend(later.early);
    }
}
