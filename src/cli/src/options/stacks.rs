//! The stacks that are recorded.

use clap::ValueEnum;
use streamsan_wire::StackMode;

/// Which frames of the calling thread are recorded at each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stacks {
    /// None: reports name calls, not places
    Off,
    /// Frames of machine code
    Native,
    /// Frames of Python
    Python,
    /// Frames of machine code, and of Python where the program runs it
    #[default]
    Auto,
}

impl Stacks {
    /// As the runtime is told.
    pub(crate) const fn mode(self) -> StackMode {
        StackMode {
            native: matches!(self, Self::Native | Self::Auto),
            python: matches!(self, Self::Python | Self::Auto),
        }
    }
}
