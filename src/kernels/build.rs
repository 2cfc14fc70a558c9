//! Gives every state of the analysis a version of its own, so that results that an older state
//! left on disk are not taken for its own: a hash of the sources that conclude anything.

use std::path::{Path, PathBuf};
use std::{env, fs, io};
use xxhash_rust::xxh3::Xxh3;

/// Reading images, parsing code, analysing it, and putting it on disk.
const SOURCES: [&str; 5] = [
    "ptx/src",
    "kernels/src/access",
    "kernels/src/image",
    "kernels/src/reader",
    "kernels/src/sass",
];

fn main() -> io::Result<()> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let root = manifest.parent().map(Path::to_owned).unwrap_or_default();
    let mut files = Vec::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        collect(&root.join(folder), &mut files)?;
    }
    // The order in a directory is not the same everywhere.
    files.sort();
    let mut hash = Xxh3::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file);
        hash.update(name.as_os_str().as_encoded_bytes());
        hash.update(&fs::read(&file)?);
    }
    println!("cargo::rustc-env=ANALYSIS_VERSION={}", hash.digest());
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
            files.push(entry.path());
        }
    }
    Ok(())
}
