//! The pane below the timelines: its contents, and its keys while it has the focus.

use super::{Focus, Input, InputKind, State};
use crate::keys::Command;
use crate::query::{Request, Target};
use crate::traces::OpRef;
use streamsan_model::{AllocationId, History, Holder, Lifetime};

/// The contents of the pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    /// Everything about the selected operation.
    #[default]
    Details,
    /// All findings.
    Races,
    /// Allocations, and the uses of one.
    Memory,
    /// Calls, streams, coverage.
    Statistics,
    /// Why a finding is one.
    Explanation,
    /// Bytes of memory over time.
    Bytes,
    /// The program's output, while the program runs.
    Output,
}

impl Pane {
    /// All panes, in the order of their keys.
    pub const ALL: [Self; 7] = [
        Self::Details,
        Self::Races,
        Self::Memory,
        Self::Statistics,
        Self::Explanation,
        Self::Bytes,
        Self::Output,
    ];

    /// The word of its tab.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Details => "details",
            Self::Races => "races",
            Self::Memory => "memory",
            Self::Statistics => "statistics",
            Self::Explanation => "explanation",
            Self::Bytes => "bytes",
            Self::Output => "output",
        }
    }
}

impl Pane {
    /// The same where there is little room.
    pub const fn short_description(self) -> &'static str {
        match self {
            Self::Statistics => "stats",
            Self::Explanation => "why",
            other => other.description(),
        }
    }
}

/// The memory pane.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The largest allocations; `None` until they are read.
    pub allocations: Option<Vec<Lifetime>>,
    /// The trace that they are of.
    pub trace: usize,
    /// The selected one.
    pub cursor: usize,
    /// The history of an allocation, once it was asked for.
    pub history: Option<Box<History>>,
    /// The trace that it is of.
    pub history_of: usize,
    /// The selected use of it.
    pub use_cursor: usize,
}

impl Memory {
    /// A newer list; the selected allocation stays so.
    pub(super) fn take(&mut self, trace: usize, allocations: Vec<Lifetime>) {
        let list = self.allocations.as_ref().filter(|_| self.trace == trace);
        let selected = list.and_then(|list| list.get(self.cursor));
        self.trace = trace;
        let id = selected.map(|life| life.allocation.id);
        let place = id.and_then(|id| allocations.iter().position(|life| life.allocation.id == id));
        self.cursor = place.unwrap_or(0);
        self.allocations = Some(allocations);
    }
}

impl State {
    /// Lines of the pane's content on the screen.
    pub fn pane_height(&self) -> usize {
        usize::from(self.areas().pane.height).saturating_sub(1)
    }

