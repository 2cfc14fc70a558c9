//! How several traces are laid beside each other on one axis.
//!
//! Each trace has its own positions; a shift, which the user can change, leads from them to those of
//! the screen. Invariants: the least shift is 0, so that no position is negative; a shift counts in
//! whole columns of the screen, so that a column of a trace is a column of the screen and each
//! operation stands in the column of its cell. A single trace is not shifted.

use super::{State, Viewport};
use crate::query::TraceRows;
use crate::traces::{Spot, Traces};
use std::collections::BTreeMap;
use streamsan_model::{Axis, Cell, Grid, LaneId, Span};

/// A trace among those that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The name of the trace.
    pub title: String,
    /// What tells it from the others: its rank, its host.
    pub about: String,
    /// Where its host times begin on the clock that the traces share, in ns; `None` where it has no
    /// place there.
    pub begins_ns: Option<i64>,
}

/// A trace's place on an axis that it shares with one that is drawn elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Positions before its own.
    pub(crate) lead: u64,
    /// The positions of both.
    pub(crate) span: Span,
}

/// How traces lie on the axes of the screen.
#[derive(Clone, Debug, Default)]
pub struct Alignment {
    /// The shift of each trace on each axis, in the order of [`Axis::ALL`].
    shifts: Vec<[i64; 3]>,
    /// Of a single trace beside one that is drawn elsewhere: its place on each axis.
    frames: [Option<Frame>; 3],
}

impl Alignment {
    /// By the clocks of the traces; the other axes begin together.
    pub(super) fn by_clocks(labels: &[Label]) -> Self {
        let first = labels.iter().filter_map(|label| label.begins_ns).min().unwrap_or(0);
        let time = |label: &Label| label.begins_ns.map_or(0, |at| at.saturating_sub(first));
        let shifts = labels.iter().map(|label| [0, time(label), 0]).collect();
        Self { shifts, frames: [None; 3] }
    }

    fn given(&self, trace: usize, axis: Axis) -> i64 {
        self.shifts.get(trace).map_or(0, |shifts| shifts[axis as usize])
    }

    fn least(&self, axis: Axis) -> i64 {
        self.shifts.iter().map(|shifts| shifts[axis as usize]).min().unwrap_or(0)
    }

    /// The shift of a trace against the one that is shifted least.
    pub fn shift(&self, trace: usize, axis: Axis) -> u64 {
        match self.frames[axis as usize] {
            Some(frame) => frame.lead,
            None => self.given(trace, axis).abs_diff(self.least(axis)),
        }
    }

    /// The same in whole columns.
    fn in_columns(&self, trace: usize, axis: Axis, scale: i8) -> u64 {
        let shift = self.shift(trace, axis);
        match u32::try_from(scale) {
            Ok(scale) if scale < u64::BITS => shift >> scale << scale,
            _ => shift,
        }
    }

    /// The positions of all traces together.
    pub(super) fn span(&self, traces: &Traces, axis: Axis) -> Option<Span> {
        if let Some(frame) = self.frames[axis as usize] {
            return Some(frame.span);
        }
        let spans = traces.iter().enumerate().filter_map(|(trace, opened)| {
            let span = opened.span(axis)?;
            Some((span, self.shift(trace, axis)))
        });
        let end = spans.map(|(span, shift)| span.end.saturating_add(shift)).max()?;
        let start = if traces.are_several() { 0 } else { traces.of(0).span(axis)?.start };
        Some(Span { start, end })
    }

    /// Whether positions of the traces are those of the screen.
    pub(super) fn is_plain(&self) -> bool {
        self.shifts.len() < 2 && self.frames.iter().all(Option::is_none)
    }

    /// The columns of the whole of each trace, added up in columns of the whole of all traces.
    pub(super) fn minimap(
        &self,
        open: &Traces,
        axis: Axis,
        columns: u32,
        traces: Vec<Vec<Cell>>,
    ) -> Vec<Cell> {
        let Some(all) = self.span(open, axis).filter(|_| columns > 0) else { return Vec::new() };
        let mut cells: BTreeMap<u32, Cell> = BTreeMap::new();
        for (trace, of_trace) in traces.into_iter().enumerate() {
            let Some(span) = open.of(trace).span(axis) else { continue };
            for cell in of_trace {
                let offset = u128::from(span.len()) * u128::from(cell.column) / u128::from(columns);
                let at = u128::from(span.start) + u128::from(self.shift(trace, axis)) + offset;
                let column = at.saturating_sub(all.start.into()) * u128::from(columns);
                let column = column / u128::from(all.len().max(1));
                let column = u32::try_from(column).unwrap_or(u32::MAX).min(columns - 1);
                cells
                    .entry(column)
                    .and_modify(|sum| {
                        sum.operations += cell.operations;
                        sum.findings += cell.findings;
                        sum.group = sum.group.max(cell.group);
                    })
                    .or_insert(Cell { column, ..cell });
            }
        }
        cells.into_values().collect()
    }

