//! The NVTX ranges of a host thread, in lines above its row: one a depth, outermost first.

use super::{line_of, put, put_cut};
use crate::names;
use crate::state::Areas;
use crate::traces::LaneRef;
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use streamsan_model::Grid;

/// Draws a depth of a row's ranges on a line of the timelines. Each range begins with a bar and its
/// name, and a line goes on to its end; columns of several ranges are shaded.
pub(super) fn draw(
    state: &State,
    theme: Theme,
    areas: &Areas,
    (lane, depth, line): (LaneRef, u32, u16),
    buffer: &mut Buffer,
) {
    let area = line_of(areas.rows, line);
    if depth == 0 {
        let room = Rect { width: areas.label.saturating_sub(1).min(area.width), ..area };
        put(buffer, room, area.x + 2, "ranges", theme.dim());
    }
    let (Some(view), Some(loaded)) = (state.view(), state.strips.grid) else { return };
    let grid = view.grid();
    if loaded.axis != grid.axis {
        return;
    }
    let spans = state.strips.ranges.get(&lane).and_then(|ranges| ranges.get(depth as usize));
    for span in spans.into_iter().flatten() {
        let [start, end] = [span.start, span.end].map(|column| moved(loaded, grid, column));
        let x = area.x + areas.label + start;
        let width = end.saturating_sub(start).min(area.right().saturating_sub(x));
        let area = Rect { x, width, ..area };
        if area.is_empty() {
            continue;
        }
        let Some(name) = &span.name else {
            put(buffer, area, x, &theme.pick("▒", "#").repeat(width.into()), theme.dim());
            continue;
        };
        put(buffer, area, x, &theme.pick("─", "-").repeat(width.into()), theme.dim());
        let after = put(buffer, area, x, theme.pick("▏", "|"), theme.dim());
        let room = Rect { x: after, width: area.right().saturating_sub(after), ..area };
        put_cut(buffer, room, &names::range(name), theme, Style::new());
    }
}

/// Where a column of the window that was answered lies in the one that is shown.
fn moved(loaded: Grid, grid: Grid, column: u32) -> u16 {
    let column = match loaded.position(column) {
        _ if loaded == grid => column,
        at if at <= grid.start => 0,
        at => grid.column(at).unwrap_or(grid.columns),
    };
    u16::try_from(column).unwrap_or(u16::MAX)
}
