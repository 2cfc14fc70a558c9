//! Where what is worth keeping lies.

use crate::owner::user;
use crate::{Directory, Refused, check_root};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

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

/// A directory that may be used, and what had to be passed over.
#[derive(Debug)]
pub struct Chosen {
    /// It.
    pub directory: Directory,
    /// Whether it is still there in the next run.
    pub is_kept: bool,
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

    /// The first usable directory of: the user's cache, one of the user among temporary files, one
    /// that is for this run only. `fits` may pass over paths.
    ///
    /// # Errors
    /// When there is none; tells of the last one.
    pub fn choose(&self, fits: &dyn Fn(&Path) -> bool) -> Result<Chosen, Refused> {
        let mut refused = Vec::new();
        let temporary = self.temporary(&mut refused);
        let of_user = format!("streamsan-{}", user());
        let candidates =
            [self.cache().map(|root| (root, KEPT.to_owned())), Some((temporary.clone(), of_user))];
        for (root, own) in candidates.into_iter().flatten() {
            match Directory::open(&root, &own) {
                Ok(directory) if fits(directory.path()) => {
                    return Ok(Chosen { directory, is_kept: true, refused });
                }
                Ok(_) => {}
                Err(why) => refused.push(why),
            }
        }
        let mut roots = vec![temporary, PathBuf::from(TEMPORARY)];
        roots.dedup();
        for root in roots {
            match Directory::for_this_run(&root) {
                Ok(directory) if fits(directory.path()) => {
                    return Ok(Chosen { directory, is_kept: false, refused });
                }
                Ok(_) => {}
                Err(why) => refused.push(why),
            }
        }
        let last = refused.pop();
        Err(last.unwrap_or_else(|| Refused::NotAbsolute(PathBuf::from(TEMPORARY))))
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
