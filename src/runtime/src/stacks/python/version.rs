//! Which interpreter it is, from the text of `Py_GetVersion`, and why one is refused.

use super::layout::{LAYOUTS, Layout};

/// Why a process that runs Python gives no Python stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its version says nothing, or is none that is understood.
    UnknownVersion,
    /// An alpha or beta version, whose structures still change.
    PreRelease,
    /// Built without the global interpreter lock.
    FreeThreaded,
    /// Built for debugging CPython, with other structures.
    DebugBuild,
    /// It lacks a symbol, or its account of its structures is not that of its version.
    Structures,
    /// Its library was unloaded.
    Unloaded,
}

impl Refusal {
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Refusal::UnknownVersion => "this version of CPython is not known",
            Refusal::PreRelease => "an alpha or beta version of CPython",
            Refusal::FreeThreaded => "a free-threaded build of CPython",
            Refusal::DebugBuild => "a debug build of CPython",
            Refusal::Structures => "the interpreter's structures are not those of its version",
            Refusal::Unloaded => "the interpreter's library was unloaded",
        }
    }
}

/// The layout for a version text such as `3.12.1 (main, ...)`.
pub(super) fn layout_of(text: &str) -> Result<&'static Layout, Refusal> {
    let (number, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut parts = number.trim_end_matches('+').splitn(3, '.');
    let major = parts.next().unwrap_or_default();
    let minor: u8 =
        parts.next().and_then(|minor| minor.parse().ok()).ok_or(Refusal::UnknownVersion)?;
    let micro = parts.next().ok_or(Refusal::UnknownVersion)?;
    let layout = LAYOUTS
        .iter()
        .find(|layout| major == "3" && layout.minor == minor)
        .ok_or(Refusal::UnknownVersion)?;
    match micro.trim_start_matches(|digit: char| digit.is_ascii_digit()) {
        _ if rest.contains("free-threading") => Err(Refusal::FreeThreaded),
        "" => Ok(layout),
        suffix if suffix.starts_with("rc") => Ok(layout),
        _ => Err(Refusal::PreRelease),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let cases = [
            ("3.9.18 (main, Aug 25 2023, 13:20:04) \n[GCC 11.4.0]", Ok(9)),
            ("3.11.2+ (main)", Ok(11)),
            ("3.14.0rc3 (main, Sep 18 2025)", Ok(14)),
            ("3.14.0b2 (main)", Err(Refusal::PreRelease)),
            ("3.12.0a7+ (heads/main)", Err(Refusal::PreRelease)),
            ("3.13.1 experimental free-threading build (main)", Err(Refusal::FreeThreaded)),
            ("3.14.0 free-threading build (main)", Err(Refusal::FreeThreaded)),
            ("3.8.18 (default)", Err(Refusal::UnknownVersion)),
            ("3.15.0a1 (main)", Err(Refusal::UnknownVersion)),
            ("2.7.18 (default)", Err(Refusal::UnknownVersion)),
            ("3.12", Err(Refusal::UnknownVersion)),
            ("", Err(Refusal::UnknownVersion)),
        ];
        for (text, expected) in cases {
            assert_eq!(layout_of(text).map(|layout| layout.minor), expected, "{text}");
        }
    }
}
