//! The last line, and the list of commands above it.

use super::put;
use crate::names;
use crate::state::{InputKind, Pending, Point, side_name};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Clear, Widget};
use streamsan_model::Axis;
use streamsan_names::printable;

/// Commands that the palette lists.
const CHOICES: usize = 8;

pub(super) fn draw(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if let Some(input) = &state.input {
        let x = put(buffer, area, area.x, input.kind.description(), theme.dim());
        let x = put(buffer, area, x, &theme.plain(input.text.clone()), Style::new());
        let x = put(buffer, area, x, " ", Style::new().add_modifier(Modifier::REVERSED));
        if input.text.is_empty() {
            put(buffer, area, x + 1, input.kind.hint(), theme.dim());
        }
        return;
    }
    let (text, style) = match (&state.message, state.pending) {
        (_, Some(Pending::Prefix(c))) => (c.to_string(), theme.dim()),
        (_, Some(Pending::SetMark)) => ("mark: a letter".to_owned(), theme.dim()),
        (_, Some(Pending::JumpMark)) => ("go to mark: its letter".to_owned(), theme.dim()),
        (Some(message), None) if message.error => (message.text.clone(), theme.error()),
        (Some(message), None) => (message.text.clone(), Style::new()),
        (None, None) => match standing(state) {
            Some(text) => (text, Style::new()),
            None => {
                draw_hints(state, theme, area, buffer);
                (String::new(), Style::new())
            }
        },
    };
    put(buffer, area, area.x, &theme.plain(text), style);
    if state.is_busy() && area.width > 10 {
        put(buffer, area, area.right() - 2, theme.pick("…", "."), theme.dim());
    }
}

/// The keys that one needs first; the keys stand out.
fn draw_hints(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    const HINTS: [(&str, &str); 9] = [
        ("w/s", "zoom"),
        ("a/d", "move"),
        ("h/l", "operation"),
        ("j/k", "row"),
        ("r", "race"),
        ("x", "axis"),
        ("Tab", "pane"),
        ("?", "keys"),
        ("q", "quit"),
    ];
    let hidden = state.open.as_ref().map_or(0, |open| state.filter.hidden_idle(open));
    let mut x = area.x;
    if hidden > 0 {
        x = put(buffer, area, x, &format!("{hidden} idle streams hidden ("), theme.dim());
        x = put(buffer, area, x, "i", theme.key());
        x = put(buffer, area, x, ")  ", theme.dim());
    }
    for (key, what) in HINTS {
        x = put(buffer, area, x, key, theme.key());
        x = put(buffer, area, x, &format!(" {what}  "), theme.dim());
    }
}

/// The default text: the area or the race; `None`: the keys.
fn standing(state: &State) -> Option<String> {
    if let Some((from, to)) = state.area_ends() {
        let mut parts = Vec::new();
        for axis in [Axis::Time, Axis::Issue, Axis::Logical] {
            // Between traces, only the clock says how far apart two calls are.
            if from.trace != to.trace && axis != Axis::Time {
                continue;
            }
            let at = |point: &Point| {
                let shift = state.alignment.shift(point.trace, axis);
                Some(point.place.on(axis)?.saturating_add(shift))
            };
            if let (Some(a), Some(b)) = (at(&from), at(&to)) {
                parts.push(names::distance(axis, b.abs_diff(a)));
            }
        }
        return Some(format!("area #{} to #{}: {}", from.op, to.op, parts.join(", ")));
    }
    if let (Some((trace, finding)), Some(open)) = (state.found(), &state.open) {
        let name = |side| side_name(side, &open.of(trace).overview.entities);
        let change = state.change_of(finding).map(|change| format!(" {}", change.description()));
        let of = if open.are_several() {
            format!(" in {}", printable(&state.labels[trace].title))
        } else {
            change.unwrap_or_default()
        };
        let is_known = state.finding.and_then(|place| state.list.upstream.get(place).copied());
        let is_known = is_known.unwrap_or_default();
        let here = state.list.shown.iter().position(|&place| Some(place) == state.finding);
        let occurrence = here.map(|place| state.list.occurrences[place]).unwrap_or_default();
        let number = match occurrence.of {
            0 | 1 => String::new(),
            of => format!(" (occurrence {} of {})", occurrence.number, names::number(of as u64)),
        };
        return Some(format!(
            "race {}/{}{number}{of} {} {} [{}] {} id {}: {} then {}",
            occurrence.mistake,
            state.list.mistakes,
            if is_known { "known upstream" } else { finding.severity.description() },
            finding.kind.description(),
            finding.class.description(),
            finding.confidence.description(),
            finding.fingerprint,
            name(&finding.first),
            name(&finding.second)
        ));
    }
    state.filter_in_words()
}

pub(super) fn draw_palette(state: &State, theme: Theme, screen: Rect, buffer: &mut Buffer) {
    let Some(input) = state.input.as_ref().filter(|input| input.kind == InputKind::Palette) else {
        return;
    };
    let matches = input.matches();
    let first = input.choice.saturating_sub(CHOICES - 1);
    let lines = matches.len().saturating_sub(first).min(CHOICES);
    let Ok(height) = u16::try_from(lines) else { return };
    let top = state.areas().status.y.saturating_sub(height);
    let area = Rect { y: top, height: height.min(screen.height), ..screen }.intersection(screen);
    Clear.render(area, buffer);
    for (line, binding) in (0..area.height).zip(matches.iter().skip(first)) {
        let row = super::line_of(area, line);
        let chosen = first + usize::from(line) == input.choice;
        let style =
            if chosen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        let text = format!("  {:<18} {:<14} {}", binding.name, binding.shown, binding.help);
        let text = format!("{:<width$}", theme.plain(text), width = usize::from(area.width));
        put(buffer, row, row.x, &text, style);
    }
}
