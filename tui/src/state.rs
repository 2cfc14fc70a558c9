//! The state of the viewer, and its changes by keys, the mouse and answers.
//!
//! Invariant: nothing here waits. A question to the trace goes to an outbox as a [`Request`], and
//! its answer comes through [`State::receive`]. Until then the screen shows the former data.

mod alignment;
mod apply;
mod filter;
mod finding_list;
mod footprint;
mod input;
mod layout;
mod live;
mod mouse;
mod moves;
mod pane;
mod receive;
mod rows;
mod side;
mod viewport;

pub(crate) use alignment::Frame;
pub use alignment::{Alignment, Label};
pub use filter::Found;
pub(crate) use finding_list::side_name;
pub use finding_list::{FindingList, SortBy};
pub use footprint::Bytes;
pub use input::{Input, InputKind};
pub use layout::{Areas, RowOnScreen, Wants};
use layout::{RowKind, depths_of_ranges, heights};
pub use live::LiveRun;
pub use pane::{Memory, Pane};
pub use rows::{Row, RowFilter};
pub use side::{Change, Changes, Side};
pub use viewport::Viewport;

use crate::IsKnownUpstream;
use crate::query::{Numbered, Request, Slot, TraceRows};
use crate::traces::{LaneRef, OpRef, Spot, Traces};
use std::collections::{BTreeMap, HashMap};
use streamsan_model::{
    Axis, CallCount, Cell, Detail, Finding, Grid, LaneId, OpSeq, Place, RangeSpan,
};

/// The part of the screen that keys go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// The timelines.
    #[default]
    Timeline,
    /// The pane.
    Pane,
}

/// A key that waits for a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// The first key of a command of two keys.
    Prefix(char),
    /// The letter of a mark to set.
    SetMark,
    /// The letter of a mark to go to.
    JumpMark,
}

/// A line for the user, until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    /// Whether something failed.
    pub error: bool,
}

/// An operation and where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its trace, a place in the list of traces.
    pub trace: usize,
    /// The operation.
    pub op: OpSeq,
    /// The place of the operation.
    pub place: Place,
}

impl Point {
    /// The operation and its trace.
    pub fn op_ref(&self) -> OpRef {
        OpRef { trace: self.trace, g: self.op }
    }

    /// Where it is drawn.
    pub fn spot(&self) -> Spot {
        Spot { trace: self.trace, place: self.place }
    }
}

/// A part of the trace to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// The begin of the arrow.
    pub from: Point,
    /// The end of the arrow; the selected operation while the arrow is being drawn.
    pub to: Option<Point>,
}

/// The cells of the rows on a grid.
#[derive(Clone, Debug, Default)]
pub struct Strips {
    /// The grid; `None` before the first answer.
    pub grid: Option<Grid>,
    /// Cells by row, each in ascending order of columns.
    pub cells: HashMap<LaneRef, Vec<Cell>>,
    /// Ranges by row, then by depth.
    pub ranges: HashMap<LaneRef, Vec<Vec<RangeSpan>>>,
}

/// A line of the program's source, as the trace has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// Effects outside of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Copy the selection to the clipboard.
    Copy,
    /// Switch the mouse on or off.
    Mouse(bool),
    /// Interrupt the program that runs.
    Interrupt,
    /// Open the editor.
    Edit(SourceLine),
}

