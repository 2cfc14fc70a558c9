//! Which directory is ours, and what the user has to know of the choice.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use streamsan_directories::{Chosen, Directory, Environment, Refused};

/// The messages said already: several things are kept, and each chooses.
static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The first directory of ours that can be used in this way. The user is told of one that is passed
/// over because others have, or may have, a hand in it.
///
/// # Errors
///
/// No directory can be used: why the last one was refused.
pub(crate) fn choose<T>(
    using: impl FnMut(&Directory) -> Result<T, Refused>,
) -> Result<Chosen<T>, Refused> {
    let chosen = Environment::of_this_process().choose(using)?;
    for refused in chosen.refused.iter().filter(|refused| refused.is_suspicious()) {
        let reason = refused.to_string();
        let instead = chosen.directory.path().display();
        let duration = if chosen.is_kept { "" } else { ", for this run only" };
        let text = format!(
            "{reason}, so nothing is kept there or loaded from there; {instead} is used \
             instead{duration}. To change that, give the directory to yourself alone (chown, \
             chmod go-w), or point XDG_CACHE_HOME to one of yours"
        );
        if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(reason) {
            crate::commands::warn(&text);
        }
    }
    Ok(chosen)
}
