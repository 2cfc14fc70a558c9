//! Two traces beside each other: the one from before, `A`, and the one from after, `B`.
//!
//! Each is a [`State`] of its own, with its own questions. Keys go to the one that has the focus; the
//! other one follows: the axis and what is shown of it, the panes, the filters. A race that is
//! selected selects the race of the same id there, and an operation the call of the same name and
//! number in the same row. The two calls are laid at the same position of an axis that both share, so
//! that both sides scroll in common from there.
//!
//! Invariants: what follows never moves what has the focus; both sides have one window over one axis.
//! Nothing is concluded from two calls having one name and number.

use crate::query::{Answer, Numbered, Request, Target};
use crate::state::{Changes, Frame, Label, Point, Side, State};
use crate::traces::{LaneRef, OpRef, Spot};
use crate::{Theme, render};
use crossterm::event::{KeyEvent, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::sync::Arc;
use streamsan_model::{Axis, LaneId, Span};

/// The narrowest screen on which the sides stand beside each other; on narrower ones they stand above
/// each other.
const BESIDE: u16 = 100;
/// The fewest lines of the side without the focus.
const FEWEST: u16 = 7;
/// Lines that are enough for both sides alike.
const ENOUGH: u16 = 32;

/// Two traces beside each other.
#[derive(Debug)]
pub struct Pair {
    /// `A` and `B`.
    pub sides: [State; 2],
    /// The side that keys go to.
    pub focus: usize,
    size: (u16, u16),
    /// Whether both traces have their places on the shared axes.
    is_framed: bool,
    /// The race and the operation that the other side has followed.
    followed: (Option<usize>, Option<OpRef>),
    /// The operation of the side with the focus under which the one that the other side is about to
    /// select is laid.
    waiting: Option<Point>,
}

impl Pair {
    /// Two traces, and what became of their findings.
    pub fn new(labels: [Label; 2], changes: Changes, size: (u16, u16)) -> Self {
        let changes = Arc::new(changes);
        let [before, after] = labels.map(|label| State::of_traces(vec![label], size));
        let mut pair = Self {
            sides: [before, after],
            // What is new is what one looks for.
            focus: 1,
            size,
            is_framed: false,
            followed: (None, None),
            waiting: None,
        };
        for (side, name) in pair.sides.iter_mut().zip(['A', 'B']) {
            side.side = Some(Side::new(name, changes.clone()));
        }
        pair.set_focus(1);
        pair
    }

    /// The side that keys go to.
    pub fn front(&self) -> &State {
        &self.sides[self.focus]
    }

    pub(crate) fn front_mut(&mut self) -> &mut State {
        &mut self.sides[self.focus]
    }

    fn set_focus(&mut self, focus: usize) {
        self.focus = focus;
        for (place, state) in self.sides.iter_mut().enumerate() {
            if let Some(side) = &mut state.side {
                side.has_focus = place == focus;
                side.left = false;
            }
        }
        // What is selected here now has been followed by what is selected there.
        self.followed = (self.front().finding, self.front().selected_op());
        self.waiting = None;
        self.lay_out();
    }

    /// Where the sides stand.
    pub fn areas(&self) -> [Rect; 2] {
        let (width, height) = self.size;
        if width >= BESIDE {
            // Both as wide, with a line between them.
            let half = (width - 1) / 2;
            let left = Rect { x: 0, y: 0, width: half, height };
            return [left, Rect { x: width - half, ..left }];
        }
        let first = match (height >= ENOUGH, self.focus) {
            (true, _) => height / 2,
            (false, 0) => height - FEWEST.min(height / 2),
            (false, _) => FEWEST.min(height / 2),
        };
        let top = Rect { x: 0, y: 0, width, height: first };
        [top, Rect { y: first, height: height - first, ..top }]
    }

    fn lay_out(&mut self) {
        for (area, state) in self.areas().into_iter().zip(&mut self.sides) {
            if state.size != (area.width, area.height) {
                state.resize(area.width, area.height);
            }
        }
    }

    /// Another size of the screen.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
        self.lay_out();
        self.follow();
    }

    /// The questions of a side.
    pub fn take_requests(&mut self, side: usize) -> Vec<Numbered<Request>> {
        self.sides[side].take_requests()
    }

    /// An answer to a side.
    pub fn receive(&mut self, side: usize, answer: Numbered<Answer>) {
        self.sides[side].receive(answer);
        self.follow();
    }

    /// A key press.
    pub fn key(&mut self, event: KeyEvent) {
        self.sides[1 - self.focus].message = None;
        self.front_mut().key(event);
        if self.front().side.as_ref().is_some_and(|side| side.left) {
            self.set_focus(1 - self.focus);
        }
        self.follow();
    }

    /// Something that the mouse did: on the other side, pressing it takes the focus there.
    pub fn mouse(&mut self, event: MouseEvent) {
        let areas = self.areas();
        let inside = |area: &Rect| area.contains((event.column, event.row).into());
        let Some(side) = areas.iter().position(inside) else { return };
        if side != self.focus {
            if !matches!(event.kind, MouseEventKind::Down(_)) || self.front().input.is_some() {
                return;
            }
            self.set_focus(side);
        }
        let area = self.areas()[side];
        // The sides may have been laid out anew.
        let column = event.column.saturating_sub(area.x);
        let row = event.row.saturating_sub(area.y);
        self.front_mut().mouse(MouseEvent { column, row, ..event });
        self.follow();
    }

    /// Whether the user has left.
    pub fn quit(&self) -> bool {
        self.sides.iter().any(|state| state.quit)
    }

    /// Lets the other side follow the one with the focus.
    fn follow(&mut self) {
        if self.sides.iter().any(|state| state.open.is_none()) {
            return self.ask();
        }
        if !self.is_framed {
            self.is_framed = true;
            self.frame([None, None], false);
        }
        self.follow_settings();
        self.follow_race();
        self.follow_operation();
        self.lay_under_each_other();
        // One window over both.
        let (front, back) = self.both();
        for (axis, view) in &mut back.views {
            if let Some(window) = front.views.get(axis) {
                *view = *window;
            }
        }
        self.ask();
    }

    fn ask(&mut self) {
        self.sides.iter_mut().for_each(State::ask_for_screen);
    }

    fn both(&mut self) -> (&mut State, &mut State) {
        let [before, after] = &mut self.sides;
        if self.focus == 0 { (before, after) } else { (after, before) }
    }

    /// Axis, panes and filters.
    fn follow_settings(&mut self) {
        let (front, back) = self.both();
        if back.axis != front.axis && front.axis.is_some_and(|axis| back.axes().contains(&axis)) {
            back.axis = front.axis;
        }
        if back.pane != front.pane {
            back.pane = front.pane;
            (back.pane_scroll, back.pane_wants) = (0, 0);
        }
        back.pane_chosen = front.pane_chosen;
        // Beside each other, the rows of both sides end in one line.
        let wants = front.pane_wants.max(back.pane_wants);
        (front.pane_wants, back.pane_wants) = (wants, wants);
        back.list.sort = front.list.sort;
        back.footprint.by = front.footprint.by;
        if back.expanded != front.expanded {
            back.expanded = front.expanded;
            let (width, height) = back.size;
            back.resize(width, height);
        }
        if back.filter.parts != front.filter.parts {
            let text = front.filter.parts.join(", ");
            back.filter_as(&text);
        }
        if back.filter.idle != front.filter.idle {
            back.filter.idle = front.filter.idle;
            back.show_rows_anew();
        }
    }

    /// A race that was gone to.
    fn follow_race(&mut self) {
        let finding = self.front().finding;
        if self.followed.0 == finding {
            return;
        }
        self.followed.0 = finding;
        let partner = self.partner();
        let (front, back) = self.both();
        match (finding, partner) {
            (None, _) => back.leave_race(),
            (Some(_), Some(partner)) => {
                back.go_to_finding(partner);
                // Both sides are told where they are once; the operation is followed with them.
                let ends = [front, back].map(|state| {
                    let [_, second] = state.sides()?;
                    Some((second, state.place_of(second)?))
                });
                self.waiting = None;
                if let [Some((op, front)), Some((_, back))] = ends {
                    self.followed.1 = Some(op);
                    let spots = if self.focus == 0 { [front, back] } else { [back, front] };
                    self.frame(spots.map(Some), true);
                }
            }
            (Some(_), None) => {
                back.leave_race();
                let change = front.current_finding().and_then(|finding| front.change_of(finding));
                let here = front.side.as_ref().map_or('A', |side| side.name);
                back.tell(match change {
                    Some(change) => {
                        format!("{} in {here}: no such race here", change.description())
                    }
                    None => "no such race here".to_owned(),
                });
            }
        }
    }

    /// The finding of the other side with the same id: the same occurrence, or the last one.
    fn partner(&self) -> Option<usize> {
        let (front, back) = (self.front(), &self.sides[1 - self.focus]);
        let (here, wanted) = (front.finding?, front.current_finding()?);
        let same = |state: &State| -> Vec<usize> {
            let findings = state.open.iter().flat_map(|open| open.findings()).enumerate();
            let is_it = |(_, (_, finding)): &(usize, (usize, &streamsan_model::Finding))| {
                (finding.fingerprint, finding.severity) == (wanted.fingerprint, wanted.severity)
            };
            findings.filter(is_it).map(|(place, _)| place).collect()
        };
        let number = same(front).iter().position(|&place| place == here)?;
        let there = same(back);
        there.get(number).or(there.last()).copied()
    }

    /// An operation that was selected.
    fn follow_operation(&mut self) {
        let front = self.front();
        let Some(point) = front.selected_point() else { return };
        let op = point.op_ref();
        if self.followed.1 == Some(op) {
            return;
        }
        // A side of the race leads to that of the other race.
        let sides = front.sides().zip(self.sides[1 - self.focus].sides());
        if let Some(place) = sides.and_then(|(sides, _)| sides.iter().position(|&side| side == op))
        {
            let there = sides.map(|(_, there)| there[place]);
            self.followed.1 = Some(op);
            self.waiting = Some(point);
            if let Some(there) = there {
                self.both().1.select(Target::Op(there));
            }
            return;
        }
        let Some((of, number)) = front.side.as_ref().and_then(|side| side.call.clone()) else {
            return;
        };
        if of != op {
            return;
        }
        self.followed.1 = Some(op);
        let lane = self.lane_there(point.spot().lane());
        let (_, back) = self.both();
        let (Some(call), Some(lane)) = (number, lane) else {
            return back.tell("no such row here");
        };
        back.select(Target::Call { lane, call });
        self.waiting = Some(point);
    }

    /// The row of the other side that is the same: by its name, else by its number.
    fn lane_there(&self, lane: LaneRef) -> Option<LaneRef> {
        let (front, back) = (self.front(), &self.sides[1 - self.focus]);
        let (here, there) = (front.open.as_ref()?.of(0), back.open.as_ref()?.of(0));
        let name = here.lane(lane.id);
        let is_same_kind =
            |id: LaneId| matches!(id, LaneId::Host(_)) == matches!(lane.id, LaneId::Host(_));
        let lanes = || there.overview.lanes.iter().map(|lane| lane.id);
        let mut named = lanes().filter(|&id| is_same_kind(id) && there.lane(id) == name);
        let id = named.next().or_else(|| lanes().find(|&id| id == lane.id))?;
        Some(LaneRef { trace: 0, id })
    }

    /// Lays what the other side has selected under what it follows.
    fn lay_under_each_other(&mut self) {
        let Some(point) = self.waiting else { return };
        let back = &self.sides[1 - self.focus];
        if back.is_waiting(crate::query::Slot::Select) {
            return;
        }
        self.waiting = None;
        if self.front().selected_op() != Some(point.op_ref()) {
            return;
        }
        let found = back.selected_point().filter(|_| back.was_found);
        if let Some(there) = found {
            let spots = [point.spot(), there.spot()];
            let spots = if self.focus == 0 { spots } else { [spots[1], spots[0]] };
            self.frame(spots.map(Some), true);
        }
    }

    /// Gives both sides an axis on which two operations lie at one position; without them, one on
    /// which both traces begin together.
    fn frame(&mut self, spots: [Option<Spot>; 2], keep: bool) {
        for axis in Axis::ALL {
            let at = spots.map(|spot| spot.and_then(|spot| spot.place.on(axis)));
            let leads = match at {
                [Some(a), Some(b)] => [b.saturating_sub(a), a.saturating_sub(b)],
                _ => [0, 0],
            };
            let end = |(state, lead): (&State, &u64)| {
                let span = state.open.as_ref()?.of(0).overview.axes.iter();
                let span = span.copied().find(|(other, _)| *other == axis)?.1;
                Some(span.end.saturating_add(*lead))
            };
            let Some(end) = self.sides.iter().zip(&leads).filter_map(end).max() else { continue };
            let span = Span { start: 0, end };
            for (state, lead) in self.sides.iter_mut().zip(leads) {
                state.set_frame(axis, Frame { lead, span }, keep);
            }
        }
    }
}

/// Draws both sides.
pub fn render_pair(pair: &Pair, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let rule = theme.pick("│", "|");
    for (state, place) in pair.sides.iter().zip(pair.areas()) {
        let own = Rect { x: 0, y: 0, ..place };
        let mut drawn = Buffer::empty(own);
        render(state, theme, own, &mut drawn);
        for y in 0..place.height {
            for x in 0..place.width {
                if let Some(cell) = buffer.cell_mut((place.x + x, place.y + y)) {
                    *cell = drawn[(x, y)].clone();
                }
            }
        }
    }
    let [left, right] = pair.areas();
    if left.right() < right.x {
        for y in area.y..area.bottom() {
            buffer[(left.right(), y)].set_symbol(rule).set_style(theme.dim());
        }
    }
}
