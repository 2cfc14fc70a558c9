//! Filters by what operations are, and their hits.

use super::State;
use crate::names;
use crate::query::{Request, Target};
use streamsan_model::{Hits, OpSeq};

impl State {
    /// Takes a filter that was typed.
    pub(super) fn set_filter(&mut self, text: &str) {
        let Some(open) = &self.open else { return };
        if let Err(why) = self.filter.set(text, &open.overview.entities) {
            return self.fail(why);
        }
        self.hits = None;
        if self.filter.operations.is_empty() {
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
    pub(super) fn take_hits(&mut self, hits: Hits) {
        if self.filter.operations.is_empty() {
            return;
        }
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
            let selected = self.selection.as_ref().map(|detail| detail.operation.g);
            let is_hit = |g: &OpSeq| hits.places.binary_search_by_key(g, |(op, _)| *op).is_ok();
            if !selected.is_some_and(|g| is_hit(&g)) {
                self.next_hit(true);
            }
        } else if self.selected_lane_id() != self.selection.as_ref().map(|detail| detail.place.lane)
        {
            self.select_near();
        }
    }

    /// Goes to the next (previous) operation that the filter finds, from the other end of the trace
    /// if there is none. Whether there is a filter of operations.
    pub(super) fn next_hit(&mut self, forward: bool) -> bool {
        let Some(hits) = &self.hits else { return false };
        let from = self.selection.as_ref().map_or(OpSeq(0), |detail| detail.operation.g);
        let places = &hits.places;
        let found = if forward {
            let next = places.partition_point(|(g, _)| *g <= from);
            places.get(next).or(places.first())
        } else {
            let next = places.partition_point(|(g, _)| *g < from);
            next.checked_sub(1).map(|last| &places[last]).or(places.last())
        };
        match found.map(|(g, _)| *g) {
            Some(g) => self.select(Target::Op(g)),
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
