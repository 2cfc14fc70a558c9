//! The messages of the end of a run, while it waits for the code of kernels, and for the places of
//! stacks in the source: lines that change on a terminal; of kernels, which may take long, one message elsewhere.

use crate::listener::{Listener, Progress, Work};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shorter waits are not worth a message.
const SILENT_WAIT: Duration = Duration::from_secs(2);
/// Characters of a kernel's name that are shown.
const LONGEST_NAME: usize = 36;
const HOW_TO_STOP: &str = "Ctrl-C: stop reading; the verdict is made without it";

/// Kernels that were launched and are not read: how many, and the first one.
type Unread<'a> = (usize, &'a str);

pub(super) struct ReadingProgress {
    listener: Arc<dyn Listener>,
    /// `None` once it is over.
    shown: Option<Box<dyn Progress>>,
    /// How many there were at the beginning.
    all: usize,
    begun: Instant,
    told: bool,
}

impl ReadingProgress {
    pub(super) fn new(listener: &Arc<dyn Listener>, unread: Option<Unread<'_>>) -> Self {
        let all = unread.map_or(0, |(count, _)| count);
        let begun = Instant::now();
        let shown = (all > 0).then(|| listener.begin(Work::ReadingKernels, None));
        Self { listener: Arc::clone(listener), shown, all, begun, told: false }
    }

    pub(super) fn show(&mut self, left: Unread<'_>) {
        let Some(shown) = &mut self.shown else { return };
        shown.message(&format!("{}\n{HOW_TO_STOP}", kernels(self.all, left)));
        if !shown.is_shown() && !self.told && self.begun.elapsed() >= SILENT_WAIT {
            self.told = true;
            let kernels = kernels(self.all, left);
            self.listener.warn(&format!("the program has ended; {kernels} – {HOW_TO_STOP}"));
        }
    }

    /// The user does not wait any longer.
    pub(super) fn stop(&mut self) {
        self.end();
        self.listener.warn(
            "reading kernels was stopped; the verdict is made without those that are not read",
        );
    }

    pub(super) fn end(&mut self) {
        self.shown = None;
    }
}

/// How many frames of stacks are to be looked up.
pub(super) fn places(left: usize) -> String {
    format!(
        "looking up {left} places of stacks in the source\nCtrl-C: stop; the report names them \
         without lines"
    )
}

fn kernels(all: usize, (left, first): Unread<'_>) -> String {
    let name = streamsan_names::kernel(first);
    let name: String = match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.into_owned(),
    };
    let kernels = if all == 1 { "kernel" } else { "kernels" };
    format!("reading the code of {all} {kernels} ({left} left: {name})")
}

#[cfg(test)]
mod tests {
    use super::kernels;

    #[test]
    fn what_is_left_is_named() {
        assert_eq!(
            kernels(12, (3, "ncclDevKernel_Generic_1")),
            "reading the code of 12 kernels (3 left: ncclDevKernel_Generic_1)"
        );
        let long = kernels(1, (1, &"k".repeat(300)));
        assert!(long.starts_with("reading the code of 1 kernel (1 left: kkkk"), "{long}");
        assert!(long.chars().count() < 80, "{long}");
    }
}
