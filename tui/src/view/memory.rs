//! Allocations with their lives, and the uses of one allocation by bytes.

use super::{line_of, put, put_cut};
use crate::names;
use crate::state::Focus;
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use std::collections::BTreeMap;
use streamsan_model::{Axis, ByteRange, History, Lifetime, Mode, StreamId};
use streamsan_names::printable;

/// Columns of a life.
const LIFE: usize = 24;
/// Streams whose bytes are drawn.
const STREAMS: usize = 6;
/// Columns of the streams' names before their bytes.
const NAMES: u16 = 24;

fn cursor_style(state: &State, here: bool) -> Style {
    match (here, state.focus) {
        (false, _) => Style::new(),
        (true, Focus::Pane) => Style::new().add_modifier(Modifier::REVERSED),
        (true, Focus::Timeline) => Style::new().add_modifier(Modifier::UNDERLINED),
    }
}

/// A life as a bar over the whole trace, in issue order.
fn life(state: &State, lifetime: &Lifetime, theme: Theme) -> String {
    let open = state.open.as_ref().map(|open| open.of(state.memory.trace));
    let Some(span) = open.and_then(|open| open.span(Axis::Issue)) else { return " ".repeat(LIFE) };
    let column = |g: u64| {
        let offset = u128::from(g.saturating_sub(span.start)) * LIFE as u128;
        ((offset / u128::from(span.len().max(1))) as usize).min(LIFE - 1)
    };
    let first = lifetime.allocated.map_or(0, |g| column(g.0));
    let last = lifetime.freed.map_or(LIFE - 1, |g| column(g.0)).max(first);
    let bar = |place| {
        if place == first && lifetime.allocated.is_some() {
            theme.pick("├", "[")
        } else if place == last && lifetime.freed.is_some() {
            theme.pick("┤", "]")
        } else if (first..=last).contains(&place) {
            theme.pick("─", "-")
        } else {
            " "
        }
    };
    (0..LIFE).map(bar).collect()
}

fn allocation_row(state: &State, lifetime: &Lifetime, theme: Theme) -> String {
    let allocation = &lifetime.allocation;
    format!(
        "{:>7} {} {:>10} {:#018x} {} {} {}",
        allocation.id,
        life(state, lifetime, theme),
        names::extent(allocation.range),
        allocation.range.start,
        allocation.kind.description(),
        printable(&allocation.api),
        printable(allocation.name.as_deref().unwrap_or_default())
    )
}

/// The line that is selected.
pub(super) fn selected(state: &State) -> Option<String> {
    match &state.memory.history {
        Some(history) => Some(use_row(state, history, state.memory.use_cursor)),
        None => {
            let list = state.memory.allocations.as_ref()?;
            Some(allocation_row(state, list.get(state.memory.cursor)?, Theme::default()))
        }
    }
}

pub(super) fn draw(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    if let Some(history) = &state.memory.history {
        return draw_history(state, theme, history, area, buffer);
    }
    let list = state.memory.allocations.as_ref();
    let Some(list) = list.filter(|_| state.memory.trace == state.trace_in_focus()) else {
        put(buffer, area, area.x, theme.pick("…", "."), theme.dim());
        return;
    };
    let headline = format!(
        "the largest {}{}: life over the whole trace, size, address   Enter shows the uses of one",
        names::plural(list.len() as u64, "allocation"),
        super::of_trace(state, state.memory.trace)
    );
    let top = line_of(area, 0);
    put(buffer, top, top.x, &headline, theme.dim());
    let height = usize::from(area.height).saturating_sub(1).max(1);
    let first = state.memory.cursor.saturating_sub(height - 1);
    for (line, (place, lifetime)) in (1..area.height).zip(list.iter().enumerate().skip(first)) {
        let row = line_of(area, line);
        let style = cursor_style(state, place == state.memory.cursor);
        put(buffer, row, row.x, &theme.plain(allocation_row(state, lifetime, theme)), style);
    }
}

/// Lines of the list, or of the history with its bytes.
pub(super) fn lines(state: &State) -> usize {
    match &state.memory.history {
        Some(history) => 1 + STREAMS.min(history.uses.len()) + history.uses.len(),
        None => 1 + state.memory.allocations.as_ref().map_or(0, Vec::len),
    }
}

fn use_row(state: &State, history: &History, place: usize) -> String {
    let (Some(used), Some(open)) = (history.uses.get(place), &state.open) else {
        return String::new();
    };
    let open = open.of(state.memory.history_of);
    let hull = used.access.extent.hull();
    let graph = used.graph.map_or_else(String::new, |graph| format!(", in graph {graph}"));
    format!(
        "#{:<10} {:<10} +{:#x}..{:#x}  {}  {} ({}{graph})",
        used.op,
        used.access.mode.description(),
        hull.start.saturating_sub(history.allocation.range.start),
        hull.end.saturating_sub(history.allocation.range.start),
        names::label(&used.name),
        open.side(used.stream),
        used.access.basis.description()
    )
}

