//! Lines of source files, for a reader who has them.
//!
//! Paths come out of a trace, which may be anybody's: `~/.ssh/id_ed25519:1` is a place as good as
//! any. So lines are printed of files below the roots only, which are the user's to name, wherever
//! links on the way lead. Only regular files are opened, without following a link in their place and
//! without waiting for anybody.

use crate::error::Error;
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use streamsan_demo::{SOURCE, SOURCE_PATH};

/// Larger files are not read: they are no sources.
const LARGEST: u64 = 16 << 20;
/// Characters of a line that are shown.
const WIDTH: usize = 160;

/// Files that were asked for, each read once.
#[derive(Debug, Default)]
pub(crate) struct SourceLines {
    /// Without links.
    roots: Vec<PathBuf>,
    files: HashMap<String, Option<String>>,
    /// The demo's own source is known, wherever it lies.
    knows_demo: bool,
}

impl SourceLines {
    /// Lines of files below directories; below the current one where none is named.
    ///
    /// # Errors
    /// A directory that was named is none.
    pub(super) fn below(directories: &[PathBuf]) -> Result<Self, Error> {
        let root = |directory: &PathBuf| {
            let failed = |source| Error::Read { path: directory.clone(), source };
            let root = fs::canonicalize(directory).map_err(failed)?;
            if !root.is_dir() {
                let directory = directory.display();
                return Err(Error::Usage(format!(
                    "--source-root takes a directory, and {directory} is none"
                )));
            }
            Ok(root)
        };
        let roots = match directories {
            // Where there is no current directory, nothing is below it.
            [] => fs::canonicalize(".").into_iter().collect(),
            directories => directories.iter().map(root).collect::<Result<_, _>>()?,
        };
        Ok(Self { roots, files: HashMap::new(), knows_demo: false })
    }

    /// Knows the demo's source too, of a trace of the demo that this command has recorded: the command
    /// contains both.
    pub(super) fn with_demo(mut self, of_demo: bool) -> Self {
        self.knows_demo = of_demo;
        self
    }

    /// A line of a file, counted from 1: without its indentation, with a space for each control
    /// character.
    pub(super) fn line(&mut self, path: &str, line: u32) -> Option<String> {
        let line =
            self.text(path)?.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?.trim();
        if line.is_empty() {
            return None;
        }
        let shown = line.chars().map(|c| if c == '\t' { ' ' } else { c });
        let mut shown: String = shown.take(WIDTH).collect();
        if line.chars().nth(WIDTH).is_some() {
            shown.push_str("...");
        }
        Some(shown)
    }

    /// The lines around a line, as they stand in the file, by their numbers from 1. `None` where the
    /// file is not to be read or does not have the line.
    pub(super) fn around(
        &mut self,
        path: &str,
        line: u32,
        distance: u32,
    ) -> Option<Vec<(u32, String)>> {
        let (first, last) = (line.saturating_sub(distance).max(1), line.saturating_add(distance));
        let text = self.text(path)?;
        let lines: Vec<(u32, String)> = (1..)
            .zip(text.lines())
            .skip_while(|(number, _)| *number < first)
            .take_while(|(number, _)| *number <= last)
            .map(|(number, text)| (number, text.to_owned()))
            .collect();
        lines.iter().any(|(number, _)| *number == line).then_some(lines)
    }

    fn text(&mut self, path: &str) -> Option<&str> {
        if !self.files.contains_key(path) {
            let is_demo = || self.knows_demo && Path::new(path).ends_with(SOURCE_PATH);
            let read = self.read(Path::new(path));
            let read = read.or_else(|| is_demo().then(|| SOURCE.to_owned()));
            self.files.insert(path.to_owned(), read);
        }
        self.files.get(path)?.as_deref()
    }

