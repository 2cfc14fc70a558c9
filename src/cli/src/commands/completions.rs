//! `streamsan completions`: what makes a shell complete the command line, from its grammar.

use super::output::print_bytes;
use crate::error::Error;
use crate::options::{CompletionsOptions, grammar};
use clap_complete::Shell;
use streamsan_model::ExitCode;

/// `streamsan completions`.
///
/// # Errors
///
/// None; all commands have the same type.
pub(crate) fn completions(options: &CompletionsOptions) -> Result<ExitCode, Error> {
    print_bytes(&script(options.shell));
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut without_hidden(grammar()), "streamsan", &mut script);
    script
}

/// The grammar of what users type: generators also offer commands that help hides.
fn without_hidden(grammar: clap::Command) -> clap::Command {
    let shown: Vec<clap::Command> =
        grammar.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let about = grammar.get_about().cloned().unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    clap::Command::new("streamsan").version(version).about(about).subcommands(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

    /// Everything that help shows is completed, and nothing that it hides.
    #[test]
    fn every_command_and_option_is_completed() {
        for shell in SHELLS {
            let script = String::from_utf8(script(shell)).expect("text");
            for command in grammar().get_subcommands() {
                let name = command.get_name();
                assert_eq!(script.contains(name), !command.is_hide_set(), "{name} in {shell}");
                if command.is_hide_set() {
                    continue;
                }
                for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
                    assert!(script.contains(option), "{name} --{option} in {shell}");
                }
            }
            assert!(script.contains("github-summary"), "formats in {shell}");
        }
    }

    /// The shells that are here take their scripts; bash is on every machine that builds this.
    #[test]
    fn shells_accept_their_scripts() {
        let mut checked = Vec::new();
        for shell in SHELLS {
            let mut check = Command::new(shell.to_string());
            check.arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped());
            let Ok(mut check) = check.spawn() else { continue };
            let mut input = check.stdin.take().expect("a pipe");
            input.write_all(&script(shell)).expect("it reads");
            drop(input);
            let output = check.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{shell}: {said}");
            checked.push(shell);
        }
        assert!(checked.contains(&Shell::Bash), "no bash");
    }
}
