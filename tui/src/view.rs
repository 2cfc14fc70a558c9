//! The state as cells of the screen. Invariant: a frame depends on the state alone, and its cost
//! follows the size of the screen.

mod bytes;
mod details;
mod edges;
mod explanation;
mod help;
mod legend;
mod memory;
mod minimap;
mod panes;
mod races;
mod ranges;
mod rows;
mod statistics;
mod status;
mod styled;
mod timeline;

pub(crate) use help::help_lines;
pub(crate) use panes::{pane_lines, pane_wants, selected_text, tab_at};
pub(crate) use races::race_at;

use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use streamsan_names::{printable, printable_line};

/// Draws the state.
pub fn render(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    if let Some(first) = state.help {
        return help::draw(first, theme, area, buffer);
    }
    let areas = state.areas();
    timeline::draw(state, theme, &areas, buffer);
    panes::draw(state, theme, areas.pane, buffer);
    legend::draw(state, theme, areas.legend, buffer);
    status::draw(state, theme, areas.status, buffer);
    status::draw_palette(state, theme, area, buffer);
}

/// A trace among several: its name and what tells it from the others.
fn trace_in_words(state: &State, trace: usize) -> String {
    let Some(label) = state.labels.get(trace) else { return String::new() };
    let about = if label.about.is_empty() { "" } else { "  " };
    format!("{}{about}{}", printable(&label.title), printable(&label.about))
}

/// ` of rank1.db`, where there are several traces.
fn of_trace(state: &State, trace: usize) -> String {
    match state.labels.get(trace) {
        Some(label) if state.labels.len() > 1 => format!(" of {}", printable(&label.title)),
        _ => String::new(),
    }
}

/// Writes a line of text, cut at the end of its area. No control character and no invisible
/// character gets into the buffer.
fn put(buffer: &mut Buffer, area: Rect, x: u16, text: &str, style: Style) -> u16 {
    if area.height == 0 || x >= area.right() {
        return x;
    }
    let text = printable_line(text);
    buffer.set_stringn(x, area.y, text, usize::from(area.right() - x), style).0
}

/// The same; text that does not fit ends in a mark, so that no part of a name passes for the name.
fn put_cut(buffer: &mut Buffer, area: Rect, text: &str, theme: Theme, style: Style) {
    let text = theme.plain(text.to_owned());
    put(buffer, area, area.x, &text, style);
    let is_cut = Line::raw(printable_line(&text)).width() > usize::from(area.width);
    if is_cut && area.width > 0 {
        put(buffer, area, area.right() - 1, theme.pick("…", "."), style);
    }
}

/// The same, cut in the middle: the end of a place says most.
fn put_cut_inside(buffer: &mut Buffer, area: Rect, text: &str, theme: Theme, style: Style) {
    let text = printable_line(text);
    let (length, room) = (text.chars().count(), usize::from(area.width));
    if length <= room || room < 4 {
        return put_cut(buffer, area, &text, theme, style);
    }
    let end = room / 2;
    let begin: String = text.chars().take(room - end - 1).collect();
    let end: String = text.chars().skip(length - end).collect();
    put_cut(buffer, area, &format!("{begin}…{end}"), theme, style);
}

/// A line of an area.
fn line_of(area: Rect, line: u16) -> Rect {
    Rect { y: area.y + line, height: u16::from(line < area.height), ..area }
}
