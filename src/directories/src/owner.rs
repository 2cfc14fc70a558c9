//! The owner of a file, and the other users who can write to it.

use crate::Refused;
use rustix::fs::{FileType, Stat};
use std::path::Path;
use std::sync::OnceLock;

/// Mode bits by which the group and others write.
const WRITE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The user of this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The owner, type and mode of a file, from `stat`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) kind: FileType,
    owner: u32,
    mode: u32,
}

impl Facts {
    pub(crate) fn of(stat: &Stat) -> Self {
        let mode = stat.st_mode & 0o7777;
        Self { kind: FileType::from_raw_mode(stat.st_mode), owner: stat.st_uid, mode }
    }

    /// Checks that the file may be a directory or a link on the way to a root.
    pub(crate) fn check_on_the_way(self, path: &Path) -> Result<(), Refused> {
        if self.owner != user() && self.owner != 0 && Some(self.owner) != stranger_as_root() {
            return Err(self.other_owner(path));
        }
        // The permissions of a link have no meaning.
        let is_open = self.kind == FileType::Directory && self.mode & WRITE_BY_OTHERS != 0;
        if is_open && self.mode & STICKY == 0 {
            return Err(self.writable(path));
        }
        Ok(())
    }

    /// Checks that the file belongs to the user alone.
    pub(crate) fn check_ours(self, path: &Path) -> Result<(), Refused> {
        if self.owner != user() {
            return Err(self.other_owner(path));
        }
        if self.mode & WRITE_BY_OTHERS != 0 {
            return Err(self.writable(path));
        }
        Ok(())
    }

    fn other_owner(self, path: &Path) -> Refused {
        Refused::Owner { path: path.to_owned(), owner: self.owner, user: user() }
    }

    fn writable(self, path: &Path) -> Refused {
        Refused::Writable { path: path.to_owned(), mode: self.mode }
    }
}

/// The user as whom all users outside of this user namespace appear, if root is among them.
fn stranger_as_root() -> Option<u32> {
    static STRANGER: OnceLock<Option<u32>> = OnceLock::new();
    *STRANGER.get_or_init(|| {
        let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
        if maps_everybody(&map) {
            return None;
        }
        let stranger = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
        stranger.trim().parse().ok()
    })
}

/// Whether the map is that of the first namespace, in which every user is itself.
fn maps_everybody(map: &str) -> bool {
    let mut words = map.split_whitespace();
    (words.next(), words.next(), words.next()) == (Some("0"), Some("0"), Some("4294967295"))
}

#[cfg(test)]
mod tests {
    use super::maps_everybody;

    #[test]
    fn the_first_namespace_is_known_by_its_map() {
        assert!(maps_everybody("         0          0 4294967295\n"));
        assert!(!maps_everybody("      1000       1000          1\n"));
        assert!(!maps_everybody("0 1000 1\n1 100000 65536\n"));
        assert!(!maps_everybody(""));
    }
}
