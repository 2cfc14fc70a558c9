//! A directory of ours, and the files in it.

use crate::Refused;
use crate::owner::{Facts, user};
use crate::walk::{Root, walk};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, readlinkat, renameat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

const OPEN: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// How many names are tried for a directory of one run.
const ATTEMPTS: u32 = 10_000;

/// An open directory of ours. Clones are the same directory.
#[derive(Clone, Debug)]
pub struct Directory {
    descriptor: Arc<OwnedFd>,
    path: PathBuf,
    /// Of a directory that is for this run only; removes it when the last one goes.
    removal: Option<Arc<Removal>>,
}

impl Directory {
    /// The directory `own` below `root`; what is missing of both is made.
    ///
    /// # Errors
    /// When the rule forbids it, or it cannot be made.
    pub fn open(root: &Path, own: &str) -> Result<Self, Refused> {
        of_root(walk(root, true)?).subdirectory(own)
    }

    /// The same where both are there already.
    ///
    /// # Errors
    /// When the rule forbids it, or something is missing.
    pub fn open_existing(root: &Path, own: &str) -> Result<Self, Refused> {
        of_root(walk(root, false)?).enter(own)
    }

    /// A fresh directory below `root`, which exists; its name begins with `name`. The caller removes
    /// it.
    ///
    /// # Errors
    /// When the rule forbids it, or it cannot be made.
    pub fn create(root: &Path, name: &str) -> Result<Self, Refused> {
        let root = of_root(walk(root, false)?);
        // The name need be no secret: what is there already is never taken.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut attempt = 0;
        loop {
            let own = match attempt {
                0 => name.to_owned(),
                _ => format!("{name}-{attempt}-{}", now.subsec_nanos()),
            };
            match mkdirat(&*root.descriptor, &own, Mode::RWXU) {
                Ok(()) => return root.enter(&own),
                Err(Errno::EXIST) if attempt < ATTEMPTS => attempt += 1,
                Err(errno) => return Err(Refused::io(&root.path.join(own))(errno)),
            }
        }
    }

    /// A fresh directory below `root` that is removed with the last clone of it.
    ///
    /// # Errors
    /// As [`Directory::create`].
    pub fn for_this_run(root: &Path) -> Result<Self, Refused> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = format!("streamsan-{}-run-{process}-{number}", user());
        let mut directory = Self::create(root, &name)?;
        directory.removal = Some(Arc::new(Removal(directory.path.clone())));
        Ok(directory)
    }

    /// A directory in this one, made if it is missing.
    ///
    /// # Errors
    /// When the rule forbids it, or it cannot be made.
    pub fn subdirectory(&self, name: &str) -> Result<Self, Refused> {
        match mkdirat(&*self.descriptor, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.enter(name),
            // It may be there, on a file system that is not written to.
            Err(errno) => match self.enter(name) {
                Err(Refused::Io { path, .. }) => Err(Refused::io(&path)(errno)),
                entered => entered,
            },
        }
    }

    fn enter(&self, name: &str) -> Result<Self, Refused> {
        let path = self.path.join(name);
        let descriptor = match openat(&*self.descriptor, name, OPEN, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(self.no_directory(name)),
            opened => opened.map_err(Refused::io(&path))?,
        };
        let stat = fstat(&descriptor).map_err(Refused::io(&path))?;
        Facts::of(&stat).check_ours(&path)?;
        if stat.st_mode & 0o077 != 0 {
            // Nobody else has to read it; on a file system that keeps no modes nothing is lost.
            let _ = fchmod(&descriptor, Mode::RWXU);
        }
        let removal = self.removal.clone();
        Ok(Self { descriptor: Arc::new(descriptor), path, removal })
    }

    fn no_directory(&self, name: &str) -> Refused {
        let path = self.path.join(name);
        match readlinkat(&*self.descriptor, name, Vec::new()) {
            Ok(_) => Refused::Link(path),
            Err(_) => Refused::NoDirectory(path),
        }
    }

    /// Its path, without links. Nobody else can change where it leads.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file that was not there, for the user alone, to be written and read.
    ///
    /// # Errors
    /// When it cannot be made, also because it is there.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&*self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }

    /// Opens a file of ours for reading.
    ///
    /// # Errors
    /// When the rule forbids it, or it cannot be opened.
    pub fn open_file(&self, name: &str) -> Result<File, Refused> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&*self.descriptor, name, flags, Mode::empty()) {
            Err(Errno::LOOP) => return Err(Refused::Link(path)),
            opened => opened.map_err(Refused::io(&path))?,
        };
        let facts = Facts::of(&fstat(&file).map_err(Refused::io(&path))?);
        facts.check_ours(&path)?;
        match facts.kind {
            FileType::RegularFile => Ok(File::from(file)),
            _ => Err(Refused::NoFile(path)),
        }
    }

    /// Reads a file of ours that has at most so many bytes.
    ///
    /// # Errors
    /// As [`Directory::open_file`], and when it is larger or cannot be read.
    pub fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Refused> {
        let file = self.open_file(name)?;
        let path = || self.path.join(name);
        let failed = |source| Refused::Io { path: path(), source };
        let size = file.metadata().map_err(failed)?.len();
        if size > most {
            return Err(Refused::TooLarge { path: path(), size });
        }
        let mut bytes = Vec::with_capacity(size as usize);
        // One that grows meanwhile is not followed.
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Puts a file into its place, whole: whoever opens it at the same time sees what was there
    /// before, or this.
    ///
    /// # Errors
    /// When it cannot be written; nothing is changed then.
    pub fn replace(&self, name: &str, mode: u32, pieces: &[&[u8]]) -> io::Result<()> {
        let beside = beside(name);
        let mut file = self.create_file(&beside)?;
        let written = pieces.iter().try_for_each(|piece| file.write_all(piece));
        let outcome = written
            .and_then(|()| Ok(fchmod(&file, Mode::from_raw_mode(mode))?))
            .and_then(|()| Ok(renameat(&*self.descriptor, &beside, &*self.descriptor, name)?));
        if outcome.is_err() {
            self.remove_file(&beside);
        }
        outcome
    }

    /// Makes `name` a link to another name in this directory.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn link(&self, name: &str, target: &str) -> io::Result<()> {
        let is_there = readlinkat(&*self.descriptor, name, Vec::new());
        if is_there.is_ok_and(|there| there.as_bytes() == target.as_bytes()) {
            return Ok(());
        }
        let beside = beside(name);
        symlinkat(target, &*self.descriptor, &beside)?;
        let outcome = renameat(&*self.descriptor, &beside, &*self.descriptor, name);
        if outcome.is_err() {
            self.remove_file(&beside);
        }
        Ok(outcome?)
    }

    /// Removes a file, if it is there.
    pub fn remove_file(&self, name: &str) {
        // Nothing can be done about a directory that is gone.
        let _ = unlinkat(&*self.descriptor, name, AtFlags::empty());
    }
}

/// Only for what is below: it is not ours.
fn of_root(root: Root) -> Directory {
    Directory { descriptor: Arc::new(root.descriptor), path: root.path, removal: None }
}

/// A name that no other thread or process uses at the same time.
fn beside(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // The time: a process of the same number may have been killed here.
    format!(".{name}.{}-{number}-{}.new", std::process::id(), now.as_nanos())
}

/// Removes a directory of one run.
#[derive(Debug)]
struct Removal(PathBuf);

impl Drop for Removal {
    fn drop(&mut self) {
        // Nothing can be done about what cannot be removed. No link is followed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