    fn read(&self, path: &Path) -> Option<String> {
        let path = fs::canonicalize(path).ok()?;
        let is_below = self.roots.iter().any(|root| path.starts_with(root));
        if !is_below || !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        // Another file may stand there now.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = i32::try_from(flags.bits()).ok()?;
        let file = File::options().read(true).custom_flags(flags).open(&path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
        // A file that holds no text is no source.
        let is_text = bytes.len() as u64 <= LARGEST && !bytes.contains(&0);
        is_text.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::SourceLines;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    fn below(directory: &Path) -> SourceLines {
        SourceLines::below(&[directory.to_owned()]).expect("a directory")
    }

    fn file(directory: &Path, name: &str, bytes: &[u8]) -> String {
        let path = directory.join(name);
        fs::write(&path, bytes).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn lines_are_cut_and_counted() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut lines = below(directory.path());
        let script = file(directory.path(), "a.py", b"first\n\n    x = '\xc3\xa4'\t# \xff\r\n");
        assert_eq!(lines.line(&script, 1).as_deref(), Some("first"));
        assert_eq!(lines.line(&script, 2), None);
        assert_eq!(lines.line(&script, 3).as_deref(), Some("x = 'ä' # \u{fffd}"));
        assert_eq!((lines.line(&script, 0), lines.line(&script, 4)), (None, None));
        let long = file(directory.path(), "long", "y".repeat(1000).as_bytes());
        assert_eq!(lines.line(&long, 1).map(|line| line.len()), Some(163));
    }

    #[test]
    fn lines_around_a_line_end_where_the_file_does() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut lines = below(directory.path());
        let script = file(directory.path(), "a.py", b"one\n  two\nthree\n");
        let around = |lines: &mut SourceLines, line, distance| {
            let around = lines.around(&script, line, distance)?;
            Some(around.into_iter().map(|(number, text)| format!("{number}{text}")).collect())
        };
        let told: Option<Vec<String>> = around(&mut lines, 2, 0);
        assert_eq!(told, Some(vec!["2  two".to_owned()]));
        let told: Option<Vec<String>> = around(&mut lines, 1, u32::MAX);
        assert_eq!(told, Some(["1one", "2  two", "3three"].map(str::to_owned).into()));
        let outside: [Option<Vec<String>>; 2] = [0, 4].map(|line| around(&mut lines, line, 9));
        assert_eq!(outside, [None, None]);
    }

    #[test]
    fn only_texts_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut lines = below(directory.path());
        let binary = file(directory.path(), "binary", b"a\0b\n");
        let large = file(directory.path(), "large", &vec![b'\n'; super::LARGEST as usize + 1]);
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let pipe = pipe.to_str().expect("UTF-8");
        let folder = directory.path().to_str().expect("UTF-8");
        // Nobody writes into the pipe, and nobody waits for that.
        for path in [binary.as_str(), &large, pipe, folder] {
            assert_eq!(lines.line(path, 1), None, "{path}");
        }
        let mut everywhere = below(Path::new("/"));
        assert_eq!(everywhere.line("/dev/zero", 1), None);
    }

    #[test]
    fn what_lies_outside_of_the_roots_is_not_printed() {
        let [mine, other] = [0, 1].map(|_| tempfile::tempdir().expect("a directory"));
        let secret = file(other.path(), "secret", b"secret\n");
        let known = file(mine.path(), "known.py", b"known\n");
        let link = |name: &str, to: &Path| {
            let path = mine.path().join(name);
            symlink(to, &path).expect("a link");
            path.to_str().expect("UTF-8").to_owned()
        };
        let out = link("out.py", Path::new(&secret));
        let inside = link("inside.py", Path::new(&known));
        let folder = link("folder", other.path());
        let through = format!("{folder}/secret");
        let up = format!("{}/../{}/secret", mine.path().display(), name(other.path()));
        let mut lines = below(mine.path());
        for path in [&secret, &out, &through, &up] {
            assert_eq!(lines.line(path, 1), None, "{path}");
        }
        for path in [&known, &inside] {
            assert_eq!(lines.line(path, 1).as_deref(), Some("known"), "{path}");
        }
        // A directory beside the root whose name begins like the root's is not below it.
        let beside = PathBuf::from(format!("{}-2", mine.path().display()));
        fs::create_dir(&beside).expect("a directory");
        let near = file(&beside, "near", b"near\n");
        assert_eq!(lines.line(&near, 1), None);
        // Each root that is named counts.
        let both = [mine.path().to_owned(), other.path().to_owned()];
        let mut lines = SourceLines::below(&both).expect("directories");
        assert_eq!(lines.line(&out, 1).as_deref(), Some("secret"));
        assert_eq!(lines.line(&known, 1).as_deref(), Some("known"));
        fs::remove_dir_all(&beside).expect("removed");
        assert!(SourceLines::below(&[PathBuf::from(&known)]).is_err());
        assert!(SourceLines::below(&[beside]).is_err());
    }

    #[test]
    fn the_source_of_the_demo_is_known_for_its_traces_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = "/anywhere/streamsan/src/demo/src/lib.rs";
        assert_eq!(below(directory.path()).line(path, 1), None);
        let mut lines = below(directory.path()).with_demo(true);
        let first = lines.line(path, 1).expect("the source is known");
        assert!(first.starts_with("//! The example program of `streamsan demo`"), "{first}");
        assert_eq!(lines.line("/anywhere/else/lib.rs", 1), None);
        assert!(
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
                .join(super::SOURCE_PATH)
                .is_file()
        );
    }

    fn name(path: &Path) -> &str {
        path.file_name().and_then(|name| name.to_str()).expect("a name")
    }
}
