//! Run directories of killed collectors: shared memory that no process gives back.

use std::path::Path;

use streamsan_directories::Directory;

use crate::control::{CONTROL_FILE, Control};
use crate::liveness::{pid_namespace, process_alive};

/// Removes the run directories in `parent` whose collector is dead. Programs that still write into
/// one keep their mappings; no process would read that data. Directories of other users are left
/// alone.
pub(crate) fn remove_leftovers(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with("streamsan-")) else {
            continue;
        };
        if Directory::open_existing(parent, name).is_ok_and(|directory| is_leftover(&directory)) {
            // Another command may be doing the same.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A process id says nothing about a collector of another PID namespace, which may share the
/// directory: such a run is left alone.
fn is_leftover(directory: &Directory) -> bool {
    // Read and not mapped: it may be cut meanwhile.
    let Ok(bytes) = directory.read(CONTROL_FILE, Control::BYTES as u64) else { return false };
    if bytes.len() != Control::BYTES {
        return false;
    }
    // SAFETY: long enough, and all bit patterns are valid.
    let control = unsafe { bytes.as_ptr().cast::<Control>().read_unaligned() };
    let namespace = pid_namespace();
    control.usable()
        && namespace != 0
        && control.collector_namespace == namespace
        && !process_alive(control.collector, 0)
}
