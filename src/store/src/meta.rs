//! Facts about a recording.

use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// Facts about a recording that are known when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Version of streamsan that wrote the trace.
    pub tool_version: String,
    /// When the recording began.
    pub started_at: DateTime<Utc>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Name of the machine.
    pub host: String,
    /// The driver: its version, or the simulated one and its policy. Empty while unknown; set it
    /// later with [`crate::Writer::set_meta`] and the key [`Meta::DRIVER`].
    pub driver: String,
    /// Anything else, by key.
    pub extra: BTreeMap<String, String>,
}

impl Meta {
    /// Key of [`Meta::driver`].
    pub const DRIVER: &'static str = "driver";
}

/// Whether a trace is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceState {
    /// Its recording goes on, or was killed.
    Recording,
    /// Finished and whole.
    Complete,
    /// Finished, but something could not be stored.
    Truncated,
}

impl TraceState {
    /// The word that `meta` holds.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Complete => "complete",
            Self::Truncated => "truncated",
        }
    }
}
