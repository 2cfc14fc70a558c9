//! The pane: its tabs, and the contents of the chosen tab.

use super::styled::{Text, plain};
use super::{bytes, details, explanation, line_of, memory, put, races, statistics};
use crate::state::{Focus, Pane};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Where the tabs begin: `1 details  2 races ...`; in shorter words where these do not fit.
fn tabs(state: &State) -> Vec<(u16, String, Pane)> {
    let of = |word: fn(Pane) -> &'static str| {
        let mut x = 1;
        let mut tabs = Vec::new();
        for (number, &pane) in (1..).zip(state.panes()) {
            let text = format!("{number} {}", word(pane));
            let wide = text.len() as u16;
            tabs.push((x, text, pane));
            x += wide + 2;
        }
        (x, tabs)
    };
    let (end, tabs) = of(Pane::description);
    if end <= state.size.0 + 2 { tabs } else { of(Pane::short_description).1 }
}

/// The pane whose tab is in a column.
pub(crate) fn tab_at(state: &State, column: u16) -> Option<Pane> {
    let tabs = tabs(state);
    let tab = tabs.iter().find(|(x, text, _)| (*x..*x + text.len() as u16).contains(&column));
    tab.map(|(.., pane)| *pane)
}

pub(super) fn draw(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let headline = line_of(area, 0);
    let rule = theme.pick("─", "-");
    for x in area.x..area.right() {
        buffer[(x, area.y)].set_symbol(rule).set_style(theme.dim());
    }
    for (x, text, pane) in tabs(state) {
        let mut style = if pane == state.pane {
            Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else {
            theme.dim()
        };
        if pane == state.pane && state.focus == Focus::Pane {
            style = style.add_modifier(Modifier::REVERSED);
        }
        put(buffer, headline, area.x + x, &text, style);
        if pane != state.pane && area.x + x < area.right() {
            buffer[(area.x + x, area.y)].set_style(theme.key());
        }
    }
    draw_position(state, theme, headline, buffer);
    let content = Rect { y: area.y + 1, height: area.height - 1, ..area };
    match state.pane {
        Pane::Races => races::draw(state, theme, content, buffer),
        Pane::Memory => memory::draw(state, theme, content, buffer),
        Pane::Bytes => bytes::draw(state, theme, content, buffer),
        _ => {
            let lines = lines(state, usize::from(area.width));
            let last = lines.len().saturating_sub(usize::from(content.height));
            let first = state.pane_scroll.min(last);
            for (line, text) in (0..content.height).zip(lines.into_iter().skip(first)) {
                let row = line_of(content, line);
                let mut x = row.x;
                for (part, style) in text.parts {
                    let style = if theme.is_coloured() { style } else { style.fg(Color::Reset) };
                    x = put(buffer, row, x, &theme.plain(part), style);
                }
            }
        }
    }
}

/// Where in a list or a text one is, at the end of the headline.
fn draw_position(state: &State, theme: Theme, headline: Rect, buffer: &mut Buffer) {
    let height = state.pane_height();
    let text = match state.pane {
        Pane::Races => in_list(state.list.cursor, state.list.shown.len()),
        Pane::Memory => match &state.memory.history {
            Some(history) => in_list(state.memory.use_cursor, history.uses.len()),
            None => {
                let count = state.memory.allocations.as_ref().map_or(0, Vec::len);
                in_list(state.memory.cursor, count)
            }
        },
        Pane::Bytes => {
            let known = state.footprint.known.as_ref();
            let count = known.map_or(0, |(_, footprint)| footprint.series.len());
            in_list(state.footprint.cursor, count)
        }
        _ => {
            let lines = pane_lines(state);
            let first = state.pane_scroll.min(lines.saturating_sub(height));
            let last = (first + height).min(lines);
            (lines > height && height > 0).then(|| format!("lines {}-{last}/{lines}", first + 1))
        }
    };
    let Some(text) = text else { return };
    let wide = u16::try_from(text.len()).unwrap_or(u16::MAX).saturating_add(2);
    let tabs = tabs(state).last().map_or(0, |(x, text, _)| x + text.len() as u16 + 1);
    if tabs + wide < headline.width {
        put(buffer, headline, headline.right() - wide, &format!(" {text} "), theme.dim());
    }
}

/// `3/8`, where there are several.
fn in_list(cursor: usize, count: usize) -> Option<String> {
    (count > 1).then(|| format!("{}/{count}", cursor + 1))
}

/// All lines of a pane that is a text.
fn lines(state: &State, width: usize) -> Vec<Text> {
    match state.pane {
        Pane::Details => details::lines(state),
        Pane::Statistics => statistics::lines(state),
        Pane::Explanation => explanation::lines(state, width),
        Pane::Output => output(state).map(plain).collect(),
        Pane::Races | Pane::Memory | Pane::Bytes => Vec::new(),
    }
}

/// The last lines of the program's output.
fn output(state: &State) -> impl Iterator<Item = &str> {
    state.live.iter().flat_map(|live| live.output.iter().map(String::as_str))
}

/// Lines that the pane's content needs.
pub(crate) fn pane_wants(state: &State) -> usize {
    match state.pane {
        Pane::Races => races::WANTED_HEADS + state.list.shown.len(),
        Pane::Memory => memory::lines(state),
        Pane::Bytes => bytes::lines(state),
        Pane::Output => output(state).count(),
        _ => pane_lines(state),
    }
}

/// Number of lines of the pane, if it holds text.
pub(crate) fn pane_lines(state: &State) -> usize {
    lines(state, usize::from(state.size.0)).len()
}

/// The text that `y` copies: the words about the race, the line of the list, or the details.
pub(crate) fn selected_text(state: &State) -> String {
    let lines = match state.pane {
        Pane::Races => return races::selected(state).unwrap_or_default(),
        Pane::Memory => return memory::selected(state).unwrap_or_default(),
        Pane::Bytes => return bytes::selected(state).unwrap_or_default(),
        Pane::Explanation => return explanation::copied(state),
        Pane::Details => details::lines(state),
        Pane::Statistics => statistics::lines(state),
        Pane::Output => output(state).map(plain).collect(),
    };
    lines.into_iter().map(|line| line.unstyled() + "\n").collect()
}
