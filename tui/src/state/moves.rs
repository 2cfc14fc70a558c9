//! Rows, selection, findings and edges.

use super::{Row, State, depths_of_ranges};
use crate::query::{Request, Target};
use streamsan_model::{LaneId, OpSeq, Verdict};

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
            // A headline belongs to its rows, and ranges belong to the row below them.
            let above = self.rows[..self.cursor].iter().rev();
            let ranges = above.take_while(|row| matches!(row, Row::Ranges(..))).count();
            let top = self.cursor - ranges;
            let headline = top > 0 && self.rows[top - 1].lane().is_none();
            self.scroll = self.cursor - (ranges + usize::from(headline)).min(height - 1);
        }
        if self.cursor >= self.scroll + height {
            self.scroll = self.cursor + 1 - height;
        }
        self.scroll = self.scroll.min(self.rows.len().saturating_sub(height));
    }

    /// Goes to the row of a lane: where it is hidden, it becomes a guest.
    pub(super) fn show_lane(&mut self, id: LaneId) {
        let Some(lane) = self.lane_index(id) else { return };
        if let Some(place) = self.rows.iter().position(|&row| row == Row::Lane(lane)) {
            self.cursor = place;
            self.scroll_to_cursor();
        } else if !self.guests.contains(&lane) {
            self.guests.push(lane);
        }
    }

    pub(super) fn lane_index(&self, id: LaneId) -> Option<usize> {
        self.open.as_ref()?.overview.lanes.binary_search_by_key(&id, |lane| lane.id).ok()
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
        let (Some(lane), Some(view)) = (self.selected_lane_id(), self.view()) else { return };
        let at = self.focus_position().unwrap_or_else(|| view.middle());
        let axis = view.axis;
        self.select(Target::Nearest { lane, axis, at });
    }

    /// The position of the selected operation, if it is on the screen.
    pub(super) fn focus_position(&self) -> Option<u64> {
        let view = self.view()?;
        let at = self.selection.as_ref()?.place.on(view.axis)?;
        view.grid().column(at).map(|_| at)
    }

    pub(super) fn select(&mut self, target: Target) {
        self.steps = None;
        self.ask(Request::Select(target));
    }

    /// Steps along the row; steps that are unanswered add up.
    pub(super) fn step(&mut self, by: i64) {
        let Some(lane) = self.selected_lane_id() else { return };
        let selected = self.selection.as_ref().filter(|s| s.place.lane == lane);
        let Some(from) = selected.map(|s| s.operation.g) else { return self.select_near() };
        let waiting = self.is_waiting(crate::query::Slot::Select);
        let steps = match self.steps {
            Some((row, begin, steps)) if waiting && row == lane && begin == from => steps + by,
            _ => by,
        };
        if steps == 0 {
            return self.select(Target::Op(from));
        }
        self.ask(Request::Select(Target::Steps { lane, from, steps }));
        self.steps = Some((lane, from, steps));
    }

    /// The first or last operation of the row.
    pub(super) fn row_end(&mut self, last: bool) {
        let Some(lane) = self.selected_lane_id() else { return };
        let (from, steps) = if last { (OpSeq(u64::MAX), -1) } else { (OpSeq(0), 1) };
        self.select(Target::Steps { lane, from, steps });
    }

    /// The next or previous finding in the order of the list.
    pub(super) fn next_finding(&mut self, forward: bool) {
        let count = self.list.shown.len();
        if count == 0 {
            return self.tell(match &self.open {
                None => "the trace is being opened",
                Some(_) if self.has_no_cuda() => Verdict::NO_CUDA_MEANS,
                Some(open) if open.findings.is_empty() => "no races",
                Some(_) => "no race matches the filter",
            });
        }
        let here = self.finding.and_then(|f| self.list.shown.iter().position(|&place| place == f));
        let next = match (here, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(here), true) => (here + 1) % count,
            (Some(here), false) => (here + count - 1) % count,
        };
        self.list.cursor = next;
        self.go_to_finding(self.list.shown[next]);
    }

    /// Goes to a finding: frames both accesses, shows both rows, selects the later one.
    pub(super) fn go_to_finding(&mut self, place: usize) {
        let Some(finding) = self.open.as_ref().and_then(|open| open.findings.get(place)) else {
            return;
        };
        let (first, second) = (finding.first.op, finding.second.op);
        self.finding = Some(place);
        self.guests.clear();
        let ends = (self.place_of(first), self.place_of(second));
        if let (Some(a), Some(b)) = ends {
            self.show_lane(b.lane);
            self.keep_sides();
            if let Some(view) = self.view_mut()
                && let (Some(a), Some(b)) = (a.on(view.axis), b.on(view.axis))
            {
                view.frame(a.min(b), a.max(b));
            }
        }
        self.select(Target::Op(second));
    }

    /// Keeps the rows of both sides of the race on the screen.
    pub(super) fn keep_sides(&mut self) {
        let Some(finding) = self.current_finding().filter(|_| !self.expanded) else { return };
        for g in [finding.second.op, finding.first.op] {
            let lane = self.place_of(g).and_then(|place| self.lane_index(place.lane));
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
        let Some(finding) = self.current_finding() else { return self.tell("no race is selected") };
        let selected = self.selection.as_ref().map(|s| s.operation.g);
        let target =
            if selected == Some(finding.second.op) { finding.first.op } else { finding.second.op };
        self.select(Target::Op(target));
    }

    /// Follows the nearest edge.
    pub(super) fn follow_edge(&mut self, back: bool) {
        let Some(detail) = &self.selection else { return };
        let edge = if back { detail.incoming.first() } else { detail.outgoing.first() };
        match edge.map(|(edge, _)| if back { edge.from } else { edge.to }) {
            Some(g) => self.select(Target::Op(g)),
            None if back => self.tell("no edge ends here"),
            None => self.tell("no edge begins here"),
        }
    }

    pub(super) fn search_next(&mut self, forward: bool) {
        let Some(text) = self.search.clone() else {
            if !self.next_hit(forward) {
                self.tell("nothing was searched for");
            }
            return;
        };
        let from = self.selection.as_ref().map_or(OpSeq(0), |s| s.operation.g);
        self.select(Target::Match { text, from, forward });
    }

    /// Switches to the next axis that the trace has, keeping the selected operation in its column. An
    /// axis that shows all is zoomed in as far as the one before, or to the race that was on the
    /// screen.
    pub(super) fn switch_axis(&mut self) {
        let Some(open) = &self.open else { return };
        let axes = &open.overview.axes;
        let Some(here) = axes.iter().position(|&(axis, _)| Some(axis) == self.axis) else { return };
        let Some(before) = self.view().copied() else { return };
        let (axis, _) = axes[(here + 1) % axes.len()];
        let column = self.focus_position().and_then(|at| before.grid().column(at));
        let sides = self.current_finding().map(|finding| [finding.first.op, finding.second.op]);
        let sides = sides.map(|sides| sides.map(|g| self.place_of(g)));
        let race = sides.and_then(|[first, second]| {
            let at = |on| Some([first?.on(on)?, second?.on(on)?]);
            let was_shown = at(before.axis)?.iter().all(|&at| before.grid().column(at).is_some());
            was_shown.then(|| at(axis)).flatten()
        });
        self.axis = Some(axis);
        let at = self.selection.as_ref().and_then(|s| s.place.on(axis));
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
        let Some(at) = self.view().and_then(|view| self.selection.as_ref()?.place.on(view.axis))
        else {
            return;
        };
        if let Some(view) = self.view_mut() {
            let before = *view;
            view.hold(at, view.columns / 2);
            if *view == before {
                view.zoom(3, at);
                view.hold(at, view.columns / 2);
            }
        }
    }
}
