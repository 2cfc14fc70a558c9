//! Why a table cannot be written.

use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

/// A file of a table cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write the table {}: {source}. No file of this trace is changed; make room or choose another \
     directory with -o, and export again",
    path.display()
)]
pub struct Error {
    /// The file as it would be called.
    path: PathBuf,
    /// What the system says.
    source: io::Error,
}

impl Error {
    pub(crate) fn of(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self { path: path.clone(), source }
    }

    pub(crate) fn of_parquet(path: &Path) -> impl Fn(ParquetError) -> Self + use<> {
        let failed = Self::of(path);
        move |error| {
            failed(match error {
                // What the system said, not that Parquet heard it.
                ParquetError::External(source) => match source.downcast::<io::Error>() {
                    Ok(source) => *source,
                    Err(other) => io::Error::other(other),
                },
                other => io::Error::other(other),
            })
        }
    }
}
