//! The list of findings.

use super::{line_of, put};
use crate::names;
use crate::state::{Focus, side_name};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use streamsan_model::Finding;
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

fn row(finding: &Finding, state: &State) -> String {
    let entities = state.open.as_ref().map(|open| &open.overview.entities);
    let side = |side: &streamsan_model::FindingAccess| {
        let on = match (side.stream, entities) {
            (Some(id), Some(entities)) => match entities.stream(id).and_then(|s| s.name.as_ref()) {
                Some(name) => printable(name).into_owned(),
                None => format!("stream {id}"),
            },
            (Some(id), None) => format!("stream {id}"),
            (None, _) => "host".to_owned(),
        };
        format!("#{} {} on {on}", side.op, side_name(side))
    };
    format!(
        "{:<6} {:<9} {:<3} {:<22} {}  {} | {}  {}",
        finding.severity.description(),
        finding.confidence.description(),
        finding.kind.description(),
        finding.class.description(),
        finding.fingerprint,
        side(&finding.first),
        side(&finding.second),
        names::extent(finding.overlap)
    )
}

/// The line that is selected.
pub(super) fn selected(state: &State) -> Option<String> {
    let place = *state.list.shown.get(state.list.cursor)?;
    Some(row(state.open.as_ref()?.findings.get(place)?, state))
}

pub(super) fn draw(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(open) = &state.open else { return };
    let words = state.list.words.join(" ");
    let filter = if words.is_empty() { String::new() } else { format!(", with {words:?}") };
    let headline = format!(
        "{} of {} by {}{filter}   Enter goes to one, S sorts, \\ filters",
        names::number(state.list.shown.len() as u64),
        names::plural(open.findings.len() as u64, "occurrence"),
        state.list.sort.description()
    );
    let top = line_of(area, 0);
    put(buffer, top, top.x, &headline, theme.dim());
    let first = first(state);
    let shown = state.list.shown.iter().enumerate().skip(first);
    for (line, (place, &index)) in (1..area.height).zip(shown) {
        let Some(finding) = open.findings.get(index) else { continue };
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
        put(buffer, row_area, x, &theme.plain(row(finding, state)), style);
    }
}
