//! Keys and commands.

use super::{
    Area, Effect, Focus, Input, InputKind, Pane, Pending, Point, SourceLine, State, Viewport,
};
use crate::keys::{Command, command_for, is_prefix};
use crate::query::{Request, Slot, Target};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use streamsan_model::{CallFrame, CallStack};

/// Lines by which a key changes the pane.
const RESIZE: i32 = 2;

impl State {
    /// A key press.
    pub fn key(&mut self, event: KeyEvent) {
        self.message = None;
        self.edit_selected = false;
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        if control && event.code == KeyCode::Char('c') {
            self.interrupt();
        } else if self.input.is_some() {
            self.type_key(event);
        } else if let Some(pending) = self.pending.take() {
            self.second_key(pending, event);
        } else if let KeyCode::Char(c) = event.code
            && !control
            && is_prefix(c)
        {
            self.pending = Some(Pending::Prefix(c));
        } else if let Some(command) = command_for(event, None) {
            self.apply(command);
        }
        self.notice_departure();
        self.ask_for_screen();
    }

    /// Ctrl-C: meant for the program as long as one runs here, as in any terminal.
    fn interrupt(&mut self) {
        if self.is_running() {
            self.effects.push(Effect::Interrupt);
            self.tell("the program is interrupted (Ctrl-C); q leaves the viewer");
        } else {
            self.quit = true;
        }
    }

    fn second_key(&mut self, pending: Pending, event: KeyEvent) {
        let letter = match event.code {
            KeyCode::Char(c) if c.is_ascii_alphanumeric() => Some(c),
            _ => None,
        };
        match (pending, letter) {
            (Pending::Prefix(prefix), _) => {
                if let Some(command) = command_for(event, Some(prefix)) {
                    self.apply(command);
                }
            }
            (Pending::SetMark, Some(letter)) => match self.selected_point() {
                Some(point) => {
                    self.marks.insert(letter, point);
                    self.tell(format!("mark {letter} at #{}", point.op));
                }
                None => self.tell("nothing is selected"),
            },
            (Pending::JumpMark, Some(letter)) => match self.marks.get(&letter) {
                Some(point) => self.select(Target::Op(point.op_ref())),
                None => self.tell(format!("no mark {letter}")),
            },
            (Pending::SetMark | Pending::JumpMark, None) => {}
        }
    }

