//! The text form.

/// How the text form is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether to use ANSI colours. `NO_COLOR` and the terminal are the caller's to ask.
    pub color: bool,
    /// How many folded findings are printed in full; `None` for all.
    pub max_findings: Option<usize>,
}
