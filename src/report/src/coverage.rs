//! What the recording saw, as far as the verdict line tells of it.

/// Summary of coverage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Driver calls seen.
    pub calls: u64,
    /// Records lost.
    pub dropped: u64,
    /// Entry points that may order or touch memory and are not understood, with their calls.
    pub not_understood: Vec<(String, u64)>,
}
