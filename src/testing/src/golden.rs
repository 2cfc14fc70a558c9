//! Files that are held against what the code says: golden reports, screens, generated documents.
//!
//! `BLESS=1` writes those that differ anew; the difference is what a review reads.

use std::path::Path;
use std::{env, fs};

use similar::TextDiff;

/// Whether files are to be written anew.
pub fn is_blessed() -> bool {
    env::var_os("BLESS").is_some_and(|value| value == "1")
}

/// Holds the file at `path` against `current`, or writes it with `BLESS=1`.
///
/// # Errors
/// How the file differs, or that there is none.
pub fn compare(path: &Path, current: &str) -> Result<(), String> {
    let kept = fs::read_to_string(path);
    if kept.as_ref().is_ok_and(|kept| kept == current) {
        return Ok(());
    }
    if is_blessed() {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all);
        return written
            .and_then(|()| fs::write(path, current))
            .map_err(|error| format!("{} cannot be written: {error}", path.display()));
    }
    let kept = kept.map_err(|error| {
        format!("{}: {error}. BLESS=1 writes it; it would be\n{current}", path.display())
    })?;
    let diff = TextDiff::from_lines(kept.as_str(), current);
    let diff = diff.unified_diff().header("as it stands", "as it would be").to_string();
    Err(format!("{} is stale; BLESS=1 writes it again:\n{diff}", path.display()))
}

/// Fails where the file at `path` differs from `current`; writes it with `BLESS=1`.
///
/// # Panics
/// With how they differ.
#[track_caller]
pub fn check(path: &Path, current: &str) {
    if let Err(difference) = compare(path, current) {
        panic!("{difference}");
    }
}
