//! The list of findings.

use super::{line_of, put};
use crate::names;
use crate::state::{Focus, SortBy, side_name};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use streamsan_model::FindingAccess;
use streamsan_names::printable;

/// Lines above the list where there is room: what is listed, and the names of the columns.
pub(super) const WANTED_HEADS: usize = 2;
/// Lines of a pane that has room for the names of the columns.
const ROOMY: usize = 6;

fn heads(state: &State) -> usize {
    if state.pane_height() >= ROOMY { WANTED_HEADS } else { 1 }
}

/// The first line that is shown, so that the selected one is.
fn first(state: &State) -> usize {
    let height = state.pane_height().saturating_sub(heads(state)).max(1);
    state.list.cursor.saturating_sub(height - 1)
}

/// The columns: name, width, and by which orders the list is sorted by them.
const COLUMNS: [(&str, usize, &[SortBy]); 7] = [
    ("severity", 8, &[SortBy::Gravity]),
    ("confidence", 10, &[SortBy::Gravity]),
    ("kind", 3, &[]),
    ("class", 22, &[SortBy::Class]),
    ("id", 8, &[SortBy::Mistake]),
    ("first | later access", 20, &[SortBy::Issue, SortBy::Kernel]),
    ("bytes", 5, &[]),
];

/// Columns of the names of traces, where there are several.
fn name_width(state: &State) -> usize {
    let several = state.labels.len() > 1;
    let longest = state.labels.iter().map(|label| label.title.chars().count()).max();
    longest.filter(|_| several).map_or(0, |width| width.min(24) + 2)
}

/// The names of the columns; the one that the list is sorted by stands out.
fn draw_columns(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let change = if state.side.is_some() { 8 } else { 0 };
    let mut at = area.x + 1 + (name_width(state) + change) as u16;
    for (name, width, sorts) in COLUMNS {
        let style = match sorts.contains(&state.list.sort) {
            true => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            false => theme.dim(),
        };
        put(buffer, area, at, name, style);
        at = at.saturating_add(width.max(name.len()) as u16 + 1);
    }
}

/// The place in the list of a line of the pane.
pub(crate) fn race_at(state: &State, line: usize) -> Option<usize> {
    let place = first(state) + line.checked_sub(heads(state))?;
    (place < state.list.shown.len()).then_some(place)
}

fn row(place: usize, state: &State) -> Option<String> {
    let open = state.open.as_ref()?;
    let (trace, finding) = open.finding(place)?;
    let of = if open.are_several() {
        let width = name_width(state).saturating_sub(2);
        format!("{:<width$}  ", printable(&state.labels.get(trace)?.title))
    } else {
        String::new()
    };
    // Those that are accepted are neither new nor gone.
    let change = match (&state.side, state.change_of(finding)) {
        (None, _) => String::new(),
        (Some(_), None) => " ".repeat(6),
        (Some(_), Some(change)) => format!("{} {:<4}", change.sign(), change.description()),
    };
    let of = if change.is_empty() { of } else { format!("{of}{change}  ") };
    let open = open.of(trace);
    let is_known = state.list.upstream.get(place).is_some_and(|&is_known| is_known);
    let side = |side: &FindingAccess| {
        let name = side_name(side, &open.overview.entities);
        match side.stream {
            Some(id) => format!("#{} {name} in {}", side.op, open.stream(id)),
            None => format!("#{} {name}", side.op),
        }
    };
    Some(format!(
        "{of}{:<8} {:<10} {:<4} {:<22} {} {} | {}  {}",
        if is_known { "known" } else { finding.severity.description() },
        finding.confidence.description(),
        finding.kind.description(),
        finding.class.description(),
        finding.fingerprint,
        side(&finding.first),
        side(&finding.second),
        names::extent(finding.overlap)
    ))
}

/// The line that is selected.
pub(super) fn selected(state: &State) -> Option<String> {
    let place = *state.list.shown.get(state.list.cursor)?;
    row(place, state)
}

pub(super) fn draw(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(open) = &state.open else { return };
    let words = state.list.words.join(" ");
    let filter = if words.is_empty() { String::new() } else { format!(", with {words:?}") };
    let headline = format!(
        "{} of {} by {}{filter}   Enter goes to one, S sorts, \\ filters",
        names::number(state.list.shown.len() as u64),
        names::plural(open.findings().count() as u64, "occurrence"),
        state.list.sort.description()
    );
    let top = line_of(area, 0);
    put(buffer, top, top.x, &headline, theme.dim());
    let heads = u16::try_from(heads(state)).unwrap_or(1);
    if heads > 1 {
        draw_columns(state, theme, line_of(area, 1), buffer);
    }
    let first = first(state);
    let shown = state.list.shown.iter().enumerate().skip(first);
    for (line, (place, &index)) in (heads..area.height).zip(shown) {
        let Some(text) = row(index, state) else { continue };
        let mut style = Style::new();
        if place == state.list.cursor {
            style = style.add_modifier(if state.focus == Focus::Pane {
                Modifier::REVERSED
            } else {
                Modifier::UNDERLINED
            });
        }
        let here = if state.finding == Some(index) { ">" } else { " " };
        let row_area = line_of(area, line);
        let x = put(buffer, row_area, row_area.x, here, theme.race_mark());
        put(buffer, row_area, x, &theme.plain(text), style);
    }
}
