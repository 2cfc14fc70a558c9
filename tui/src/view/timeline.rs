//! Title, minimap, ruler, race marks and rows.

use super::{edges, line_of, put};
use crate::live::Phase;
use crate::names;
use crate::state::{Areas, Point, Row};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use streamsan_model::{Cell, Grid, Overview};

/// Columns from one label of the ruler to the next.
const TICK: u32 = 18;

pub(super) fn draw(state: &State, theme: Theme, areas: &Areas, buffer: &mut Buffer) {
    draw_title(state, theme, areas.title, buffer);
    let (Some(open), Some(view)) = (&state.open, state.view()) else {
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
    draw_minimap(state, theme, areas, buffer);
    draw_ruler(state, theme, areas, grid, buffer);
    draw_race_marks(state, theme, areas, grid, buffer);
    let rows = state.visible_rows();
    for (line, &(row, pinned)) in (0..areas.rows.height).zip(&rows) {
        let area = line_of(areas.rows, line);
        match row {
            Row::Lane(lane) => {
                draw_label(state, theme, &open.overview, area, areas.label, lane, pinned, buffer);
                draw_cells(state, theme, area, areas.label, open.overview.lanes[lane].id, buffer);
            }
            row => draw_headline(theme, &open.overview, area, row, buffer),
        }
    }
    edges::draw(state, theme, areas, &rows, buffer);
    draw_selection(state, areas, &rows, grid, buffer);
}

fn draw_title(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut x = put(buffer, area, area.x, &state.title, bold);
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
    let style = if open.findings.is_empty() { Style::new() } else { theme.race_mark() };
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

fn draw_minimap(state: &State, theme: Theme, areas: &Areas, buffer: &mut Buffer) {
    let area = areas.minimap;
    put(buffer, area, area.x, "trace", theme.dim());
    let Some(view) = state.view() else { return };
    let Some((axis, columns, cells)) = &state.minimap else { return };
    if *axis != view.axis || area.height == 0 || *columns == 0 {
        return;
    }
    let most = cells.iter().map(|cell| cell.operations).max().unwrap_or(1).max(2);
    let bars = theme.bars();
    for cell in cells {
        let Some(x) = u16::try_from(cell.column).ok().map(|column| area.x + areas.label + column)
        else {
            continue;
        };
        if x >= area.right() {
            continue;
        }
        if cell.findings > 0 {
            buffer[(x, area.y)].set_symbol("!").set_style(theme.race_mark());
        } else {
            // Logarithmic, so that a few operations are seen beside many.
            let height = f64::from(cell.operations.max(1) as f32).ln_1p() / (most as f64).ln_1p();
            let level = (height * (bars.len() - 1) as f64).ceil() as usize;
            let bar = bars[level.clamp(1, bars.len() - 1)];
            buffer[(x, area.y)].set_symbol(bar).set_style(theme.dim());
        }
    }
    // The timelines' content.
    let shown = view.shown();
    let column = |at: u64| -> u16 {
        let offset = u128::from(at.saturating_sub(view.span.start)) * u128::from(*columns);
        u16::try_from(offset / u128::from(view.span.len().max(1))).unwrap_or(u16::MAX)
    };
    let (first, last) = (column(shown.start), column(shown.end.saturating_sub(1)));
    for column in first..=last.min(first.saturating_add(2000)) {
        let x = area.x.saturating_add(areas.label).saturating_add(column);
        if x < area.right() {
            let cell = &mut buffer[(x, area.y)];
            cell.set_style(Style::new().add_modifier(Modifier::REVERSED));
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

fn x_of(areas: &Areas, grid: Grid, point: &Point) -> Option<u16> {
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

fn draw_headline(theme: Theme, overview: &Overview, area: Rect, row: Row, buffer: &mut Buffer) {
    let text = match row {
        Row::Process(id) => names::process(&overview.entities, id),
        Row::Context(id) => match overview.entities.context(id) {
            Some(context) if context.primary => {
                format!("  device {} (context {id})", context.device)
            }
            Some(context) => format!("  context {id} on device {}", context.device),
            None => format!("  context {id}"),
        },
        Row::Lane(_) => return,
    };
    let style = theme.dim().add_modifier(Modifier::UNDERLINED);
    put(buffer, area, area.x, &text, style);
}

#[expect(clippy::too_many_arguments, reason = "where and what of one line")]
fn draw_label(
    state: &State,
    theme: Theme,
    overview: &Overview,
    area: Rect,
    label: u16,
    lane: usize,
    pinned: bool,
    buffer: &mut Buffer,
) {
    let selected = state.selected_lane() == Some(lane);
    let mut style = Style::new();
    if selected {
        style = style.add_modifier(Modifier::REVERSED);
    }
    let mark = match (pinned, selected) {
        (true, _) => "^",
        (false, true) => ">",
        (false, false) => " ",
    };
    let room = Rect { width: label.saturating_sub(1), ..area };
    let name = theme.plain(names::lane(&overview.entities, &overview.lanes[lane]));
    let x = put(buffer, room, area.x, mark, style);
    put(buffer, room, x, &name, style);
}

/// The cells of a row. Those of another window than the one shown are put where they would lie.
fn draw_cells(
    state: &State,
    theme: Theme,
    area: Rect,
    label: u16,
    lane: streamsan_model::LaneId,
    buffer: &mut Buffer,
) {
    let (Some(view), Some(loaded)) = (state.view(), state.strips.grid) else { return };
    let grid = view.grid();
    let Some(cells) = state.strips.cells.get(&lane).filter(|_| loaded.axis == grid.axis) else {
        return;
    };
    let column_of = |cell: &Cell| {
        if loaded == grid { Some(cell.column) } else { grid.column(loaded.position(cell.column)) }
    };
    for (place, cell) in cells.iter().enumerate() {
        let Some(column) = column_of(cell).and_then(|column| u16::try_from(column).ok()) else {
            continue;
        };
        let x = area.x + label + column;
        if x >= area.right() {
            continue;
        }
        if cell.findings > 0 {
            buffer[(x, area.y)].set_symbol("!").set_style(theme.race());
        } else {
            let letter = Theme::letter(cell.group, cell.operations > 1);
            buffer[(x, area.y)].set_symbol(letter).set_style(theme.block(cell.group));
        }
        if let Some(name) = cell.name.as_ref().filter(|_| loaded == grid) {
            let next = cells.get(place + 1).map_or(grid.columns, |next| next.column);
            let room = u16::try_from(next).unwrap_or(u16::MAX).saturating_sub(1);
            let end = area.x.saturating_add(label).saturating_add(room).min(area.right());
            let room = Rect { width: end.saturating_sub(area.x), ..area };
            let x = put(buffer, room, x + 1, theme.behind_letter(), Style::new());
            put(buffer, room, x, name, theme.name(cell.group));
        }
    }
}

/// The selected operation, in all lines that show its row.
fn draw_selection(
    state: &State,
    areas: &Areas,
    rows: &[(Row, bool)],
    grid: Grid,
    buffer: &mut Buffer,
) {
    let (Some(point), Some(open)) = (state.selected_point(), &state.open) else { return };
    let Some(x) = x_of(areas, grid, &point) else { return };
    for (line, (row, _)) in (0..areas.rows.height).zip(rows) {
        let lane = row.lane().map(|lane| open.overview.lanes[lane].id);
        if lane == Some(point.place.lane) {
            let style = Style::new()
                .add_modifier(Modifier::BOLD | Modifier::UNDERLINED | Modifier::REVERSED);
            let cell = &mut buffer[(x, areas.rows.y + line)];
            if cell.symbol() == " " {
                cell.set_symbol("?");
            }
            cell.set_style(style);
        }
    }
}
