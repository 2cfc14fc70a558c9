//! Mangled names of functions and kernels made readable: C++ and Rust, and plain C as it is.
//!
//! A kernel is shown in four ways. Programs get the [`whole`] name, with its result and parameters.
//! Reports for people print [`kernel`], in which template arguments are shortened until the name
//! fits into a line. In the viewer, where many stand beside each other, a [`label()`] begins with
//! what differs, and lists have room for its [`gist`] only. A frame of a stack is shown by its
//! [`function`].
//!
//! Every string from a program or a trace is made [`printable()`] where it is put into words, and all
//! output is checked once more as a whole, by [`printable_text`] or [`printable_json`]. Output for
//! programs (JSON, suppressions, fingerprints) holds the names unchanged.
//!
//! Invariants:
//! - A name that does not demangle is returned unchanged, never cut into something else.
//! - The same name gives the same text everywhere; nothing depends on a locale or a tool at hand.
//! - Names come out of strangers' files: no name makes this crate panic, run long or take much
//!   room, and no shown name has a control character or an invisible one.
//!
//! Deliberately absent: MSVC's, D's and Swift's mangling, which no CUDA compiler for Linux makes.
#![forbid(unsafe_code)]

mod demangle;
mod label;
mod pieces;
mod printable;
mod shown;

pub use demangle::{bare, function, whole};
pub use label::{gist, label};
pub use printable::{
    printable, printable_first, printable_json, printable_line, printable_path, printable_text,
};
pub use shown::{KERNEL, kernel};
