//! Bytes of memory over the whole trace: all together, and the holders of most bytes, one a line,
//! above the columns of the minimap.

use super::{line_of, put};
use crate::names;
use crate::state::Focus;
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use streamsan_model::{FootprintSeries, Holder, OpGroup};
use streamsan_names::printable;

/// Lines of all bytes together, where there is room.
const TOTAL: u16 = 6;

/// Lines that the pane needs.
pub(super) fn lines(state: &State) -> usize {
    let series = state.footprint.known.as_ref().map_or(0, |(_, known)| known.series.len());
    2 + usize::from(TOTAL) + series
}

/// A holder in the few columns before its bytes: of a line of the program the file and the line.
fn short_name(holder: &Holder) -> String {
    match holder {
        Holder::Allocation(allocation) => {
            format!("{}{}", allocation.id, names::quoted(allocation.name.as_deref()))
        }
        Holder::Site(Some(site)) => {
            let place = site.split(" in ").next().unwrap_or(site);
            printable(place.rsplit('/').next().unwrap_or(place)).into_owned()
        }
        Holder::Site(None) => "no stack".to_owned(),
    }
}

/// A holder in full, and how much it holds.
fn in_full(series: &FootprintSeries) -> String {
    let who = match &series.holder {
        Holder::Allocation(allocation) => {
            let name = names::quoted(allocation.name.as_deref());
            format!("allocation {}{name}, {}", allocation.id, names::memory(allocation))
        }
        Holder::Site(Some(site)) => printable(site).into_owned(),
        Holder::Site(None) => "no stack was recorded".to_owned(),
    };
    let count = names::plural(series.allocations, "allocation");
    format!("{who}: at most {} at once, {count}", names::size(series.peak()))
}

/// The line that is selected, in words.
pub(super) fn selected(state: &State) -> Option<String> {
    let (_, footprint) = state.footprint.known.as_ref()?;
    footprint.series.get(state.footprint.cursor).map(in_full)
}

pub(super) fn draw(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let trace = state.footprint.trace;
    let known = state.footprint.known.as_ref().filter(|_| trace == state.trace_in_focus());
    let Some((by, footprint)) = known else {
        put(buffer, area, area.x, theme.pick("…", "."), theme.dim());
        return;
    };
    let peak = footprint.total.iter().copied().max().unwrap_or(0);
    let headline = format!(
        "bytes over the whole trace in issue order{}, {}: at most {} at once   S changes it, Enter \
         shows uses",
        super::of_trace(state, trace),
        by.description(),
        names::size(peak)
    );
    let top = line_of(area, 0);
    put(buffer, top, top.x, &theme.plain(headline), theme.dim());
    let label = state.areas().label;
    let left = area.x + label;
    let total = match area.height {
        0..=4 => 1,
        5..=9 => 2,
        10..=14 => 4,
        _ => TOTAL,
    };
    let chart = Rect { y: area.y + 1, height: total.min(area.height - 1), ..area };
    let all =
        Style { fg: theme.name(OpGroup::Memory, crate::theme::Depth::Front).fg, ..Style::new() };
    put(buffer, line_of(chart, 0), area.x + 1, &format!("all: {}", names::size(peak)), theme.dim());
    bars(&footprint.total, peak, left, chart, theme, all, buffer);
    let left_over = area.bottom().saturating_sub(chart.bottom());
    let list = Rect { y: chart.bottom(), height: left_over.saturating_sub(1), ..area };
    if let Some(words) = selected(state).filter(|_| left_over > 0) {
        put(buffer, line_of(area, area.height - 1), area.x, &theme.plain(words), theme.dim());
    }
    let first = state.footprint.cursor.saturating_sub(usize::from(list.height).saturating_sub(1));
    let kernel = theme.name(OpGroup::Kernel, crate::theme::Depth::Front);
    let shown = footprint.series.iter().enumerate().skip(first);
    for (line, (place, series)) in (0..list.height).zip(shown) {
        let row = line_of(list, line);
        let mut style = Style::new();
        if place == state.footprint.cursor {
            style = style.add_modifier(match state.focus {
                Focus::Pane => Modifier::REVERSED,
                Focus::Timeline => Modifier::UNDERLINED,
            });
        }
        draw_label(series, label, theme, style, row, buffer);
        bars(&series.bytes, series.peak(), left, row, theme, kernel, buffer);
    }
}

/// The name of a holder and the most that it held.
fn draw_label(
    series: &FootprintSeries,
    label: u16,
    theme: Theme,
    style: Style,
    row: Rect,
    buffer: &mut Buffer,
) {
    let size = names::size(series.peak());
    let wide = u16::try_from(size.len()).unwrap_or(0);
    let names = Rect { width: label.saturating_sub(wide + 2), ..row };
    let text = short_name(&series.holder);
    // Of a path the end tells places apart.
    let room = usize::from(names.width);
    let count = text.chars().count();
    let text: String = match &series.holder {
        Holder::Site(_) if count > room => text.chars().skip(count - room).collect(),
        _ => text,
    };
    put(buffer, names, row.x, &theme.plain(text), style);
    let sizes = Rect { width: label.saturating_sub(1), ..row };
    put(buffer, sizes, row.x + label.saturating_sub(wide + 1), &size, style);
}

/// Columns of bytes, each as high as its part of `peak`.
fn bars(
    bytes: &[u64],
    peak: u64,
    left: u16,
    area: Rect,
    theme: Theme,
    style: Style,
    buffer: &mut Buffer,
) {
    let glyphs = theme.bars();
    for (x, &bytes) in (left..area.right()).zip(bytes) {
        let room = u128::from(area.height) * 8;
        let eighths = (u128::from(bytes) * room).div_ceil(u128::from(peak.max(1)));
        let mut eighths = usize::try_from(eighths).unwrap_or(0);
        for y in (area.y..area.bottom()).rev() {
            if eighths == 0 {
                break;
            }
            buffer[(x, y)].set_symbol(glyphs[eighths.min(8)]).set_style(style);
            eighths = eighths.saturating_sub(8);
        }
    }
}
