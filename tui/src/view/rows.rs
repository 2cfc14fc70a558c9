//! The rows: names, and operations as letters with bars above them.
//!
//! A row of several lines keeps its first one free for edges. The letters stand in its last line;
//! above a letter, a bar tells by its height how many operations the column holds, and by its shape
//! and colour of which kind.

use super::timeline::x_of;
use super::{line_of, put, put_cut, put_cut_inside, ranges};
use crate::names;
use crate::state::{Areas, Row, RowOnScreen};
use crate::theme::{Depth, letter};
use crate::traces::{LaneRef, Opened, Spot, Traces};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use std::collections::HashSet;
use std::fmt::Write;
use streamsan_model::{Axis, Cell, Grid, Lane, OpGroup};

/// Operations of a column that reach the top of a row where no column holds more.
const LEAST: u64 = 3;

pub(super) fn draw(
    state: &State,
    theme: Theme,
    areas: &Areas,
    shown: &[RowOnScreen],
    buffer: &mut Buffer,
) {
    let (Some(open), Some(view)) = (&state.open, state.view()) else { return };
    let canvas = Canvas {
        state,
        theme,
        areas,
        grid: view.grid(),
        most: state
            .strips
            .cells
            .values()
            .flatten()
            .map(|cell| cell.operations)
            .max()
            .unwrap_or(1)
            .max(LEAST),
        front: front(state),
        accepted: accepted(state),
        hits: hits(state),
    };
    for row in shown {
        match row.row {
            Row::Lane(lane) => {
                let is_selected = state.selected_lane() == Some(lane);
                let (trace, lane) = open.lane(lane);
                canvas.label(open.of(trace), trace, lane, row, is_selected, buffer);
                canvas.cells(LaneRef { trace, id: lane.id }, row, buffer);
            }
            Row::Ranges(lane, depth) => {
                let lane = open.lane_ref(lane);
                ranges::draw(state, theme, areas, (lane, depth, row.top), buffer);
            }
            headline => {
                let area = line_of(areas.rows, row.top);
                draw_headline(state, open, theme, area, headline, buffer);
            }
        }
    }
}

/// The columns of the sides of the race that is in front.
fn front(state: &State) -> Option<[(LaneRef, Option<u32>); 2]> {
    let [first, second] = state.sides()?;
    let side = |op| {
        let spot = state.place_of(op)?;
        Some((spot.lane(), state.column_of(&spot)))
    };
    Some([side(first)?, side(second)?])
}

/// The columns whose sides of findings are all accepted, where there are any.
fn accepted(state: &State) -> HashSet<(LaneRef, u32)> {
    if state.accepted_places.is_empty() {
        return HashSet::new();
    }
    let columns = |spots: &[Spot]| -> HashSet<(LaneRef, u32)> {
        spots.iter().filter_map(|spot| Some((spot.lane(), state.column_of(spot)?))).collect()
    };
    let accepted: HashSet<Spot> = state.accepted_places.iter().copied().collect();
    let counting: Vec<Spot> =
        state.race_places.iter().copied().filter(|spot| !accepted.contains(spot)).collect();
    let counting = columns(&counting);
    columns(&state.accepted_places).difference(&counting).copied().collect()
}

/// The columns of the operations that the filter finds.
fn hits(state: &State) -> Option<HashSet<(LaneRef, u32)>> {
    let hits = state.hits.as_ref()?;
    let column = |spot: &Spot| Some((spot.lane(), state.column_of(spot)?));
    Some(hits.places.iter().filter_map(|(_, spot)| column(spot)).collect())
}

fn draw_headline(
    state: &State,
    open: &Traces,
    theme: Theme,
    area: Rect,
    row: Row,
    buffer: &mut Buffer,
) {
    let entities = |trace| &open.of(trace).overview.entities;
    let text = match row {
        Row::Trace(trace) => return draw_trace(state, open, theme, area, trace, buffer),
        Row::Process(trace, id) => names::process(entities(trace), id),
        Row::Context(trace, id) => match entities(trace).context(id) {
            Some(context) if context.primary => {
                format!("  device {} (context {id})", context.device)
            }
            Some(context) => format!("  context {id} on device {}", context.device),
            None => format!("  context {id}"),
        },
        Row::Lane(_) | Row::Ranges(..) => return,
    };
    let style = theme.dim().add_modifier(Modifier::UNDERLINED);
    put(buffer, area, area.x, &text, style);
}