fn draw_history(state: &State, theme: Theme, history: &History, area: Rect, buffer: &mut Buffer) {
    let allocation = &history.allocation;
    let headline = format!(
        "allocation {}{}{}: {}, {}{} uses   Enter goes to one, Esc lists allocations",
        allocation.id,
        names::quoted(allocation.name.as_deref()),
        super::of_trace(state, state.memory.history_of),
        names::memory(allocation),
        if history.more { "more than " } else { "" },
        names::number(history.uses.len() as u64)
    );
    let top = line_of(area, 0);
    put(buffer, top, top.x, &theme.plain(headline), theme.dim());
    let map_lines = draw_bytes(state, theme, history, area, buffer);
    let list = Rect {
        y: area.y + 1 + map_lines,
        height: area.height.saturating_sub(1 + map_lines),
        ..area
    };
    let height = usize::from(list.height).max(1);
    let first = state.memory.use_cursor.saturating_sub(height - 1);
    for (line, place) in (0..list.height).zip(first..history.uses.len()) {
        let row = line_of(list, line);
        let style = cursor_style(state, place == state.memory.use_cursor);
        put(buffer, row, row.x, &theme.plain(use_row(state, history, place)), style);
    }
}

/// Which bytes each stream touched, one line a stream; `!` where two of them conflict in the race
/// that is selected. Answers how many lines it took.
fn draw_bytes(
    state: &State,
    theme: Theme,
    history: &History,
    area: Rect,
    buffer: &mut Buffer,
) -> u16 {
    let range = history.allocation.range;
    let columns = area.width.saturating_sub(NAMES + 1);
    let mut streams: BTreeMap<Option<StreamId>, Vec<u8>> = BTreeMap::new();
    let lives = |mode| matches!(mode, Mode::Allocate | Mode::Free);
    // Addresses of memory that is only known from copies are the whole address space.
    let touched = history.uses.iter().filter(|used| !lives(used.access.mode));
    let hull = touched.clone().map(|used| used.access.extent.hull()).fold(None, |hull, next| {
        let hull: ByteRange = hull.unwrap_or(next);
        Some(ByteRange::new(hull.start.min(next.start), hull.end.max(next.end)))
    });
    let Some(shown) = hull.and_then(|hull| hull.intersection(range)) else { return 0 };
    if columns < 8 || area.height < 6 {
        return 0;
    }
    let column = |address: u64| {
        let offset = u128::from(address.saturating_sub(shown.start)) * u128::from(columns);
        (offset / u128::from(shown.len().max(1))).min(u128::from(columns) - 1) as usize
    };
    for used in touched {
        let Some(bytes) = used.access.extent.hull().intersection(shown) else { continue };
        let line = streams.entry(used.stream).or_insert_with(|| vec![0; usize::from(columns)]);
        let bit = if used.access.mode.writes() { 2 } else { 1 };
        for place in &mut line[column(bytes.start)..=column(bytes.end - 1)] {
            *place |= bit;
        }
    }
    let race = state.found().filter(|(trace, f)| {
        *trace == state.memory.history_of && f.allocation == history.allocation.id
    });
    let race = race.map(|(_, finding)| finding);
    let conflict = race.and_then(|f| Some((f, f.overlap.intersection(shown)?)));
    let most = usize::from(area.height.saturating_sub(4)).min(STREAMS);
    let mut lines = 0;
    for (stream, bytes) in streams.iter().take(most) {
        let row = line_of(area, 1 + lines);
        lines += 1;
        let name = match (stream, &state.open) {
            (id, Some(open)) => open.of(state.memory.history_of).side(*id),
            (_, None) => String::new(),
        };
        let label = Rect { width: NAMES - 1, ..row };
        put_cut(buffer, label, &name, theme, theme.dim());
        for (place, &bits) in (0..columns).zip(bytes) {
            let symbol = match bits {
                0 => continue,
                1 => "r",
                2 => "w",
                _ => "x",
            };
            let cell = &mut buffer[(row.x + NAMES + place, row.y)];
            cell.set_symbol(symbol);
            let racing = conflict.is_some_and(|(finding, overlap)| {
                let sides = [finding.first.stream, finding.second.stream];
                sides.contains(stream)
                    && (column(overlap.start)..=column(overlap.end - 1))
                        .contains(&usize::from(place))
            });
            if racing {
                cell.set_symbol("!").set_style(theme.race());
            }
        }
    }
    lines
}