    /// Carries out a command.
    pub fn apply(&mut self, command: Command) {
        use Command as C;
        if self.help.is_some() && self.apply_to_help(command) {
            return;
        }
        if self.focus == Focus::Pane && self.apply_to_pane(command) {
            return;
        }
        let quarter = self.view().map_or(0, |view| i64::from(view.columns / 4).max(1));
        let half = (self.scroll_height() / 2).max(1) as i64;
        match command {
            C::ZoomIn => self.zoom(1),
            C::ZoomOut => self.zoom(-1),
            C::PanLeft => self.pan(-quarter),
            C::PanRight => self.pan(quarter),
            C::PageLeft => self.pan(-quarter * 4),
            C::PageRight => self.pan(quarter * 4),
            C::ShowAll => {
                if let Some(view) = self.view_mut() {
                    *view = super::Viewport::whole(view.axis, view.span, view.columns);
                }
            }
            C::Centre => self.centre(),
            C::SwitchAxis => self.switch_axis(),
            C::Follow => self.toggle_follow(),
            C::ShiftLeft => self.shift_by_columns(-1),
            C::ShiftRight => self.shift_by_columns(1),
            C::Align => self.align(),
            C::NextTrace | C::PreviousTrace if self.side.is_some() => self.leave_side(),
            C::NextTrace => self.step_trace(1),
            C::PreviousTrace => self.step_trace(-1),
            C::PreviousOperation => self.step(-1),
            C::NextOperation => self.step(1),
            C::FirstOperation => self.row_end(false),
            C::LastOperation => self.row_end(true),
            C::RowUp => self.move_rows(-1),
            C::RowDown => self.move_rows(1),
            C::HalfPageUp => self.move_rows(-half),
            C::HalfPageDown => self.move_rows(half),
            C::FirstRow => self.move_rows(i64::MIN),
            C::LastRow => self.move_rows(i64::MAX),
            C::Search => self.input = Some(Input::new(InputKind::Search)),
            C::SearchNext => self.search_next(true),
            C::SearchPrevious => self.search_next(false),
            C::SearchSame => self.search_same(),
            C::SetMark => self.pending = Some(Pending::SetMark),
            C::JumpMark => self.pending = Some(Pending::JumpMark),
            C::Area => self.toggle_area(),
            C::NextFinding => self.next_finding(true),
            C::PreviousFinding => self.next_finding(false),
            C::NextOccurrence => self.next_occurrence(true),
            C::PreviousOccurrence => self.next_occurrence(false),
            C::OtherSide => self.other_side(),
            C::EdgeBack => self.follow_edge(true),
            C::EdgeForward => self.follow_edge(false),
            C::Pin => self.toggle_pin(),
            C::Filter => self.input = Some(Input::with(InputKind::Rows, &self.filter.parts)),
            C::ToggleIdle => {
                self.filter.idle = !self.filter.idle;
                self.update_rows();
            }
            C::PaneDetails => self.show_pane(Pane::Details),
            C::PaneRaces => self.show_pane(Pane::Races),
            C::PaneMemory => self.show_pane(Pane::Memory),
            C::PaneStatistics => self.show_pane(Pane::Statistics),
            C::PaneExplanation => self.show_pane(Pane::Explanation),
            C::PaneBytes => self.show_pane(Pane::Bytes),
            C::PaneOutput => self.show_pane(Pane::Output),
            C::NextPane => self.step_pane(1),
            C::PreviousPane => self.step_pane(-1),
            C::Enter => self.focus = Focus::Pane,
            C::Expand => {
                self.expanded = !self.expanded;
                self.focus = if self.expanded { Focus::Pane } else { Focus::Timeline };
                self.resize(self.size.0, self.size.1);
            }
            C::Grow => self.resize_pane(RESIZE),
            C::Shrink => self.resize_pane(-RESIZE),
            C::Fit => {
                (self.pane_chosen, self.pane_wants) = (None, 0);
                self.tell("the pane takes the lines that its content needs");
            }
            C::Sort if self.pane == Pane::Bytes => self.footprint.turn(),
            C::Sort => {
                self.show_pane(Pane::Races);
                self.sort_findings();
            }
            C::Palette => self.input = Some(Input::new(InputKind::Palette)),
            C::Copy => self.effects.push(Effect::Copy),
            // The operation that is being selected is the one that is meant.
            C::Edit if self.is_waiting(Slot::Select) => self.edit_selected = true,
            C::Edit => self.edit(),
            C::ToggleMouse => {
                self.mouse = !self.mouse;
                self.effects.push(Effect::Mouse(self.mouse));
                self.tell(if self.mouse {
                    "the mouse is on"
                } else {
                    "the mouse is off: the terminal selects text"
                });
            }
            C::Help => self.help = Some(0),
            C::Back => self.back(),
            C::Quit => self.quit = true,
        }
    }

    /// Whether the help takes the command.
    fn apply_to_help(&mut self, command: Command) -> bool {
        use Command as C;
        let Some(line) = self.help else { return false };
        let page = usize::from(self.size.1).saturating_sub(3).max(1);
        self.help = match command {
            C::Quit => return false,
            C::RowDown => Some(line + 1),
            C::RowUp => Some(line.saturating_sub(1)),
            C::HalfPageDown => Some(line + page / 2),
            C::HalfPageUp => Some(line.saturating_sub(page / 2)),
            C::FirstRow => Some(0),
            C::LastRow => Some(usize::MAX / 2),
            C::Help | C::Back => None,
            _ => Some(line),
        };
        let last = crate::view::help_lines().saturating_sub(page);
        self.help = self.help.map(|line| line.min(last));
        true
    }

    pub(super) fn zoom(&mut self, steps: i8) {
        let at = self.focus_position();
        let column = at.and_then(|at| self.view()?.grid().column(at));
        if let Some(view) = self.view_mut() {
            view.zoom(steps, at.unwrap_or_else(|| view.middle()));
        }
        if column.is_some() && self.labels.len() > 1 {
            self.hold_selected(column);
        }
        if self.live.as_ref().is_some_and(|live| live.follow) {
            self.view_mut().map(Viewport::to_end);
        }
    }

    pub(super) fn pan(&mut self, columns: i64) {
        if let Some(view) = self.view_mut() {
            view.pan(columns);
        }
    }

