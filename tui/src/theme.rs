//! Colours and glyphs.
//!
//! Invariant: every meaning of a colour has a letter or an attribute too. The colours are those of
//! Okabe and Ito's set, which colour-blind eyes tell apart, as the nearest ones of the 256 that
//! every terminal, tmux and ssh session can show.

use ratatui::style::{Color, Modifier, Style};
use streamsan_model::OpGroup;

/// Whether colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// Colours.
    #[default]
    Colour,
    /// Letters and attributes only.
    Plain,
}

/// Which characters are used for lines and bars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// Box drawing.
    #[default]
    Unicode,
    /// ASCII only.
    Ascii,
}

/// How the screen looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Colours.
    pub palette: Palette,
    /// Characters.
    pub glyphs: Glyphs,
}

/// Characters of a connection between rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) along: &'static str,
    pub(crate) across: &'static str,
    /// From along the row to downwards, and to upwards, at the right end.
    pub(crate) down: &'static str,
    pub(crate) up: &'static str,
    /// The same glyph at the left end.
    pub(crate) left_down: &'static str,
    pub(crate) left_up: &'static str,
}

const VERMILLION: Color = Color::Indexed(166);
const ORANGE: Color = Color::Indexed(214);

impl Theme {
    fn coloured(self, style: Style, colour: Color) -> Style {
        if self.palette == Palette::Colour { style.fg(colour) } else { style }
    }

    /// The colour of a group.
    pub(crate) const fn colour(group: OpGroup) -> Color {
        Color::Indexed(match group {
            OpGroup::Kernel => 74,
            OpGroup::Copy => 36,
            OpGroup::Upload => 43,
            OpGroup::Download => 29,
            OpGroup::Memset => 227,
            OpGroup::Host => 175,
            OpGroup::Synchronisation => 214,
            OpGroup::Memory => 250,
            OpGroup::Other => 244,
        })
    }

    /// The letter of a group; a capital stands for several operations.
    pub(crate) const fn letter(group: OpGroup, several: bool) -> &'static str {
        match (group, several) {
            (OpGroup::Kernel, false) => "k",
            (OpGroup::Kernel, true) => "K",
            (OpGroup::Copy, false) => "c",
            (OpGroup::Copy, true) => "C",
            (OpGroup::Upload, false) => "u",
            (OpGroup::Upload, true) => "U",
            (OpGroup::Download, false) => "d",
            (OpGroup::Download, true) => "D",
            (OpGroup::Memset, false) => "m",
            (OpGroup::Memset, true) => "M",
            (OpGroup::Host, false) => "h",
            (OpGroup::Host, true) => "H",
            (OpGroup::Synchronisation, false) => "s",
            (OpGroup::Synchronisation, true) => "S",
            (OpGroup::Memory, false) => "a",
            (OpGroup::Memory, true) => "A",
            (OpGroup::Other, false) => ".",
            (OpGroup::Other, true) => ":",
        }
    }

    /// A block of operations.
    pub(crate) fn block(self, group: OpGroup) -> Style {
        match self.palette {
            Palette::Colour => Style::new().fg(Color::Indexed(16)).bg(Self::colour(group)),
            Palette::Plain => Style::new(),
        }
    }

    /// The text that separates a name from the letter before it, where no colour does.
    pub(crate) const fn behind_letter(self) -> &'static str {
        match self.palette {
            Palette::Colour => "",
            Palette::Plain => ":",
        }
    }

    /// A name behind a block.
    pub(crate) fn name(self, group: OpGroup) -> Style {
        self.coloured(Style::new(), Self::colour(group))
    }

    /// A block with a finding.
    pub(crate) fn race(self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
        self.coloured(style, VERMILLION)
    }

    /// A mark of a finding outside of the rows.
    pub(crate) fn race_mark(self) -> Style {
        self.coloured(Style::new().add_modifier(Modifier::BOLD), VERMILLION)
    }

    /// The style of secondary text.
    pub(crate) fn dim(self) -> Style {
        match self.palette {
            Palette::Colour => Style::new().fg(Color::Indexed(245)),
            Palette::Plain => Style::new(),
        }
    }

    /// An edge.
    pub(crate) fn edge(self) -> Style {
        self.coloured(Style::new(), ORANGE)
    }

    /// A failure.
    pub(crate) fn error(self) -> Style {
        self.race_mark()
    }

    /// Characters of edges.
    pub(crate) const fn edge_line(self) -> Line {
        match self.glyphs {
            Glyphs::Unicode => {
                Line {
                    along: "─", across: "│", down: "┐", up: "┘", left_down: "┌", left_up: "└"
                }
            }
            Glyphs::Ascii => {
                Line { along: "-", across: "|", down: "+", up: "+", left_down: "+", left_up: "+" }
            }
        }
    }

    /// Characters of the edge that is missing.
    pub(crate) const fn missing_line(self) -> Line {
        match self.glyphs {
            Glyphs::Unicode => {
                Line {
                    along: "╌", across: "╎", down: "╮", up: "╯", left_down: "╭", left_up: "╰"
                }
            }
            Glyphs::Ascii => {
                Line { along: "~", across: ":", down: "~", up: "~", left_down: "~", left_up: "~" }
            }
        }
    }

    /// Bars from nothing to everything.
    pub(crate) const fn bars(self) -> &'static [&'static str] {
        match self.glyphs {
            Glyphs::Unicode => &[" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
            Glyphs::Ascii => &[" ", ".", ":", "-", "=", "+", "*", "%", "#"],
        }
    }

    /// One of two forms of a text.
    pub(crate) const fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        match self.glyphs {
            Glyphs::Unicode => unicode,
            Glyphs::Ascii => ascii,
        }
    }

    /// A text without characters that are not ASCII, where only these are wanted.
    pub(crate) fn plain(self, text: String) -> String {
        if self.glyphs == Glyphs::Unicode || text.is_ascii() {
            return text;
        }
        text.chars()
            .map(|c| match c {
                'µ' => 'u',
                '…' => '.',
                '·' => '|',
                '←' | '→' => {
                    if c == '←' {
                        '<'
                    } else {
                        '>'
                    }
                }
                '↑' => '^',
                '↓' => 'v',
                c if c.is_ascii() => c,
                _ => '?',
            })
            .collect()
    }
}