/// The headline of a trace: its name over the whole width, what it holds, and how far it is shifted.
fn draw_trace(
    state: &State,
    open: &Traces,
    theme: Theme,
    area: Rect,
    trace: usize,
    buffer: &mut Buffer,
) {
    let rule = theme.pick("─", "-");
    for x in area.x..area.right() {
        buffer[(x, area.y)].set_symbol(rule).set_style(theme.dim());
    }
    let opened = open.of(trace);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let is_here = state.trace_in_focus() == trace;
    let style = if is_here { bold.patch(theme.pointer()) } else { bold };
    let name = format!("{} ", super::trace_in_words(state, trace));
    let x = put(buffer, area, area.x, &theme.plain(name), style);
    let dot = theme.pick(" · ", " | ");
    let mut text = format!(" {}", names::plural(opened.overview.operations, "operation"));
    let axis = state.axis.unwrap_or(Axis::Issue);
    let moved = state.moved_by_user(trace, axis);
    if moved != 0 {
        let _ = write!(text, "{dot}shifted by {}", names::shift(axis, moved));
    }
    if axis == Axis::Time && opened.span(Axis::Time).is_none() {
        text += dot;
        text += "no host times";
    }
    let x = put(buffer, area, x, &theme.plain(text), theme.dim());
    let tally = state.list.by_trace.get(trace).copied().unwrap_or_default();
    let x = put(buffer, area, x, dot, theme.dim());
    let counts = tally.mistakes() > tally.upstream;
    let style = if counts { theme.race_mark() } else { theme.dim() };
    put(buffer, area, x, &format!("{} ", names::races(tally)), style);
}

struct Canvas<'a> {
    state: &'a State,
    theme: Theme,
    areas: &'a Areas,
    grid: Grid,
    /// The most operations of a cell on the screen.
    most: u64,
    front: Option<[(LaneRef, Option<u32>); 2]>,
    /// The columns whose sides of findings are all accepted.
    accepted: HashSet<(LaneRef, u32)>,
    /// The columns in which the filter finds operations.
    hits: Option<HashSet<(LaneRef, u32)>>,
}

