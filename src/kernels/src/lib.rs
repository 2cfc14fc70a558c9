//! What a kernel touches: reading its code and working out which memory it accesses.
//!
//! This room holds the one PTX front end of the project ([`ptx`]): the simulated driver lowers and
//! runs what it parses. It never runs code and knows nothing of drivers or devices.
#![forbid(unsafe_code)]

pub mod image;
pub mod ptx;
