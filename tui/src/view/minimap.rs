//! The whole of the trace in a line or two, with every column of a race.

use super::put;
use crate::state::Areas;
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use streamsan_model::Span;

pub(super) fn draw(state: &State, theme: Theme, areas: &Areas, buffer: &mut Buffer) {
    let area = areas.minimap;
    put(buffer, Rect { height: area.height.min(1), ..area }, area.x, "trace", theme.dim());
    let Some(view) = state.view() else { return };
    let Some((axis, columns, cells)) = &state.minimap else { return };
    if *axis != view.axis || area.height == 0 || *columns == 0 {
        return;
    }
    let left = area.x + areas.label;
    // The timelines' content.
    let Span { start, end } = view.shown();
    let column = |at: u64| -> u16 {
        let offset = u128::from(at.saturating_sub(view.span.start)) * u128::from(*columns);
        u16::try_from(offset / u128::from(view.span.len().max(1))).unwrap_or(u16::MAX)
    };
    let (first, last) = (column(start), column(end.saturating_sub(1)));
    // Where the rows show all, nothing stands out.
    let is_part = (start, end) != (view.span.start, view.span.end);
    for column in (first..=last.min(area.width)).filter(|_| is_part) {
        let x = left.saturating_add(column);
        for y in area.y..area.bottom() {
            if x < area.right() {
                buffer[(x, y)].set_style(theme.shown());
            }
        }
    }
    let most = cells.iter().map(|cell| cell.operations).max().unwrap_or(1).max(2);
    let bars = theme.bars();
    for cell in cells {
        let Some(x) = u16::try_from(cell.column).ok().map(|column| left + column) else { continue };
        if x >= area.right() {
            continue;
        }
        // By the root, so that a few operations are seen beside many.
        let part = (cell.operations.max(1) as f64 / most as f64).sqrt();
        let mut eighths = (part * 8.0 * f64::from(area.height)).ceil().max(1.0) as usize;
        let is_shown = is_part && (first..=last).contains(&(x - left));
        for y in (area.y..area.bottom()).rev() {
            let cell_at = &mut buffer[(x, y)];
            if cell.findings > 0 {
                cell_at.set_symbol("!").set_style(theme.race());
                continue;
            }
            let bar = bars[eighths.min(8)];
            eighths = eighths.saturating_sub(8);
            cell_at.set_symbol(bar);
            if !is_shown {
                cell_at.set_style(theme.minimap(cell.group));
            }
        }
    }
}
