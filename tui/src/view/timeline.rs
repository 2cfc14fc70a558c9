//! Title, ruler and race marks; the rows are drawn between them.

use super::{edges, minimap, put, rows};
use crate::live::Phase;
use crate::names;
use crate::state::{Areas, Point};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use streamsan_model::Grid;

/// Columns from one label of the ruler to the next.
const TICK: u32 = 18;

pub(super) fn draw(state: &State, theme: Theme, areas: &Areas, buffer: &mut Buffer) {
    draw_title(state, theme, areas.title, buffer);
    let (Some(_), Some(view)) = (&state.open, state.view()) else {
        let text = match &state.open {
            None => "reading the trace",
            Some(_) if state.is_running() => "no driver calls yet",
            Some(_) if state.has_no_cuda() => "NO CUDA: the trace holds no driver call",
            Some(_) => "no operations",
        };
        put(buffer, areas.rows, areas.rows.x, text, theme.dim());
        return;
    };
    let grid = view.grid();
    minimap::draw(state, theme, areas, buffer);
    draw_ruler(state, theme, areas, grid, buffer);
    draw_race_marks(state, theme, areas, grid, buffer);
    let shown = state.visible_rows();
    rows::draw(state, theme, areas, &shown, buffer);
    edges::draw(state, theme, areas, &shown, buffer);
    rows::draw_selection(state, theme, areas, &shown, buffer);
}

fn draw_title(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    // A long name leaves room for what the trace holds.
    let room = Rect { width: area.width - area.width / 2, ..area };
    let mut x = put(buffer, room, area.x, &state.title, bold);
    if x == room.right() && x > area.x {
        put(buffer, room, x - 1, theme.pick("…", "."), bold);
    }
    let Some(open) = &state.open else { return };
    let streams = open.overview.lanes.iter().filter(|lane| lane.stream.is_some()).count();
    let dot = theme.pick(" · ", " | ");
    let text = format!(
        "  {}{dot}{}{dot}",
        names::plural(open.overview.operations, "operation"),
        names::plural(streams as u64, "stream"),
    );
    x = put(buffer, area, x, &text, Style::new());
    let races = names::races(state.list.tally);
    let counts = state.list.tally.mistakes() > state.list.tally.upstream;
    let style = if counts { theme.race_mark() } else { Style::new() };
    x = put(buffer, area, x, &races, style);
    if !open.overview.incomplete.is_empty() {
        x = put(buffer, area, x, &format!("{dot}incomplete (4)"), theme.race_mark());
    }
    if let Some(host) = &open.overview.host_accesses {
        x = put(buffer, area, x, &format!("{dot}host {} (4)", host.word()), Style::new());
    }
    if let Some(live) = &state.live {
        let text = match (&live.phase, live.follow) {
            (Phase::Running, true) => "running, following (F)".to_owned(),
            (Phase::Running, false) => "running (F follows)".to_owned(),
            (Phase::Finishing, _) => "ended, finishing the trace".to_owned(),
            (Phase::Ended(words), _) => words.clone(),
        };
        x = put(buffer, area, x, &format!("{dot}{text}"), bold);
    }
    if let Some(axis) = state.axis {
        let text = format!("axis: {}", axis.description());
        let wide = u16::try_from(text.len()).unwrap_or(u16::MAX);
        let at = area.right().saturating_sub(wide);
        if at > x + 1 {
            put(buffer, area, at, &text, bold);
        }
    }
}

fn draw_ruler(state: &State, theme: Theme, areas: &Areas, grid: Grid, buffer: &mut Buffer) {
    let area = areas.ruler;
    put(buffer, area, area.x, grid.axis.description(), theme.dim());
    let view_end = state.view().map_or(0, |view| view.span.end);
    let mut last = None;
    for column in (0..grid.columns).step_by(TICK as usize) {
        let at = grid.position(column);
        if at >= view_end {
            break;
        }
        // Where a position is wider than what lies between two labels, one will do.
        if last.replace(at) == Some(at) {
            continue;
        }
        let text = format!("{}{}", theme.pick("╷", "|"), names::position(grid.axis, at));
        let text = theme.plain(text);
        let x = area.x + areas.label + column as u16;
        let room =
            Rect { width: (x + TICK as u16).min(area.right()).saturating_sub(area.x), ..area };
        put(buffer, room, x, &text, theme.dim());
    }
    if area.height == 0 {
        return;
    }
    if let Some((from, to)) = state.area_ends() {
        let ends = [from, to].map(|point| point.place.on(grid.axis));
        if let [Some(from), Some(to)] = ends {
            for column in 0..grid.columns {
                let (begin, end) = (grid.position(column), grid.position(column + 1));
                if (begin <= to && end > from) || grid.column(to) == Some(column) {
                    let cell = &mut buffer[(area.x + areas.label + column as u16, area.y)];
                    cell.set_style(Style::new().add_modifier(Modifier::REVERSED));
                }
            }
        }
    }
    for (letter, point) in &state.marks {
        if let Some(x) = x_of(areas, grid, point) {
            let style = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
            buffer[(x, area.y)].set_char(*letter).set_style(style);
        }
    }
}

pub(super) fn x_of(areas: &Areas, grid: Grid, point: &Point) -> Option<u16> {
    let column = grid.column(point.place.on(grid.axis)?)?;
    Some(areas.ruler.x + areas.label + u16::try_from(column).ok()?)
}

/// Every column in which some row, shown or not, has a side of a finding.
fn draw_race_marks(state: &State, theme: Theme, areas: &Areas, grid: Grid, buffer: &mut Buffer) {
    let area = areas.races;
    if area.height == 0 {
        return;
    }
    let count = state.race_places.len();
    put(buffer, area, area.x, if count == 0 { "no races" } else { "races" }, theme.dim());
    for place in &state.race_places {
        let column = place.on(grid.axis).and_then(|at| grid.column(at));
        if let Some(column) = column.and_then(|c| u16::try_from(c).ok()) {
            let x = area.x + areas.label + column;
            buffer[(x, area.y)].set_symbol(theme.pick("▼", "v")).set_style(theme.race_mark());
        }
    }
}
