//! Which interpreter it is, from the text of `Py_GetVersion`.

use streamsan_wire::PythonRefusal as Refusal;

use super::layout::{LAYOUTS, PythonLayout};

/// The layout for a version text such as `3.12.1 (main, ...)`.
///
/// # Errors
///
/// Why no layout fits the version.
pub(super) fn layout_of(text: &str) -> Result<&'static PythonLayout, Refusal> {
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
