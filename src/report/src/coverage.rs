//! The recording's coverage, as far as the verdict line reports it.

use streamsan_model::HostAccesses;

/// Summary of coverage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Driver calls seen.
    pub calls: u64,
    /// Records lost.
    pub dropped: u64,
    /// Entry points that may order or touch memory and are not understood, with their calls.
    pub not_understood: Vec<(String, u64)>,
    /// The way to learn what unread kernels touch, where there is one.
    pub unread: Option<UnreadKernels>,
    /// How far the host's own loads and stores were watched; `None` where nothing needed watching, or
    /// nobody knows.
    pub host_accesses: Option<HostAccesses>,
}

/// Kernels that are machine code which nothing could read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadKernels {
    /// Number of launched kernels whose code could not be read.
    pub kernels: u64,
    /// The Python package that brings what reads it.
    pub package: String,
}
