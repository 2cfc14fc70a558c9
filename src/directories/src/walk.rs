//! The way to a root: from `/`, by descriptor, one component after the other.

use crate::Refused;
use crate::owner::Facts;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Number of links that are followed: as many as the kernel follows.
const MOST_LINKS: usize = 40;
/// For looking up and opening what lies below only: not even read permission is needed.
const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A root, and its path without links.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) descriptor: OwnedFd,
    pub(crate) path: PathBuf,
}

/// Checks that directories of streamsan may lie below a directory.
///
/// # Errors
///
/// The reason why they may not.
pub fn check_root(path: &Path) -> Result<(), Refused> {
    walk(path, false).map(drop)
}

/// Walks to a root. With `make`, missing directories are made, for the user alone.
pub(crate) fn walk(path: &Path, make: bool) -> Result<Root, Refused> {
    if !path.is_absolute() {
        return Err(Refused::NotAbsolute(path.to_owned()));
    }
    let mut root = top()?;
    let mut ahead: VecDeque<OsString> = parts(path).collect();
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            // The parent was walked through already, but the directory may have been moved
            // meanwhile: the path is walked again.
            let mut parent = root.path.clone();
            parent.pop();
            root = walk(&parent, false)?;
            continue;
        }
        let here = root.path.join(&name);
        let descriptor = match openat(&root.descriptor, &name, ON_THE_WAY, Mode::empty()) {
            Err(Errno::NOENT) if make => make_in(&root, &name, &here)?,
            opened => opened.map_err(Refused::io(&here))?,
        };
        let facts = Facts::of(&fstat(&descriptor).map_err(Refused::io(&here))?);
        facts.check_on_the_way(&here)?;
        match facts.kind {
            FileType::Directory => root = Root { descriptor, path: here },
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Refused::TooManyLinks(path.to_owned()));
                }
                let target = readlinkat(&descriptor, "", Vec::new()).map_err(Refused::io(&here))?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    root = top()?;
                }
                for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                    ahead.push_front(part);
                }
            }
            _ => return Err(Refused::NoDirectory(here)),
        }
    }
    Ok(root)
}

/// The directory `/`, which the maker of this mount namespace chose.
fn top() -> Result<Root, Refused> {
    let path = PathBuf::from("/");
    let descriptor = openat(CWD, &path, ON_THE_WAY | OFlags::DIRECTORY, Mode::empty());
    Ok(Root { descriptor: descriptor.map_err(Refused::io(&path))?, path })
}

fn make_in(root: &Root, name: &OsStr, here: &Path) -> Result<OwnedFd, Refused> {
    match mkdirat(&root.descriptor, name, Mode::RWXU) {
        // Another process was faster; the owner is checked like any other.
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(Refused::io(here)(errno)),
    }
    openat(&root.descriptor, name, ON_THE_WAY, Mode::empty()).map_err(Refused::io(here))
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(OsStr::from_bytes(name.as_bytes()).to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
