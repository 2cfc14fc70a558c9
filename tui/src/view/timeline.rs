//! Title, ruler and race marks; the rows are drawn between them.

use super::{edges, minimap, put, rows};
use crate::live::Phase;
use crate::names;
use crate::state::{Areas, Change};
use crate::traces::{OpRef, Opened, Spot};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use std::collections::HashSet;
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
    draw_race_marks(state, theme, areas, buffer);
    let shown = state.visible_rows();
    rows::draw(state, theme, areas, &shown, buffer);
    edges::draw(state, theme, areas, &shown, buffer);
    rows::draw_selection(state, theme, areas, &shown, buffer);
}

/// The name of the trace, or how many there are.
fn title(state: &State) -> String {
    match state.labels.as_slice() {
        [label] => label.title.clone(),
        labels => names::plural(labels.len() as u64, "trace"),
    }
}

fn draw_title(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    // A long name leaves room for what the trace holds.
    let room = Rect { width: area.width - area.width / 2, ..area };
    let mut x = area.x;
    if let Some(side) = &state.side {
        let style = if side.has_focus { bold.add_modifier(Modifier::REVERSED) } else { bold };
        x = put(buffer, area, x, &format!(" {} ", side.name), style) + 1;
    }
    x = put(buffer, room, x, &title(state), bold);
    if x == room.right() && x > area.x {
        put(buffer, room, x - 1, theme.pick("…", "."), bold);
    }
    let Some(open) = &state.open else { return };
    let streams: u64 = open.iter().map(Opened::streams).sum();
    let operations = open.iter().map(|opened| opened.overview.operations).sum();
    let dot = theme.pick(" · ", " | ");
    if let Some(changes) = state.changes_in_words() {
        x = put(buffer, area, x + 2, &changes, theme.race_mark());
    }
    let text = format!(
        "  {}{dot}{}{dot}",
        names::plural(operations, "operation"),
        names::plural(streams, "stream"),
    );
    x = put(buffer, area, x, &text, Style::new());
    let races = names::races(state.list.tally);
    let counts = state.list.tally.mistakes() > state.list.tally.upstream;
    let style = if counts { theme.race_mark() } else { Style::new() };
    x = put(buffer, area, x, &races, style);
    if open.iter().any(|opened| !opened.overview.incomplete.is_empty()) {
        x = put(buffer, area, x, &format!("{dot}incomplete (4)"), theme.race_mark());
    }
    let host = open.iter().filter_map(|opened| opened.overview.host_accesses.as_ref());
    // Of several traces, the one of which least is known.
    if let Some(host) = host.max_by_key(|host| host.word() != "complete") {
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
        let ends = [from, to].map(|point| state.position_on(grid.axis, &point.spot()));
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
        if let Some(x) = x_of(state, areas, &point.spot()) {
            let style = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
            buffer[(x, area.y)].set_char(*letter).set_style(style);
        }
    }
}

/// What became of the findings between two traces, where their sides are: what is new or gone is seen
/// before what is the same.
fn draw_changes(state: &State, theme: Theme, areas: &Areas, buffer: &mut Buffer) {
    let Some(open) = &state.open else { return };
    let mut changes: Vec<(Change, OpRef)> = Vec::new();
    for (trace, finding) in open.findings() {
        let Some(change) = state.change_of(finding) else { continue };
        let sides = [finding.first.op, finding.second.op];
        changes.extend(sides.map(|g| (change, OpRef { trace, g })));
    }
    changes.sort_by_key(|&(change, _)| std::cmp::Reverse(change));
    for (change, op) in changes {
        let x = state.place_of(op).and_then(|spot| x_of(state, areas, &spot));
        if let Some(x) = x {
            let cell = &mut buffer[(x, areas.races.y)];
            cell.set_symbol(change.sign());
            if change == Change::Same {
                cell.set_style(theme.dim());
            }
        }
    }
}

pub(super) fn x_of(state: &State, areas: &Areas, spot: &Spot) -> Option<u16> {
    Some(areas.ruler.x + areas.label + u16::try_from(state.column_of(spot)?).ok()?)
}

/// Every column in which some row, shown or not, has a side of a finding.
fn draw_race_marks(state: &State, theme: Theme, areas: &Areas, buffer: &mut Buffer) {
    let area = areas.races;
    if area.height == 0 {
        return;
    }
    let count = state.race_places.len();
    put(buffer, area, area.x, if count == 0 { "no races" } else { "races" }, theme.dim());
    // What is known upstream and does not count is told, and stands back.
    for spot in &state.accepted_places {
        if let Some(x) = x_of(state, areas, spot) {
            buffer[(x, area.y)].set_symbol(theme.pick("▽", "'")).set_style(theme.dim());
        }
    }
    let accepted: HashSet<&Spot> = state.accepted_places.iter().collect();
    for spot in state.race_places.iter().filter(|spot| !accepted.contains(spot)) {
        if let Some(x) = x_of(state, areas, spot) {
            buffer[(x, area.y)].set_symbol(theme.pick("▼", "v")).set_style(theme.race_mark());
        }
    }
    if state.side.is_some() {
        draw_changes(state, theme, areas, buffer);
    }
}
