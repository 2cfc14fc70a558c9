//! What the engine can be told, and what it counts.

use crate::Rule;

/// What host threads know of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostModel {
    /// Completion that any thread has observed orders what is issued later by any thread, because
    /// the program's own locks cannot be seen.
    #[default]
    Observed,
    /// Each thread knows what it has observed itself and what synchronisation between host threads
    /// has told it (`--strict-host-threads`).
    Strict,
}

/// Bounds of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Most unordered last writes, and most unordered reads and atomics, kept per byte range.
    /// Beyond it the oldest is dropped and counted ([`Statistics::antichain_overflows`]).
    pub antichain_cap: usize,
    /// Operations between two prunings of the shadow memory.
    pub prune_interval: u64,
    /// Whose knowledge orders what a host thread does.
    pub host_model: HostModel,
    /// Whether to forget declarations of what has ended and no finding names, so that a trace of any
    /// length takes little memory.
    pub forgets: bool,
    /// A rule whose edges are left out, to show that its absence is noticed; `None` in real use.
    pub without: Option<Rule>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            antichain_cap: 1024,
            prune_interval: 1 << 20,
            host_model: HostModel::default(),
            forgets: false,
            without: None,
        }
    }
}

/// What the engine has seen and spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Operations fed.
    pub operations: u64,
    /// Accesses checked against the shadow memory.
    pub accesses: u64,
    /// Synchronisation edges handed to the sink.
    pub edges: u64,
    /// Findings handed to the sink.
    pub findings: u64,
    /// Calls of two threads on one stream or event whose running times overlap, so that the order
    /// in which the driver took them is not known.
    pub ambiguous: u64,
    /// Unordered predecessors dropped because a byte range had more than
    /// [`Options::antichain_cap`]: findings may be missing.
    pub antichain_overflows: u64,
    /// Chains (streams, host, callbacks) with a clock.
    pub chains: u64,
    /// Segments of shadow memory held now.
    pub segments: u64,
}
