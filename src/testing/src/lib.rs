//! Code that tests of several rooms share; nothing that is installed depends on it.
//!
//! It knows no other room, so that each of them can have it among its dev-dependencies; the feature
//! `fake-driver` alone knows the table of hooked functions.
#![forbid(unsafe_code)]

#[cfg(feature = "browser")]
pub mod browser;
pub mod corpus;
#[cfg(feature = "fake-driver")]
pub mod fake_driver;
pub mod golden;
pub mod images;
pub mod interpreters;
pub mod signals;
pub mod terminal;
