//! Colours, for terminals that show many, 256, 16 or none.
//!
//! The base is Okabe and Ito's set, which colour-blind eyes tell apart. Each form of the palette is
//! chosen by hand: the nearest of 256 colours, and of 16 those whose names stay apart whatever a
//! terminal's own colours are.

use ratatui::style::Color;
use streamsan_model::OpGroup;

/// How many colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// 24 bits a colour.
    TrueColour,
    /// The 256 colours that nearly every terminal, tmux and ssh session shows.
    #[default]
    Colours256,
    /// The 16 colours that the terminal's user has chosen.
    Colours16,
    /// Letters, shapes and attributes only.
    Plain,
}

impl Palette {
    /// The palette of a terminal that shows colours, by its `TERM` and `COLORTERM`.
    pub fn of_terminal(term: Option<&str>, colorterm: Option<&str>) -> Self {
        if matches!(colorterm, Some("truecolor" | "24bit")) {
            return Self::TrueColour;
        }
        match term {
            Some(term) if term.ends_with("-direct") => Self::TrueColour,
            // What says nothing of colours is old: a console, or a serial line.
            Some("linux" | "xterm" | "screen" | "vt100" | "vt220" | "ansi" | "cygwin" | "rxvt") => {
                Self::Colours16
            }
            Some(term) if term.contains("16color") => Self::Colours16,
            _ => Self::Colours256,
        }
    }
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Operations of a group.
    Group(OpGroup),
    /// A side of a finding, and the edge that it lacks.
    Race,
    /// An edge.
    Edge,
    /// Secondary text.
    Dim,
    /// Behind the part of the minimap that the rows show, and its bars.
    Shown,
    ShownBar,
    /// What is selected.
    Selected,
    /// Letters on a block.
    OnBlock,
    /// Letters on a side of a finding.
    OnRace,
}

impl Role {
    /// The colour in each palette; `None` without colours.
    pub(crate) fn colour(self, palette: Palette) -> Option<Color> {
        let ((r, g, b), indexed, named) = self.forms();
        match palette {
            Palette::TrueColour => Some(Color::Rgb(r, g, b)),
            Palette::Colours256 => Some(Color::Indexed(indexed)),
            Palette::Colours16 => Some(named),
            Palette::Plain => None,
        }
    }

    /// The colour of what stands back behind a race or a filter: a third of its light.
    pub(crate) fn faded(self, palette: Palette) -> Option<Color> {
        let ((r, g, b), ..) = self.forms();
        let third = |part: u8| part / 3 + 18;
        match palette {
            Palette::TrueColour => Some(Color::Rgb(third(r), third(g), third(b))),
            // Of 256 colours no dark ones stay apart: the letter keeps its colour.
            Palette::Colours256 => Some(Color::Indexed(236)),
            Palette::Colours16 => Some(Color::Reset),
            Palette::Plain => None,
        }
    }

    const fn forms(self) -> ((u8, u8, u8), u8, Color) {
        match self {
            Self::Group(OpGroup::Kernel) => ((86, 180, 233), 74, Color::Cyan),
            Self::Group(OpGroup::Copy) => ((0, 158, 115), 36, Color::Green),
            Self::Group(OpGroup::Upload) => ((70, 199, 160), 43, Color::Green),
            Self::Group(OpGroup::Download) => ((0, 130, 95), 29, Color::Green),
            Self::Group(OpGroup::Memset) => ((240, 228, 66), 227, Color::LightYellow),
            Self::Group(OpGroup::Host) => ((204, 121, 167), 175, Color::Magenta),
            Self::Group(OpGroup::Synchronisation) => ((230, 159, 0), 214, Color::Yellow),
            Self::Group(OpGroup::Memory) => ((190, 190, 190), 250, Color::Gray),
            Self::Group(OpGroup::Other) => ((128, 128, 128), 244, Color::DarkGray),
            Self::Race => ((213, 94, 0), 166, Color::LightRed),
            Self::Edge => ((230, 159, 0), 214, Color::Yellow),
            Self::Dim => ((138, 138, 138), 245, Color::DarkGray),
            Self::Shown => ((58, 62, 74), 238, Color::DarkGray),
            Self::ShownBar => ((176, 184, 200), 250, Color::White),
            Self::Selected => ((255, 255, 255), 231, Color::White),
            Self::OnBlock => ((0, 0, 0), 16, Color::Black),
            Self::OnRace => ((255, 255, 255), 231, Color::White),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Palette, Role};
    use ratatui::style::Color;
    use streamsan_model::OpGroup;

    #[test]
    fn terminals_get_the_colours_that_they_show() {
        for (term, colorterm, expected) in [
            (Some("xterm-256color"), Some("truecolor"), Palette::TrueColour),
            (Some("xterm-kitty"), Some("24bit"), Palette::TrueColour),
            (Some("xterm-direct"), None, Palette::TrueColour),
            (Some("tmux-256color"), None, Palette::Colours256),
            (Some("xterm-256color"), Some(""), Palette::Colours256),
            (Some("linux"), None, Palette::Colours16),
            (Some("xterm"), None, Palette::Colours16),
            (Some("xterm-16color"), None, Palette::Colours16),
            (None, None, Palette::Colours256),
        ] {
            assert_eq!(Palette::of_terminal(term, colorterm), expected, "{term:?} {colorterm:?}");
        }
    }

    /// Light as an eye without one kind of its cones sees it: two colours of the same light and the
    /// same remaining hue cannot be told apart. The matrices are those of Viénot, Brettel and Mollon
    /// (1999), for linear light.
    fn seen(colour: Color, blind: usize) -> [f64; 3] {
        const MATRICES: [[[f64; 3]; 3]; 3] = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
            [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
        ];
        let Color::Rgb(r, g, b) = colour else { panic!("a colour in 24 bits") };
        let linear = [r, g, b].map(|part| (f64::from(part) / 255.0).powf(2.2));
        MATRICES[blind].map(|row| {
            let sum: f64 = row.iter().zip(linear).map(|(factor, part)| factor * part).sum();
            sum.max(0.0).powf(1.0 / 2.2)
        })
    }

    /// Kinds of work that stand side by side, and races.
    #[test]
    fn kinds_are_apart_for_every_eye() {
        let kinds = [
            Role::Group(OpGroup::Kernel),
            Role::Group(OpGroup::Copy),
            Role::Group(OpGroup::Synchronisation),
            Role::Group(OpGroup::Host),
            Role::Group(OpGroup::Memset),
            Role::Race,
        ];
        for blind in 0..3 {
            for (i, a) in kinds.iter().enumerate() {
                for b in &kinds[..i] {
                    let [x, y] = [a, b].map(|role| {
                        seen(role.colour(Palette::TrueColour).expect("a colour"), blind)
                    });
                    let distance: f64 = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum();
                    assert!(distance.sqrt() > 0.12, "{a:?} and {b:?} for eye {blind}");
                }
            }
        }
        // Of 16 colours too.
        for (i, a) in kinds.iter().enumerate() {
            let named = |role: &Role| role.colour(Palette::Colours16);
            assert!(kinds[..i].iter().all(|b| named(b) != named(a)), "{a:?}");
        }
    }
}
