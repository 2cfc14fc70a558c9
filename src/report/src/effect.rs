//! The effect of a proposed edge, found by analysing the trace again with the edge.

use crate::Report;
use crate::names::{number, plural};
use std::fmt::Write;
use streamsan_model::{Finding, Fingerprint, Severity};

/// The effect on a trace's findings when the proposed edge is put in at each occurrence of one
/// finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Occurrences of the finding.
    pub occurrences: u64,
    /// Number of these occurrences that disappear.
    pub removes: u64,
    /// Occurrences of other findings that disappear.
    pub removes_others: u64,
    /// Occurrences that appear.
    pub adds: u64,
}

impl Effect {
    /// Whether the edge has the effect that it is proposed for.
    pub const fn is_verified(&self) -> bool {
        self.removes == self.occurrences && self.adds == 0
    }

    /// In a sentence.
    pub fn description(&self) -> String {
        let mut text = match self.occurrences {
            1 if self.removes == 1 => "with it this finding disappears".to_owned(),
            _ if self.removes == self.occurrences => {
                format!("with it all {} occurrences disappear", number(self.occurrences))
            }
            _ => format!(
                "with it {} of {} disappear",
                number(self.removes),
                plural(self.occurrences, "occurrence", "occurrences")
            ),
        };
        if self.removes_others > 0 {
            let others = plural(self.removes_others, "occurrence", "occurrences");
            let _ = write!(text, ", and {others} of other findings");
        }
        match self.adds {
            0 => text += "; nothing new appears",
            adds => {
                let _ = write!(text, "; {} new", number(adds));
            }
        }
        text
    }
}

impl Report<'_> {
    /// Notes what the proposed edge of a finding was seen to do.
    pub fn note_effect(&mut self, finding: (Fingerprint, Severity), effect: Effect) {
        self.effects.insert(finding, effect);
    }

    /// What the proposed edge of a finding was seen to do, where that was noted.
    pub fn effect(&self, finding: &Finding) -> Option<Effect> {
        self.effects.get(&(finding.fingerprint, finding.severity)).copied()
    }
}
