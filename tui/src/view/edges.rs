//! Connections between rows: the edges of the selected operation, and the edge that a race lacks.

use crate::state::{Areas, Row};
use crate::theme::Line;
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::style::Style;
use streamsan_model::{LaneId, OpSeq, Place};

/// Edges of one direction that are drawn.
const MOST: usize = 6;

/// A place on the screen; outside of it, the border that it lies behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    x: u16,
    y: u16,
    /// Whether the row is above or below the visible rows.
    above: bool,
    below: bool,
}

struct EdgeScreen<'a> {
    state: &'a State,
    areas: &'a Areas,
    rows: &'a [(Row, bool)],
}

impl EdgeScreen<'_> {
    fn spot(&self, place: &Place) -> Option<Spot> {
        let view = self.state.view()?;
        let grid = view.grid();
        let at = place.on(view.axis)?;
        let (left, right) = (self.areas.rows.x + self.areas.label, self.areas.rows.right());
        if left >= right || self.areas.rows.height == 0 {
            return None;
        }
        let x = match grid.column(at) {
            Some(column) => left.saturating_add(u16::try_from(column).ok()?).min(right - 1),
            None if at < grid.start => left,
            None => right - 1,
        };
        let bottom = self.areas.rows.bottom() - 1;
        let (y, above, below) = match self.line(place.lane) {
            Some(line) => (self.areas.rows.y + line, false, false),
            None if self.is_above(place.lane) => (self.areas.rows.y, true, false),
            None => (bottom, false, true),
        };
        Some(Spot { x, y, above, below })
    }

    fn line(&self, lane: LaneId) -> Option<u16> {
        let overview = &self.state.open.as_ref()?.overview;
        let line = self.rows.iter().position(|(row, _)| {
            row.lane().is_some_and(|place| overview.lanes[place].id == lane)
        })?;
        u16::try_from(line).ok()
    }

    fn is_above(&self, lane: LaneId) -> bool {
        let Some(open) = &self.state.open else { return false };
        let place =
            self.state.rows.iter().position(|row| {
                row.lane().is_some_and(|place| open.overview.lanes[place].id == lane)
            });
        place.is_some_and(|place| place < self.state.scroll)
    }

    /// Along the row of `from`, then across the rows to `to`.
    fn connect(&self, from: &Place, to: &Place, line: Line, style: Style, buffer: &mut Buffer) {
        let (Some(from), Some(to)) = (self.spot(from), self.spot(to)) else { return };
        let put = |x: u16, y: u16, symbol: &str, buffer: &mut Buffer| {
            let cell = &mut buffer[(x, y)];
            // Operations and names stay readable.
            if cell.symbol() == " " {
                cell.set_symbol(symbol).set_style(style);
            }
        };
        let hidden = from.above || from.below;
        if !hidden {
            let (first, last) = (from.x.min(to.x), from.x.max(to.x));
            for x in first + 1..last {
                put(x, from.y, line.along, buffer);
            }
        }
        if from.y == to.y {
            return;
        }
        let corner = match (to.y > from.y, to.x < from.x) {
            (true, false) => line.down,
            (false, false) => line.up,
            (true, true) => line.left_down,
            (false, true) => line.left_up,
        };
        put(to.x, from.y, if hidden { line.across } else { corner }, buffer);
        for y in from.y.min(to.y) + 1..from.y.max(to.y) {
            put(to.x, y, line.across, buffer);
        }
        if to.above || to.below {
            put(to.x, to.y, line.across, buffer);
        }
    }
}

pub(super) fn draw(
    state: &State,
    theme: Theme,
    areas: &Areas,
    rows: &[(Row, bool)],
    buffer: &mut Buffer,
) {
    let screen = EdgeScreen { state, areas, rows };
    if let Some(finding) = state.current_finding() {
        let place = |g: OpSeq| state.place_of(g);
        let second = place(finding.second.op);
        if let (Some(first), Some(second)) = (place(finding.first.op), second) {
            let line = theme.missing_line();
            screen.connect(&first, &second, line, theme.race_mark(), buffer);
        }
        // The path that falls short: up to where the second side knows the first one's stream.
        if let (Some(knows), Some(second)) = (finding.knows.and_then(place), second) {
            screen.connect(&knows, &second, theme.edge_line(), theme.dim(), buffer);
        }
    }
    let Some(detail) = &state.selection else { return };
    for (_, from) in detail.incoming.iter().take(MOST) {
        screen.connect(from, &detail.place, theme.edge_line(), theme.edge(), buffer);
    }
    for (_, to) in detail.outgoing.iter().take(MOST) {
        screen.connect(&detail.place, to, theme.edge_line(), theme.edge(), buffer);
    }
}
