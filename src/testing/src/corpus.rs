//! The files of the corpus of text traces: in chapters, `traces/fail/CHAPTER/NAME.trace`.

use std::fs;
use std::path::{Path, PathBuf};

/// All files of a side, `pass` or `fail`, in the order of their paths.
///
/// # Panics
/// When a folder cannot be read.
pub fn files(side: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let mut files = Vec::new();
    collect(&root.expect("the root of the repository").join("traces").join(side), &mut files);
    files.sort();
    files
}

/// The traces of a side, in the order of their paths.
///
/// # Panics
/// When a folder cannot be read, or there is no trace: a test over nothing would pass.
pub fn traces(side: &str) -> Vec<PathBuf> {
    let mut files = files(side);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "trace"));
    assert!(!files.is_empty(), "no trace in {side}");
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.expect("a readable folder").path();
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
