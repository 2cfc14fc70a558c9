//! Programmatic dependent launch: how a kernel waits for earlier kernels and triggers later ones.
//!
//! Sources: PTX ISA, `griddepcontrol`; CUDA Programming Guide, Programmatic Dependent Launch and
//! Synchronization.

use serde::{Deserialize, Serialize};

/// When the dependents of a kernel may begin, if they were launched to begin early.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Trigger {
    /// The kernel never triggers by itself, so its dependents begin when all of its blocks have
    /// ended.
    #[default]
    AtEnd,
    /// The kernel triggers, and each triggering thread is behind the kernel's own wait.
    BehindWait,
    /// The kernel triggers, perhaps before its own wait is over.
    Early,
}

impl Trigger {
    /// All values, in the order of their stored codes.
    pub const ALL: [Self; 3] = [Self::AtEnd, Self::BehindWait, Self::Early];

    /// The word of reports and text traces.
    pub const fn description(self) -> &'static str {
        match self {
            Self::AtEnd => "end",
            Self::BehindWait => "waited",
            Self::Early => "early",
        }
    }
}

/// A kernel's use of `griddepcontrol`, from its code.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct GridControl {
    /// The kernel executes `griddepcontrol.wait`.
    pub waits: bool,
    /// Number of accesses that may happen before that wait; these come first in the operation or
    /// node. 0 where the kernel does not wait.
    pub early: u32,
    /// When the dependents of the kernel may begin.
    pub trigger: Trigger,
}

impl GridControl {
    /// A kernel that waits before all of its accesses and never triggers: the assumption where the
    /// code is not known. It leads to no false report.
    pub const UNKNOWN: Self = Self { waits: true, early: 0, trigger: Trigger::AtEnd };

    /// Whether the access at `position` may happen before the kernel's wait.
    pub const fn is_early(self, position: usize) -> bool {
        !self.waits || position < self.early as usize
    }
}
