//! `streamsan man`: manual pages, from the grammar of the command line.

use super::output::{print_bytes, warn};
use crate::error::Error;
use crate::options::{ManOptions, grammar};
use std::fs;
use streamsan_model::ExitCode;

/// `streamsan man`.
///
/// # Errors
///
/// A directory or file that cannot be written.
pub(crate) fn man(options: &ManOptions) -> Result<ExitCode, Error> {
    let Some(directory) = &options.output else {
        let mut page = Vec::new();
        clap_mangen::Man::new(grammar()).render(&mut page).map_err(Error::Output)?;
        print_bytes(&page);
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(directory).map_err(Error::Output)?;
    clap_mangen::generate_to(grammar(), directory).map_err(Error::Output)?;
    warn(&format!("the manual pages are in {}", directory.display()));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    fn pages() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let output = Some(directory.path().join("man1"));
        man(&ManOptions { output }).expect("written");
        directory
    }

    fn page(directory: &Path, name: &str) -> Option<String> {
        fs::read_to_string(directory.join("man1").join(name)).ok()
    }

    #[test]
    fn every_command_has_a_page_with_all_its_options() {
        let directory = pages();
        for command in grammar().get_subcommands() {
            let name = command.get_name();
            let page = page(directory.path(), &format!("streamsan-{name}.1"));
            assert_eq!(page.is_some(), !command.is_hide_set(), "{name}");
            let Some(page) = page else { continue };
            for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
                let option = option.replace('-', "\\-");
                assert!(page.contains(&format!("\\-\\-{option}")), "{name} {option}: {page}");
            }
        }
        assert!(page(directory.path(), "streamsan.1").is_some());
    }

    /// Where man is installed it sets every page without a warning.
    #[test]
    fn pages_are_set_without_a_warning() {
        let directory = pages();
        for entry in fs::read_dir(directory.path().join("man1")).expect("readable") {
            let page = entry.expect("readable").path();
            let mut man = Command::new("man");
            man.args(["--warnings", "-Tutf8", "-Z", "-l"]).arg(&page).env("MANWIDTH", "100");
            let Ok(output) = man.output() else { return };
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
        }
    }
}
