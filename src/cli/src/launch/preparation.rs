//! Trials of the steps that would otherwise fail only after the program has begun: a recording that
//! cannot be made is told while nothing is lost by it.

use super::child::TOO_MANY_PROCESSES;
use crate::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::thread;

/// An empty trace takes about as much.
const LEAST_ROOM: usize = 256 << 10;
/// Threads of the collector, and the program itself.
const THREADS: usize = 5;
/// Those of the viewer beside it.
const OF_THE_VIEWER: usize = 4;

/// Whether a directory takes a file of some size.
///
/// # Errors
///
/// It takes none; the error says what to do.
pub(crate) fn try_room(directory: &Path) -> Result<(), Error> {
    let fill = || {
        let mut file = tempfile::Builder::new().prefix(".streamsan-").tempfile_in(directory)?;
        // Zeroes would take no room on some file systems.
        file.write_all(&[b'.'; LEAST_ROOM])
    };
    fill().map_err(Error::run(format!(
        "nothing can be written into {}, so the program was not started; make room there (the disk, \
         the quota, `ulimit -f`), or name another place with -o",
        directory.display()
    )))
}

/// Whether the threads that a run needs can be started, all of them at once.
///
/// # Errors
///
/// They cannot; the error says what to do.
pub(crate) fn try_threads(with_viewer: bool) -> Result<(), Error> {
    let count = THREADS + if with_viewer { OF_THE_VIEWER } else { 0 };
    let all_run = Mutex::new(());
    let held = all_run.lock();
    let started = thread::scope(|scope| {
        let wait = || drop(all_run.lock());
        let started: io::Result<Vec<_>> =
            (0..count).map(|_| thread::Builder::new().spawn_scoped(scope, wait)).collect();
        drop(held);
        started.map(drop)
    });
    started.map_err(Error::run(TOO_MANY_PROCESSES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        try_room(folder.path()).expect("there is room");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
        try_threads(true).expect("threads");
        assert!(try_room(&folder.path().join("missing")).is_err());
    }
}
