//! Ranges and marks by which a program names its phases, as NVTX tells them.
//!
//! A range is a fact about host threads. It orders nothing, touches nothing, and is no part of what
//! makes two findings one.

use crate::{HostTime, OpSeq, ProcessId, ThreadId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a range begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NvtxKind {
    /// `nvtxRangePush` and `nvtxRangePop` of one thread: the ranges of a thread and a domain nest.
    Pushed,
    /// `nvtxRangeStart` and `nvtxRangeEnd`: any thread of the process may end it.
    Started,
    /// `nvtxMark`: a moment.
    Mark,
}

impl NvtxKind {
    /// All kinds, in the order of their stored codes.
    pub const ALL: [Self; 3] = [Self::Pushed, Self::Started, Self::Mark];

    /// The word of traces.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Pushed => "pushed",
            Self::Started => "started",
            Self::Mark => "mark",
        }
    }
}

/// A range or a mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvtxRange {
    /// Global issue index at its begin; the identity of the range.
    pub begin: OpSeq,
    /// Global issue index at its end, that of its begin for a mark. `None` where it had not ended
    /// when the recording did.
    pub end: Option<OpSeq>,
    /// The process.
    pub process: ProcessId,
    /// The thread that began it.
    pub thread: ThreadId,
    /// How it begins and ends.
    pub kind: NvtxKind,
    /// The name of its domain; `None` for the default domain.
    pub domain: Option<Arc<str>>,
    /// Its name, as the program gives it; may be empty.
    pub name: Arc<str>,
    /// When it began and ended on the host; `end_ns` is `start_ns` where it had not ended.
    pub time: HostTime,
    /// Of a pushed range: the lowest number that no range has which was open on its thread when it
    /// began, in any domain. Ranges of one thread and depth do not overlap. 0 for others.
    pub depth: u32,
}

impl NvtxRange {
    /// The domain of started ranges that are tests of the program, by their names. streamsan's
    /// functions for tests record such ranges, and a program may make them itself by NVTX.
    pub const TESTS: &'static str = "streamsan/test";
    /// The domain of marks by which the running test allows findings: a class, an id, or `*`.
    pub const ALLOWED: &'static str = "streamsan/allow";

    /// Whether an issue index stands between its begin and its end.
    pub fn holds(&self, g: OpSeq) -> bool {
        self.begin < g && self.end.is_none_or(|end| g < end)
    }
}