    /// The panes that there are: output is there while a program is viewed that runs.
    pub fn panes(&self) -> &'static [Pane] {
        let all = &Pane::ALL;
        if self.live.is_some() { all } else { &all[..all.len() - 1] }
    }

    pub(super) fn show_pane(&mut self, pane: Pane) {
        if !self.panes().contains(&pane) {
            return self.tell("the output of a program is shown while it is viewed as it runs");
        }
        if self.pane != pane {
            self.pane = pane;
            self.pane_wants = 0;
            // The newest output is at its end.
            self.pane_scroll = if pane == Pane::Output { usize::MAX } else { 0 };
        }
    }

    /// Makes the pane some lines taller (shorter, below 0), as far as the screen allows.
    pub(super) fn resize_pane(&mut self, by: i32) {
        let height = self.areas().pane.height;
        let wanted = i32::from(height).saturating_add(by).max(2);
        self.pane_chosen = Some(u16::try_from(wanted).unwrap_or(u16::MAX));
        let reached = self.areas().pane.height;
        // What the screen does not allow is not kept for later keys.
        self.pane_chosen = Some(reached);
        self.scroll_to_cursor();
        if reached == height {
            self.tell(if by > 0 {
                "the pane has all lines that the rows leave"
            } else {
                "the pane has its fewest lines"
            });
        }
    }

    /// The pane some places further.
    pub(super) fn step_pane(&mut self, by: i64) {
        let panes = self.panes();
        let here = panes.iter().position(|&pane| pane == self.pane).unwrap_or(0) as i64;
        let next = (here + by).rem_euclid(panes.len() as i64);
        self.show_pane(panes[usize::try_from(next).unwrap_or(0)]);
    }

    /// Whether the pane takes the command. It takes what moves and opens; the rest goes to the
    /// timelines.
    pub(super) fn apply_to_pane(&mut self, command: Command) -> bool {
        use Command as C;
        let page = self.pane_height().max(2) as i64;
        match command {
            C::RowUp => self.move_in_pane(-1),
            C::RowDown => self.move_in_pane(1),
            C::HalfPageUp => self.move_in_pane(-page / 2),
            C::HalfPageDown => self.move_in_pane(page / 2),
            C::FirstRow => self.move_in_pane(i64::MIN),
            C::LastRow => self.move_in_pane(i64::MAX),
            C::Enter => self.open_in_pane(),
            C::Filter if self.pane == Pane::Races => {
                self.input = Some(Input::with(InputKind::Races, &self.list.words));
            }
            C::Back if self.pane == Pane::Memory && self.memory.history.is_some() => {
                self.memory.history = None;
                self.pane_scroll = 0;
            }
            _ => return false,
        }
        true
    }

    /// Number of lines in the pane, as far as it is known without drawing, and the selected line.
    fn pane_list(&mut self) -> Option<(usize, &mut usize)> {
        match self.pane {
            Pane::Races => Some((self.list.shown.len(), &mut self.list.cursor)),
            Pane::Bytes => {
                let known = self.footprint.known.as_ref();
                let count = known.map_or(0, |(_, footprint)| footprint.series.len());
                Some((count, &mut self.footprint.cursor))
            }
            Pane::Memory => match &self.memory.history {
                Some(history) => Some((history.uses.len(), &mut self.memory.use_cursor)),
                None => {
                    let count = self.memory.allocations.as_ref().map_or(0, Vec::len);
                    Some((count, &mut self.memory.cursor))
                }
            },
            _ => None,
        }
    }

    pub(super) fn move_in_pane(&mut self, by: i64) {
        let add = |at: usize, last: usize| -> usize {
            let by_size = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
            if by < 0 { at.saturating_sub(by_size) } else { at.saturating_add(by_size).min(last) }
        };
        if let Some((count, cursor)) = self.pane_list() {
            *cursor = add(*cursor, count.saturating_sub(1));
            return;
        }
        let lines = crate::view::pane_lines(self);
        let last = lines.saturating_sub(self.pane_height());
        self.pane_scroll = add(self.pane_scroll.min(last), last);
        if self.pane == Pane::Output && self.pane_scroll == last {
            self.pane_scroll = usize::MAX;
        }
    }

    fn open_in_pane(&mut self) {
        match self.pane {
            Pane::Races => {
                if let Some(&place) = self.list.shown.get(self.list.cursor) {
                    self.go_to_finding(place);
                }
            }
            Pane::Memory => match &self.memory.history {
                Some(history) => {
                    if let Some(used) = history.uses.get(self.memory.use_cursor) {
                        let op = OpRef { trace: self.memory.history_of, g: used.op };
                        self.select(Target::Op(op));
                    }
                }
                None => {
                    let list = self.memory.allocations.as_ref();
                    if let Some(life) = list.and_then(|list| list.get(self.memory.cursor)) {
                        let id = life.allocation.id;
                        self.ask_history(self.memory.trace, id);
                    }
                }
            },
            // The memory that the operation touches, or the race is about.
            Pane::Details | Pane::Explanation => {
                let of_race = self.found().map(|(trace, finding)| (trace, finding.allocation));
                let of_op = self
                    .selection
                    .as_ref()
                    .and_then(|detail| detail.allocations.first())
                    .map(|allocation| (self.selected_trace, allocation.id));
                match of_race.filter(|_| self.pane == Pane::Explanation).or(of_op) {
                    Some((trace, id)) => {
                        self.show_pane(Pane::Memory);
                        self.ask_history(trace, id);
                    }
                    None => self.tell("the operation touches no memory"),
                }
            }
            Pane::Bytes => match self.selected_holder() {
                Some(Holder::Allocation(allocation)) => {
                    let id = allocation.id;
                    self.show_pane(Pane::Memory);
                    self.ask_history(self.footprint.trace, id);
                }
                _ => {
                    self.tell("S divides the bytes by allocation; Enter then shows the uses of one")
                }
            },
            Pane::Statistics | Pane::Output => self.focus = Focus::Pane,
        }
    }

    fn selected_holder(&self) -> Option<&Holder> {
        let (_, footprint) = self.footprint.known.as_ref()?;
        Some(&footprint.series.get(self.footprint.cursor)?.holder)
    }

    fn ask_history(&mut self, trace: usize, id: AllocationId) {
        self.tell("reading the uses of the allocation …");
        self.ask(Request::History(trace, id));
    }

    pub(super) fn sort_findings(&mut self) {
        self.list.sort = self.list.sort.next();
        self.update_list();
        self.tell(format!("sorted by {}", self.list.sort.description()));
    }

    pub(super) fn update_list(&mut self) {
        if let Some(open) = &self.open {
            self.list.update(open, &self.labels, self.is_known_upstream);
        }
        self.find_accepted_places();
    }
}
