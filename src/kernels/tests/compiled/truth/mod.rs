//! Conclusions from kernels against the kernels' behaviour: the interpreter runs their PTX on
//! random launches and records every byte. What is concluded must cover these bytes, what is called
//! exact must be touched, and where a launch can be known exactly the sets are the same.

mod check;
mod committed;
mod generated;
mod memory;
mod runs;
mod sets;

pub(crate) use check::trials;
