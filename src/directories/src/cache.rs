//! Where what is worth keeping lies.

use crate::owner::user;
use crate::{Directory, Refused, check_root};
use std::ffi::OsString;
use std::path::PathBuf;

/// The name of our directory in the user's cache.
pub const KEPT: &str = "streamsan";
const TEMPORARY: &str = "/tmp";

/// The variables that say where things lie.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `XDG_CACHE_HOME`.
    pub cache_home: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
    /// `TMPDIR`.
    pub temporary: Option<OsString>,
}

/// A directory that is used, and what had to be passed over.
#[derive(Debug)]
pub struct Chosen<T> {
    /// It.
    pub directory: Directory,
    /// Whether it is still there in the next run.
    pub is_kept: bool,
    /// What came of using it.
    pub made: T,
    /// What would have come before it, and why it is not used.
    pub refused: Vec<Refused>,
}

impl Environment {
    /// That of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let [cache_home, home, temporary] =
            ["XDG_CACHE_HOME", "HOME", "TMPDIR"].map(std::env::var_os);
        Self { cache_home, home, temporary }
    }

    /// The first directory that can be used: the one in the user's cache, one of the user among
    /// temporary files, one that is for this run only. To use it is what `using` does.
    ///
    /// # Errors
    /// When there is none; tells of the last one.
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

    /// The directory for temporary files: that of the user, if directories of ours may lie below it.
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

/// A relative path in one of these variables counts as none (XDG Base Directory Specification).
fn absolute(value: Option<&OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}
