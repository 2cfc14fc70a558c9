//! One file for each subcommand, and what they share.

mod advise;
mod analysis;
mod check;
mod clocks;
mod completions;
mod conclude;
#[cfg(test)]
mod damaged_traces;
mod demo;
mod diff;
mod doctor;
mod explain;
mod export;
#[cfg(test)]
mod failing_traces;
mod found_again;
mod gate;
mod jobs;
#[cfg(test)]
mod json_documents;
mod kernel_modes;
mod kernels;
mod known_upstream;
mod launches;
mod man;
mod mcp;
mod measure;
mod output;
mod probe;
mod progress;
mod recorded;
mod run;
mod settle;
mod several;
mod source_lines;
mod stats;
mod stored;
mod suppress;
mod tables;
mod trace;
mod traces;
mod tsan_stub;
mod verify;
mod view;
mod write_report;

pub(crate) use advise::advise;
pub(crate) use analysis::{Folding, analyse_with};
pub(crate) use check::check;
pub(crate) use completions::completions;
pub(crate) use demo::{demo, demo_program};
pub(crate) use diff::diff;
pub(crate) use doctor::{call_driver, doctor};
pub(crate) use explain::explain;
pub(crate) use export::export;
pub(crate) use kernels::kernels;
pub(crate) use known_upstream::known_upstream;
pub(crate) use man::man;
pub(crate) use mcp::mcp;
pub(crate) use output::{
    Stderr, color_as, hold_messages, not_printed, release_messages, warn, warn_of_large_images,
};
pub(crate) use probe::probe_driver;
pub(crate) use run::run;
pub(crate) use settle::settle;
pub(crate) use stats::stats;
pub(crate) use suppress::suppress;
pub(crate) use tsan_stub::tsan_stub;
pub(crate) use view::{view, viewer_of};
