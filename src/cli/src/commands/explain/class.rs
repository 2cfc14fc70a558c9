//! The page on a class of findings.

use super::super::output::{color, columns, print};
use crate::error::Error;
use std::io;
use std::path::Path;
use streamsan_model::RaceClass;
use streamsan_names::printable;
use streamsan_report::Page;

/// Columns of a page at most: longer lines are hard to read.
const WIDEST: usize = 100;

/// The class that is asked for in place of a trace. Reports for other tools write `latent-` and `lint-`
/// before some classes.
///
/// # Errors
///
/// The word is no class and cannot be meant as a file, or a finding is named beside a class.
pub(super) fn asked(file: &Path, id: Option<&str>) -> Result<Option<RaceClass>, Error> {
    let is_word = |word: &&str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    let Some(word) = file.to_str().filter(is_word).filter(|_| !is_there(file)) else {
        return Ok(None);
    };
    let class = word.strip_prefix("latent-").or(word.strip_prefix("lint-")).unwrap_or(word);
    match (class.parse::<RaceClass>(), id) {
        (Ok(class), None) => Ok(Some(class)),
        (Ok(_), Some(id)) => Err(Error::Usage(format!(
            "{word} is a class of findings and no trace, and so has no finding {}; name the trace \
             first, or leave the finding out to read about the class",
            printable(id)
        ))),
        (Err(()), _) => {
            let classes: Vec<&str> = RaceClass::ALL.iter().map(|c| c.description()).collect();
            Err(Error::Usage(format!(
                "{word} is neither a file nor a class of findings; the classes are {}",
                classes.join(", ")
            )))
        }
    }
}

/// Whether anything has this name, were it only a link to nothing.
fn is_there(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

pub(super) fn print_page(class: RaceClass) {
    let stdout = io::stdout();
    let width = columns(&stdout).unwrap_or(WIDEST).min(WIDEST);
    print(&Page::of(class).render(width, color(&stdout)));
}
