//! Facts about a recording, as rows of `meta`.

use chrono::{DateTime, SecondsFormat, Utc};
use std::collections::BTreeMap;

/// Facts about a recording that are known when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Version of streamsan that wrote the trace.
    pub tool_version: String,
    /// When the recording began (kept to the nanosecond).
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
    pub(crate) const STATE: &'static str = "state";
    pub(crate) const CLOCK_BASE: &'static str = "clock_base_ns";
    const TOOL_VERSION: &'static str = "tool_version";
    const STARTED_AT: &'static str = "started_at";
    const HOST: &'static str = "host";
    const ARGUMENT: &'static str = "argument.";

    /// The rows of the table `meta`.
    pub(crate) fn rows(&self) -> BTreeMap<String, String> {
        let mut rows = self.extra.clone();
        let started_at = self.started_at.to_rfc3339_opts(SecondsFormat::Nanos, true);
        for (key, value) in [
            (Self::TOOL_VERSION, &self.tool_version),
            (Self::STARTED_AT, &started_at),
            (Self::HOST, &self.host),
            (Self::DRIVER, &self.driver),
        ] {
            rows.insert(key.to_owned(), value.clone());
        }
        for (position, argument) in self.command.iter().enumerate() {
            rows.insert(format!("{}{position}", Self::ARGUMENT), argument.clone());
        }
        rows
    }

    /// The facts in the rows of `meta`, or the key that is missing or no good.
    pub(crate) fn from_rows(mut rows: BTreeMap<String, String>) -> Result<Self, &'static str> {
        rows.remove(Self::STATE);
        rows.remove(Self::CLOCK_BASE);
        let mut command = Vec::new();
        while let Some(argument) = rows.remove(&format!("{}{}", Self::ARGUMENT, command.len())) {
            command.push(argument);
        }
        let mut take = |key: &'static str| rows.remove(key).ok_or(key);
        let started_at = take(Self::STARTED_AT)?;
        let started_at = DateTime::parse_from_rfc3339(&started_at)
            .map_err(|_| Self::STARTED_AT)?
            .with_timezone(&Utc);
        let tool_version = take(Self::TOOL_VERSION)?;
        let host = take(Self::HOST)?;
        let driver = take(Self::DRIVER)?;
        Ok(Self { tool_version, started_at, command, host, driver, extra: rows })
    }
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

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Recording, Self::Complete, Self::Truncated]
            .into_iter()
            .find(|state| state.description() == word)
    }
}
