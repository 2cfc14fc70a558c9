//! Rows, selection, findings and edges.

use super::finding_list::Occurrence;
use super::{Row, State, depths_of_ranges};
use crate::query::{Request, Target};
use crate::traces::{LaneRef, OpRef};
use streamsan_model::{Axis, OpSeq, Verdict};

impl State {
    /// Makes the rows anew and keeps the selected one, where it still is one.
    pub(super) fn update_rows(&mut self) {
        let Some(open) = &self.open else { return };
        let selected = self.selected_lane();
        self.rows = self.filter.rows(open, depths_of_ranges(self.size.1));
        let place =
            selected.and_then(|lane| self.rows.iter().position(|&row| row == Row::Lane(lane)));
        let first = self.rows.iter().position(|row| row.lane().is_some());
        self.cursor = place.or(first).unwrap_or(0);
        self.scroll_to_cursor();
    }

    pub(super) fn scroll_to_cursor(&mut self) {
        let height = self.scroll_height();
        if self.cursor < self.scroll {
            // Headlines belong to their rows, and ranges belong to the row below them.
            let above = self.rows[..self.cursor].iter().rev();
            let above = above.take_while(|row| row.lane().is_none()).count();
            self.scroll = self.cursor - above.min(height - 1);
        }
        if self.cursor >= self.scroll + height {
            self.scroll = self.cursor + 1 - height;
        }
        self.scroll = self.scroll.min(self.rows.len().saturating_sub(height));
    }

    /// Goes to the row of a lane: where it is hidden, it becomes a guest.
    pub(super) fn show_lane(&mut self, lane: LaneRef) {
        let Some(lane) = self.lane_place(lane) else { return };
        if let Some(place) = self.rows.iter().position(|&row| row == Row::Lane(lane)) {
            self.cursor = place;
            self.scroll_to_cursor();
        } else if !self.guests.contains(&lane) {
            self.guests.push(lane);
        }
    }

    pub(super) fn lane_place(&self, lane: LaneRef) -> Option<usize> {
        self.open.as_ref()?.lane_place(lane)
    }

    /// Goes some rows down (up, below 0), over headlines, as far as there are any.
    pub(super) fn move_rows(&mut self, by: i64) {
        let lanes: Vec<usize> =
            (0..self.rows.len()).filter(|&place| self.rows[place].lane().is_some()).collect();
        let Some(last) = lanes.len().checked_sub(1) else { return };
        let here = lanes.iter().position(|&place| place >= self.cursor).unwrap_or(last);
        let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
        let there = if by < 0 {
            here.saturating_sub(distance)
        } else {
            here.saturating_add(distance).min(last)
        };
        if lanes[there] != self.cursor {
            self.cursor = lanes[there];
            self.scroll_to_cursor();
            self.select_near();
        }
    }

    /// Selects the operation of the row that is nearest to where the eye is.
    pub(super) fn select_near(&mut self) {
        let (Some(lane), Some(view)) = (self.selected_lane_ref(), self.view()) else { return };
        let at = self.focus_position().unwrap_or_else(|| view.middle());
        let axis = view.axis;
        let at = self.position_in_trace(lane.trace, axis, at);
        self.select(Target::Nearest { lane, axis, at });
    }

    /// The position of the selected operation, if it is on the screen.
    pub(super) fn focus_position(&self) -> Option<u64> {
        let view = self.view()?;
        let at = self.selected_position(view.axis)?;
        view.grid().column(at).map(|_| at)
    }

    /// The position of the selected operation on an axis.
    fn selected_position(&self, axis: Axis) -> Option<u64> {
        self.position_on(axis, &self.selected_point()?.spot())
    }

    pub(crate) fn select(&mut self, target: Target) {
        self.steps = None;
        self.ask(Request::Select(target));
    }

    /// Steps along the row; steps that are unanswered add up.
    pub(super) fn step(&mut self, by: i64) {
        let Some(lane) = self.selected_lane_ref() else { return };
        let selected = self.selected_point().filter(|point| point.spot().lane() == lane);
        let Some(from) = selected.map(|point| point.op) else { return self.select_near() };
        let waiting = self.is_waiting(crate::query::Slot::Select);
        let steps = match self.steps {
            Some((row, begin, steps)) if waiting && row == lane && begin == from => steps + by,
            _ => by,
        };
        if steps == 0 {
            return self.select(Target::Op(OpRef { trace: lane.trace, g: from }));
        }
        self.ask(Request::Select(Target::Steps { lane, from, steps }));
        self.steps = Some((lane, from, steps));
    }

