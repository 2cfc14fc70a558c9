//! The embedded libraries and where they are unpacked.
//!
//! They lie in a directory of ours under their content hash, so that several versions stay apart and
//! running programs keep theirs. A file is never trusted for its name: its bytes are compared with
//! the embedded ones before it is used. Programs are told its path, which nobody else can give to
//! another file (`streamsan_directories`).

use super::own_directory::choose;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use streamsan_directories::{Directory, Refused};

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

/// Preloaded behind the runtime unless `--host-accesses=off`.
const HOST_ACCESSES: Embedded = Embedded {
    directory: concat!("host-accesses-", env!("STREAMSAN_HOST_ACCESSES_HASH")),
    names: &["libstreamsan_host_accesses.so"],
    bytes: include_bytes!(env!("STREAMSAN_HOST_ACCESSES_FILE")),
};

/// Loaded by the driver where kernels are measured.
const MEASURE: Embedded = Embedded {
    directory: concat!("measure-", env!("STREAMSAN_MEASURE_HASH")),
    names: &["libstreamsan_measure.so"],
    bytes: include_bytes!(env!("STREAMSAN_MEASURE_FILE")),
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
    /// The library that watches the synchronisation of host threads.
    pub(crate) host_threads: PathBuf,
    /// The library that stands before the C library where fences need it.
    pub(crate) host_accesses: PathBuf,
    /// The library that measures the bytes of kernels.
    pub(crate) measure: PathBuf,
    /// The library that instrumented programs are linked with.
    pub(crate) tsan_stub: PathBuf,
    /// Directory that holds the simulated driver as `libcuda.so` and `libcuda.so.1`.
    pub(crate) sim_directory: PathBuf,
    /// Whether they are still there in the next run; if not, they go with this value.
    pub(crate) are_kept: bool,
    /// Where they lie. Nobody asks it anything: a directory for this run only goes with it.
    pub(super) _directory: Option<Directory>,
}

/// Puts the libraries into the first usable directory, unless they are there already.
///
/// # Errors
/// When no directory can be used; tells of the last one.
pub(crate) fn unpack() -> io::Result<Libraries> {
    let chosen = choose(unpack_into)?;
    Ok(Libraries { are_kept: chosen.is_kept, ..chosen.made })
}

fn unpack_into(directory: &Directory) -> Result<Libraries, Refused> {
    let root = directory.path();
    // LD_PRELOAD and LD_LIBRARY_PATH are lists, and know no way to quote their separators.
    if root.as_os_str().as_bytes().iter().any(|b| b" :;$".contains(b)) {
        let reason = "the path holds a space, colon, semicolon or dollar sign, which the loader \
                      cannot take";
        return Err(failed(root)(io::Error::other(reason)));
    }
    Ok(Libraries {
        runtime: place(directory, &RUNTIME)?.join(RUNTIME.names[0]),
        host_threads: place(directory, &HOST_THREADS)?.join(HOST_THREADS.names[0]),
        host_accesses: place(directory, &HOST_ACCESSES)?.join(HOST_ACCESSES.names[0]),
        measure: place(directory, &MEASURE)?.join(MEASURE.names[0]),
        tsan_stub: place(directory, &TSAN)?.join(TSAN.names[0]),
        sim_directory: place(directory, &SIM)?,
        are_kept: true,
        _directory: Some(directory.clone()),
    })
}

/// Writes what is missing or differs, by renames, so that a program that starts at the same time
/// sees a whole file or none.
fn place(root: &Directory, embedded: &Embedded) -> Result<PathBuf, Refused> {
    let directory = root.subdirectory(embedded.directory)?;
    let (first, aliases) = embedded.names.split_first().expect("every library has a name");
    if !holds(&directory, first, embedded.bytes) {
        directory
            .replace(first, 0o755, &[embedded.bytes])
            .map_err(failed(&directory.path().join(first)))?;
    }
    for alias in aliases {
        directory.link(alias, first).map_err(failed(&directory.path().join(alias)))?;
    }
    Ok(directory.path().to_owned())
}

fn holds(directory: &Directory, name: &str, bytes: &[u8]) -> bool {
    directory.read(name, bytes.len() as u64).is_ok_and(|content| content == bytes)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Refused {
    let path = path.to_owned();
    move |source| Refused::Io { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn unpacked(root: &Path) -> Result<(Directory, Libraries), Refused> {
        let directory = Directory::open(root, "cache")?;
        unpack_into(&directory).map(|libraries| (directory, libraries))
    }

    #[test]
    fn unpacked_files_are_whole_and_repaired() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let (_, libraries) = unpacked(root.path()).expect("unpacked");
        let is_runtime = |libraries: &Libraries| {
            let path = &libraries.runtime;
            path.symlink_metadata().is_ok_and(|file| file.is_file())
                && fs::read(path).is_ok_and(|bytes| bytes == RUNTIME.bytes)
        };
        assert!(is_runtime(&libraries));
        let alias = libraries.sim_directory.join("libcuda.so");
        assert!(fs::read(&alias).expect("there") == SIM.bytes);

        fs::write(&libraries.runtime, "torn").expect("written");
        fs::remove_file(&alias).expect("removed");
        let (_, again) = unpacked(root.path()).expect("unpacked again");
        assert!(is_runtime(&again));
        assert!(fs::read(&alias).expect("there") == SIM.bytes);

        // The same bytes, but whoever owns the link decides tomorrow what they are.
        let elsewhere = root.path().join("elsewhere.so");
        fs::rename(&libraries.runtime, &elsewhere).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, &libraries.runtime).expect("made");
        let (_, again) = unpacked(root.path()).expect("unpacked again");
        assert!(is_runtime(&again));
    }

    #[test]
    fn directories_that_the_loader_cannot_take_are_refused() {
        let root = tempfile::tempdir().expect("a temporary directory");
        assert!(unpacked(&root.path().join("with space")).is_err());
    }

    #[test]
    fn a_link_below_the_directory_is_refused() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let directory = Directory::open(root.path(), "cache").expect("made");
        let elsewhere = root.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("made");
        let link = directory.path().join(RUNTIME.directory);
        std::os::unix::fs::symlink(&elsewhere, link).expect("made");
        let refused = unpacked(root.path()).expect_err("a link");
        assert!(matches!(refused, Refused::Link(_)), "{refused}");
        assert_eq!(fs::read_dir(&elsewhere).expect("there").count(), 0);
    }
}
