//! What tests of several rooms share; nothing that is installed depends on it.
//!
//! It knows no other room, so that each of them can have it among its dev-dependencies.
#![forbid(unsafe_code)]

pub mod images;
pub mod interpreters;
pub mod signals;
