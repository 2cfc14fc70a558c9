//! Text traces through the public interface: what is parsed, what it means, and how it is written.

mod compare;
mod graphs;
mod meaning;
mod processes;
mod reference;
mod round_trip;
mod syntax;
