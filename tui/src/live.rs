//! A run that goes on while it is viewed: the viewer's interface to it.
//!
//! The run's trace is read like any other ([`streamsan_model::TraceQuery::refresh`] takes in new
//! rows). This interface gives what no trace holds: whether the program still runs, its output, and
//! its end.

/// A run and its program.
pub trait Run: Send + Sync {
    /// The state of the run. Never waits.
    fn standing(&self) -> Standing;

    /// The last lines of what the program has printed.
    fn output(&self) -> Vec<String>;

    /// Interrupts the program, as Ctrl-C in a terminal does.
    fn interrupt(&self);
}

/// How a run stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// How far it is.
    pub phase: Phase,
    /// Bytes that the program has printed.
    pub printed: u64,
    /// Whether the viewer is to be left, whatever the user does.
    pub leave: bool,
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The program runs.
    #[default]
    Running,
    /// The program has ended, and the trace is being finished.
    Finishing,
    /// All is done; verdict and exit code in words.
    Ended(String),
}
