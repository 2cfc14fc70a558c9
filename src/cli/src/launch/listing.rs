//! Test programs that are asked which tests they have.
//!
//! A test runner starts every test program once to hear the names, before it starts the tests one
//! by one. Nothing is to be recorded then, and the names on standard output must come alone and at
//! once. Only requests that no other program is likely to understand are taken for this one: what
//! is taken for a listing is not recorded.

use super::{Environment, Libraries};
use crate::options::SimPolicy;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// GoogleTest, Catch2 (3 and 2), doctest, Boost.Test: as their CMake modules ask.
const LISTING: [&str; 5] = [
    "--gtest_list_tests",
    "--list-tests",
    "--list-test-names-only",
    "--list-test-cases",
    "--list_content",
];

/// Whether a command line, the program's name first, only asks for the names of tests.
pub(crate) fn is_listing(program: &[OsString]) -> bool {
    let arguments: Vec<&OsStr> = program.iter().skip(1).map(OsString::as_os_str).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| *argument == wanted);
    // Rust's test programs, as nextest asks them.
    let terse = has("--format=terse")
        || arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "terse");
    (has("--list") && terse) || LISTING.into_iter().any(has)
}

/// Becomes the program, without the runtime; a program that is linked with the driver still finds
/// the simulated one. Answers only when that fails.
pub(crate) fn become_program(
    file: &Path,
    program: &[OsString],
    libraries: &Libraries,
    policy: Option<&SimPolicy>,
) -> io::Error {
    let mut command = Command::new(file);
    if let [name, arguments @ ..] = program {
        command.arg0(name).args(arguments);
    }
    command.envs(Environment::without_runtime(libraries, policy).iter()).exec()
}

#[cfg(test)]
mod tests {
    use super::is_listing;
    use std::ffi::OsString;

    #[test]
    fn only_requests_for_names_are_listings() {
        for (line, expected) in [
            ("target/debug/deps/gpu-1 --list --format terse", true),
            ("target/debug/deps/gpu-1 --list --format terse --ignored", true),
            ("gpu --list --format=terse", true),
            ("gpu --gtest_list_tests", true),
            ("gpu --gtest_filter=* --gtest_list_tests", true),
            ("gpu --list-tests --verbosity quiet", true),
            ("gpu --list-test-cases --no-intro", true),
            ("gpu --list", false),
            ("gpu --format terse", false),
            ("gpu a::b --exact --nocapture", false),
            ("gpu --gtest_filter=A.b", false),
            ("--list --format terse", false),
            ("gpu --list terse --format", false),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(is_listing(&words), expected, "{line}");
        }
    }
}
