//! What the viewer shows, and how a command changes it.

use crate::Command;
use streamsan_model::{
    Bucket, Finding, Lane, LaneId, OpSeq, OpWindow, Operation, QueryError, TraceQuery,
};

/// What covers the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    /// The rows and the details of the selection.
    #[default]
    Timeline,
    /// The list of keys.
    Help,
}

/// Everything that is drawn. Changed by [`State::apply`] and [`State::load`] alone.
#[derive(Clone, Debug)]
pub struct State {
    /// The whole trace.
    pub span: OpWindow,
    /// What of it is shown.
    pub window: OpWindow,
    /// All rows.
    pub lanes: Vec<Lane>,
    /// The selected row, an index into `lanes`.
    pub lane: usize,
    /// The selected operation.
    pub selection: Option<Operation>,
    /// All findings, by the later operation.
    pub findings: Vec<Finding>,
    /// The finding last jumped to.
    pub finding: Option<usize>,
    /// What is drawn in the rows; belongs to `window`.
    pub buckets: Vec<Bucket>,
    /// What covers the screen.
    pub pane: Pane,
    /// Set by `q`.
    pub quit: bool,
}

/// The smallest window: one issue index a column would still leave the screen nearly empty.
const MIN_WINDOW: u64 = 8;

impl State {
    /// The state in which a trace opens: the whole trace, first row, and the first finding
    /// selected if there is one.
    pub fn open(query: &dyn TraceQuery) -> Result<Self, QueryError> {
        let span = query.span()?.unwrap_or(OpWindow { first: OpSeq(0), end: OpSeq(1) });
        let mut state = Self {
            span,
            window: span,
            lanes: query.lanes()?,
            lane: 0,
            selection: None,
            findings: query.findings()?,
            finding: None,
            buckets: Vec::new(),
            pane: Pane::Timeline,
            quit: false,
        };
        if state.findings.is_empty() {
            state.apply(Command::FirstOperation, query)?;
        } else {
            state.apply(Command::NextFinding, query)?;
            state.window = span;
        }
        Ok(state)
    }

    /// Fetches what `columns` columns show of the window.
    pub fn load(&mut self, query: &dyn TraceQuery, columns: u32) -> Result<(), QueryError> {
        self.buckets =
            if columns == 0 { Vec::new() } else { query.buckets(self.window, columns)? };
        Ok(())
    }

    /// Carries out a command.
    pub fn apply(&mut self, command: Command, query: &dyn TraceQuery) -> Result<(), QueryError> {
        let length = self.window.end.0 - self.window.first.0;
        match command {
            Command::ZoomIn => self.show(self.focus(), (length / 2).max(MIN_WINDOW)),
            Command::ZoomOut => self.show(self.focus(), length.saturating_mul(2)),
            Command::PanLeft => self.slide(-(length as i128 / 4).max(1)),
            Command::PanRight => self.slide((length as i128 / 4).max(1)),
            Command::ShowAll => self.window = self.span,
            Command::Centre => self.show(self.focus(), length),
            Command::RowUp => self.select_row(self.lane.saturating_sub(1), query)?,
            Command::RowDown => self.select_row(self.lane + 1, query)?,
            Command::PreviousOperation => self.step(false, query)?,
            Command::NextOperation => self.step(true, query)?,
            Command::FirstOperation => self.edge(true, query)?,
            Command::LastOperation => self.edge(false, query)?,
            Command::NextFinding => self.jump(true, query)?,
            Command::PreviousFinding => self.jump(false, query)?,
            Command::OtherSide => self.other_side(query)?,
            Command::ToggleHelp => {
                self.pane = if self.pane == Pane::Help { Pane::Timeline } else { Pane::Help };
            }
            Command::Back if self.pane == Pane::Help => self.pane = Pane::Timeline,
            Command::Back | Command::Quit => self.quit = true,
        }
        Ok(())
    }

    /// The row that an operation is drawn in.
    pub fn lane_of(operation: &Operation) -> LaneId {
        operation.action.stream().map_or(LaneId::Host(operation.process), LaneId::Stream)
    }