    /// A trace's part of the screen's grid.
    fn rows(&self, trace: usize, grid: Grid, lanes: Vec<LaneId>) -> Option<TraceRows> {
        let shift = self.in_columns(trace, grid.axis, grid.scale);
        let (start, before) = match grid.start.checked_sub(shift) {
            Some(start) => (start, 0),
            None => {
                let by = u128::from(shift - grid.start);
                let by_scale = u32::from(grid.scale.unsigned_abs());
                let before = if grid.scale >= 0 { by >> by_scale } else { by << by_scale };
                (0, u32::try_from(before).ok().filter(|&before| before < grid.columns)?)
            }
        };
        let grid = Grid { start, columns: grid.columns - before, ..grid };
        Some(TraceRows { trace, grid, before, lanes })
    }
}

impl State {
    /// Gives the trace its place on an axis that it shares with one that is drawn elsewhere. What was
    /// on the screen stays there, as far as the axis reaches; without `keep`, the whole is shown.
    pub(crate) fn set_frame(&mut self, axis: Axis, frame: Frame, keep: bool) {
        let before = self.alignment.frames[axis as usize].replace(frame);
        let columns = self.areas().columns();
        let Some(view) = self.views.get_mut(&axis) else { return };
        if keep {
            let lead = before.map_or(0, |before| before.lead);
            view.start = view.start.saturating_sub(lead).saturating_add(frame.lead);
            view.grow(frame.span, false);
        } else {
            *view = Viewport::whole(axis, frame.span, columns);
        }
        self.wanted_minimap = None;
    }

    /// The axes that any trace has.
    pub fn axes(&self) -> Vec<Axis> {
        Axis::ALL.into_iter().filter(|axis| self.views.contains_key(axis)).collect()
    }

    /// The position on the screen's axis of a position of a trace.
    pub(crate) fn position_on_screen(&self, trace: usize, axis: Axis, at: u64) -> u64 {
        let scale = self.views.get(&axis).map_or(0, |view| view.scale);
        at.saturating_add(self.alignment.in_columns(trace, axis, scale))
    }

    /// The position in a trace of one on the screen's axis; its begin, where that lies before it.
    pub(super) fn position_in_trace(&self, trace: usize, axis: Axis, at: u64) -> u64 {
        let scale = self.views.get(&axis).map_or(0, |view| view.scale);
        at.saturating_sub(self.alignment.in_columns(trace, axis, scale))
    }

    /// The position of an operation on an axis of the screen.
    pub(crate) fn position_on(&self, axis: Axis, spot: &Spot) -> Option<u64> {
        Some(self.position_on_screen(spot.trace, axis, spot.place.on(axis)?))
    }

    /// The column of an operation, if it is on the screen.
    pub fn column_of(&self, spot: &Spot) -> Option<u32> {
        let view = self.view()?;
        view.grid().column(self.position_on(view.axis, spot)?)
    }

    /// The rows to ask for.
    pub(super) fn trace_rows(&self, grid: Grid, lanes: &[(usize, LaneId)]) -> Vec<TraceRows> {
        let count = self.labels.len();
        let of = |trace: usize| {
            let lanes = lanes.iter().filter(|(of, _)| *of == trace).map(|&(_, lane)| lane);
            let lanes: Vec<LaneId> = lanes.collect();
            if lanes.is_empty() { None } else { self.alignment.rows(trace, grid, lanes) }
        };
        (0..count).filter_map(of).collect()
    }

    /// Shifts a trace against the others by columns of the screen.
    pub(super) fn shift_by_columns(&mut self, columns: i64) {
        let Some(view) = self.view() else { return };
        let wide = match u32::try_from(view.scale) {
            Ok(scale) => 1_i64.checked_shl(scale).unwrap_or(i64::MAX),
            Err(_) => 1,
        };
        self.shift(self.trace_in_focus(), wide.saturating_mul(columns));
    }

