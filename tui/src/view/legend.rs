//! The legend: what letters and colours mean, always on the screen.

use super::put;
use crate::state::Row;
use crate::theme::{Depth, letter, word};
use crate::{State, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use streamsan_model::OpGroup;

/// Part of the legend: the mark, its style, the word behind it.
type Entry = (&'static str, Style, &'static str);

/// Groups in the order in which they are told: where there is no room, the last ones are left out.
const ORDER: [OpGroup; 9] = [
    OpGroup::Kernel,
    OpGroup::Copy,
    OpGroup::Upload,
    OpGroup::Download,
    OpGroup::Memset,
    OpGroup::Synchronisation,
    OpGroup::Host,
    OpGroup::Memory,
    OpGroup::Other,
];

fn entries(theme: Theme, is_short: bool, with_edges: bool) -> Vec<Entry> {
    let race =
        if theme.is_coloured() { ("race", theme.race(), "") } else { ("!", theme.race(), "race") };
    let missing = (theme.missing_line().along, theme.race_mark(), "no order");
    let edge = (theme.edge_line().along, theme.edge(), "edge");
    let groups = ORDER.map(|group| {
        (letter(group, false), theme.block(group, Depth::Front), word(group, is_short))
    });
    let mut entries = vec![race];
    entries.extend(groups);
    if with_edges {
        entries.extend([edge, missing]);
    }
    entries
}

fn width(entries: &[Entry], gap: usize) -> usize {
    let of = |(mark, _, word): &Entry| {
        mark.chars().count() + usize::from(!word.is_empty()) + word.len() + gap
    };
    entries.iter().map(of).sum::<usize>().saturating_sub(gap)
}

/// The narrowest legend: copies are one entry.
fn narrow(theme: Theme) -> Vec<Entry> {
    let block = |group| theme.block(group, Depth::Front);
    let race =
        if theme.is_coloured() { ("race", theme.race(), "") } else { ("!", theme.race(), "race") };
    vec![
        race,
        ("k", block(OpGroup::Kernel), "kernel"),
        ("cud", block(OpGroup::Copy), "copy"),
        ("m", block(OpGroup::Memset), "set"),
        ("s", block(OpGroup::Synchronisation), "wait"),
        ("h", block(OpGroup::Host), "host"),
        ("a", block(OpGroup::Memory), "alloc"),
        (".", block(OpGroup::Other), "other"),
    ]
}

pub(super) fn draw(state: &State, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 || state.open.is_none() {
        return;
    }
    let room = usize::from(area.width);
    let mut forms = vec![entries(theme, false, true), entries(theme, true, true)];
    forms.push(entries(theme, true, false));
    let fits = forms.into_iter().find(|form| width(form, 2) <= room);
    let (chosen, gap) = fits.map_or_else(|| (narrow(theme), 1), |form| (form, 2));
    let mut x = area.x;
    for (mark, style, word) in chosen {
        x = put(buffer, area, x, mark, style);
        if !word.is_empty() {
            x = put(buffer, area, x + 1, word, theme.dim());
        }
        x += gap;
    }
    draw_position(state, theme, Rect { x, width: area.right().saturating_sub(x), ..area }, buffer);
}

/// Which of the rows are on the screen, where not all are.
fn draw_position(state: &State, theme: Theme, room: Rect, buffer: &mut Buffer) {
    let is_lane = |row: &Row| row.lane().is_some();
    let total = state.rows.iter().filter(|row| is_lane(row)).count();
    let shown = state.visible_rows();
    let shown = shown.iter().filter(|row| !row.pinned && is_lane(&row.row)).count();
    let before = state.rows.iter().take(state.scroll).filter(|row| is_lane(row)).count();
    if shown == 0 || shown >= total {
        return;
    }
    let text = format!("rows {}-{} of {total}", before + 1, before + shown);
    let wide = u16::try_from(text.len()).unwrap_or(u16::MAX);
    if wide < room.width {
        put(buffer, room, room.right() - wide, &text, theme.key());
    }
}
