//! The keys, made from the key table.

use super::{line_of, put};
use crate::Theme;
use crate::keys::{MOUSE, Section, TABLE};
use crate::theme::{Glyphs, letter};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use streamsan_model::OpGroup;

enum HelpLine {
    Headline(&'static str),
    Key(String, String),
}

fn lines() -> Vec<HelpLine> {
    let mut lines = Vec::new();
    for section in Section::ALL {
        lines.push(HelpLine::Headline(section.description()));
        let bindings = TABLE.iter().filter(|binding| binding.section == section);
        lines.extend(bindings.map(|b| HelpLine::Key(b.shown.to_owned(), b.help.to_owned())));
    }
    lines.push(HelpLine::Headline("Mouse"));
    lines.extend(
        MOUSE.iter().map(|(what, help)| HelpLine::Key((*what).to_owned(), (*help).to_owned())),
    );
    lines.push(HelpLine::Headline("Letters (a capital: several operations)"));
    lines.push(HelpLine::Key("!".to_owned(), "A side of a race.".to_owned()));
    lines.extend(OpGroup::ALL.iter().rev().map(|&group| {
        HelpLine::Key(letter(group, false).to_owned(), group.description().to_owned())
    }));
    lines
}

/// Number of lines of the help.
pub(crate) fn help_lines() -> usize {
    lines().len()
}

pub(super) fn draw(first: usize, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let lines = lines();
    let title = format!("Keys of streamsan view  ({} lines, j/k scroll, Esc leaves)", lines.len());
    put(buffer, area, area.x, &title, Style::new().add_modifier(Modifier::BOLD));
    for (line, content) in (1..area.height).zip(lines.iter().skip(first)) {
        let row = line_of(area, line);
        match content {
            HelpLine::Headline(text) => {
                put(buffer, row, row.x, text, Style::new().add_modifier(Modifier::UNDERLINED));
            }
            HelpLine::Key(keys, help) => {
                let (keys, help) = match theme.glyphs {
                    Glyphs::Unicode => (keys.clone(), help.clone()),
                    Glyphs::Ascii => (theme.plain(keys.clone()), theme.plain(help.clone())),
                };
                put(buffer, row, row.x + 2, &keys, Style::new().add_modifier(Modifier::BOLD));
                put(buffer, row, row.x + 18.min(area.width), &help, Style::new());
            }
        }
    }
}
