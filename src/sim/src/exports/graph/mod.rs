//! Graphs.

pub(super) mod build;
pub(super) mod exec;
pub(super) mod layout;
pub(super) mod params;
pub(super) mod query;