    fn focus(&self) -> u64 {
        match &self.selection {
            Some(op) if op.g >= self.window.first && op.g < self.window.end => op.g.0,
            _ => self.window.first.0 + (self.window.end.0 - self.window.first.0) / 2,
        }
    }

    /// Shows `length` indices around `centre`, kept inside the trace.
    fn show(&mut self, centre: u64, length: u64) {
        let whole = self.span.end.0 - self.span.first.0;
        let length = length.clamp(1, whole);
        let latest = self.span.end.0 - length;
        let first = centre.saturating_sub(length / 2).clamp(self.span.first.0, latest);
        self.window = OpWindow { first: OpSeq(first), end: OpSeq(first + length) };
    }

    fn slide(&mut self, by: i128) {
        let length = self.window.end.0 - self.window.first.0;
        let latest = i128::from(self.span.end.0 - length);
        let first =
            (i128::from(self.window.first.0) + by).clamp(i128::from(self.span.first.0), latest);
        let first = u64::try_from(first).unwrap_or(self.span.first.0);
        self.window = OpWindow { first: OpSeq(first), end: OpSeq(first + length) };
    }

    /// Brings an index into the window without changing the zoom.
    fn reveal(&mut self, g: OpSeq) {
        if g < self.window.first || g >= self.window.end {
            self.show(g.0, self.window.end.0 - self.window.first.0);
        }
    }

    fn select(&mut self, g: OpSeq, query: &dyn TraceQuery) -> Result<(), QueryError> {
        let Some(operation) = query.operation(g)? else { return Ok(()) };
        let lane = Self::lane_of(&operation);
        if let Some(index) = self.lanes.iter().position(|l| l.id == lane) {
            self.lane = index;
        }
        self.selection = Some(operation);
        self.reveal(g);
        Ok(())
    }

    fn select_row(&mut self, lane: usize, query: &dyn TraceQuery) -> Result<(), QueryError> {
        let Some(row) = self.lanes.get(lane) else { return Ok(()) };
        let (id, from) = (row.id, OpSeq(self.focus()));
        self.lane = lane;
        // The operation nearest to where the eye is, the later one first.
        let near = match query.neighbour(id, from, true)? {
            Some(g) => Some(g),
            None => query.neighbour(id, from, false)?,
        };
        near.map_or(Ok(()), |g| self.select(g, query))
    }

    fn step(&mut self, forward: bool, query: &dyn TraceQuery) -> Result<(), QueryError> {
        let Some(row) = self.lanes.get(self.lane) else { return Ok(()) };
        let from = self.selection.as_ref().map_or(self.window.first, |op| op.g);
        let next = query.neighbour(row.id, from, forward)?;
        next.map_or(Ok(()), |g| self.select(g, query))
    }

    fn edge(&mut self, first: bool, query: &dyn TraceQuery) -> Result<(), QueryError> {
        let Some(row) = self.lanes.get(self.lane) else { return Ok(()) };
        let found = if first {
            query.neighbour(row.id, OpSeq(self.span.first.0.saturating_sub(1)), true)?
        } else {
            query.neighbour(row.id, self.span.end, false)?
        };
        found.map_or(Ok(()), |g| self.select(g, query))
    }

    fn jump(&mut self, forward: bool, query: &dyn TraceQuery) -> Result<(), QueryError> {
        let count = self.findings.len();
        if count == 0 {
            return Ok(());
        }
        let index = match (self.finding, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(i), true) => (i + 1) % count,
            (Some(i), false) => (i + count - 1) % count,
        };
        self.finding = Some(index);
        let (first, second) = (self.findings[index].first.op, self.findings[index].second.op);
        // Both operations with a quarter of the window around them.
        let distance = second.0.abs_diff(first.0);
        let centre = first.0.min(second.0) + distance / 2;
        self.show(centre, (distance + distance / 2).max(MIN_WINDOW * 4));
        self.select(second, query)
    }

    fn other_side(&mut self, query: &dyn TraceQuery) -> Result<(), QueryError> {
        let Some(finding) = self.finding.and_then(|i| self.findings.get(i)) else { return Ok(()) };
        let (first, second) = (finding.first.op, finding.second.op);
        let target = match &self.selection {
            Some(op) if op.g == second => first,
            _ => second,
        };
        self.select(target, query)
    }
}
