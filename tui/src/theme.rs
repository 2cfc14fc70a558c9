//! How the screen looks: colours and characters by their meaning.
//!
//! Invariant: every meaning of a colour has a letter, a shape or an attribute too.

mod glyphs;
mod palette;

pub use glyphs::Glyphs;
pub(crate) use glyphs::{Line, letter, shape, word};
pub use palette::Palette;
pub(crate) use palette::Role;

use ratatui::style::{Color, Modifier, Style};
use streamsan_model::OpGroup;

/// How the screen looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Colours.
    pub palette: Palette,
    /// Characters.
    pub glyphs: Glyphs,
}

/// Whether an operation is in front, or stands back behind a race or a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    Front,
    Back,
}

impl Theme {
    /// Whether there are colours.
    pub(crate) fn is_coloured(self) -> bool {
        self.palette != Palette::Plain
    }

    fn coloured(self, style: Style, role: Role) -> Style {
        role.colour(self.palette).map_or(style, |colour| style.fg(colour))
    }

    /// Whether a group is a filled block: work on bytes and functions are, waits and other calls are
    /// letters.
    const fn is_filled(group: OpGroup) -> bool {
        !matches!(group, OpGroup::Synchronisation | OpGroup::Memory | OpGroup::Other)
    }

    /// The letter of operations.
    pub(crate) fn block(self, group: OpGroup, depth: Depth) -> Style {
        let role = Role::Group(group);
        let (Some(colour), Some(faded)) = (role.colour(self.palette), role.faded(self.palette))
        else {
            return Style::new();
        };
        match (depth, Self::is_filled(group)) {
            (Depth::Front, true) => self.coloured(Style::new(), Role::OnBlock).bg(colour),
            (Depth::Front, false) => Style::new().fg(colour).add_modifier(Modifier::BOLD),
            (Depth::Back, true) => Style::new().fg(colour).bg(faded),
            (Depth::Back, false) if self.palette == Palette::TrueColour => {
                Style::new().fg(Self::mixed(colour, faded))
            }
            (Depth::Back, false) => self.dim(),
        }
    }

    /// A colour between two.
    fn mixed(a: Color, b: Color) -> Color {
        match (a, b) {
            (Color::Rgb(r, g, b), Color::Rgb(x, y, z)) => {
                let mean = |a: u8, b: u8| u8::midpoint(a, b);
                Color::Rgb(mean(r, x), mean(g, y), mean(b, z))
            }
            _ => a,
        }
    }

    /// The bar above the letter.
    pub(crate) fn bar(self, group: OpGroup, depth: Depth) -> Style {
        let role = Role::Group(group);
        match (depth, self.palette) {
            (Depth::Front, _) => self.coloured(Style::new(), role),
            (Depth::Back, Palette::TrueColour) => {
                role.faded(self.palette).map_or(Style::new(), |faded| Style::new().fg(faded))
            }
            (Depth::Back, Palette::Colours256) => Style::new().fg(Color::Indexed(239)),
            (Depth::Back, Palette::Colours16) => Style::new().fg(Color::DarkGray),
            (Depth::Back, Palette::Plain) => Style::new(),
        }
    }

    /// The text that separates a name from the letter before it, where no colour does.
    pub(crate) fn behind_letter(self) -> &'static str {
        if self.is_coloured() { "" } else { ":" }
    }

    /// A name behind a letter.
    pub(crate) fn name(self, group: OpGroup, depth: Depth) -> Style {
        match depth {
            Depth::Front => self.coloured(Style::new(), Role::Group(group)),
            Depth::Back => self.dim(),
        }
    }

    /// The letter of a side of a finding.
    pub(crate) fn race(self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        match Role::Race.colour(self.palette) {
            Some(colour) => self.coloured(style, Role::OnRace).bg(colour),
            None => style.add_modifier(Modifier::REVERSED),
        }
    }

    /// A side of a race, where another race is in front.
    pub(crate) fn other_race(self) -> Style {
        match Role::Race.colour(self.palette) {
            Some(colour) => {
                let faded = Role::Race.faded(self.palette).unwrap_or(Color::Reset);
                Style::new().fg(colour).bg(faded)
            }
            None => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// A mark of a finding outside of the rows, a finding's bar, and the edge that it lacks.
    pub(crate) fn race_mark(self) -> Style {
        self.coloured(Style::new().add_modifier(Modifier::BOLD), Role::Race)
    }

    /// The selected operation.
    pub(crate) fn selected(self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        match Role::Selected.colour(self.palette) {
            Some(colour) => self.coloured(style, Role::OnBlock).bg(colour),
            None => style.add_modifier(Modifier::REVERSED),
        }
    }

    /// The pointer above the selected operation, and its row.
    pub(crate) fn pointer(self) -> Style {
        self.coloured(Style::new().add_modifier(Modifier::BOLD), Role::Selected)
    }

    /// The part of the minimap that the rows show.
    pub(crate) fn shown(self) -> Style {
        match Role::Shown.colour(self.palette) {
            Some(colour) => self.coloured(Style::new(), Role::ShownBar).bg(colour),
            None => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// A bar of the minimap: between the colours of the rows and those that stand back.
    pub(crate) fn minimap(self, group: OpGroup) -> Style {
        let role = Role::Group(group);
        match (role.colour(self.palette), role.faded(self.palette), self.palette) {
            (Some(colour), Some(faded), Palette::TrueColour) => {
                Style::new().fg(Self::mixed(colour, faded))
            }
            (Some(colour), _, _) => Style::new().fg(colour),
            (None, ..) => self.dim(),
        }
    }

    /// A key in a line of help.
    pub(crate) fn key(self) -> Style {
        self.coloured(Style::new().add_modifier(Modifier::BOLD), Role::Group(OpGroup::Kernel))
    }

    /// The style of secondary text.
    pub(crate) fn dim(self) -> Style {
        self.coloured(Style::new(), Role::Dim)
    }

    /// An edge.
    pub(crate) fn edge(self) -> Style {
        self.coloured(Style::new(), Role::Edge)
    }

    /// A failure.
    pub(crate) fn error(self) -> Style {
        self.race_mark()
    }

    /// Characters of edges.
    pub(crate) const fn edge_line(self) -> Line {
        Line::edge(self.glyphs)
    }

    /// Characters of the edge that is missing.
    pub(crate) const fn missing_line(self) -> Line {
        Line::missing(self.glyphs)
    }

    /// Bars from nothing to everything.
    pub(crate) const fn bars(self) -> [&'static str; 9] {
        glyphs::bars(self.glyphs)
    }

    /// The shape of a group above its letter.
    pub(crate) const fn shape(self, group: OpGroup) -> &'static str {
        shape(self.glyphs, group)
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
        if self.glyphs == Glyphs::Unicode || text.is_ascii() { text } else { glyphs::ascii(&text) }
    }
}
