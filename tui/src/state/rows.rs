//! The shown rows, and their groups.

use crate::names;
use std::collections::BTreeSet;
use streamsan_model::{ContextId, LaneId, Overview, ProcessId};

/// A line of the timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// The headline of a process; not selectable.
    Process(ProcessId),
    /// The headline of a context; not selectable.
    Context(ContextId),
    /// A row: its place in [`Overview::lanes`].
    Lane(usize),
}

impl Row {
    /// The row's place in the list of lanes, if it is one.
    pub fn lane(self) -> Option<usize> {
        match self {
            Self::Lane(lane) => Some(lane),
            _ => None,
        }
    }
}

/// The shown rows.
#[derive(Clone, Debug, Default)]
pub struct RowFilter {
    /// Words, one of which a row's name must contain; all rows where there are none.
    pub words: Vec<String>,
    /// Whether streams are shown that hold nothing but their creation.
    pub idle: bool,
    /// Rows at the top, in order.
    pub pinned: Vec<usize>,
}

impl RowFilter {
    /// The words of an input: `decode, host`.
    pub fn set_words(&mut self, text: &str) {
        self.words = text
            .split(',')
            .map(|word| word.trim().to_lowercase())
            .filter(|word| !word.is_empty())
            .collect();
    }

    fn shows(&self, overview: &Overview, lane: usize) -> bool {
        let row = &overview.lanes[lane];
        let idle = matches!(row.id, LaneId::Stream(_)) && row.operations <= 1;
        if idle && !self.idle && self.words.is_empty() {
            return false;
        }
        let name = names::lane(&overview.entities, row).to_lowercase();
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word))
    }

    /// Streams that are hidden because nothing happens in them.
    pub fn hidden_idle(&self, overview: &Overview) -> usize {
        let idle = |row: &&streamsan_model::Lane| {
            matches!(row.id, LaneId::Stream(_)) && row.operations <= 1
        };
        if self.idle || !self.words.is_empty() {
            0
        } else {
            overview.lanes.iter().filter(idle).count()
        }
    }

    /// The rows, grouped by process, then context, host threads first. Headlines stand only where
    /// there are several of their kind.
    pub fn rows(&self, overview: &Overview) -> Vec<Row> {
        let context = |lane: usize| overview.lanes[lane].stream.as_ref().map(|s| s.context);
        // A stream of several processes belongs to the process of its context.
        let process = |lane: usize| {
            let of = context(lane).and_then(|id| overview.entities.context(id));
            of.map_or(overview.lanes[lane].process, |context| context.process)
        };
        let mut shown: Vec<usize> =
            (0..overview.lanes.len()).filter(|&lane| self.shows(overview, lane)).collect();
        if shown.is_empty() && self.words.is_empty() {
            // A trace of idle streams only is not an empty one.
            shown = (0..overview.lanes.len()).collect();
        }
        shown.sort_by_key(|&lane| (process(lane), context(lane), overview.lanes[lane].id));
        let processes: BTreeSet<_> = shown.iter().map(|&lane| process(lane)).collect();
        let contexts: BTreeSet<_> = shown.iter().filter_map(|&lane| context(lane)).collect();
        let mut rows = Vec::new();
        let mut last = (None, None);
        for lane in shown {
            if processes.len() > 1 && last.0 != Some(process(lane)) {
                rows.push(Row::Process(process(lane)));
            }
            if let Some(context) = context(lane)
                && contexts.len() > 1
                && last.1 != Some(context)
            {
                rows.push(Row::Context(context));
            }
            last = (Some(process(lane)), context(lane));
            rows.push(Row::Lane(lane));
        }
        rows
    }
}
