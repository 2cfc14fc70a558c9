//! The mouse: the wheel zooms, dragging moves, a click selects.

use super::{Focus, Pane, Row, State};
use crate::query::Target;
use crate::traces::OpRef;
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

fn inside(area: Rect, event: &MouseEvent) -> bool {
    area.contains(Position { x: event.column, y: event.row })
}

impl State {
    /// Something that the mouse did.
    pub fn mouse(&mut self, event: MouseEvent) {
        if !self.mouse || self.help.is_some() || self.input.is_some() {
            return;
        }
        self.message = None;
        let shift = event.modifiers.contains(KeyModifiers::SHIFT);
        let areas = self.areas();
        match event.kind {
            MouseEventKind::ScrollUp | MouseEventKind::ScrollDown if inside(areas.pane, &event) => {
                self.move_in_pane(if event.kind == MouseEventKind::ScrollUp { -3 } else { 3 });
            }
            MouseEventKind::ScrollUp if shift => self.pan(-8),
            MouseEventKind::ScrollDown if shift => self.pan(8),
            MouseEventKind::ScrollLeft => self.pan(-8),
            MouseEventKind::ScrollRight => self.pan(8),
            MouseEventKind::ScrollUp => self.wheel(1, &event),
            MouseEventKind::ScrollDown => self.wheel(-1, &event),
            MouseEventKind::Down(MouseButton::Left) => {
                self.drag_pane = false;
                self.drag = Some((event.column, event.row, false));
            }
            MouseEventKind::Drag(MouseButton::Left) => {
                if let Some((x, y, _)) = self.drag
                    && (self.drag_pane || (y == areas.pane.y && areas.pane.height > 0))
                {
                    self.drag_pane = true;
                    self.drag = Some((x, y, true));
                    self.resize_pane(i32::from(areas.pane.y) - i32::from(event.row));
                } else if let Some((x, y, moved)) = self.drag {
                    let by = i64::from(x) - i64::from(event.column);
                    if by != 0 && (inside(areas.rows, &event) || moved) {
                        self.pan(by);
                        self.drag = Some((event.column, y, true));
                    }
                }
            }
            MouseEventKind::Up(MouseButton::Left) => {
                self.drag_pane = false;
                if let Some((_, _, false)) = self.drag.take() {
                    self.click(&event);
                }
            }
            _ => {}
        }
        self.notice_departure();
        self.ask_for_screen();
    }

    fn wheel(&mut self, steps: i8, event: &MouseEvent) {
        let label = self.areas().label;
        if let Some(view) = self.view_mut() {
            let column = u32::from(event.column.saturating_sub(label));
            let at = view.grid().position(column);
            let at = at.clamp(view.span.start, view.span.end.saturating_sub(1));
            view.zoom(steps, at);
        }
    }

    fn click(&mut self, event: &MouseEvent) {
        let areas = self.areas();
        let column = event.column.checked_sub(areas.label).map(u32::from);
        if inside(areas.rows, event) {
            self.focus = Focus::Timeline;
            let Some(Row::Lane(lane)) = self.row_at(event.row - areas.rows.y) else { return };
            if let Some(place) = self.rows.iter().position(|&row| row == Row::Lane(lane)) {
                self.cursor = place;
            }
            let Some(lane) = self.open.as_ref().map(|open| open.lane_ref(lane)) else { return };
            match (column, self.view()) {
                (Some(column), Some(view)) => {
                    let (axis, grid) = (view.axis, view.grid());
                    let cells =
                        self.strips.cells.get(&lane).filter(|_| self.strips.grid == Some(grid));
                    let cell = cells.and_then(|cells| cells.iter().find(|c| c.column == column));
                    let target = match cell {
                        Some(cell) => Target::Op(OpRef { trace: lane.trace, g: cell.first }),
                        None => {
                            let at =
                                self.position_in_trace(lane.trace, axis, grid.position(column));
                            Target::Nearest { lane, axis, at }
                        }
                    };
                    self.select(target);
                }
                _ => self.select_near(),
            }
        } else if inside(areas.minimap, event)
            && let Some(column) = column
            && let Some(view) = self.view_mut()
        {
            let offset = u128::from(view.span.len()) * u128::from(column);
            let at = view.span.start + (offset / u128::from(view.columns)) as u64;
            view.hold(at.min(view.span.end.saturating_sub(1)), view.columns / 2);
        } else if inside(areas.pane, event) {
            self.focus = Focus::Pane;
            self.click_pane(event, areas.pane);
        }
    }

    fn click_pane(&mut self, event: &MouseEvent, area: Rect) {
        if event.row == area.y {
            let tab = crate::view::tab_at(self, event.column);
            if let Some(pane) = tab {
                self.show_pane(pane);
            }
            return;
        }
        let line = usize::from(event.row - area.y - 1);
        if self.pane == Pane::Races
            && let Some(place) = crate::view::race_at(self, line)
        {
            self.list.cursor = place;
            self.go_to_finding(self.list.shown[place]);
        }
    }
}
