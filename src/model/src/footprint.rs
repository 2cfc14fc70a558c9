//! Bytes of memory over a run.

use crate::{Allocation, Span};

/// What the bytes are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FootprintBy {
    /// Each allocation for itself.
    #[default]
    Allocation,
    /// The line of the program that allocated.
    Site,
}

impl FootprintBy {
    /// The words for it.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Allocation => "by allocation",
            Self::Site => "by call site",
        }
    }
}

/// What holds bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// An allocation.
    Allocation(Box<Allocation>),
    /// All allocations of a line of the program, in words; `None` for those without a stack.
    Site(Option<String>),
}

/// The bytes of one holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FootprintSeries {
    pub holder: Holder,
    /// Number of allocations.
    pub allocations: u64,
    /// The most bytes at once within each column.
    pub bytes: Vec<u64>,
}

impl FootprintSeries {
    /// The most bytes at once.
    pub fn peak(&self) -> u64 {
        self.bytes.iter().copied().max().unwrap_or(0)
    }
}

/// Bytes of device, page-locked and managed memory over the issue order, in columns of equal width.
/// Ordinary host memory is left out: nobody tells when it begins and ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The positions that the columns divide.
    pub span: Option<Span>,
    /// The most bytes at once within each column, of all holders.
    pub total: Vec<u64>,
    /// The holders of most bytes, by their peaks, at most [`Footprint::SERIES`].
    pub series: Vec<FootprintSeries>,
}

impl Footprint {
    /// The most holders that are told apart.
    pub const SERIES: usize = 40;
}
