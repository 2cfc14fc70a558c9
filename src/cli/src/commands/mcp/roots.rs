//! The directories whose files a client may ask about.

use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories without links; one at least.
#[derive(Clone, Debug)]
pub(super) struct Roots(Vec<PathBuf>);

impl Roots {
    /// Those that are named, or the current directory.
    ///
    /// # Errors
    /// A name of something that is no directory.
    pub(super) fn new(named: &[PathBuf]) -> Result<Self, Error> {
        let current = [PathBuf::from(".")];
        let named = if named.is_empty() { &current[..] } else { named };
        let root = |directory: &PathBuf| {
            let failed = |source| Error::Read { path: directory.clone(), source };
            let root = fs::canonicalize(directory).map_err(failed)?;
            match root.is_dir() {
                true => Ok(root),
                false => Err(Error::Usage(format!(
                    "--root takes a directory, and {} is none",
                    directory.display()
                ))),
            }
        };
        named.iter().map(root).collect::<Result<_, _>>().map(Self)
    }

    /// The directories.
    pub(super) fn directories(&self) -> &[PathBuf] {
        &self.0
    }

    /// A file below a root, without links. A relative path begins at the first root.
    ///
    /// # Errors
    /// A file that is not there, or lies elsewhere: both are told alike, so that nobody learns which
    /// files there are.
    pub(super) fn file(&self, path: &str) -> Result<PathBuf, Error> {
        let found = fs::canonicalize(self.0[0].join(Path::new(path))).ok();
        let is_below = |path: &PathBuf| self.0.iter().any(|root| path.starts_with(root));
        found.filter(is_below).filter(|path| path.is_file()).ok_or_else(|| {
            let path = streamsan_names::printable(path);
            Error::Usage(format!("there is no file {path} below the directories of --root"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Roots;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_outside_of_the_roots_are_not_there() {
        let [mine, other] = [0, 1].map(|_| tempfile::tempdir().expect("a directory"));
        for directory in [&mine, &other] {
            fs::write(directory.path().join("trace.db"), "").expect("written");
        }
        symlink(other.path(), mine.path().join("out")).expect("a link");
        let roots = Roots::new(&[mine.path().to_owned()]).expect("a directory");
        let inside = fs::canonicalize(mine.path().join("trace.db")).expect("there");
        assert_eq!(roots.file("trace.db").expect("below"), inside);
        assert_eq!(roots.file(inside.to_str().expect("UTF-8")).expect("below"), inside);
        let elsewhere = other.path().join("trace.db");
        let up = format!("../{}", elsewhere.strip_prefix("/tmp").unwrap_or(&elsewhere).display());
        for path in ["out/trace.db", "none.db", ".", "", &up, elsewhere.to_str().expect("UTF-8")] {
            let refused = roots.file(path).expect_err("not below").to_string();
            assert!(refused.contains("below the directories of --root"), "{path}: {refused}");
        }
        let both = Roots::new(&[mine.path().to_owned(), other.path().to_owned()]);
        assert!(both.expect("directories").file("out/trace.db").is_ok());
        assert!(Roots::new(&[elsewhere]).is_err());
    }
}
