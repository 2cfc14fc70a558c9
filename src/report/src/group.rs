//! Findings of one fingerprint.

use streamsan_model::{Finding, OpSeq};

/// Findings of one fingerprint and severity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The first occurrence among those of the highest confidence.
    pub finding: Finding,
    /// Number of occurrences.
    pub count: u64,
    /// The operation at which the first occurrence stands.
    pub first: OpSeq,
    /// The operation at which the last occurrence stands.
    pub last: OpSeq,
    /// Whether it reaches the threshold.
    pub fails: bool,
}
