//! The tables against the driver's own names and structures, and rings with real producers.

mod entry_points;
mod graph_layouts;
mod layouts;
mod producers;
