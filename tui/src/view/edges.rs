//! Connections between rows: the edges of the selected operation, and the edge that a race lacks.
//!
//! A connection runs in the gaps between rows and crosses rows where they are empty: it takes the
//! way that crosses the least, and is interrupted where it crosses what it does not mean.

use crate::state::{Areas, RowOnScreen};
use crate::theme::Line;
use crate::traces::{LaneRef, OpRef, Spot};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::style::Style;
use streamsan_model::{OpSeq, Place};

/// Edges of one direction that are drawn.
const MOST: usize = 6;
/// Columns of a run along the rows in which the missing edge is named.
const NAMED: usize = 16;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    x: u16,
    /// Lines of the row, from the first to that of the letters; the border, where the row is not on
    /// the screen.
    top: u16,
    bottom: u16,
    has_gap: bool,
    is_hidden: bool,
}

/// A line of cells from one end to the other, and how much it crosses.
struct Way {
    cells: Vec<(u16, u16)>,
    crossed: usize,
}

struct EdgeScreen<'a> {
    state: &'a State,
    theme: Theme,
    areas: &'a Areas,
    rows: &'a [RowOnScreen],
}

impl EdgeScreen<'_> {
    fn end(&self, spot: &Spot) -> Option<End> {
        let view = self.state.view()?;
        let grid = view.grid();
        let at = self.state.position_on(view.axis, spot)?;
        let area = self.areas.rows;
        let (left, right) = (area.x + self.areas.label, area.right());
        if left >= right || area.height == 0 {
            return None;
        }
        let x = match grid.column(at) {
            Some(column) => left.saturating_add(u16::try_from(column).ok()?).min(right - 1),
            None if at < grid.start => left,
            None => right - 1,
        };
        let border = |line| End { x, top: line, bottom: line, has_gap: false, is_hidden: true };
        Some(match self.row(spot.lane()) {
            Some(row) => End {
                x,
                top: area.y + row.top,
                bottom: area.y + row.letters(),
                has_gap: row.gap().is_some(),
                is_hidden: false,
            },
            None if self.is_above(spot.lane()) => border(area.y),
            None => border(area.bottom() - 1),
        })
    }

    fn row(&self, lane: LaneRef) -> Option<&RowOnScreen> {
        let place = self.state.open.as_ref()?.lane_place(lane)?;
        let is_it = |other: usize| other == place;
        self.rows.iter().find(|shown| shown.row.lane().is_some_and(is_it))
    }

    fn is_above(&self, lane: LaneRef) -> bool {
        let lane = self.state.open.as_ref().and_then(|open| open.lane_place(lane));
        let is_it = |place: usize| Some(place) == lane;
        let place = self.state.rows.iter().position(|row| row.lane().is_some_and(is_it));
        place.is_some_and(|place| place < self.state.scroll)
    }

    /// The gap below a row: the first line of the next one.
    fn gap_below(&self, end: End) -> Option<u16> {
        let next = (end.bottom + 1).checked_sub(self.areas.rows.y)?;
        let row = self.rows.iter().find(|row| row.top == next)?;
        row.gap().map(|gap| self.areas.rows.y + gap)
    }

    /// The line in which a connection leaves or reaches a row, from below or from above.
    fn exit(&self, end: End, below: bool) -> u16 {
        if end.is_hidden {
            return end.top;
        }
        match below {
            true => self.gap_below(end).unwrap_or(end.bottom),
            false if end.has_gap => end.top,
            false => end.bottom,
        }
    }

    /// The way that crosses the least.
    fn way(&self, from: End, to: End, buffer: &Buffer) -> Way {
        let down = to.bottom > from.bottom;
        let same = to.bottom == from.bottom && !from.is_hidden && !to.is_hidden;
        let (leave, reach) = if same {
            let line = if from.has_gap { from.top } else { from.bottom };
            (line, line)
        } else {
            (self.exit(from, down), self.exit(to, !down))
        };
        let (left, right) = (from.x.min(to.x), from.x.max(to.x));
        let near = (left..=right).rev().filter(|&x| x != from.x && x != to.x);
        let mut best: Option<Way> = None;
        for x in [to.x, from.x].into_iter().chain(near) {
            let corners = [
                (from.x, from.bottom),
                (from.x, leave),
                (x, leave),
                (x, reach),
                (to.x, reach),
                (to.x, to.bottom),
            ];
            let way = self.follow(&corners, [from, to], buffer);
            let is_clear = way.crossed == 0;
            if best.as_ref().is_none_or(|best| way.crossed < best.crossed) {
                best = Some(way);
            }
            if is_clear || leave == reach {
                break;
            }
        }
        best.unwrap_or(Way { cells: Vec::new(), crossed: 0 })
    }

    /// The cells from corner to corner, without those of the operations at the ends.
    fn follow(&self, corners: &[(u16, u16)], ends: [End; 2], buffer: &Buffer) -> Way {
        let is_own = |(x, y): (u16, u16)| {
            ends.iter()
                .any(|end| !end.is_hidden && x == end.x && (end.top..=end.bottom).contains(&y))
        };
        let mut way = Way { cells: Vec::new(), crossed: 0 };
        for pair in corners.windows(2) {
            let ((mut x, mut y), last) = (pair[0], pair[1]);
            loop {
                let here = (x, y);
                let is_free = buffer[here].symbol() == " ";
                if way.cells.last() != Some(&here) && (is_free || !is_own(here)) {
                    way.cells.push(here);
                    way.crossed += usize::from(!is_free);
                }
                if here == last {
                    break;
                }
                x = if x < last.0 {
                    x + 1
                } else if x > last.0 {
                    x - 1
                } else {
                    x
                };
                y = if y < last.1 {
                    y + 1
                } else if y > last.1 {
                    y - 1
                } else {
                    y
                };
            }
        }
        way
    }

    fn connect(&self, from: &Spot, to: &Spot, line: Line, style: Style, buffer: &mut Buffer) {
        let (Some(from), Some(to)) = (self.end(from), self.end(to)) else { return };
        if from.is_hidden && to.is_hidden {
            return;
        }
        let mut from = from;
        if from.is_hidden {
            // It comes from the border above its end.
            from.x = to.x;
        }
        let Way { cells, .. } = self.way(from, to, buffer);
        for (place, &(x, y)) in cells.iter().enumerate() {
            // Between the operation and the first cell there may be the operation's own bar.
            let start = if x == from.x { (from.x, from.bottom) } else { (from.x, y) };
            let before = place.checked_sub(1).map_or(start, |before| cells[before]);
            let after = cells.get(place + 1).copied();
            let symbol = self.symbol(line, before, (x, y), after, (to.x, to.bottom));
            let cell = &mut buffer[(x, y)];
            // Operations and names stay readable.
            if cell.symbol() == " " {
                cell.set_symbol(symbol).set_style(style);
            }
        }
    }

    /// The character of a cell of a way, by the cells around it; an arrow before the end.
    fn symbol(
        &self,
        line: Line,
        before: (u16, u16),
        (x, y): (u16, u16),
        after: Option<(u16, u16)>,
        end: (u16, u16),
    ) -> &'static str {
        let Some(after) = after else {
            return match (x.cmp(&end.0), y.cmp(&end.1)) {
                (std::cmp::Ordering::Equal, std::cmp::Ordering::Less) => self.theme.pick("▼", "v"),
                (std::cmp::Ordering::Equal, std::cmp::Ordering::Greater) => {
                    self.theme.pick("▲", "^")
                }
                (std::cmp::Ordering::Less, _) => self.theme.pick("▶", ">"),
                (std::cmp::Ordering::Greater, _) => self.theme.pick("◀", "<"),
                _ => line.across,
            };
        };
        let touches =
            |test: fn((u16, u16), (u16, u16)) -> bool| test(before, (x, y)) || test(after, (x, y));
        let left = touches(|other, here| other.0 < here.0);
        let right = touches(|other, here| other.0 > here.0);
        let above = touches(|other, here| other.1 < here.1);
        let below = touches(|other, here| other.1 > here.1);
        match (left, right, above, below) {
            (true, false, false, true) => line.left_down,
            (true, false, true, false) => line.left_up,
            (false, true, false, true) => line.right_down,
            (false, true, true, false) => line.right_up,
            (_, _, true, _) | (_, _, _, true) => line.across,
            _ => line.along,
        }
    }

    /// The number of a side, as the words about the race have it, above its letter.
    fn number(&self, spot: &Spot, number: &str, buffer: &mut Buffer) {
        if let Some(end) = self.end(spot).filter(|end| end.has_gap && !end.is_hidden) {
            buffer[(end.x, end.top)].set_symbol(number).set_style(self.theme.race());
        }
    }

    /// Names the missing edge where it runs along the rows.
    fn name(&self, line: Line, style: Style, buffer: &mut Buffer) {
        let area = self.areas.rows;
        let text = " no order ";
        for y in area.y..area.bottom() {
            let mut run = 0;
            for x in area.x + self.areas.label..area.right() {
                let is_part = buffer[(x, y)].symbol() == line.along
                    && buffer[(x, y)].fg == style.fg.unwrap_or_default();
                run = if is_part { run + 1 } else { 0 };
                if run == NAMED {
                    let at = x + 1 - NAMED as u16 + 3;
                    buffer.set_string(at, y, text, style);
                    return;
                }
            }
        }
    }
}

