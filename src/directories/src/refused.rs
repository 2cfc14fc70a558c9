//! Why a directory or a file is not used.

use std::io;
use std::path::{Path, PathBuf};

/// Why a directory or a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Relative to what?
    #[error("{} is no absolute path", .0.display())]
    NotAbsolute(PathBuf),
    /// Somebody else's.
    #[error("{} belongs to user {owner}, and this is user {user}", path.display())]
    Owner {
        /// What.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who asks.
        user: u32,
    },
    /// Others can put things there, or change them.
    #[error("others than its owner can write to {} (mode {mode:o})", path.display())]
    Writable {
        /// What.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A link where none may be.
    #[error("{} is a symbolic link", .0.display())]
    Link(PathBuf),
    /// Links without end.
    #[error("{} leads through too many symbolic links", .0.display())]
    TooManyLinks(PathBuf),
    /// A file where a directory must be.
    #[error("{} is no directory", .0.display())]
    NoDirectory(PathBuf),
    /// A pipe, a device, or a directory where a file must be.
    #[error("{} is no regular file", .0.display())]
    NoFile(PathBuf),
    /// It is larger than anything that we write.
    #[error("{} has {size} bytes, which is too much", path.display())]
    TooLarge {
        /// What.
        path: PathBuf,
        /// Its size.
        size: u64,
    },
    /// The system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Refused {
    pub(crate) fn io(path: &Path) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::Io { path: path.to_owned(), source: errno.into() }
    }

    /// Whether somebody else has, or could have, a hand in it: the user has to know.
    pub fn is_suspicious(&self) -> bool {
        !matches!(self, Self::Io { .. } | Self::NotAbsolute(_) | Self::NoDirectory(_))
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        let kind = match &refused {
            Refused::Io { source, .. } => source.kind(),
            _ => io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, refused)
    }
}
