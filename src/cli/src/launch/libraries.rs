//! The embedded libraries and where they are unpacked.
//!
//! They lie in the user's cache directory under their content hash, so that several versions stay
//! apart and running programs keep theirs. A file is never trusted for its name: its bytes are
//! compared with the embedded ones before it is used.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

struct Embedded {
    /// Directory under the cache directory.
    directory: &'static str,
    /// File names it is found under; the first holds the bytes.
    names: &'static [&'static str],
    bytes: &'static [u8],
}

const RUNTIME: Embedded = Embedded {
    directory: concat!("runtime-", env!("STREAMSAN_RUNTIME_HASH")),
    names: &["libstreamsan_runtime.so"],
    bytes: include_bytes!(env!("STREAMSAN_RUNTIME_FILE")),
};

/// Preloaded behind the runtime with `--strict-host-threads`.
const HOST_THREADS: Embedded = Embedded {
    directory: concat!("host-threads-", env!("STREAMSAN_HOST_THREADS_HASH")),
    names: &["libstreamsan_host_threads.so"],
    bytes: include_bytes!(env!("STREAMSAN_HOST_THREADS_FILE")),
};

/// Programs that are linked with it name this path: it must not change with each version.
const TSAN: Embedded = Embedded {
    directory: "tsan",
    names: &["libstreamsan_tsan.so"],
    bytes: include_bytes!(env!("STREAMSAN_TSAN_FILE")),
};

/// Programs ask for either name, cudarc for the unversioned one first.
const SIM: Embedded = Embedded {
    directory: concat!("sim-", env!("STREAMSAN_SIM_HASH")),
    names: &["libcuda.so.1", "libcuda.so"],
    bytes: include_bytes!(env!("STREAMSAN_SIM_FILE")),
};

/// Where the libraries lie on disk.
#[derive(Clone, Debug)]
pub(crate) struct Libraries {
    /// The runtime.
    pub(crate) runtime: PathBuf,
    /// What watches the synchronisation of host threads.
    pub(crate) host_threads: PathBuf,
    /// What instrumented programs are linked with.
    pub(crate) tsan_stub: PathBuf,
    /// Directory that holds the simulated driver as `libcuda.so` and `libcuda.so.1`.
    pub(crate) sim_directory: PathBuf,
}

/// Puts the libraries into the first usable cache directory, unless they are there already.
///
/// # Errors
/// When no candidate can be written to; tells of the last one.
pub(crate) fn unpack() -> io::Result<Libraries> {
    let mut failure = io::Error::other("no usable directory");
    for root in candidates() {
        match unpack_into(&root) {
            Ok(libraries) => return Ok(libraries),
            Err(error) => {
                failure = io::Error::new(error.kind(), format!("{}: {error}", root.display()))
            }
        }
    }
    Err(failure)
}

/// Where what is worth keeping lies, whether or not it exists.
pub(crate) fn cache_directory() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("streamsan"))
}

fn candidates() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    cache_directory()
        .into_iter()
        .chain([env::temp_dir().join(format!("streamsan-{user}"))])
        .collect()
}

fn unpack_into(root: &Path) -> io::Result<Libraries> {
    // LD_PRELOAD and LD_LIBRARY_PATH are lists, and know no way to quote their separators.
    if root.as_os_str().as_bytes().iter().any(|b| b" :;$".contains(b)) {
        return Err(io::Error::other(
            "the path holds a space, colon, semicolon or dollar sign, which the loader cannot take",
        ));
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    let metadata = root.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other("others can write to it, or it belongs to somebody else"));
    }
    let runtime = place(root, &RUNTIME)?.join(RUNTIME.names[0]);
    let host_threads = place(root, &HOST_THREADS)?.join(HOST_THREADS.names[0]);
    let tsan_stub = place(root, &TSAN)?.join(TSAN.names[0]);
    let sim_directory = place(root, &SIM)?;
    Ok(Libraries { runtime, host_threads, tsan_stub, sim_directory })
}

/// Writes what is missing or differs, by renames, so that a program that starts at the same time
/// sees a whole file or none.
fn place(root: &Path, embedded: &Embedded) -> io::Result<PathBuf> {
    let directory = root.join(embedded.directory);
    fs::create_dir_all(&directory)?;
    let (first, aliases) = embedded.names.split_first().expect("every library has a name");
    let file = directory.join(first);
    if !holds(&file, embedded.bytes) {
        let mut temporary = tempfile::NamedTempFile::new_in(&directory)?;
        temporary.write_all(embedded.bytes)?;
        temporary.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
        temporary.persist(&file)?;
    }
    for alias in aliases {
        let link = directory.join(alias);
        if fs::read_link(&link).is_ok_and(|target| target.as_os_str() == *first) {
            continue;
        }
        let temporary = directory.join(format!(".{alias}-{}", std::process::id()));
        let _ = fs::remove_file(&temporary);
        std::os::unix::fs::symlink(first, &temporary)?;
        fs::rename(&temporary, &link)?;
    }
    Ok(directory)
}

fn holds(file: &Path, bytes: &[u8]) -> bool {
    let same_length = file.metadata().is_ok_and(|m| m.len() == bytes.len() as u64);
    same_length && fs::read(file).is_ok_and(|content| content == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacked_files_are_whole_and_repaired() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let root = root.path().join("cache");
        let libraries = unpack_into(&root).expect("unpacked");
        assert!(holds(&libraries.runtime, RUNTIME.bytes));
        let alias = libraries.sim_directory.join("libcuda.so");
        assert!(holds(&alias, SIM.bytes));

        fs::write(&libraries.runtime, "torn").expect("written");
        fs::remove_file(&alias).expect("removed");
        let again = unpack_into(&root).expect("unpacked again");
        assert!(holds(&again.runtime, RUNTIME.bytes));
        assert!(holds(&alias, SIM.bytes));
    }

    #[test]
    fn directories_that_the_loader_cannot_take_are_refused() {
        let root = tempfile::tempdir().expect("a temporary directory");
        assert!(unpack_into(&root.path().join("with space")).is_err());
    }

    #[test]
    fn directories_that_others_can_write_to_are_refused() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let open = root.path().join("open");
        fs::create_dir(&open).expect("made");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("mode set");
        assert!(unpack_into(&open).is_err());
    }
}
