//! `STREAMSAN_LOG`: what the command does, for those who look for the cause of something.
//!
//! Events come from the collector. `STREAMSAN_LOG=FILTER` writes them to standard error,
//! `STREAMSAN_LOG=FILTER:FILE` to the end of a file. FILTER is a level (`error` to `trace`), or
//! directives of tracing-subscriber such as `streamsan_collect::reading=debug`.
//!
//! Invariant: a log changes neither report nor exit code. One that cannot be written is warned of.

use crate::commands::{Stderr, warn};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use streamsan_names::{printable_path, printable_text};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Names the filter and the file.
const VARIABLE: &str = "STREAMSAN_LOG";

/// Begins to log, where the environment asks for it.
pub(crate) fn start() {
    let Some(value) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else { return };
    if let Err(error) = begin(value) {
        warn(&format!("{VARIABLE} is not obeyed: {error}"));
    }
}

#[derive(Debug, thiserror::Error)]
enum LogError {
    #[error("it is no text")]
    NoText,
    #[error("'{filter}' is no filter ({source}); a level such as debug is one")]
    Filter { filter: String, source: ParseError },
    #[error("cannot write {}: {source}", printable_path(path))]
    File { path: PathBuf, source: io::Error },
    #[error("something else logs already")]
    Taken,
}

fn begin(value: OsString) -> Result<(), LogError> {
    let value = value.into_string().map_err(|_| LogError::NoText)?;
    let (filter, file) = parts(&value);
    let filter = EnvFilter::builder()
        .parse(filter)
        .map_err(|source| LogError::Filter { filter: filter.to_owned(), source })?;
    let file = file.map(open).transpose()?;
    let out = Out(file.map(|file| Arc::new(Mutex::new(file))));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(move || out.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Taken)
}

fn open(path: &str) -> Result<File, LogError> {
    let failed = |source| LogError::File { path: path.into(), source };
    OpenOptions::new().append(true).create(true).open(path).map_err(failed)
}

/// The filter, and the file behind the first colon that stands alone: two belong to a module's path.
fn parts(value: &str) -> (&str, Option<&str>) {
    let mut from = 0;
    while let Some(found) = value[from..].find(':') {
        let at = from + found;
        if !value[at..].starts_with("::") {
            let file = &value[at + 1..];
            return (&value[..at], (!file.is_empty()).then_some(file));
        }
        from = at + 2;
    }
    (value, None)
}

/// Where the log goes: a file, else standard error with everything else that is said. Each event
/// comes in one piece.
#[derive(Clone)]
struct Out(Option<Arc<Mutex<File>>>);

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = printable_text(&text);
        match &self.0 {
            Some(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(text.as_bytes())?;
            }
            None => Stderr.write_all(text.as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn file_stands_behind_a_colon_of_its_own() {
        assert_eq!(parts("debug"), ("debug", None));
        assert_eq!(parts("debug:/tmp/a:b"), ("debug", Some("/tmp/a:b")));
        assert_eq!(parts("debug:"), ("debug", None));
        let module = "streamsan_collect::reading=debug";
        assert_eq!(parts(module), (module, None));
        assert_eq!(parts(&format!("info,{module}:log")), (&*format!("info,{module}"), Some("log")));
    }
}
