//! Tools that tests run and the project does not bring: test runners, launchers, interpreters.
//!
//! They are looked for in the folders of `STREAMSAN_TEST_TOOLS`, then in `PATH`. A trial whose tool
//! is missing is shown as ignored; where the variable is set, as in CI, it fails.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use libtest_mimic::Trial;

use crate::command::Scratch;
use crate::trial;

const VARIABLE: &str = "STREAMSAN_TEST_TOOLS";

/// The question to a tool that shows that the tool is there and works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    program: &'static str,
    arguments: &'static [&'static str],
}

pub(crate) const NEXTEST: Tool = Tool { program: "cargo", arguments: &["nextest", "--version"] };
pub(crate) const CTEST: Tool = Tool { program: "ctest", arguments: &["--version"] };
/// CMake, ctest and the headers of GoogleTest.
pub(crate) const GOOGLETEST: Tool = Tool {
    program: "sh",
    arguments: &[
        "-c",
        "cmake --version && ctest --version && echo '#include <gtest/gtest.h>' | c++ -E -x c++ -",
    ],
};
pub(crate) const MPIRUN: Tool = Tool { program: "mpirun", arguments: &["--version"] };
pub(crate) const MATURIN: Tool =
    Tool { program: "python3", arguments: &["-c", "import maturin, pytest, venv"] };
/// What reads the files for build servers, and holds them against the schemas of those.
pub(crate) const YAML: Tool =
    Tool { program: "python3", arguments: &["-c", "import check_jsonschema, yaml"] };
pub(crate) const PRE_COMMIT: Tool =
    Tool { program: "sh", arguments: &["-c", "pre-commit --version && git --version"] };
pub(crate) const PYTHON: Tool = Tool { program: "python3", arguments: &["-c", "import ctypes"] };
pub(crate) const DUCKDB: Tool = Tool { program: "python3", arguments: &["-c", "import duckdb"] };
pub(crate) const PYTEST: Tool =
    Tool { program: "python3", arguments: &["-m", "pytest", "--version"] };
pub(crate) const XDIST: Tool =
    Tool { program: "python3", arguments: &["-c", "import pytest, xdist"] };

impl Tool {
    fn works(self) -> bool {
        let mut command = Command::new(self.program);
        command.args(self.arguments).env("PATH", path());
        command.output().is_ok_and(|output| output.status.success())
    }
}

/// A trial that needs a tool.
pub(crate) fn with(tool: Tool, name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    let is_missing = env::var_os(VARIABLE).is_none() && !tool.works();
    trial(name, test).with_ignored_flag(is_missing)
}

/// `PATH` with the folders of the tools before it.
pub(crate) fn path() -> OsString {
    let given = |name: &str| env::var_os(name).unwrap_or_default();
    let folders = [given(VARIABLE), given("PATH")];
    let folders = folders.iter().flat_map(|list| env::split_paths(list).collect::<Vec<_>>());
    env::join_paths(folders.filter(|folder| !folder.as_os_str().is_empty()))
        .expect("a list of folders can be joined again")
}

/// Where a tool lies; its name where that is not known.
pub(crate) fn find(program: &str) -> PathBuf {
    let folders = path();
    let mut files = env::split_paths(&folders).map(|folder| folder.join(program));
    files.find(|file| file.is_file()).unwrap_or_else(|| program.into())
}

/// A tool to be run in `folder`, without what the tests' own cargo or test runner has set.
pub(crate) fn command(scratch: &Scratch, folder: &Path, program: &str) -> Command {
    let mut command = scratch.command(&find(program), &[]);
    command.current_dir(folder).env("PATH", path());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_", "NEXTEST", "RUST_", "RUSTFLAGS", "PYTEST_"]
            .iter()
            .any(|p| text.starts_with(p))
            && text != "CARGO_HOME"
        {
            command.env_remove(&name);
        }
    }
    // Python's compiled files stay out of the tests' folders.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Copies one of the projects in `tests/runners` into the scratch folder: tools write beside what
/// they run.
pub(crate) fn project(scratch: &Scratch, name: &str) -> PathBuf {
    let to = scratch.file(name);
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("runners").join(name), &to);
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("there is room for a folder");
    for entry in fs::read_dir(from).expect("the project is readable") {
        let entry = entry.expect("the project is readable");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("there is room for a file");
        }
    }
}
