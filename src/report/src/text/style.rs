//! Colours, which only repeat the words.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Plain,
    Strong,
    Error,
    Warning,
    Good,
}

impl Color {
    /// Parameters of the ANSI sequence.
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Error => "1;31",
            Self::Warning => "1;33",
            Self::Good => "1;32",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) color: bool,
}

impl Style {
    pub(crate) fn paint(self, color: Color, text: &str) -> String {
        if self.color && color != Color::Plain {
            format!("\u{1b}[{}m{text}\u{1b}[0m", color.code())
        } else {
            text.to_owned()
        }
    }
}
