//! What a kernel does about the kernels before and behind it: programmatic dependent launch.
//!
//! Sources: PTX ISA, `griddepcontrol`; CUDA Programming Guide, Programmatic Dependent Launch and
//! Synchronization.

use serde::{Deserialize, Serialize};

/// When the dependents of a kernel may begin, where they were launched to begin early.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Trigger {
    /// The kernel never triggers by itself, so its dependents begin when all of its blocks have
    /// ended.
    #[default]
    AtEnd,
    /// The kernel triggers, and each thread that does so is behind the kernel's own wait.
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

/// What the code of a kernel says of `griddepcontrol`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct GridControl {
    /// The kernel executes `griddepcontrol.wait`.
    pub waits: bool,
    /// How many of the accesses may happen before that wait. These are the first ones of the
    /// operation or node. 0 where the kernel does not wait.
    pub early: u32,
    /// When the dependents of the kernel may begin.
    pub trigger: Trigger,
}

impl GridControl {
    /// A kernel that waits before all of its accesses and never triggers. What is taken for granted
    /// where the code is not known: that reports nothing false.
    pub const UNKNOWN: Self = Self { waits: true, early: 0, trigger: Trigger::AtEnd };

    /// Whether the access at this position may happen before the kernel's wait.
    pub const fn is_early(self, position: usize) -> bool {
        !self.waits || position < self.early as usize
    }
}
