//! The files of the corpus of text traces: in chapters, `traces/fail/CHAPTER/NAME.trace`.

use std::fs;
use std::path::{Path, PathBuf};

/// All files of a side, `pass` or `fail`, in the order of their paths.
pub(crate) fn files(side: &str) -> Vec<PathBuf> {
    // The package that this file is compiled into may lie anywhere in the repository.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let corpus = above.map(|folder| folder.join("traces")).find(|folder| folder.is_dir());
    let mut files = Vec::new();
    collect(&corpus.expect("the repository has traces").join(side), &mut files);
    files.sort();
    files
}

/// The traces of a side, in the order of their paths.
pub(crate) fn traces(side: &str) -> Vec<PathBuf> {
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
