//! Filters by what operations are, and their hits.

use super::State;
use crate::names;
use crate::query::{Request, Target};
use crate::traces::{LaneRef, OpRef, Spot};
use streamsan_model::{Hits, OpSeq};

/// The operations that a filter finds in all traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of operations; where `more` is set, at least as many.
    pub total: u64,
    /// Whether there are more, which were not counted.
    pub more: bool,
    /// How many of them each row holds, in ascending order of rows.
    pub lanes: Vec<(LaneRef, u64)>,
    /// The first ones of each trace by issue order, and where they are.
    pub places: Vec<(OpRef, Spot)>,
}

impl Found {
    fn of(traces: Vec<Hits>) -> Self {
        let mut found = Self::default();
        for (trace, hits) in traces.into_iter().enumerate() {
            found.total += hits.total;
            found.more |= hits.more;
            let lanes = hits.lanes.into_iter();
            found.lanes.extend(lanes.map(|(id, count)| (LaneRef { trace, id }, count)));
            let places = hits.places.into_iter();
            found
                .places
                .extend(places.map(|(g, place)| (OpRef { trace, g }, Spot { trace, place })));
        }
        found
    }
}

impl State {
    /// Takes a filter that was typed.
    pub(super) fn set_filter(&mut self, text: &str) {
        let Some(open) = &self.open else { return };
        let entities: Vec<_> = open.iter().map(|opened| &opened.overview.entities).collect();
        if let Err(why) = self.filter.set(text, &entities) {
            return self.fail(why);
        }
        self.hits = None;
        if !self.filter.has_operations() {
            return self.filtered();
        }
        // What n and N mean from now on.
        self.search = None;
        self.tell("looking for the operations …");
        self.ask(Request::Hits(self.filter.operations.clone()));
    }

    /// Shows all rows again.
    pub(super) fn clear_filter(&mut self) {
        self.filter.clear();
        self.hits = None;
        self.update_rows();
    }

    /// The operations that the filter finds are known.
    pub(super) fn take_hits(&mut self, hits: Vec<Hits>) {
        if !self.filter.has_operations() {
            return;
        }
        let hits = Found::of(hits);
        self.filter.hit = Some(hits.lanes.iter().map(|(lane, _)| *lane).collect());
        self.message = None;
        let first = self.hits.is_none();
        self.hits = Some(hits);
        if first {
            self.filtered();
        } else {
            self.update_rows();
        }
    }

    /// The rows that the filter leaves, with one of them selected.
    fn filtered(&mut self) {
        self.update_rows();
        if self.rows.is_empty() {
            self.tell(match &self.hits {
                Some(hits) if hits.total == 0 => "no operation matches; Esc shows all rows",
                _ => "no row matches; Esc shows all rows",
            });
        } else if let Some(hits) = &self.hits {
            let is_hit = |op: OpRef| hits.places.binary_search_by_key(&op, |(op, _)| *op).is_ok();
            if !self.selected_op().is_some_and(is_hit) {
                self.next_hit(true);
            }
        } else if self.selected_lane_ref() != self.selected_point().map(|point| point.spot().lane())
        {
            self.select_near();
        }
    }

    /// Goes to the next (previous) operation that the filter finds, from the other end of the trace
    /// if there is none. Whether there is a filter of operations.
    pub(super) fn next_hit(&mut self, forward: bool) -> bool {
        let Some(hits) = &self.hits else { return false };
        let from = self.selected_op().unwrap_or(OpRef { trace: 0, g: OpSeq(0) });
        let places = &hits.places;
        let found = if forward {
            let next = places.partition_point(|(op, _)| *op <= from);
            places.get(next).or(places.first())
        } else {
            let next = places.partition_point(|(op, _)| *op < from);
            next.checked_sub(1).map(|last| &places[last]).or(places.last())
        };
        match found.map(|(op, _)| *op) {
            Some(op) => self.select(Target::Op(op)),
            None => self.tell("no operation matches"),
        }
        true
    }

    /// The filter and its hits in words, while there is a filter.
    pub(crate) fn filter_in_words(&self) -> Option<String> {
        if self.filter.is_empty() {
            return None;
        }
        let mut text = format!("filter {}: ", self.filter.parts.join(", "));
        match &self.hits {
            Some(hits) => {
                if hits.more {
                    text += "at least ";
                }
                let in_rows = names::plural(hits.lanes.len() as u64, "row");
                text += &format!("{} in {in_rows}", names::plural(hits.total, "hit"));
                if hits.total > hits.places.len() as u64 {
                    text +=
                        &format!(", the first {} marked", names::number(hits.places.len() as u64));
                }
            }
            None => {
                let rows = self.rows.iter().filter(|row| row.lane().is_some()).count();
                text += &names::plural(rows as u64, "row");
            }
        }
        Some(text + "   n/N goes to one, \\ changes it, Esc shows all")
    }
}
