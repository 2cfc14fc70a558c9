//! The interface to the command that runs the collector: messages for the user, and how far long work
//! has come. The collector knows neither terminals nor options; [`Listener`] is all that it asks for.

use std::fmt::Debug;

/// Who runs the collector.
pub trait Listener: Debug + Send + Sync {
    /// One message for the user, in one line, without a line break at its end.
    fn warn(&self, message: &str);

    /// Work begins that may take long. `operations` tells how much is known to be done, where
    /// that is known.
    fn begin(&self, work: Work, operations: Option<u64>) -> Box<dyn Progress>;
}

/// Work at the end of a run that a user may have to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The code of launched kernels is read.
    ReadingKernels,
    /// The frames of stacks are looked up in symbols and debug information.
    LookingUpStacks,
    /// The trace is analysed from its beginning.
    Analysing,
    /// The rest is written, and the trace is closed.
    FinishingTrace,
}

/// Work that goes on. It is over when this is dropped.
pub trait Progress {
    /// Shows the work of the moment, in a line or two.
    fn message(&mut self, text: &str);

    /// The first `operations` are done.
    fn position(&mut self, operations: u64);

    /// Whether somebody sees what is shown, so that no message has to say it.
    fn is_shown(&self) -> bool;
}

/// Tells nobody: for tests and benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Listener for Silent {
    fn warn(&self, _: &str) {}

    fn begin(&self, _: Work, _: Option<u64>) -> Box<dyn Progress> {
        Box::new(Self)
    }
}

impl Progress for Silent {
    fn message(&mut self, _: &str) {}

    fn position(&mut self, _: u64) {}

    fn is_shown(&self) -> bool {
        true
    }
}
