//! Filters of operations, and what they find.

use crate::{KernelId, LaneId, OpSeq, Place};

/// Which operations are looked for: those that meet every condition that is not empty. A text is met
/// by what contains it, in any case of letters; of several texts or ids one is enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpFilter {
    /// Kernels that are launched; `None` for any operation, kernel or not.
    pub kernels: Option<Vec<KernelId>>,
    /// Source files on the call's stack.
    pub files: Vec<String>,
    /// Functions on the call's stack.
    pub functions: Vec<String>,
    /// Allocations that are touched, by their ids or names.
    pub allocations: Vec<String>,
    /// NVTX ranges that are open on the thread at the call, by their names or those of their domains.
    pub ranges: Vec<String>,
}

impl OpFilter {
    /// Whether there is no condition.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The operations that a filter finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Number of operations; where `more` is set, at least as many.
    pub total: u64,
    /// Whether there are more, which were not counted: more uses of an allocation than a history
    /// holds.
    pub more: bool,
    /// How many of them each row holds, in ascending order of rows.
    pub lanes: Vec<(LaneId, u64)>,
    /// The first ones by issue order, at most [`Hits::PLACES`], and where they are.
    pub places: Vec<(OpSeq, Place)>,
}

impl Hits {
    /// The most operations whose places are told.
    pub const PLACES: usize = 10_000;
}
