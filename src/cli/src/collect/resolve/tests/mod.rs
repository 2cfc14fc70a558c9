//! Hand-made records and what must come of them.

mod bench;
mod captures;
mod contexts;
mod copies;
mod graphs;
mod launches;
mod lifetimes;
