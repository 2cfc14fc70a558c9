//! When output has colours.

use clap::ValueEnum;
use std::ffi::{OsStr, OsString};

/// The values of `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Coloring {
    /// On terminals that know colours, and as the environment says.
    #[default]
    Auto,
    Always,
    Never,
}

impl Coloring {
    /// Whether a stream gets colours. Without the option `NO_COLOR` (<https://no-color.org>) comes
    /// first, then `CLICOLOR_FORCE` (<https://bixense.com/clicolors>), then what the stream is.
    pub(crate) fn applies(
        self,
        is_terminal: bool,
        variable: impl Fn(&'static str) -> Option<OsString>,
    ) -> bool {
        let value = |name| variable(name).filter(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if value("NO_COLOR").is_some() => false,
            Self::Auto if value("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
            Self::Auto => {
                let is_dumb = variable("TERM").is_none_or(|term| term == OsStr::new("dumb"));
                is_terminal && !is_dumb
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_comes_before_the_environment_and_that_before_the_terminal() {
        use Coloring::{Always, Auto, Never};
        type Variable = (&'static str, &'static str);
        const XTERM: Variable = ("TERM", "xterm");
        const NO: Variable = ("NO_COLOR", "1");
        const FORCE: Variable = ("CLICOLOR_FORCE", "1");
        let table: &[(Coloring, bool, &[Variable], bool)] = &[
            (Auto, true, &[XTERM], true),
            (Auto, false, &[XTERM], false),
            (Auto, true, &[], false),
            (Auto, true, &[("TERM", "dumb")], false),
            (Auto, true, &[XTERM, NO], false),
            (Auto, true, &[XTERM, ("NO_COLOR", "")], true),
            (Auto, false, &[FORCE], true),
            (Auto, false, &[("CLICOLOR_FORCE", "0")], false),
            (Auto, false, &[FORCE, NO], false),
            (Always, false, &[NO], true),
            (Never, true, &[XTERM, FORCE], false),
        ];
        for (coloring, is_terminal, environment, expected) in table {
            let variable = |name: &str| {
                let found = environment.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let applies = coloring.applies(*is_terminal, variable);
            assert_eq!(applies, *expected, "{coloring:?} {is_terminal} {environment:?}");
        }
    }
}
