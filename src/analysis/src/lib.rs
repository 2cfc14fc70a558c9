//! The happens-before engine: from an ordered sequence of operations to findings.
//!
//! A *race* is a pair of conflicting accesses to common bytes, at least one of them a write, that
//! no documented order of CUDA puts one after the other. Whether they collided in this run does not
//! matter. The approach is that of vector-clock race detectors (Flanagan and Freund, "FastTrack",
//! PLDI 2009), with streams as chains and the driver calls as synchronisation; the engine deviates
//! from it in three ways:
//! - a timestamp is the global issue index of an operation, and clocks have floors for whole
//!   contexts, so that a context synchronisation is one number (`clock`);
//! - two tiers are kept side by side, documented order and what is only incidental; a pair that
//!   the second tier alone orders is *latent* (`rules`);
//! - nothing is concluded from an earlier race: every access is reported against every maximal
//!   unordered conflicting predecessor (`shadow`).
//!
//! Stance: the engine may miss a race (accesses that no call shows, order that depends on thread
//! timing). It must not report a pair that documented order separates.
//!
//! The map: `engine` says which rule takes which call; `rules` are the rules of CUDA; `core`
//! appends operations to streams and adds to the hosts' knowledge; `clock`, `host`, `state`,
//! `context_table`, `api_names`, `signalled` and `outside` hold the state between operations;
//! `shadow` and `memory` find conflicts; `conflict`, `overlap`, `findings`, `explain`, `proposal`
//! and `lints` turn them into findings.
//!
//! Invariants: pure (no I/O, no clock, no randomness) and deterministic (no hash order reaches the
//! output); adding an edge never adds a race.
//!
//! Deliberately absent: order that a kernel makes by itself (flags in memory, launches of its own),
//! and work that no recorded call issues (`outside` says how waits for such work are judged).
#![forbid(unsafe_code)]

mod api_names;
mod clock;
mod conflict;
mod context_table;
mod core;
mod engine;
mod explain;
mod findings;
mod host;
mod lints;
mod memory;
mod options;
mod outside;
mod overlap;
mod proposal;
mod record;
mod rules;
mod shadow;
mod signalled;
mod sink;
mod state;
mod touch;
mod view;
mod what_if;
mod without;

pub use engine::{Analysis, Engine, analyse, analyse_with};
pub use options::{HostModel, Options, Statistics};
pub use rules::catalogue::Rule;
pub use sink::Sink;
pub use what_if::WhatIf;
pub use without::Without;
