//! How a launch leaves its resolution, and what replaces what was said of it.

use super::by_words::ByWords;
use streamsan_model::{Access, GridControl, OpSeq};

/// How far a launch is known when it is handed on.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// By the code of its kernel, which does this about the kernels before and behind it.
    ByCode(GridControl),
    /// By its words, until its code is read.
    ByWords(Box<ByWords>),
    /// By its words for good: nobody reads its code, or nobody could.
    WithoutCode,
}

impl Resolved {
    /// The kernel's waits and triggers, for the kernels before and behind it; `None` where not known.
    pub(crate) fn control(&self) -> Option<GridControl> {
        match self {
            Self::ByCode(control) => Some(*control),
            Self::ByWords(_) | Self::WithoutCode => None,
        }
    }
}

/// The final word on a launch that was handed on by its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownLaunch {
    pub(crate) g: OpSeq,
    /// Its accesses; `None` where they are known from elsewhere.
    pub(crate) accesses: Option<Vec<Access>>,
    /// Its kernel's waits and triggers, where they are known.
    pub(crate) control: Option<GridControl>,
}
