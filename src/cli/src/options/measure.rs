//! Which kernels are measured, and whether a second run settles what the first one leaves open.

use std::path::PathBuf;
use std::str::FromStr;

/// Kernels to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Kernels with a name of this pattern, mangled or readable.
    Glob(String),
    /// The kernels that a trace, or the traces of a directory, left open.
    OpenIn(PathBuf),
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some("") => Err("@ stands before a trace, or a directory of traces".to_owned()),
            Some(path) => Ok(Self::OpenIn(path.into())),
            None if text.is_empty() => Err("a pattern is not empty; * is every kernel".to_owned()),
            None => Ok(Self::Glob(text.to_owned())),
        }
    }
}

/// When a program is run again with measuring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Settle {
    /// Unless the first run is RACY
    Open,
    /// Also then
    All,
}

#[cfg(test)]
mod tests {
    use super::Measure;

    #[test]
    fn patterns_and_traces_are_told_apart() {
        assert_eq!("fill*".parse(), Ok(Measure::Glob("fill*".to_owned())));
        assert_eq!("@a.db".parse(), Ok(Measure::OpenIn("a.db".into())));
        assert!("".parse::<Measure>().is_err());
        assert!("@".parse::<Measure>().is_err());
    }
}
