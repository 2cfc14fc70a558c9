//! The traces that a command line names: files, and directories of them.

use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Every trace that is named. A directory stands for all stored traces in it and below, in the
/// order of their names.
///
/// # Errors
/// A directory that cannot be read, or without a trace: nobody must take it for a clean run.
pub(super) fn traces(named: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        collect(path, &mut found)?;
        if found.is_empty() {
            return Err(Error::Usage(format!(
                "there is no trace (*.db) in {}; was anything run there under `streamsan run -o`?",
                path.display()
            )));
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let read = |source| Error::Read { path: directory.to_owned(), source };
    for entry in fs::read_dir(directory).map_err(read)? {
        let entry = entry.map_err(read)?;
        let path = entry.path();
        // A link to a directory may lead back up.
        if entry.file_type().map_err(read)?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "db") {
            files.push(path);
        }
    }
    Ok(())
}