pub(super) fn draw(
    state: &State,
    theme: Theme,
    areas: &Areas,
    rows: &[RowOnScreen],
    buffer: &mut Buffer,
) {
    let screen = EdgeScreen { state, theme, areas, rows };
    let mut edge = theme.edge();
    if let Some((trace, finding)) = state.found() {
        let place = |g: OpSeq| state.place_of(OpRef { trace, g });
        let (first, second) = (place(finding.first.op), place(finding.second.op));
        if let (Some(first), Some(second)) = (first, second) {
            let (line, style) = (theme.missing_line(), theme.race_mark());
            screen.connect(&first, &second, line, style, buffer);
            screen.name(line, style, buffer);
            screen.number(&first, "1", buffer);
            screen.number(&second, "2", buffer);
        }
        // The path that falls short: up to where the second side knows the first one's stream.
        if let (Some(knows), Some(second)) = (finding.knows.and_then(place), second) {
            screen.connect(&knows, &second, theme.edge_line(), theme.dim(), buffer);
        }
        edge = theme.dim();
    }
    let Some(detail) = &state.selection else { return };
    let spot = |place: Place| Spot { trace: state.selected_trace, place };
    let here = spot(detail.place);
    for &(_, from) in detail.incoming.iter().take(MOST) {
        screen.connect(&spot(from), &here, theme.edge_line(), edge, buffer);
    }
    for &(_, to) in detail.outgoing.iter().take(MOST) {
        screen.connect(&here, &spot(to), theme.edge_line(), edge, buffer);
    }
}
