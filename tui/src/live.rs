//! A run that goes on while it is viewed: what the viewer asks of it.
//!
//! Its trace is read as any other ([`streamsan_model::TraceQuery::refresh`] takes in what has come);
//! this is what no trace tells: whether the program still runs, what it prints, how it ended.

/// A run and its program.
pub trait Run: Send + Sync {
    /// How it stands. Never waits.
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
    /// The viewer is to be left, whatever the user does.
    pub leave: bool,
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The program runs.
    #[default]
    Running,
    /// It has ended, and the trace is being finished.
    Finishing,
    /// All is done; verdict and exit code in words.
    Ended(String),
}