/// Everything that is drawn.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// What the traces are called; at least one.
    pub labels: Vec<Label>,
    /// The traces; `None` until they are read.
    pub open: Option<Traces>,
    /// How the traces lie beside each other.
    pub alignment: Alignment,
    /// By which clock, in words.
    pub clock: String,
    /// Where the sides of all findings are drawn.
    pub race_places: Vec<Spot>,
    /// Those of them that belong to no finding that counts: all of theirs are known upstream.
    pub accepted_places: Vec<Spot>,
    /// Columns and lines of the screen.
    pub size: (u16, u16),
    /// The axis shown.
    pub axis: Option<Axis>,
    /// The visible part of each axis.
    pub views: BTreeMap<Axis, Viewport>,
    /// Which rows are shown.
    pub filter: RowFilter,
    pub rows: Vec<Row>,
    /// The selected row, an index into `rows`.
    pub cursor: usize,
    /// The first row on the screen, below those at the top.
    pub scroll: usize,
    /// Rows shown at the top for the sake of a race whose other row is far away.
    pub guests: Vec<usize>,
    /// The selected operation.
    pub selection: Option<Box<Detail>>,
    /// The trace of the selected operation.
    pub selected_trace: usize,
    /// The cells of the rows.
    pub strips: Strips,
    /// The cells of the minimap.
    pub minimap: Option<(Axis, u32, Vec<Cell>)>,
    /// The finding that the user went to last, its place among those of all traces.
    pub finding: Option<usize>,
    /// The list of findings.
    pub list: FindingList,
    /// Which of them do not count; `None`: all count.
    pub is_known_upstream: Option<IsKnownUpstream>,
    pub pane: Pane,
    /// The part of the screen that keys go to.
    pub focus: Focus,
    /// Whether the pane has the whole screen.
    pub expanded: bool,
    /// Lines that the pane's content has needed since it was chosen: what moves about in the rows
    /// does not make them jump.
    pub pane_wants: usize,
    /// Lines of the pane that the user has chosen.
    pub pane_chosen: Option<u16>,
    /// First line of the pane that is shown.
    pub pane_scroll: usize,
    /// The memory pane.
    pub memory: Memory,
    /// The operations that the filter finds, once they are known.
    pub hits: Option<Found>,
    /// The pane of bytes over time.
    pub footprint: Bytes,
    /// Calls by entry point, with their trace.
    pub calls: Option<(usize, Vec<CallCount>)>,
    /// The words about a finding, with its place in the list.
    pub explanation: Option<(usize, String)>,
    /// The help, and its first line.
    pub help: Option<usize>,
    /// The text that is being typed.
    pub input: Option<Input>,
    /// A key that waits for another one.
    pub pending: Option<Pending>,
    /// Marks by letter.
    pub marks: BTreeMap<char, Point>,
    pub area: Option<Area>,
    /// The last search.
    pub search: Option<String>,
    /// The message to the user.
    pub message: Option<Message>,
    /// Whether the mouse is used.
    pub mouse: bool,
    /// Which of two traces beside each other this is.
    pub side: Option<Side>,
    /// The state of a running recording; `None` for a finished trace.
    pub live: Option<LiveRun>,
    /// Set by `q`.
    pub quit: bool,
    pub(crate) effects: Vec<Effect>,
    outbox: Vec<Numbered<Request>>,
    counter: u64,
    /// The newest question of each kind, and whether it is unanswered.
    asked: [(u64, bool); Slot::COUNT],
    /// Steps along a row that are unanswered: from where and how many.
    steps: Option<(LaneRef, OpSeq, i64)>,
    wanted_strips: Option<(Grid, Vec<TraceRows>)>,
    wanted_minimap: Option<(Axis, u32)>,
    wanted_explanation: Option<usize>,
    /// The traces of the calls and of the allocations that were asked for last.
    wanted_calls: Option<usize>,
    wanted_allocations: Option<usize>,
    /// Names in short, by what the trace calls them.
    short_names: HashMap<std::sync::Arc<str>, std::sync::Arc<str>>,
    /// The last operation that was to be selected.
    last_target: Option<crate::query::Target>,
    /// Whether there was such an operation.
    pub(crate) was_found: bool,
    /// The race to open the trace at.
    start_race: Option<String>,
    /// The editor was asked for while an operation was being selected.
    edit_selected: bool,
    /// The next selection does not move the window.
    keep_view: bool,
    /// ... nor the row.
    keep_row: bool,
    /// Where the mouse was pressed, and whether it has moved since.
    drag: Option<(u16, u16, bool)>,
    /// Whether the mouse drags the pane's headline.
    drag_pane: bool,
}

impl State {
    /// The state in which a trace opens: nothing is read yet.
    pub fn new(title: impl Into<String>, size: (u16, u16)) -> Self {
        Self::of_traces(vec![Label { title: title.into(), ..Label::default() }], size)
    }

