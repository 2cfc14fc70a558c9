//! Reasons why a directory or a file is not used.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a directory or a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// A relative path, without a directory that it is relative to.
    #[error("{} is no absolute path", .0.display())]
    NotAbsolute(PathBuf),
    /// The file belongs to another user.
    #[error("{} belongs to user {owner}, and this is user {user}", path.display())]
    Owner {
        path: PathBuf,
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Other users can put files there, or change them.
    #[error("others than its owner can write to {} (mode {mode:o})", path.display())]
    Writable {
        path: PathBuf,
        /// The permissions.
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
    /// A file larger than any that streamsan writes.
    #[error("{} has {size} bytes, which is too much", path.display())]
    TooLarge {
        path: PathBuf,
        /// The size in bytes.
        size: u64,
    },
    /// An error of the system.
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl Refused {
    pub(crate) fn io(path: &Path) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::Io { path: path.to_owned(), source: errno.into() }
    }

    /// Whether another user has, or could have, interfered with the file: the user has to be told.
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
