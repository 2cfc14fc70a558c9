//! The collector's progress as `run` shows it: messages, and bars on a terminal.

use super::analysis::{bar, spinner};
use super::output::warn;
use indicatif::ProgressBar;
use std::io::{self, IsTerminal};
use streamsan_collect::{Listener, Progress, Work};

/// The user at standard error.
#[derive(Clone, Copy, Debug)]
pub(super) struct StandardError;

impl Listener for StandardError {
    fn warn(&self, message: &str) {
        warn(message);
    }

    fn begin(&self, work: Work, operations: Option<u64>) -> Box<dyn Progress> {
        let unknown = operations.unwrap_or(u64::MAX);
        Box::new(Bar(match work {
            Work::ReadingKernels => spinner("reading kernels", unknown),
            Work::LookingUpStacks => spinner("looking up stacks in the source", unknown),
            Work::FinishingTrace => spinner("finishing the trace", unknown),
            Work::Analysing => bar(operations),
        }))
    }
}

/// A bar that goes when the work is over.
struct Bar(ProgressBar);

impl Progress for Bar {
    fn message(&mut self, text: &str) {
        self.0.set_message(text.to_owned());
    }

    fn position(&mut self, operations: u64) {
        self.0.set_position(operations);
    }

    fn is_shown(&self) -> bool {
        io::stderr().is_terminal()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
