//! The interpreters that are installed: in PATH, at their usual places and among pyenv's; others are
//! named in `STREAMSAN_TEST_PYTHON` (paths, apart by `:`).

use std::path::{Path, PathBuf};
use std::process::Command;

/// The versions that are understood.
pub const MINORS: [u32; 6] = [9, 10, 11, 12, 13, 14];

/// The question to an interpreter about itself: its version, whether it is one that is refused, its
/// shared library, and where its modules are.
const QUESTION: &str = "import ctypes, sys, sysconfig; \
    get = sysconfig.get_config_var; \
    print(sys.version_info[1], int(bool(get('Py_GIL_DISABLED') or hasattr(sys, 'gettotalrefcount'))), \
    get('LIBDIR') + '/' + str(get('INSTSONAME')), sys.base_prefix, sep='\\n')";

/// An interpreter that runs.
#[derive(Debug)]
pub struct Interpreter {
    pub path: PathBuf,
    pub minor: u32,
    pub refused: bool,
    pub library: Option<PathBuf>,
    pub prefix: String,
}

/// One of each executable, by version.
pub fn interpreters() -> Vec<Interpreter> {
    let mut paths: Vec<PathBuf> = std::env::var_os("STREAMSAN_TEST_PYTHON")
        .map(|list| std::env::split_paths(&list).collect())
        .unwrap_or_default();
    let mut names = vec!["python3".to_owned()];
    names.extend(MINORS.map(|minor| format!("python3.{minor}")));
    let directories = std::env::var_os("PATH").unwrap_or_default();
    for directory in std::env::split_paths(&directories).chain(["/usr/bin".into()]) {
        paths.extend(names.iter().map(|name| directory.join(name)));
    }
    if let Some(home) = std::env::var_os("HOME") {
        let versions = Path::new(&home).join(".pyenv/versions");
        for version in versions.read_dir().into_iter().flatten().flatten() {
            paths.push(version.path().join("bin/python3"));
        }
    }
    let mut found: Vec<Interpreter> = Vec::new();
    let mut executables = Vec::new();
    for path in paths {
        let Some(executable) = real_executable(&path) else { continue };
        if executables.contains(&executable) {
            continue;
        }
        executables.push(executable);
        let Ok(answer) = Command::new(&path).args(["-c", QUESTION]).output() else { continue };
        let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut lines = answer.lines();
        let (Some(Ok(minor)), Some(refused)) = (lines.next().map(str::parse), lines.next()) else {
            continue;
        };
        let library = lines.next().map(PathBuf::from);
        let library =
            library.filter(|path| path.is_file() && path.to_string_lossy().contains(".so"));
        if MINORS.contains(&minor) {
            let prefix = lines.next().unwrap_or_default().to_owned();
            found.push(Interpreter { path, minor, refused: refused != "0", library, prefix });
        }
    }
    found.sort_by_key(|interpreter| interpreter.minor);
    found
}

/// Where the interpreter at `path` really is: shims lead there.
fn real_executable(path: &Path) -> Option<PathBuf> {
    let question = "import os, sys; print(os.path.realpath(sys.executable))";
    let answer =
        Command::new(path.is_file().then_some(path)?).args(["-c", question]).output().ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    (!answer.trim().is_empty()).then(|| answer.trim().into())
}