    fn search_same(&mut self) {
        let Some(detail) = &self.selection else { return };
        let Some(open) = &self.open else { return };
        let name = match detail.operation.action {
            streamsan_model::Action::Launch { kernel, .. } => {
                let entities = &open.of(self.selected_trace).overview.entities;
                entities.kernel(kernel).map(|kernel| kernel.name.clone())
            }
            _ => None,
        };
        self.search = Some(name.unwrap_or_else(|| detail.operation.api.to_string()));
        self.search_next(true);
    }

    /// Opens the editor at the line that made the selected call.
    pub(super) fn edit(&mut self) {
        match self.source_line() {
            Some(line) => self.effects.push(Effect::Edit(line)),
            None if self.selection.is_none() => self.tell("nothing is selected"),
            None => self.tell("the trace knows no line of the source for the call"),
        }
    }

    /// The innermost line of the program that made the selected call; of a library, where the program
    /// has none.
    pub fn source_line(&self) -> Option<SourceLine> {
        let detail = self.selection.as_ref()?;
        let stack = CallStack::of_frames(detail.stack.iter().map(|frame| &**frame), false);
        let line = |frame: &CallFrame<'_>| {
            Some(SourceLine { file: frame.file()?.to_owned(), line: frame.line()? })
        };
        stack.own().find_map(line).or_else(|| stack.frames.iter().find_map(line))
    }

    fn toggle_area(&mut self) {
        let Some(here) = self.selected_point() else { return self.tell("nothing is selected") };
        self.area = match self.area {
            Some(area @ Area { to: None, .. }) => Some(Area { to: Some(here), ..area }),
            _ => Some(Area { from: here, to: None }),
        };
    }

    /// Both ends of the area, the left one first.
    pub fn area_ends(&self) -> Option<(Point, Point)> {
        let area = self.area?;
        let to = area.to.or_else(|| self.selected_point())?;
        let axis = self.axis?;
        let at = |point: &Point| self.position_on(axis, &point.spot());
        let ordered = at(&area.from) <= at(&to);
        Some(if ordered { (area.from, to) } else { (to, area.from) })
    }

    fn toggle_pin(&mut self) {
        let Some(lane) = self.selected_lane() else { return };
        match self.filter.pinned.iter().position(|&pinned| pinned == lane) {
            Some(place) => drop(self.filter.pinned.remove(place)),
            None => self.filter.pinned.push(lane),
        }
        self.scroll_to_cursor();
    }

    fn back(&mut self) {
        if self.focus == Focus::Pane {
            self.focus = Focus::Timeline;
            if self.expanded {
                self.expanded = false;
                self.resize(self.size.0, self.size.1);
            }
        } else if self.area.is_some() {
            self.area = None;
        } else if !self.guests.is_empty() || self.finding.is_some() {
            self.guests.clear();
            self.finding = None;
            self.scroll_to_cursor();
        } else if !self.filter.is_empty() {
            self.clear_filter();
        } else {
            self.tell("q quits");
        }
    }

    /// Asks for the words about the finding, the list of allocations, bytes or the calls, if the pane
    /// shows them and they are not there.
    pub(super) fn ask_for_pane(&mut self) {
        let trace = self.trace_in_focus();
        match self.pane {
            Pane::Explanation => {
                let here = self.explanation.as_ref().map(|(place, _)| *place);
                if let Some((trace, finding)) = self.found()
                    && here != self.finding
                    && self.wanted_explanation != self.finding
                {
                    let request = Request::Explain(trace, Box::new(finding.clone()));
                    self.wanted_explanation = self.finding;
                    self.ask(request);
                }
            }
            // Asked once: where it failed, asking again would fail again.
            Pane::Memory if self.open.is_some() && self.wanted_allocations != Some(trace) => {
                self.wanted_allocations = Some(trace);
                self.ask(Request::Allocations(trace));
            }
            Pane::Bytes if self.open.is_some() => {
                let wanted = (trace, self.footprint.by, self.areas().columns());
                if self.footprint.wanted != Some(wanted) {
                    self.footprint.wanted = Some(wanted);
                    self.ask(Request::Footprint(wanted.0, wanted.1, wanted.2));
                }
            }
            Pane::Statistics if self.open.is_some() && self.wanted_calls != Some(trace) => {
                self.wanted_calls = Some(trace);
                self.ask(Request::Calls(trace));
            }
            _ => {}
        }
    }
}
