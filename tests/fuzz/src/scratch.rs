//! A directory in memory for what is read by path, one a process and thread.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    static SCRATCH: TempDir = directory();
}

fn directory() -> TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("streamsan-fuzz-");
    let shared = Path::new("/dev/shm");
    let made = if shared.is_dir() { builder.tempdir_in(shared) } else { builder.tempdir() };
    made.expect("a directory for the inputs")
}

/// The directory of the calling thread.
pub(crate) fn folder() -> PathBuf {
    SCRATCH.with(|scratch| scratch.path().to_owned())
}

/// The path of a file of the calling thread.
pub(crate) fn file(name: &str) -> PathBuf {
    folder().join(name)
}
