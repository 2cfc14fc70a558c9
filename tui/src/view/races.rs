//! The list of findings.

use super::{line_of, put};
use crate::names;
use crate::state::{Focus, side_name};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use streamsan_model::FindingAccess;
use streamsan_names::printable;

/// The first line that is shown, so that the selected one is.
fn first(state: &State) -> usize {
    let height = state.pane_height().saturating_sub(1).max(1);
    state.list.cursor.saturating_sub(height - 1)
}

/// The place in the list of a line of the pane.
pub(crate) fn race_at(state: &State, line: usize) -> Option<usize> {
    let place = first(state) + line.checked_sub(1)?;
    (place < state.list.shown.len()).then_some(place)
}

fn row(place: usize, state: &State) -> Option<String> {
    let open = state.open.as_ref()?;
    let (trace, finding) = open.finding(place)?;
    let of = if open.are_several() {
        format!("{}  ", printable(&state.labels.get(trace)?.title))
    } else {
        String::new()
    };
    // Those that are accepted are neither new nor gone.
    let change = match (&state.side, state.change_of(finding)) {
        (None, _) => String::new(),
        (Some(_), None) => "  -   ".to_owned(),
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
        "{of}{:<6} {:<9} {:<3} {:<22} {}  {} | {}  {}",
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
    let first = first(state);
    let shown = state.list.shown.iter().enumerate().skip(first);
    for (line, (place, &index)) in (1..area.height).zip(shown) {
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