    /// The first or last operation of the row.
    pub(super) fn row_end(&mut self, last: bool) {
        let Some(lane) = self.selected_lane_ref() else { return };
        let (from, steps) = if last { (OpSeq(u64::MAX), -1) } else { (OpSeq(0), 1) };
        self.select(Target::Steps { lane, from, steps });
    }

    /// The first occurrence of the next or previous mistake, in the order of the list.
    pub(super) fn next_finding(&mut self, forward: bool) {
        let count = self.list.shown.len();
        if count == 0 {
            return self.tell(match &self.open {
                None => "the trace is being opened",
                Some(_) if self.has_no_cuda() => Verdict::NO_CUDA_MEANS,
                Some(open) if open.findings().next().is_none() => "no races",
                Some(_) => "no race matches the filter",
            });
        }
        let mistakes = self.list.mistakes;
        let here = self.place_in_list().map(|place| self.list.occurrences[place].mistake);
        // Mistakes count from 1.
        let wanted = match (here, forward) {
            (None, true) => 1,
            (None, false) => mistakes,
            (Some(here), true) => here % mistakes + 1,
            (Some(here), false) => (here + mistakes - 2) % mistakes + 1,
        };
        let is_it = |occurrence: &Occurrence| occurrence.mistake == wanted;
        if let Some(next) = self.list.occurrences.iter().position(is_it) {
            self.list.cursor = next;
            self.go_to_finding(self.list.shown[next]);
        }
    }

    /// The line of the list of the finding that the user went to last.
    fn place_in_list(&self) -> Option<usize> {
        self.list.shown.iter().position(|&place| Some(place) == self.finding)
    }

    /// The next or previous occurrence of the mistake, in the order of the list.
    pub(super) fn next_occurrence(&mut self, forward: bool) {
        let Some(here) = self.place_in_list() else { return self.next_finding(forward) };
        let mistake = self.list.occurrences[here].mistake;
        let same = self.list.occurrences.iter().enumerate();
        let same: Vec<usize> =
            same.filter(|(_, other)| other.mistake == mistake).map(|(place, _)| place).collect();
        let count = same.len();
        if count < 2 {
            return self.tell("the race was seen once");
        }
        let at = same.iter().position(|&place| place == here).unwrap_or(0);
        let next = same[if forward { (at + 1) % count } else { (at + count - 1) % count }];
        self.list.cursor = next;
        self.go_to_finding(self.list.shown[next]);
    }

    /// Goes to a finding: frames both accesses, shows both rows, selects the later one.
    pub(crate) fn go_to_finding(&mut self, place: usize) {
        let before = self.finding.replace(place);
        let Some([first, second]) = self.sides() else { return self.finding = before };
        self.guests.clear();
        let ends = (self.place_of(first), self.place_of(second));
        if let (Some(a), Some(b), Some(axis)) = (ends.0, ends.1, self.axis) {
            self.show_lane(b.lane());
            self.keep_sides();
            // The zoom decides how far a trace is shifted in whole columns.
            for _ in 0..2 {
                if let (Some(a), Some(b)) = (self.position_on(axis, &a), self.position_on(axis, &b))
                    && let Some(view) = self.view_mut()
                {
                    view.frame(a.min(b), a.max(b));
                }
            }
        }
        self.select(Target::Op(second));
    }

    /// Keeps the rows of both sides of the race on the screen.
    pub(super) fn keep_sides(&mut self) {
        let Some([first, second]) = self.sides().filter(|_| !self.expanded) else { return };
        for op in [second, first] {
            let lane = self.place_of(op).and_then(|spot| self.lane_place(spot.lane()));
            if let Some(lane) = lane
                && !self.guests.contains(&lane)
                && !self.visible_rows().iter().any(|shown| shown.row == Row::Lane(lane))
            {
                self.guests.push(lane);
                self.scroll_to_cursor();
            }
        }
    }

