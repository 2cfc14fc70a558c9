//! The end of a run looks up kernels that are not read yet, the places of stacks in the source,
//! and why Python frames are missing.

use super::Collector;
use crate::listener::Work;
use crate::progress::{ReadingProgress, places};
use crate::relay::Step;
use std::time::Duration;
use streamsan_symbols::without_lines;
use tracing::debug;

/// How often the end of a run looks whether the user wants to wait no longer.
const LAST_CODE_PAUSE: Duration = Duration::from_millis(50);
/// How long the end of a run looks for frames of stacks in the source. What is left can be looked up
/// by readers of the trace. A minute, because a report without lines is worth less than the wait,
/// which a busy machine makes ten times as long: the user sees how many are left, and may stop.
const SYMBOLS_PATIENCE: Duration = Duration::from_secs(60);

impl Collector {
    /// Waits for the code of the kernels that were launched, until the user wants to stop.
    pub(super) fn finish_reading(&mut self, stopped: &mut dyn FnMut() -> bool) {
        self.ask();
        let unread = self.resolver.unread().map_or(0, |(count, _)| count);
        debug!(unread, "kernels that were launched are waited for");
        if let Some(reading) = &self.reading {
            reading.only_launched();
        }
        let mut progress = ReadingProgress::new(&self.listener, self.resolver.unread());
        while let (Some(left), Some(reading)) = (self.resolver.unread(), &self.reading) {
            progress.show(left);
            let answers = reading.wait(LAST_CODE_PAUSE);
            if stopped() {
                progress.stop();
                break;
            }
            let Some(answers) = answers else { break };
            self.take_answers(answers);
            self.look_again(None);
        }
        self.look_again(None);
        progress.end();
        self.resolver.give_up(&mut self.items);
        self.hand_on();
    }

    /// Looks up where in the source the frames of stacks are, while the images are still as they were
    /// run.
    pub(super) fn symbolize(&mut self, stopped: &mut dyn FnMut() -> bool) {
        if self.stacks.is_empty() {
            return;
        }
        debug!("the frames of stacks are looked up");
        let mut progress = self.listener.begin(Work::LookingUpStacks, None);
        let mut stopped = |left: usize| {
            progress.message(&places(left));
            stopped()
        };
        let (skipped, too_large) =
            self.stacks.symbolize(SYMBOLS_PATIENCE, &mut stopped, &mut self.items);
        drop(progress);
        self.hand_on();
        if !too_large.is_empty() {
            for image in &too_large {
                self.listener.warn(&without_lines(image));
            }
            let images: Vec<_> = too_large.iter().map(|image| image.to_string_lossy()).collect();
            self.record(Step::Note("images_without_lines", images.join("; ")));
        }
        for (fact, count) in
            [("stack_frames_not_looked_up", skipped), ("stacks_left_out", self.stacks.left_out())]
        {
            if count > 0 {
                self.record(Step::Note(fact, count.to_string()));
            }
        }
    }

    /// Says where Python frames are missing, and why.
    pub(super) fn tell_of_python(&mut self) {
        let mut told = Vec::new();
        for (process, refusal) in self.run.python_refusals() {
            if !told.contains(&refusal) {
                told.push(refusal);
                self.listener.warn(&format!(
                    "the stacks of process {} ({}) have no Python frames: {}",
                    process.pid,
                    process.exe,
                    refusal.description()
                ));
            }
        }
        if !told.is_empty() {
            let reasons: Vec<_> = told.iter().map(|refusal| refusal.description()).collect();
            self.record(Step::Note("python_frames_missing", reasons.join("; ")));
        }
    }
}
