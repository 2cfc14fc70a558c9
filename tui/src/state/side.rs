//! One of two traces that are shown beside each other: what the other one has of its findings.

use super::State;
use crate::traces::OpRef;
use std::collections::BTreeMap;
use std::sync::Arc;
use streamsan_model::{CallNumber, Finding, Fingerprint, Severity};

/// What became of a finding between two traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// In the trace from after only.
    New,
    /// In the trace from before only.
    Gone,
    /// In both.
    Same,
}

impl Change {
    /// The word in the list.
    pub const fn description(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::Same => "same",
        }
    }

    /// The sign that `diff` prints before it.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::New => "+",
            Self::Gone => "-",
            Self::Same => "=",
        }
    }
}

/// What became of each finding of either trace, by id and severity. Those that are accepted are left
/// out.
pub type Changes = BTreeMap<(Fingerprint, Severity), Change>;

/// A side of the screen.
#[derive(Clone, Debug)]
pub struct Side {
    /// `A` or `B`.
    pub name: char,
    /// Whether keys go to it.
    pub has_focus: bool,
    /// What became of the findings.
    pub changes: Arc<Changes>,
    /// Which of the calls of its name the selected operation is, once it is known.
    pub(crate) call: Option<(OpRef, Option<CallNumber>)>,
    /// A key has asked for the other side.
    pub(crate) left: bool,
}

impl Side {
    /// A side without the focus.
    pub(crate) fn new(name: char, changes: Arc<Changes>) -> Self {
        Self { name, has_focus: false, changes, call: None, left: false }
    }
}

impl State {
    pub(super) fn leave_side(&mut self) {
        if let Some(side) = &mut self.side {
            side.left = true;
        }
    }

    /// Takes the filter of the other side; an empty one shows all rows again.
    pub(crate) fn filter_as(&mut self, text: &str) {
        if text.is_empty() { self.clear_filter() } else { self.set_filter(text) }
    }

    /// Takes up that streams are shown or hidden.
    pub(crate) fn show_rows_anew(&mut self) {
        self.update_rows();
    }

    /// No race is in front any more.
    pub(crate) fn leave_race(&mut self) {
        self.guests.clear();
        self.finding = None;
        self.scroll_to_cursor();
    }

    /// What became of a finding; `None` without a trace beside this one, and of those that are
    /// accepted.
    pub(crate) fn change_of(&self, finding: &Finding) -> Option<Change> {
        let changes = &self.side.as_ref()?.changes;
        changes.get(&(finding.fingerprint, finding.severity)).copied()
    }

    /// `2 new, 1 gone, 3 same`, of the mistakes of both traces.
    pub(crate) fn changes_in_words(&self) -> Option<String> {
        let changes = &self.side.as_ref()?.changes;
        let count = |of| changes.values().filter(|change| **change == of).count();
        let words = [Change::New, Change::Gone, Change::Same].map(|change| {
            let count = crate::names::number(count(change) as u64);
            format!("{count} {}", change.description())
        });
        Some(words.join(", "))
    }
}
