//! NVIDIA's compiler and disassembler, as tests look for them: in the folders of
//! `STREAMSAN_TEST_TOOLS` and where streamsan itself looks. Where the machine has none, a test that
//! needs them is shown as ignored; where the variable is set, as in CI, it fails.

use std::env;
use std::ffi::OsString;

use streamsan_kernels::disassembler::Disassembler;
use streamsan_kernels::toolkit::{Places, Tool};

const TOOLS: &str = "STREAMSAN_TEST_TOOLS";
/// Limits the targets, which stand in it separated by blanks.
const TARGETS: &str = "STREAMSAN_TEST_TARGETS";

/// Whether a missing tool is a failure.
pub(crate) fn are_required() -> bool {
    env::var_os(TOOLS).is_some()
}

fn places() -> Places {
    let given = |name: &str| env::var_os(name).unwrap_or_default();
    let lists = [given(TOOLS), given("PATH")];
    let folders = lists.iter().flat_map(|list| env::split_paths(list).collect::<Vec<_>>());
    let folders = folders.filter(|folder| !folder.as_os_str().is_empty());
    let path = env::join_paths(folders).expect("a list of folders can be joined again");
    let others = env::vars_os().filter(|(name, _)| name != "PATH");
    Places::new(others.chain([(OsString::from("PATH"), path)]), None)
}

/// The compiler.
pub(crate) fn nvcc() -> Option<Tool> {
    places().find("nvcc", "STREAMSAN_NVCC").unwrap_or_else(|error| panic!("{error}"))
}

/// The disassembler.
pub(crate) fn nvdisasm() -> Option<Tool> {
    Disassembler::locate(&places()).unwrap_or_else(|error| panic!("{error}"))
}

/// Those of the targets, such as `90a`, whose code is to be tested.
pub(crate) fn wanted<'a>(targets: &[&'a str]) -> Vec<&'a str> {
    let Ok(wanted) = env::var(TARGETS) else { return targets.to_vec() };
    let is_wanted = |target: &&str| wanted.split_whitespace().any(|one| one == *target);
    let left: Vec<&str> = targets.iter().copied().filter(is_wanted).collect();
    assert!(!left.is_empty(), "{TARGETS} is {wanted:?}, which has none of {targets:?}");
    left
}
