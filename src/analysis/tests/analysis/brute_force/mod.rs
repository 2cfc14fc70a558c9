//! The reference that the engine is measured against: a graph with a node for everything that can
//! be ordered, an edge for every rule, and reachability by transitive closure.
//!
//! It is meant to be read beside the rules of CUDA and believed. It therefore knows no clock, no
//! epoch and no shadow memory, keeps nothing incremental, and shares no code with the engine.
//!
//! Deliberately absent: host functions, peer copies and the end of contexts, which have text traces
//! of their own.

mod bytes;
mod examples;
mod graph;
mod graphs;
mod launches;
mod pairs;
mod rules;
mod signals;

pub(crate) use pairs::{
    Pair, Reported, known_operations, maximal_pairs, necessary_pairs, unordered_pairs,
};
pub(crate) use rules::Order;
