//! Lines of source files, for a reader who has them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Larger files are not read: they are no sources.
const LARGEST: u64 = 16 << 20;
/// Characters of a line that are shown.
const WIDTH: usize = 160;

/// Files that were asked for, each read once.
#[derive(Debug, Default)]
pub(super) struct SourceLines {
    files: HashMap<String, Option<String>>,
}

impl SourceLines {
    /// A line of a file, counted from 1: without its indentation and without anything that a
    /// terminal would take for a command. Paths come out of a trace, so only regular files are
    /// opened.
    pub(super) fn line(&mut self, path: &str, line: u32) -> Option<String> {
        if !self.files.contains_key(path) {
            self.files.insert(path.to_owned(), read(Path::new(path)));
        }
        let text = self.files.get(path)?.as_ref()?;
        let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?.trim();
        if line.is_empty() {
            return None;
        }
        let shown = line.chars().map(|c| if c.is_control() { ' ' } else { c });
        let mut shown: String = shown.take(WIDTH).collect();
        if line.chars().nth(WIDTH).is_some() {
            shown.push_str("...");
        }
        Some(shown)
    }
}

fn read(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    // A file that holds no text is no source.
    (!bytes.contains(&0)).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::SourceLines;

    #[test]
    fn lines_are_shown_without_what_a_terminal_would_obey() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, bytes: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).expect("a file");
            path.to_str().expect("UTF-8").to_owned()
        };
        let mut lines = SourceLines::default();
        let script = file("a.py", b"first\n\n    x = \x1b[31m'\xc3\xa4'\t# \xff\r\n");
        assert_eq!(lines.line(&script, 1).as_deref(), Some("first"));
        assert_eq!(lines.line(&script, 2), None);
        assert_eq!(lines.line(&script, 3).as_deref(), Some("x =  [31m'ä' # \u{fffd}"));
        assert_eq!((lines.line(&script, 0), lines.line(&script, 4)), (None, None));
        let long = file("long", "y".repeat(1000).as_bytes());
        assert_eq!(lines.line(&long, 1).map(|line| line.len()), Some(163));
        let binary = file("binary", b"a\0b\n");
        assert_eq!(lines.line(&binary, 1), None);
        assert_eq!(lines.line("/dev/zero", 1), None);
        assert_eq!(lines.line(directory.path().to_str().expect("UTF-8"), 1), None);
    }
}
