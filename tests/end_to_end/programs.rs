//! Where the programs under test are. The Rust ones are built by cargo with this test; the C ones
//! are built here, by the script that stands beside them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Rust program under test.
pub(crate) fn rust(name: &str) -> PathBuf {
    let sibling = Path::new(env!("CARGO_BIN_EXE_ping_pong"));
    sibling.with_file_name(name)
}

/// The names of all Rust programs under test, by their sources.
pub(crate) fn rust_names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the programs are readable")
        .map(|entry| entry.expect("the programs are readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("it has a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Builds one C program into `folder`. Built for each test: that takes a fraction of a second, and
/// tests share nothing.
pub(crate) fn c(name: &str, folder: &Path) -> PathBuf {
    c_with("cc", "", name, folder)
}

/// Builds one C program with this compiler and options for it.
pub(crate) fn c_with(compiler: &str, options: &str, name: &str, folder: &Path) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/c/build.sh");
    let mut script = Command::new(script);
    script.arg(folder).arg(name).env("CC", compiler).env("CFLAGS", options);
    let built = script.output().expect("the script starts");
    assert!(
        built.status.success(),
        "{name} does not build ({compiler} is needed): {}",
        String::from_utf8_lossy(&built.stderr)
    );
    folder.join(name)
}
