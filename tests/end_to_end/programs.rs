//! Where the programs under test are. The Rust ones are built by cargo with this test; the C ones
//! are built here, by the script that stands beside them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// A Rust program under test: a link of its name to the executable that has all of them.
pub(crate) fn rust(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    fs::create_dir_all(&folder).expect("there is room for a folder");
    let link = folder.join(name);
    let all = Path::new(env!("CARGO_BIN_EXE_programs"));
    if fs::read_link(&link).is_ok_and(|target| target == all) {
        return link;
    }
    // Under a name of this process first: other tests do the same.
    let made = folder.join(format!("{name}.{}.{:?}", std::process::id(), thread::current().id()));
    symlink(all, &made).expect("a link can be made");
    fs::rename(&made, &link).expect("a link can be renamed");
    link
}

/// The names of all Rust programs under test, by their sources.
pub(crate) fn rust_names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the programs are readable")
        .map(|entry| entry.expect("the programs are readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("it has a name").to_string_lossy().into_owned())
        .filter(|name| name != "main")
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
