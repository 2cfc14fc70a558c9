//! The user's cache and temporary directories, in the order in which they are tried.

use crate::owner::user;
use crate::{Directory, Refused, check_root};
use std::ffi::OsString;
use std::path::PathBuf;

/// Name of streamsan's directory in the user's cache.
pub const KEPT: &str = "streamsan";
const TEMPORARY: &str = "/tmp";

/// The environment variables that name directories.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `XDG_CACHE_HOME`.
    pub cache_home: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
    /// `TMPDIR`.
    pub temporary: Option<OsString>,
}

/// A directory in use, and the directories that were passed over.
#[derive(Debug)]
pub struct Chosen<T> {
    pub directory: Directory,
    /// Whether the directory still exists in the next run.
    pub is_kept: bool,
    /// The result of using it.
    pub made: T,
    /// The directories that come before it in the order, and why each is not used.
    pub refused: Vec<Refused>,
}

impl Environment {
    /// The variables of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let [cache_home, home, temporary] =
            ["XDG_CACHE_HOME", "HOME", "TMPDIR"].map(std::env::var_os);
        Self { cache_home, home, temporary }
    }

    /// Chooses the first usable directory: the one in the user's cache, one of the user among
    /// temporary files, one for this run only. `using` uses a directory.
    ///
    /// # Errors
    ///
    /// The refusal of the last directory, when none is usable.
    pub fn choose<T>(
        &self,
        mut using: impl FnMut(&Directory) -> Result<T, Refused>,
    ) -> Result<Chosen<T>, Refused> {
        let mut refused = Vec::new();
        let temporary = self.temporary(&mut refused);
        let of_user = format!("streamsan-{}", user());
        let kept =
            [self.cache().map(|root| (root, KEPT.to_owned())), Some((temporary.clone(), of_user))];
        let kept = kept.into_iter().flatten().map(|(root, own)| (root, Some(own)));
        let mut candidates: Vec<(PathBuf, Option<String>)> = kept.collect();
        candidates.push((temporary, None));
        candidates.push((PathBuf::from(TEMPORARY), None));
        candidates.dedup();
        for (root, own) in candidates {
            let directory = match &own {
                Some(own) => Directory::open(&root, own),
                None => Directory::for_this_run(&root),
            };
            let used = directory.and_then(|directory| Ok((using(&directory)?, directory)));
            match used {
                Ok((made, directory)) => {
                    return Ok(Chosen { directory, is_kept: own.is_some(), made, refused });
                }
                Err(why) => refused.push(why),
            }
        }
        Err(refused.pop().unwrap_or_else(|| Refused::NoDirectory(PathBuf::from(TEMPORARY))))
    }

    /// The directory for temporary files: the user's `TMPDIR`, if streamsan's directories may lie
    /// below it, else `/tmp`.
    pub fn temporary(&self, refused: &mut Vec<Refused>) -> PathBuf {
        if let Some(own) = absolute(self.temporary.as_ref()) {
            match check_root(&own) {
                Ok(()) => return own,
                Err(why) => refused.push(why),
            }
        }
        PathBuf::from(TEMPORARY)
    }

    fn cache(&self) -> Option<PathBuf> {
        absolute(self.cache_home.as_ref())
            .or_else(|| Some(absolute(self.home.as_ref())?.join(".cache")))
    }
}

/// An absolute path. A relative path in one of these variables counts as none (XDG Base Directory
/// Specification).
fn absolute(value: Option<&OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}