    pub(super) fn other_side(&mut self) {
        let Some([first, second]) = self.sides() else { return self.tell("no race is selected") };
        let target = if self.selected_op() == Some(second) { first } else { second };
        self.select(Target::Op(target));
    }

    /// Follows the nearest edge.
    pub(super) fn follow_edge(&mut self, back: bool) {
        let Some(detail) = &self.selection else { return };
        let edge = if back { detail.incoming.first() } else { detail.outgoing.first() };
        match edge.map(|(edge, _)| if back { edge.from } else { edge.to }) {
            Some(g) => self.select(Target::Op(OpRef { trace: self.selected_trace, g })),
            None if back => self.tell("no edge ends here"),
            None => self.tell("no edge begins here"),
        }
    }

    /// Puts the selected operation into a column, in the middle without one: the zoom decides how far
    /// its trace is shifted in whole columns.
    pub(super) fn hold_selected(&mut self, column: Option<u32>) {
        let at = self.view().and_then(|view| self.selected_position(view.axis));
        if let (Some(at), Some(view)) = (at, self.view_mut()) {
            view.hold(at, column.unwrap_or(view.columns / 2));
        }
    }

    /// Goes to the first row of the trace some places further.
    pub(super) fn step_trace(&mut self, by: i64) {
        let count = self.labels.len() as i64;
        if count < 2 {
            return self.tell("there is one trace");
        }
        let here = self.trace_in_focus() as i64;
        let Some(open) = &self.open else { return };
        // Of a trace none of whose rows is shown the next one is meant.
        for step in 1..count {
            let trace = usize::try_from((here + by * step).rem_euclid(count)).unwrap_or(0);
            let is_of = |row: &Row| row.lane().is_some_and(|lane| open.lane(lane).0 == trace);
            if let Some(first) = self.rows.iter().position(is_of) {
                self.cursor = first;
                self.scroll_to_cursor();
                return self.select_near();
            }
        }
        self.tell("no row of another trace is shown");
    }

    pub(super) fn search_next(&mut self, forward: bool) {
        let Some(text) = self.search.clone() else {
            if !self.next_hit(forward) {
                self.tell("nothing was searched for");
            }
            return;
        };
        let from = self.selected_op().unwrap_or(OpRef { trace: 0, g: OpSeq(0) });
        self.select(Target::Match { text, from, forward });
    }

    /// Switches to the next axis that the trace has, keeping the selected operation in its column. An
    /// axis that shows all is zoomed in as far as the one before, or to the race that was on the
    /// screen.
    pub(super) fn switch_axis(&mut self) {
        let axes = self.axes();
        let Some(here) = axes.iter().position(|&axis| Some(axis) == self.axis) else { return };
        let Some(before) = self.view().copied() else { return };
        let axis = axes[(here + 1) % axes.len()];
        let column = self.focus_position().and_then(|at| before.grid().column(at));
        let sides = self.sides().map(|sides| sides.map(|op| self.place_of(op)));
        let race = sides.and_then(|[first, second]| {
            let (first, second) = (first?, second?);
            let at = |on| Some([self.position_on(on, &first)?, self.position_on(on, &second)?]);
            let was_shown = at(before.axis)?.iter().all(|&at| before.grid().column(at).is_some());
            was_shown.then(|| at(axis)).flatten()
        });
        self.axis = Some(axis);
        let at = self.selected_position(axis);
        let Some(view) = self.view_mut() else { return };
        if view.is_whole() && !before.is_whole() {
            if let Some([first, second]) = race {
                return view.frame(first.min(second), first.max(second));
            }
            view.zoom_as(&before, at);
        }
        match (at, column) {
            (Some(at), Some(column)) => view.hold(at, column),
            (Some(at), None) => view.reveal(at),
            (None, _) => {}
        }
    }

    /// Centres on the selected operation; if it is in the middle already, zooms to it.
    pub(super) fn centre(&mut self) {
        let Some(at) = self.view().and_then(|view| self.selected_position(view.axis)) else {
            return;
        };
        if let Some(view) = self.view_mut() {
            let before = *view;
            view.hold(at, view.columns / 2);
            if *view == before {
                view.zoom(3, at);
                self.hold_selected(None);
            }
        }
    }
}