impl Canvas<'_> {
    fn line(&self, line: u16) -> Rect {
        line_of(self.areas.rows, line)
    }

    /// The name of a row and, where there is room, what it is and holds.
    fn label(
        &self,
        open: &Opened,
        trace: usize,
        lane: &Lane,
        row: &RowOnScreen,
        selected: bool,
        buffer: &mut Buffer,
    ) {
        let theme = self.theme;
        let this = LaneRef { trace, id: lane.id };
        let mut style = Style::new();
        if selected {
            style = style.add_modifier(Modifier::REVERSED);
        }
        let mark = match (row.pinned, selected) {
            (true, _) => "^",
            (false, true) => ">",
            (false, false) => " ",
        };
        let lines = row.gap().map_or(row.top, |gap| gap + 1)..row.top + row.height;
        let name = open.lane(lane.id);
        let mut more = names::about_stream(&open.overview.entities, lane);
        more.push(match &self.state.hits {
            Some(hits) => {
                let found = hits.lanes.binary_search_by_key(&this, |(lane, _)| *lane);
                let count = found.map_or(0, |place| hits.lanes[place].1);
                format!("{} of {} hit", names::number(count), names::number(lane.operations))
            }
            None => names::plural(lane.operations, "operation"),
        });
        let is_side = |spot: &&Spot| spot.lane() == this;
        let accepted = self.state.accepted_places.iter().filter(is_side).count();
        let sides = self.state.race_places.iter().filter(is_side).count().saturating_sub(accepted);
        for (place, line) in lines.enumerate() {
            let area = self.line(line);
            let room = Rect { width: self.areas.label.saturating_sub(1), ..area };
            if place == 0 {
                let x = put(buffer, room, area.x, mark, style);
                let room = Rect { x, width: room.right().saturating_sub(x), ..room };
                put_cut(buffer, room, &name, theme, style);
            } else if let Some(text) = more.get(place - 1) {
                let room = Rect { x: area.x + 2, width: room.width.saturating_sub(2), ..room };
                put_cut_inside(buffer, room, text, theme, theme.dim());
            } else if place == more.len() + 1 && sides > 0 {
                let text = match sides {
                    1 => "1 side of a race".to_owned(),
                    _ => format!("{} sides of races", names::number(sides as u64)),
                };
                put(buffer, room, area.x + 2, &text, theme.race_mark());
            }
        }
    }

    /// The cells of a row. Those of another window than the one shown are put where they would lie.
    fn cells(&self, lane: LaneRef, row: &RowOnScreen, buffer: &mut Buffer) {
        let Some(loaded) = self.state.strips.grid.filter(|grid| grid.axis == self.grid.axis) else {
            return;
        };
        let Some(cells) = self.state.strips.cells.get(&lane) else { return };
        let area = self.line(row.letters());
        for (place, cell) in cells.iter().enumerate() {
            let column = if loaded == self.grid {
                Some(cell.column)
            } else {
                self.grid.column(loaded.position(cell.column))
            };
            let Some(column) = column.and_then(|column| u16::try_from(column).ok()) else {
                continue;
            };
            let x = area.x + self.areas.label + column;
            if x >= area.right() || area.height == 0 {
                continue;
            }
            let depth = self.depth(lane, u32::from(column));
            let is_accepted = cell.findings > 0
                && (depth == Depth::Back || self.front.is_none())
                && self.accepted.contains(&(lane, u32::from(column)));
            self.block(cell, (depth, is_accepted), x, row, buffer);
            let name =
                cell.name.as_ref().filter(|_| loaded == self.grid && !self.is_left_out(depth));
            if let Some(name) = name {
                let next = cells.get(place + 1).map_or(self.grid.columns, |next| next.column);
                let room = u16::try_from(next).unwrap_or(u16::MAX).saturating_sub(1);
                let end = area.x.saturating_add(self.areas.label).saturating_add(room);
                let room = Rect { width: end.min(area.right()).saturating_sub(area.x), ..area };
                let style = self.theme.name(cell.group, depth);
                let x = put(buffer, room, x + 1, self.theme.behind_letter(), Style::new());
                put(buffer, room, x, &self.theme.plain(name.to_string()), style);
            }
        }
    }

    fn depth(&self, lane: LaneRef, column: u32) -> Depth {
        let is_front = match (&self.front, &self.hits) {
            (Some(sides), _) => sides.contains(&(lane, Some(column))),
            (None, Some(hits)) => hits.contains(&(lane, column)),
            (None, None) => true,
        };
        if is_front { Depth::Front } else { Depth::Back }
    }

    /// Whether a letter stands back behind a filter where no colour tells that.
    fn is_left_out(&self, depth: Depth) -> bool {
        depth == Depth::Back && self.front.is_none() && !self.theme.is_coloured()
    }

    /// A letter and its bar.
    fn block(
        &self,
        cell: &Cell,
        (depth, is_accepted): (Depth, bool),
        x: u16,
        row: &RowOnScreen,
        buffer: &mut Buffer,
    ) {
        let theme = self.theme;
        // What is known upstream is drawn as the operation that it is, underlined, unless it is the
        // race that is in front.
        let findings = if is_accepted { 0 } else { cell.findings };
        let (symbol, style, bar) = match (findings > 0, depth) {
            (true, Depth::Front) => (self.race_symbol(cell), theme.race(), theme.race_mark()),
            (true, Depth::Back) => (self.race_symbol(cell), theme.other_race(), theme.race_mark()),
            (false, _) if self.is_left_out(depth) => {
                (theme.pick("·", "-"), Style::new(), Style::new())
            }
            (false, _) => (
                letter(cell.group, cell.operations > 1),
                theme.block(cell.group, depth),
                theme.bar(cell.group, depth),
            ),
        };
        let top = self.areas.rows.y + row.gap().map_or(row.top, |gap| gap + 1);
        let letters = self.areas.rows.y + row.letters();
        buffer[(x, letters)].set_symbol(symbol).set_style(style);
        if is_accepted {
            buffer[(x, letters)].set_style(Style::new().add_modifier(Modifier::UNDERLINED));
        }
        let room = usize::from(letters - top) * 8;
        // Logarithmic, so that a few operations are seen beside many.
        let part = (cell.operations.max(1) as f64).ln_1p() / (self.most as f64).ln_1p();
        // A side of a race is never overlooked.
        let part = match findings {
            0 if self.is_left_out(depth) => 0.0,
            0 => part,
            _ => 1.0,
        };
        let mut eighths = (part * (room + 8) as f64).round() as usize;
        eighths = eighths.saturating_sub(8).min(room);
        for y in (top..letters).rev() {
            let symbol = match (cell.group, eighths) {
                (_, 0) => break,
                (_, 8..) => theme.shape(cell.group),
                (OpGroup::Kernel, part) => theme.bars()[part],
                (_, 4..) => theme.shape(cell.group),
                _ => break,
            };
            eighths = eighths.saturating_sub(8);
            buffer[(x, y)].set_symbol(symbol).set_style(bar);
        }
    }

    /// The letter of a side of a race: its own where colour tells of the race.
    fn race_symbol(&self, cell: &Cell) -> &'static str {
        if self.theme.is_coloured() { letter(cell.group, cell.operations > 1) } else { "!" }
    }
}

/// The selected operation, in all rows that show it.
pub(super) fn draw_selection(
    state: &State,
    theme: Theme,
    areas: &Areas,
    shown: &[RowOnScreen],
    buffer: &mut Buffer,
) {
    let (Some(point), Some(open)) = (state.selected_point(), &state.open) else { return };
    let spot = point.spot();
    let Some(x) = x_of(state, areas, &spot) else { return };
    for row in shown {
        let lane = row.row.lane().map(|lane| open.lane_ref(lane));
        if lane != Some(spot.lane()) {
            continue;
        }
        let cell = &mut buffer[(x, areas.rows.y + row.letters())];
        let is_race = cell.bg == theme.race().bg.unwrap_or_default() && theme.is_coloured();
        if cell.symbol() == " " {
            cell.set_symbol("?");
        }
        if is_race {
            cell.set_style(Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED));
        } else {
            cell.set_style(theme.selected());
        }
        if let Some(gap) = row.gap() {
            let above = &mut buffer[(x, areas.rows.y + gap)];
            if above.symbol() == " " {
                above.set_symbol(theme.pick("▾", "v")).set_style(theme.pointer());
            }
        }
    }
}
