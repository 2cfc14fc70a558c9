//! Findings in words: the text form for people and the JSON form for programs.
//!
//! A [`Report`] is built once from the results of the analysis and rendered in any form. Findings
//! of one fingerprint are folded into one [`Group`].
//!
//! Invariants:
//! - The same input gives the same bytes: no clock, no environment, no hash order.
//! - Everything is readable without colour; colour only repeats the words.
//! - The verdict line is always printed, as the last line, after the reasons of an incomplete run.
//!
//! Deliberately absent: SQL, CUDA, and any decision whether a pair is a race.
#![forbid(unsafe_code)]

mod coverage;
mod effect;
mod explain;
mod fix;
mod formats;
mod gate;
mod group;
mod interface;
mod json;
mod lints;
mod marked;
mod names;
mod pages;
mod ranges;
mod report;
mod settled;
mod several;
mod spread;
mod stacks;
mod story;
mod streams;
mod text;
mod upstream;

pub use coverage::{Coverage, Measured, MeasuredKernel, UnreadKernels};
pub use effect::Effect;
pub use formats::{FindingRow, HtmlInput, MemoryOfRow, Neighbourhood, PerfettoWriter, SideOfRow};
pub use gate::{
    Baseline, Disposition, Gate, GateError, Suppression, Suppressions, Unused, Upstream,
};
pub use group::{Folded, Group};
pub use lints::LintGroup;
pub use marked::{InTest, MarkedTests};
pub use names::reason_in_words;
pub use pages::Page;
pub use report::{Input, Report};
pub use settled::{Open, Settled};
pub use several::{InTrace, Several};
pub use stacks::SourcePlace;
pub use story::Story;
pub use text::{Detail, TextOptions};
pub use upstream::{KnownUpstream, UpstreamEntry};

/// A line of a source file, counted from 1, without its indentation; `None` where it cannot be read,
/// or where its file is not to be shown.
pub type SourceLine<'s> = dyn FnMut(&str, u32) -> Option<String> + 's;
