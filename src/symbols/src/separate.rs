//! The place of a stripped image's debug information.

use crate::elf::{self, Contents};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Size in bytes above which a debug file is not read to check its checksum.
const LARGEST_CHECKED: u64 = 1 << 30;

/// The debug file of a build id below the given directories, where there is one.
pub(crate) fn by_build_id(directories: &[PathBuf], id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let mut name = format!(".build-id/{first:02x}/");
    for byte in rest {
        let _ = write!(name, "{byte:02x}");
    }
    name.push_str(".debug");
    let paths = directories.iter().map(|directory| directory.join(&name));
    paths.into_iter().find(|path| has_build_id(path, id))
}

/// The debug file that an image names, beside the image or below the given directories, if it is
/// the right one: by build id where both have one, else by the checksum in the image.
pub(crate) fn by_link(
    directories: &[PathBuf],
    image: &Path,
    contents: &Contents,
) -> Option<PathBuf> {
    let (name, checksum) = contents.debug_link.as_ref()?;
    let name = Path::new(OsStr::from_bytes(name));
    // The link is a name, not a path.
    let name = name.file_name()?;
    let image = image.canonicalize().ok()?;
    let beside = image.parent()?;
    let below = beside.strip_prefix("/").ok()?;
    let places = [beside.join(name), beside.join(".debug").join(name)];
    let global = directories.iter().map(|directory| directory.join(below).join(name));
    places.into_iter().chain(global).filter(|path| *path != image).find(|path| {
        let Some(file) = elf::open(path) else { return false };
        let found = Contents::read(&file).and_then(|found| found.build_id);
        match (&contents.build_id, found) {
            (Some(wanted), Some(found)) => *wanted == found,
            _ => has_checksum(file, *checksum),
        }
    })
}

/// The file that several debug files share, named relative to the file that names it.
pub(crate) fn shared(directories: &[PathBuf], path: &Path, contents: &Contents) -> Option<PathBuf> {
    let (name, id) = contents.shared_debug.as_ref()?;
    let path = path.canonicalize().ok()?;
    let named = path.parent()?.join(OsStr::from_bytes(name));
    if has_build_id(&named, id) { Some(named) } else { by_build_id(directories, id) }
}

fn has_build_id(path: &Path, id: &[u8]) -> bool {
    let contents = elf::open(path).and_then(|file| Contents::read(&file));
    contents.is_some_and(|contents| contents.build_id.as_deref() == Some(id))
}

fn has_checksum(mut file: File, wanted: u32) -> bool {
    if file.metadata().map_or(true, |metadata| metadata.len() > LARGEST_CHECKED) {
        return false;
    }
    // Its headers have been read.
    if file.rewind().is_err() {
        return false;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut chunk = vec![0; 1 << 18];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return hasher.finalize() == wanted,
            Ok(length) => hasher.update(&chunk[..length]),
            Err(_) => return false,
        }
    }
}
