//! Messages about processes that are not recorded: a few by name, then how many. A program
//! may start thousands.

use crate::descendants::Unattached;
use crate::listener::Listener;

const MOST_NAMED: usize = 3;

/// How many were told.
#[derive(Debug, Default)]
pub(super) struct Telling {
    named: usize,
    more: usize,
}

impl Telling {
    /// These were found.
    pub(super) fn tell(&mut self, found: &[Unattached], listener: &dyn Listener) {
        let room = MOST_NAMED.saturating_sub(self.named).min(found.len());
        let (named, more) = found.split_at(room);
        for (pid, program) in named {
            listener.warn(&format!(
                "process {pid} ({program}) uses CUDA and is not recorded, so the verdict will be \
                 INCOMPLETE; look for what keeps LD_PRELOAD or {} from it, such as env -i",
                streamsan_wire::RUN_DIR_VARIABLE
            ));
        }
        self.named += named.len();
        self.more += more.len();
    }

    /// No more will be found.
    pub(super) fn end(&self, listener: &dyn Listener) {
        match self.more {
            0 => {}
            1 => listener.warn("one more process uses CUDA and is not recorded"),
            more => listener.warn(&format!("{more} more processes use CUDA and are not recorded")),
        }
    }
}
