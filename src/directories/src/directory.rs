//! A directory of streamsan, and the files in it.

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
/// Number of names that are tried for a directory of one run.
const ATTEMPTS: u32 = 10_000;

/// An open directory of streamsan. Clones are the same directory.
#[derive(Clone, Debug)]
pub struct Directory {
    descriptor: Arc<OwnedFd>,
    path: PathBuf,
    /// For a directory of this run only: removes the directory when the last clone is dropped.
    removal: Option<Arc<Removal>>,
}

impl Directory {
    /// Opens the directory `own` below `root`; missing parts of both are made.
    ///
    /// # Errors
    ///
    /// The rule forbids the directory, or it cannot be made.
    pub fn open(root: &Path, own: &str) -> Result<Self, Refused> {
        of_root(walk(root, true)?).subdirectory(own)
    }

    /// Opens the directory `own` below `root`, both of which exist.
    ///
    /// # Errors
    ///
    /// The rule forbids the directory, or a part is missing.
    pub fn open_existing(root: &Path, own: &str) -> Result<Self, Refused> {
        of_root(walk(root, false)?).enter(own)
    }

    /// Makes a fresh directory below `root`, which exists; its name begins with `name`. The caller
    /// removes the directory.
    ///
    /// # Errors
    ///
    /// The rule forbids the directory, or it cannot be made.
    pub fn create(root: &Path, name: &str) -> Result<Self, Refused> {
        let root = of_root(walk(root, false)?);
        // The name need not be secret: an existing file or directory is never used.
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

    /// Makes a fresh directory below `root` that is removed with its last clone.
    ///
    /// # Errors
    ///
    /// As [`Directory::create`].
    pub fn for_this_run(root: &Path) -> Result<Self, Refused> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = format!("streamsan-{}-run-{process}-{number}", user());
        let mut directory = Self::create(root, &name)?;
        directory.removal = Some(Arc::new(Removal(directory.path.clone())));
        Ok(directory)
    }

    /// Opens a directory in this one, and makes it if it is missing.
    ///
    /// # Errors
    ///
    /// The rule forbids the directory, or it cannot be made.
    pub fn subdirectory(&self, name: &str) -> Result<Self, Refused> {
        match mkdirat(&*self.descriptor, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.enter(name),
            // The directory may exist on a file system that is read-only.
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
            // No other user needs to read the directory; a file system without modes loses nothing.
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

    /// The directory's path, without links. No other user can change where the path leads.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a new file, for the user alone, open for writing and reading.
    ///
    /// # Errors
    ///
    /// The file cannot be made, for example because it exists.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&*self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    }

    /// Opens a file of streamsan for reading.
    ///
    /// # Errors
    ///
    /// The rule forbids the file, or it cannot be opened.
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

    /// Reads a file of streamsan of at most `most` bytes.
    ///
    /// # Errors
    ///
    /// As [`Directory::open_file`], and when the file is larger or cannot be read.
    pub fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Refused> {
        let file = self.open_file(name)?;
        let path = || self.path.join(name);
        let failed = |source| Refused::Io { path: path(), source };
        let size = file.metadata().map_err(failed)?.len();
        if size > most {
            return Err(Refused::TooLarge { path: path(), size });
        }
        let mut bytes = Vec::with_capacity(size as usize);
        // Bytes that are appended meanwhile are not read.
        file.take(most).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Puts a whole file into its place: a process that opens it at the same time gets the former
    /// file or this one.
    ///
    /// # Errors
    ///
    /// The file cannot be written; nothing changes then.
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
    ///
    /// The link cannot be made.
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
        // A directory that is gone needs no removal.
        let _ = unlinkat(&*self.descriptor, name, AtFlags::empty());
    }
}

/// The root as a directory, only for opening what lies below it: the root is not streamsan's.
fn of_root(root: Root) -> Directory {
    Directory { descriptor: Arc::new(root.descriptor), path: root.path, removal: None }
}

/// A name that no other thread or process uses at the same time.
fn beside(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // With the time in it, because a process of the same number may have been killed here.
    format!(".{name}.{}-{number}-{}.new", std::process::id(), now.as_nanos())
}

/// Removes a directory of one run.
#[derive(Debug)]
struct Removal(PathBuf);

impl Drop for Removal {
    fn drop(&mut self) {
        // A failed removal has no remedy. No link is followed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
