//! Answers.

use super::{Message, Pane, State, Strips, Viewport};
use crate::names;
use crate::query::{Answer, Numbered, Opened, Target};
use std::collections::HashMap;
use streamsan_model::{Detail, OpSeq, Verdict};

impl State {
    /// An answer; one to a question that was asked anew since is dropped.
    pub fn receive(&mut self, answer: Numbered<Answer>) {
        if self.asked[answer.slot as usize].0 != answer.number {
            return;
        }
        self.asked[answer.slot as usize].1 = false;
        match answer.value {
            Answer::Opened(opened) => self.opened(*opened),
            Answer::Selected(Some(detail)) => self.selected(detail),
            Answer::Selected(None) => self.not_selected(),
            Answer::Strips(grid, mut strips) => {
                let cells = strips.iter_mut().flat_map(|strip| &mut strip.cells);
                for name in cells.filter_map(|cell| cell.name.as_mut()) {
                    let short = self.short_names.entry(name.clone());
                    *name = short.or_insert_with_key(|name| names::label(name).into()).clone();
                }
                let (mut cells, mut ranges) = (HashMap::new(), HashMap::new());
                for strip in strips {
                    cells.insert(strip.lane, strip.cells);
                    ranges.insert(strip.lane, strip.ranges);
                }
                self.strips = Strips { grid: Some(grid), cells, ranges };
            }
            Answer::Minimap(axis, cells) => {
                let columns = self.wanted_minimap.map_or(0, |(_, columns)| columns);
                self.minimap = Some((axis, columns, cells));
            }
            Answer::Explained(text) => {
                self.explanation = self.wanted_explanation.map(|place| (place, text));
            }
            Answer::History(Some(history)) => {
                self.message = None;
                self.memory.history = Some(history);
                self.memory.use_cursor = 0;
                self.show_pane(Pane::Memory);
            }
            Answer::History(None) => self.tell("the trace does not hold the allocation"),
            Answer::Allocations(allocations) => self.memory.take(allocations),
            Answer::Calls(calls) => self.calls = Some(calls),
            Answer::Footprint(by, footprint) => self.footprint.take(by, footprint),
            Answer::Hits(hits) => self.take_hits(*hits),
            Answer::Refreshed(fresh) => self.refreshed(*fresh),
            Answer::Broken => self.quit = true,
            Answer::Failed(text) => self.message = Some(Message { text, error: true }),
        }
        self.ask_for_screen();
    }

    fn opened(&mut self, opened: Opened) {
        let columns = self.areas().columns();
        for &(axis, span) in &opened.overview.axes {
            self.views.insert(axis, Viewport::whole(axis, span, columns));
        }
        self.axis = opened.overview.axes.first().map(|&(axis, _)| axis);
        self.open = Some(opened);
        self.find_race_places();
        self.update_rows();
        self.update_list();
        if self.axis.is_none() {
            let goes_on = self.live.is_some();
            return self.tell(if goes_on {
                "no operations yet"
            } else if self.has_no_cuda() {
                Verdict::NO_CUDA_MEANS
            } else {
                "the trace holds no operations"
            });
        }
        if self.list.shown.is_empty() {
            return self.row_end(false);
        }
        // The whole trace is shown, with the first race's operation selected.
        let wanted = self.start_race.take().and_then(|id| {
            let findings = &self.open.as_ref()?.findings;
            findings.iter().position(|finding| finding.fingerprint.to_string() == id)
        });
        match wanted {
            Some(place) => self.go_to_finding(place),
            None => {
                let views = self.views.clone();
                self.go_to_finding(0);
                self.guests.clear();
                (self.finding, self.views, self.keep_view) = (None, views, true);
            }
        }
    }

    pub(super) fn find_race_places(&mut self) {
        let sides = |open: &Opened| -> Vec<OpSeq> {
            let sides = open.findings.iter().flat_map(|f| [f.first.op, f.second.op]);
            sides.collect()
        };
        let mut sides = self.open.as_ref().map_or_else(Vec::new, sides);
        sides.sort_unstable();
        sides.dedup();
        self.race_places = sides.into_iter().filter_map(|g| self.place_of(g)).collect();
    }

    fn selected(&mut self, detail: Box<Detail>) {
        self.steps = None;
        if !std::mem::take(&mut self.keep_row) {
            self.show_lane(detail.place.lane);
        }
        let keep = std::mem::take(&mut self.keep_view);
        for (axis, view) in &mut self.views {
            if let Some(at) = detail.place.on(*axis)
                && Some(*axis) == self.axis
                && !keep
            {
                view.reveal(at);
            }
        }
        let another = self.selection.as_ref().is_none_or(|s| s.operation.g != detail.operation.g);
        if self.pane == Pane::Details && another {
            self.pane_scroll = 0;
        }
        self.selection = Some(detail);
        if std::mem::take(&mut self.edit_selected) {
            self.edit();
        }
        self.notice_departure();
    }

    fn not_selected(&mut self) {
        let steps = self.steps.take();
        match (steps, &self.last_target) {
            (Some((.., steps)), _) => {
                self.tell(if steps < 0 {
                    "first operation of the row"
                } else {
                    "last operation of the row"
                });
            }
            (None, Some(Target::Match { text, .. })) => {
                let text = format!("nothing matches {text:?}");
                self.tell(text);
            }
            (None, Some(Target::Op(g))) => {
                let text = format!("the trace holds no operation #{g}");
                self.tell(text);
            }
            _ => self.tell("the row holds no operation"),
        }
    }

    /// Opens the trace at a race, by its id in reports.
    pub fn start_at(&mut self, id: String) {
        self.start_race = Some(id);
    }
}
