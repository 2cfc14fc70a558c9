//! One file for each subcommand, and what they share.

mod analysis;
mod check;
mod demo;
mod diff;
mod doctor;
mod explain;
mod export;
mod gate;
mod kernel_modes;
mod kernels;
mod output;
mod probe;
mod run;
mod stats;
mod suppress;
mod trace;
mod tsan_stub;
mod verify;
mod view;
mod write_report;

pub(crate) use analysis::{Folding, analyse_with, spinner};
pub(crate) use check::check;
pub(crate) use demo::{demo, demo_program};
pub(crate) use diff::diff;
pub(crate) use doctor::doctor;
pub(crate) use explain::explain;
pub(crate) use export::export;
pub(crate) use kernels::kernels;
pub(crate) use output::warn;
pub(crate) use probe::probe_driver;
pub(crate) use run::run;
pub(crate) use stats::stats;
pub(crate) use suppress::suppress;
pub(crate) use tsan_stub::tsan_stub;
pub(crate) use view::view;
