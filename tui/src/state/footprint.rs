//! The pane of bytes over time.

use streamsan_model::{Footprint, FootprintBy};

/// Bytes over time, and which holder is selected.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    /// What the bytes are divided by.
    pub by: FootprintBy,
    /// The bytes, once they are known, and what they are divided by.
    pub known: Option<(FootprintBy, Box<Footprint>)>,
    /// The trace that they are of.
    pub trace: usize,
    /// The selected holder.
    pub cursor: usize,
    /// What was asked for last.
    pub(super) wanted: Option<(usize, FootprintBy, u32)>,
}

impl Bytes {
    /// Divides by the other thing.
    pub(super) fn turn(&mut self) {
        self.by = match self.by {
            FootprintBy::Allocation => FootprintBy::Site,
            FootprintBy::Site => FootprintBy::Allocation,
        };
        self.cursor = 0;
    }

    pub(super) fn take(&mut self, trace: usize, by: FootprintBy, footprint: Box<Footprint>) {
        self.trace = trace;
        self.cursor = self.cursor.min(footprint.series.len().saturating_sub(1));
        self.known = Some((by, footprint));
    }

    /// Asks anew, because more of the trace has come.
    pub(super) fn forget(&mut self) {
        self.wanted = None;
    }
}
