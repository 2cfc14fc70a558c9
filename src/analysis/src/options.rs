//! The options of the engine, and its statistics.
//!
//! Invariant: an option never makes an edge that no rule makes.

use crate::Rule;

/// How host threads share their knowledge.
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
    /// The most unordered last writes, and the most unordered reads and atomics, kept for a range
    /// of bytes. Beyond it the oldest is dropped and counted ([`Statistics::antichain_overflows`]).
    pub antichain_cap: usize,
    /// Operations between two prunings of the shadow memory.
    pub prune_interval: u64,
    /// How host threads share their knowledge.
    pub host_model: HostModel,
    /// Whether to forget declarations of ended entities that no finding names, so that memory does
    /// not grow with the length of the trace.
    pub forgets: bool,
    /// A rule whose edges are left out. Tests use it to show that the absence of the rule is
    /// noticed; `None` in real use.
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

/// Statistics of an engine.
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
    /// Unordered predecessors dropped because a range of bytes had more than
    /// [`Options::antichain_cap`]. Findings may be missing.
    pub antichain_overflows: u64,
    /// Chains (streams, host, callbacks) with a clock.
    pub chains: u64,
    /// Whether a device used page-locked or managed memory when the call had returned, so that the
    /// host's own loads and stores could meet it.
    pub host_memory_in_flight: bool,
    /// Whether the program shows what its host does, by annotations or because it was compiled for
    /// it.
    pub shows_host_accesses: bool,
    /// Segments of shadow memory held now.
    pub segments: u64,
}
