//! Where a run directory lies, and what its files are called.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use streamsan_directories::{Directory, Environment, check_root};

/// Shared memory is preferred where it has room for at least this many bytes.
const SHARED_MEMORY_FLOOR: u64 = 64 << 20;

/// File name of process `number`.
pub(super) fn process_name(number: u32) -> String {
    format!("process-{number}")
}

/// File name of ring `ring` of process `number`.
pub(super) fn ring_name(number: u32, ring: u32) -> String {
    format!("ring-{number}-{ring}")
}

/// A path as the system takes it.
///
/// # Errors
///
/// A NUL byte in the path.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

/// Where a run directory is made unless the user says otherwise.
pub(super) fn default_parent() -> PathBuf {
    let shared = Path::new("/dev/shm");
    match free_bytes(shared) {
        Some(free) if free >= SHARED_MEMORY_FLOOR && check_root(shared).is_ok() => {
            shared.to_owned()
        }
        // One that others can change is passed over.
        _ => Environment::of_this_process().temporary(&mut Vec::new()),
    }
}

/// Room of a file system, `None` where nothing can be written to it.
fn free_bytes(path: &Path) -> Option<u64> {
    let path = c_path(path).ok()?;
    // SAFETY: `path` is NUL-terminated, a zeroed `statvfs` is a valid one to write over.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        let writable = libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0;
        (writable && libc::statvfs(path.as_ptr(), &mut stat) == 0)
            .then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// Makes a new run directory.
///
/// # Errors
///
/// It cannot be made, or its path is not UTF-8.
pub(super) fn create_directory(parent: &Path) -> io::Result<PathBuf> {
    let name = format!("streamsan-{}-0", std::process::id());
    let directory = Directory::create(parent, &name)?;
    if directory.path().to_str().is_none() {
        let _ = std::fs::remove_dir(directory.path());
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the directory for temporary files must have a UTF-8 path; set TMPDIR to another one",
        ));
    }
    Ok(directory.path().to_owned())
}
