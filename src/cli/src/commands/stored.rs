//! A trace for commands that read stored traces only. A text trace becomes a stored one for the time of
//! the command, in a directory of this run (`streamsan_directories`): other users can change neither
//! the file nor its name.
//!
//! Deliberately absent: times. A text trace has none, so that the viewer and the counts show none.

use super::analysis::{host_model, host_model_meta};
use super::trace::{Trace, Unread};
use crate::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use streamsan_collect::{Recorder, Silent};
use streamsan_directories::{Directory, Environment};
use streamsan_model::IncompleteReason;
use streamsan_store::{Coverage, Meta, Writer};
use streamsan_text::TextTrace;

const NAME: &str = "text.db";

/// A stored trace in a file.
pub(super) struct Stored {
    path: PathBuf,
    /// Removed with this value, where the trace is a text trace.
    directory: Option<Directory>,
}

impl Stored {
    /// Makes sure that a trace is a stored one. What it is is told by its content.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no text trace although it must be one, or a text trace cannot be
    /// stored.
    pub(super) fn of(file: &Path) -> Result<Self, Error> {
        let is_named_stored = file.extension().is_some_and(|extension| extension == "db");
        let looked = if is_named_stored { Unread::Stored } else { Trace::look(file)? };
        match looked {
            Unread::Text(trace) => Self::of_text(trace, file),
            Unread::Stored => Ok(Self { path: file.to_owned(), directory: None }),
        }
    }

    /// Stores a text trace, which was read from `file`.
    ///
    /// # Errors
    ///
    /// It cannot be stored.
    pub(super) fn of_text(trace: TextTrace, file: &Path) -> Result<Self, Error> {
        let temporary = Environment::of_this_process().temporary(&mut Vec::new());
        let directory = Directory::for_this_run(&temporary)
            .map_err(|refused| cannot_store(file, &refused.to_string()))?;
        let path = directory.path().join(NAME);
        store(trace, &path).map_err(|reason| cannot_store(file, &reason))?;
        Ok(Self { path, directory: Some(directory) })
    }

    /// The file of the stored trace, while this value lives.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the trace is a text trace, which has no facts about a recording.
    pub(super) fn is_text(&self) -> bool {
        self.directory.is_some()
    }
}

/// The advice to a user when there is no room, or no directory.
fn cannot_store(file: &Path, reason: &str) -> Error {
    Error::Output(io::Error::other(format!(
        "{} is a text trace, which is stored among temporary files to be looked at: {reason}. Make \
         room, or point TMPDIR to a directory of yours",
        streamsan_names::printable_path(file)
    )))
}

/// Writes a text trace and what is found in it as a recording would be written.
fn store(trace: TextTrace, path: &Path) -> Result<(), String> {
    let strict = trace.strict_host_threads();
    let meta = Meta {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: chrono::DateTime::UNIX_EPOCH,
        command: Vec::new(),
        host: String::new(),
        driver: String::new(),
        extra: host_model_meta(strict),
    };
    let writer = Writer::create(path, &meta).map_err(|error| error.to_string())?;
    let mut recorder =
        Recorder::new(path, writer, false, None, host_model(strict), Arc::new(Silent));
    trace.items.iter().for_each(|item| recorder.item(item));
    let recording = recorder.finish(false, Coverage::default(), Vec::new());
    let failure = recording.reasons.into_iter().find_map(|reason| match reason {
        IncompleteReason::TraceNotWritten(reason) => Some(reason),
        _ => None,
    });
    failure.map_or(Ok(()), Err)
}