    /// Shifts a trace on the axis that is shown, and says by how much it is shifted now.
    pub(super) fn shift(&mut self, trace: usize, by: i64) {
        let (Some(axis), Some(open)) = (self.axis, &self.open) else { return };
        if !open.are_several() {
            return self.tell("there is one trace; nothing is there to shift it against");
        }
        let before = self.alignment.least(axis);
        if let Some(shifts) = self.alignment.shifts.get_mut(trace) {
            let shift = &mut shifts[axis as usize];
            *shift = shift.saturating_add(by);
        }
        let moved = before.saturating_sub(self.alignment.least(axis));
        let span = self.alignment.span(open, axis);
        if let (Some(view), Some(span)) = (self.views.get_mut(&axis), span) {
            // What was on the screen of the other traces stays there.
            view.start = view.start.saturating_add_signed(moved);
            view.grow(span, false);
        }
        self.wanted_strips = None;
        self.wanted_minimap = None;
        let words = self.alignment_in_words(trace);
        self.tell(words);
    }

    /// Puts the begin of the area and the selected operation of another trace under each other.
    pub(super) fn align(&mut self) {
        let Some(here) = self.selected_point() else { return self.tell("nothing is selected") };
        let Some(from) = self.area.map(|area| area.from) else {
            return self.tell("v at an operation of one trace, then & at one of another");
        };
        let Some(axis) = self.axis else { return };
        if from.trace == here.trace {
            return self.tell("both operations are of one trace");
        }
        let at = |point: &super::Point| {
            let at = i128::from(point.place.on(axis)?);
            Some(at + i128::from(self.alignment.given(point.trace, axis)))
        };
        let (Some(from), Some(at)) = (at(&from), at(&here)) else { return };
        let by = i64::try_from(from - at).unwrap_or(0);
        self.area = None;
        self.shift(here.trace, by);
    }

    fn alignment_in_words(&self, trace: usize) -> String {
        let axis = self.axis.unwrap_or(Axis::Issue);
        let title = self.labels.get(trace).map_or("", |label| &label.title);
        let by = crate::names::shift(axis, self.moved_by_user(trace, axis));
        format!("{title}: {by} on this axis, against how it began; & aligns two operations")
    }

    /// By how much the user has shifted a trace.
    pub(crate) fn moved_by_user(&self, trace: usize, axis: Axis) -> i64 {
        let began = Alignment::by_clocks(&self.labels);
        self.alignment.given(trace, axis).saturating_sub(began.given(trace, axis))
    }
}

#[cfg(test)]
mod tests {
    use super::{Alignment, Label};
    use streamsan_model::{Axis, Grid};

    fn alignment(begins: &[Option<i64>]) -> Alignment {
        let label = |&begins_ns| Label { begins_ns, ..Label::default() };
        Alignment::by_clocks(&begins.iter().map(label).collect::<Vec<_>>())
    }

    #[test]
    fn the_earliest_trace_is_not_shifted() {
        let alignment = alignment(&[Some(-500), Some(1_000), None]);
        let shifts = [0, 1, 2].map(|trace| alignment.shift(trace, Axis::Time));
        assert_eq!(shifts, [0, 1_500, 0]);
        assert_eq!(alignment.shift(1, Axis::Issue), 0);
    }

    /// A column of a trace is a column of the screen at every zoom, wherever the screen begins.
    #[test]
    fn columns_of_traces_are_columns_of_the_screen() {
        let alignment = alignment(&[Some(0), Some(12_345)]);
        for scale in -5..20 {
            let wide = 1_u64 << scale.max(0);
            for start in [0, 64, 12_288, 1 << 22].map(|start: u64| start / wide * wide) {
                let grid = Grid { axis: Axis::Time, start, scale, columns: 77 };
                let shift = alignment.in_columns(1, Axis::Time, scale);
                let Some(rows) = alignment.rows(1, grid, vec![]) else {
                    assert!(grid.end() <= shift, "{scale} {start}");
                    continue;
                };
                assert_eq!(rows.grid.start % wide, 0);
                for column in 0..rows.grid.columns {
                    let at = rows.grid.position(column);
                    let there = rows.grid.column(at).expect("on the grid");
                    assert_eq!(grid.column(at + shift), Some(there + rows.before), "{scale}");
                }
            }
        }
    }
}
