//! Run directories that a killed collector left behind: shared memory that nobody gives back.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::control::{CONTROL_FILE, Control};
use crate::liveness::{pid_namespace, process_alive};
use crate::map::map_existing;

/// Removes the run directories in `parent` whose collector is dead. Programs that still write into
/// one keep their mappings; nobody would have read what they write.
pub(crate) fn remove_leftovers(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("streamsan-"))
            && is_leftover(&entry.path())
        {
            // Another command may be doing the same.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A process id says nothing about a collector of another PID namespace, which may share the
/// directory: such a run is left alone.
fn is_leftover(directory: &Path) -> bool {
    let control = directory.join(CONTROL_FILE);
    let Ok(path) = CString::new(control.as_os_str().as_bytes()) else { return false };
    let Ok(mapping) = map_existing(&path) else { return false };
    // SAFETY: the length is checked first, all bit patterns are valid, and the mapping is ours.
    unsafe {
        let left = mapping.len >= Control::BYTES && {
            let control = mapping.start.cast::<Control>().as_ref();
            let namespace = pid_namespace();
            control.usable()
                && namespace != 0
                && control.collector_namespace == namespace
                && !process_alive(control.collector, 0)
        };
        mapping.unmap();
        left
    }
}
