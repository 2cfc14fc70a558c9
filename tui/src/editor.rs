//! The user's editor at a line of the source.

use crate::state::SourceLine;
use std::env::{current_dir, var};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use streamsan_names::{printable, printable_path};

/// Why no editor was opened, or that it failed; the text tells the user what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditorError {
    #[error("neither VISUAL nor EDITOR names an editor")]
    NoEditor,
    #[error("{} is not on this machine", printable(.0))]
    NoFile(String),
    #[error("the editor {} cannot be started: {error}", printable(.editor))]
    NotStarted { editor: String, error: io::Error },
    #[error("the editor {} ended with {status}", printable(.editor))]
    Failed { editor: String, status: ExitStatus },
}

/// An editor and what it is to open.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Editor {
    /// A command line of the shell, as the user wrote it.
    command: String,
    arguments: Vec<String>,
}

impl Editor {
    /// The user's editor for a line.
    ///
    /// # Errors
    ///
    /// There is no editor, or no such file.
    pub(crate) fn at(place: &SourceLine) -> Result<Self, EditorError> {
        let named = |name| var(name).ok().filter(|editor| !editor.trim().is_empty());
        let command = named("VISUAL").or_else(|| named("EDITOR")).ok_or(EditorError::NoEditor)?;
        let here = current_dir().unwrap_or_default();
        let file = found(&place.file, &here).ok_or(EditorError::NoFile(place.file.clone()))?;
        let arguments = arguments(&command, &file.to_string_lossy(), place.line);
        Ok(Self { command, arguments })
    }

    /// Runs the editor until the user leaves it.
    ///
    /// # Errors
    ///
    /// The editor cannot be started, or fails.
    pub(crate) fn run(&self) -> Result<(), EditorError> {
        let mut shell = Command::new("sh");
        // As the user may have written options behind the editor's name.
        shell.arg("-c").arg(format!("{} \"$@\"", self.command)).arg("sh").args(&self.arguments);
        if !io::stdin().is_terminal()
            && let Ok(terminal) = File::open("/dev/tty")
        {
            shell.stdin(Stdio::from(terminal));
        }
        let editor = || self.command.clone();
        let status =
            shell.status().map_err(|error| EditorError::NotStarted { editor: editor(), error })?;
        if status.success() {
            Ok(())
        } else {
            Err(EditorError::Failed { editor: editor(), status })
        }
    }
}

/// The file on this machine: as the trace names it or, where the program ran elsewhere, the longest
/// end of its path below the working directory.
fn found(file: &str, here: &Path) -> Option<PathBuf> {
    let path = here.join(file);
    if path.is_file() {
        return Some(path);
    }
    let mut rest = Path::new(file).components();
    while rest.next().is_some() {
        let path = here.join(rest.as_path());
        if !rest.as_path().as_os_str().is_empty() && path.is_file() {
            return Some(path);
        }
    }
    None
}

/// How editors are told of a line.
fn arguments(command: &str, file: &str, line: u32) -> Vec<String> {
    let program = command.split_whitespace().next().unwrap_or_default();
    let program = Path::new(program).file_name().map_or("", |name| name.to_str().unwrap_or(""));
    match program {
        "code" | "code-insiders" | "codium" | "cursor" | "windsurf" => {
            vec!["--goto".to_owned(), format!("{file}:{line}")]
        }
        "hx" | "helix" | "subl" | "zed" => vec![format!("{file}:{line}")],
        "clion" | "idea" | "pycharm" | "rustrover" | "kate" => {
            vec!["--line".to_owned(), line.to_string(), file.to_owned()]
        }
        // vi and what follows it: vim, nvim, emacs, nano, micro, kak, joe.
        _ => vec![format!("+{line}"), file.to_owned()],
    }
}

/// What the status line says behind the editor.
pub(crate) fn told(place: &SourceLine) -> String {
    format!("edited {}:{}", printable_path(&place.file), place.line)
}

#[cfg(test)]
mod tests {
    use super::{arguments, found};
    use std::path::Path;

    #[test]
    fn editors_are_told_of_the_line_in_their_way() {
        for (editor, expected) in [
            ("vim", &["+7", "/a b.py"] as &[&str]),
            ("/usr/bin/nano -l", &["+7", "/a b.py"]),
            ("code --wait", &["--goto", "/a b.py:7"]),
            ("hx", &["/a b.py:7"]),
            ("pycharm", &["--line", "7", "/a b.py"]),
        ] {
            assert_eq!(arguments(editor, "/a b.py", 7), expected, "{editor}");
        }
    }

    #[test]
    fn files_of_another_machine_are_looked_for_here() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("src")).expect("made");
        let file = folder.path().join("src/train.py");
        std::fs::write(&file, "").expect("written");
        for name in [file.to_str().expect("text"), "/opt/other/src/train.py", "src/train.py"] {
            assert_eq!(found(name, folder.path()), Some(file.clone()), "{name}");
        }
        assert_eq!(found("/opt/other/train.py", folder.path()), None);
        assert_eq!(found("", folder.path()), None);
        assert_eq!(found("/", Path::new("/")), None);
    }
}