    /// The same of several traces.
    pub fn of_traces(labels: Vec<Label>, size: (u16, u16)) -> Self {
        let alignment = Alignment::by_clocks(&labels);
        let mut state = Self { labels, alignment, size, mouse: true, ..Self::default() };
        state.ask(Request::Open);
        state
    }

    /// Takes the questions to the trace.
    pub fn take_requests(&mut self) -> Vec<Numbered<Request>> {
        std::mem::take(&mut self.outbox)
    }

    /// Takes the effects outside of the state.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    fn ask(&mut self, request: Request) {
        if let Request::Select(target) = &request {
            self.last_target = Some(target.clone());
            (self.keep_view, self.keep_row) = (false, false);
        }
        self.counter += 1;
        let (number, slot) = (self.counter, request.slot());
        self.asked[slot as usize] = (number, true);
        self.outbox.retain(|waiting| waiting.slot != slot);
        self.outbox.push(Numbered { number, slot, value: request });
    }

    /// Whether a question of a kind is unanswered.
    pub fn is_waiting(&self, slot: Slot) -> bool {
        self.asked[slot as usize].1
    }

    /// Whether any question is unanswered.
    pub fn is_busy(&self) -> bool {
        // A look at what has come is nothing that the user waits for.
        let looks = Slot::Refresh as usize;
        self.asked.iter().enumerate().any(|(slot, &(_, waiting))| waiting && slot != looks)
    }

    /// Where things are on the screen.
    pub fn areas(&self) -> Areas {
        let wants = Wants {
            rows: self.rows.len() + self.filter.pinned.len() + self.guests.len(),
            pane: self.pane_wants,
            chosen: self.pane_chosen,
            expanded: self.expanded,
        };
        Areas::of(self.size.0, self.size.1, wants)
    }

    /// The visible part of the axis.
    pub fn view(&self) -> Option<&Viewport> {
        self.views.get(&self.axis?)
    }

    pub(crate) fn view_mut(&mut self) -> Option<&mut Viewport> {
        self.views.get_mut(&self.axis?)
    }

    /// The selected row, a place in the list of the rows of all traces.
    pub fn selected_lane(&self) -> Option<usize> {
        self.rows.get(self.cursor)?.lane()
    }

    /// Which row is selected.
    pub fn selected_lane_ref(&self) -> Option<LaneRef> {
        Some(self.open.as_ref()?.lane_ref(self.selected_lane()?))
    }

    /// The trace that the panes are about: that of the selected row.
    pub fn trace_in_focus(&self) -> usize {
        self.selected_lane_ref().map_or(self.selected_trace, |lane| lane.trace)
    }

    /// The selected operation as a point.
    pub fn selected_point(&self) -> Option<Point> {
        let detail = self.selection.as_ref()?;
        Some(Point { trace: self.selected_trace, op: detail.operation.g, place: detail.place })
    }

    /// The selected operation and its trace.
    pub fn selected_op(&self) -> Option<OpRef> {
        self.selected_point().map(|point| point.op_ref())
    }

    /// The finding that the user went to last.
    pub fn current_finding(&self) -> Option<&Finding> {
        Some(self.found()?.1)
    }

    /// The same with its trace.
    pub(crate) fn found(&self) -> Option<(usize, &Finding)> {
        self.open.as_ref()?.finding(self.finding?)
    }

    /// Both sides of the finding that the user went to last, the first one first.
    pub(crate) fn sides(&self) -> Option<[OpRef; 2]> {
        let (trace, finding) = self.found()?;
        Some([finding.first.op, finding.second.op].map(|g| OpRef { trace, g }))
    }

    /// Where an operation is drawn, if it is a side of a finding or an end of an edge that is
    /// known.
    pub fn place_of(&self, op: OpRef) -> Option<Spot> {
        let spot = |place| Spot { trace: op.trace, place };
        if let Some(detail) = self.selection.as_ref().filter(|_| self.selected_trace == op.trace) {
            if detail.operation.g == op.g {
                return Some(spot(detail.place));
            }
            let edges = detail.incoming.iter().map(|(edge, place)| (edge.from, place));
            let edges = edges.chain(detail.outgoing.iter().map(|(edge, place)| (edge.to, place)));
            if let Some((_, place)) = edges.into_iter().find(|(end, _)| *end == op.g) {
                return Some(spot(*place));
            }
        }
        self.open.as_ref()?.place_of_side(op)
    }

    /// The rows on the screen, from top to bottom: pinned ones and guests, then the others.
    pub fn visible_rows(&self) -> Vec<RowOnScreen> {
        let lines = self.areas().rows.height;
        let top = self.top_rows().into_iter().map(|lane| (Row::Lane(lane), true));
        let rest = self.rows.iter().skip(self.scroll).map(|&row| (row, false));
        let shown: Vec<(Row, bool)> = top.chain(rest).take(usize::from(lines)).collect();
        let kinds: Vec<RowKind> = shown.iter().map(|(row, _)| self.kind_of(*row)).collect();
        let mut top = 0;
        let mut place = |height: u16| {
            top += height;
            top - height
        };
        shown
            .into_iter()
            .zip(heights(&kinds, lines))
            .map(|((row, pinned), height)| RowOnScreen { row, pinned, top: place(height), height })
            .collect()
    }

    fn kind_of(&self, row: Row) -> RowKind {
        let id = row.lane().and_then(|lane| Some(self.open.as_ref()?.lane_ref(lane).id));
        match id {
            None => RowKind::Headline,
            Some(LaneId::Host(_)) => RowKind::Host,
            Some(LaneId::Stream(_)) => RowKind::Stream,
        }
    }

    /// The row on a line of the timelines.
    pub(crate) fn row_at(&self, line: u16) -> Option<Row> {
        let rows = self.visible_rows();
        let found = rows.iter().find(|row| (row.top..row.top + row.height).contains(&line))?;
        Some(found.row)
    }

    /// Rows that do not scroll; they leave half of the screen to the others.
    fn top_rows(&self) -> Vec<usize> {
        let most = usize::from(self.areas().rows.height) / 2;
        let mut top: Vec<usize> = self.filter.pinned.clone();
        top.extend(self.guests.iter().filter(|guest| !self.filter.pinned.contains(guest)));
        top.truncate(most);
        top
    }

    /// Lines for the rows that scroll.
    fn scroll_height(&self) -> usize {
        usize::from(self.areas().rows.height).saturating_sub(self.top_rows().len()).max(1)
    }

    /// Asks for what the screen shows, if that was not asked for yet.
    pub fn ask_for_screen(&mut self) {
        self.fit_pane();
        if let Some(open) = &self.open
            && let Some(view) = self.view()
        {
            let mut lanes: Vec<(usize, LaneId)> = Vec::new();
            for RowOnScreen { row, .. } in self.visible_rows() {
                let lane = row.shown_lane().map(|lane| open.lane_ref(lane));
                let lane = lane.map(|lane| (lane.trace, lane.id));
                // A pinned row stands in its place, too.
                lanes.extend(lane.filter(|lane| !lanes.contains(lane)));
            }
            let strips = (view.grid(), self.trace_rows(view.grid(), &lanes));
            let minimap = (view.axis, view.columns);
            if self.wanted_minimap != Some(minimap) {
                self.wanted_minimap = Some(minimap);
                self.ask(Request::Minimap(minimap.0, minimap.1));
            }
            if self.wanted_strips.as_ref() != Some(&strips) {
                self.ask(Request::Strips(strips.0, strips.1.clone()));
                self.wanted_strips = Some(strips);
            }
        }
        self.ask_for_pane();
    }

    /// Another size of the screen.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.size = (width, height);
        let columns = self.areas().columns();
        self.views.values_mut().for_each(|view| view.resize(columns));
        self.update_rows();
        self.keep_sides();
    }

    /// Gives the pane the lines that its content needs.
    fn fit_pane(&mut self) {
        let needed = crate::view::pane_wants(self);
        if needed > self.pane_wants {
            self.pane_wants = needed;
            self.scroll_to_cursor();
            self.keep_sides();
        }
    }

    pub(crate) fn fail(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), error: true });
    }

    pub(crate) fn tell(&mut self, text: impl Into<String>) {
        self.message = Some(Message { text: text.into(), error: false });
    }
}
